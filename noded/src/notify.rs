//! systemd's readiness protocol (sd_notify(3)): datagrams to the socket in NOTIFY_SOCKET. Without systemd nothing happens.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Sends one state line, e.g. `READY=1`.
pub fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&path),
    };
    let sent = address.and_then(|a| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &a));
    if let Err(error) = sent {
        tracing::warn!(%error, state, "systemd could not be notified");
    }
}

/// How often systemd wants a sign of life: half of WATCHDOG_USEC.
pub fn watchdog_interval() -> Option<Duration> {
    let usec: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    let for_us = std::env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
    (for_us && usec > 0).then(|| Duration::from_micros(usec / 2))
}
