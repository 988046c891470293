//! What signals to srun mean (srun's manual page, "SIGNALS AND ESCAPE SEQUENCES").
//!
//! Owns the Ctrl-C rules: once reports, again within a second passes it on, once more ends the step. `-X` and
//! `--quit-on-interrupt` change them.

use std::time::{Duration, Instant};

const TOGETHER: Duration = Duration::from_secs(1);

/// What to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    Ignore,
    /// To the tasks, silently.
    Forward(i32),
    /// Say how the tasks are.
    Report,
    /// Pass Ctrl-C on and say so.
    Interrupt,
    /// End the step.
    Terminate,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Interrupts {
    /// `--disable-status`
    pub at_once: bool,
    /// `--quit-on-interrupt`
    pub quit: bool,
    last: Option<Instant>,
    count: u32,
}

impl Interrupts {
    pub fn new(at_once: bool, quit: bool) -> Self {
        Interrupts { at_once, quit, ..Interrupts::default() }
    }

    pub fn signal(&mut self, signal: i32, now: Instant) -> Action {
        match signal {
            nix::libc::SIGINT => self.interrupt(now),
            nix::libc::SIGTERM | nix::libc::SIGHUP | nix::libc::SIGQUIT => Action::Terminate,
            nix::libc::SIGUSR1 | nix::libc::SIGUSR2 | nix::libc::SIGALRM => Action::Forward(signal),
            _ => Action::Ignore,
        }
    }

    fn interrupt(&mut self, now: Instant) -> Action {
        if self.quit {
            return Action::Terminate;
        }
        let together = self.last.is_some_and(|last| now.duration_since(last) <= TOGETHER);
        self.count = if together { self.count + 1 } else { 1 };
        self.last = Some(now);
        match (self.at_once, self.count) {
            (true, 1) => Action::Interrupt,
            (true, _) => Action::Terminate,
            (false, 1) => Action::Report,
            (false, 2) => Action::Interrupt,
            (false, _) => Action::Terminate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::libc::{SIGINT, SIGTERM, SIGUSR1};

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn ctrl_c_reports_then_interrupts_then_terminates() {
        let start = Instant::now();
        let mut rules = Interrupts::new(false, false);
        assert_eq!(rules.signal(SIGINT, start), Action::Report);
        assert_eq!(rules.signal(SIGINT, at(start, 500)), Action::Interrupt);
        assert_eq!(rules.signal(SIGINT, at(start, 900)), Action::Terminate);
        // After a pause it begins anew.
        assert_eq!(rules.signal(SIGINT, at(start, 5000)), Action::Report);
    }

    #[test]
    fn options_shorten_the_way() {
        let start = Instant::now();
        let mut at_once = Interrupts::new(true, false);
        assert_eq!(at_once.signal(SIGINT, start), Action::Interrupt);
        assert_eq!(at_once.signal(SIGINT, at(start, 10)), Action::Terminate);
        assert_eq!(Interrupts::new(false, true).signal(SIGINT, start), Action::Terminate);
    }

    #[test]
    fn other_signals_pass_or_end() {
        let mut rules = Interrupts::new(false, false);
        assert_eq!(rules.signal(SIGTERM, Instant::now()), Action::Terminate);
        assert_eq!(rules.signal(SIGUSR1, Instant::now()), Action::Forward(SIGUSR1));
    }
}
