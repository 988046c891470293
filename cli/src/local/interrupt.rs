//! Ctrl-C while something must still be tidied up: noted here, looked at by those who wait.

use super::{LocalError, Result};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

static CAUGHT: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: nix::libc::c_int) {
    CAUGHT.store(true, Ordering::Relaxed);
}

/// From now on SIGINT, SIGTERM and SIGHUP only make `check` fail.
pub(super) fn catch() -> Result<()> {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, &action) }.map_err(|e| LocalError::Said(format!("{signal}: {e}")))?;
    }
    Ok(())
}

pub(super) fn check() -> Result<()> {
    if CAUGHT.load(Ordering::Relaxed) { Err(LocalError::Said("interrupted".to_owned())) } else { Ok(()) }
}
