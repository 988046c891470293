//! The terminal around `srun --pty`: raw while the step runs, as it was afterwards.

use nix::sys::termios::{self, SetArg, Termios};

/// Puts the terminal back when dropped.
pub struct RawTerminal {
    before: Option<Termios>,
}

fn stdin() -> std::os::fd::BorrowedFd<'static> {
    // SAFETY: descriptor 0 stays open for the life of the process.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(0) }
}

impl RawTerminal {
    /// Nothing happens when stdin is no terminal.
    pub fn enter() -> RawTerminal {
        let before = termios::tcgetattr(stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            termios::cfmakeraw(&mut raw);
            // Failing leaves a usable, if cooked, terminal.
            let _ = termios::tcsetattr(stdin(), SetArg::TCSANOW, &raw);
        }
        RawTerminal { before }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = termios::tcsetattr(stdin(), SetArg::TCSADRAIN, before);
        }
    }
}

/// Rows and columns; None when stdin is no terminal.
pub fn size() -> Option<(u32, u32)> {
    let mut size = nix::libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a winsize, which lives here.
    let rc = unsafe { nix::libc::ioctl(0, nix::libc::TIOCGWINSZ, &mut size) };
    (rc == 0 && size.ws_row > 0).then(|| (u32::from(size.ws_row), u32::from(size.ws_col)))
}
