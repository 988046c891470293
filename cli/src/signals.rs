//! Signals to srun and salloc, as one stream of numbers.

use nix::libc::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// All that these commands act upon.
pub struct Signals {
    kinds: Vec<(i32, Signal)>,
}

impl Signals {
    pub fn new() -> std::io::Result<Self> {
        let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH];
        let kinds =
            all.into_iter().map(|n| Ok((n, signal(SignalKind::from_raw(n))?))).collect::<std::io::Result<_>>()?;
        Ok(Signals { kinds })
    }

    /// The next one's number.
    pub async fn next(&mut self) -> i32 {
        std::future::poll_fn(|cx| {
            for (number, signal) in &mut self.kinds {
                if let std::task::Poll::Ready(Some(())) = signal.poll_recv(cx) {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// The next one that means "stop".
    pub async fn next_stop(&mut self) -> i32 {
        loop {
            let signal = self.next().await;
            if matches!(signal, SIGINT | SIGTERM | SIGHUP | SIGQUIT) {
                return signal;
            }
        }
    }
}

/// So that srun can be moved between foreground and background without being stopped by its terminal.
pub fn ignore_terminal_stops() {
    use nix::sys::signal::{SigHandler, Signal, signal};
    for ignored in [Signal::SIGTTIN, Signal::SIGTTOU] {
        // SAFETY: no handler is installed, the signal is ignored.
        if let Err(e) = unsafe { signal(ignored, SigHandler::SigIgn) } {
            crate::errln!("srun: error: cannot ignore {ignored}: {e}");
        }
    }
}
