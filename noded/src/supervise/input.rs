//! The client's stdin, on its way to the tasks that read it.
//!
//! One buffer for all tasks, each of which has its own place in it. Promises that each byte reaches every reading task
//! once and in order, however often the client sends it again, and that the client may send no further than
//! [`Input::room`]: the slowest reader sets the pace.

/// Bytes that the client may be ahead of the slowest task.
pub const CAP: usize = 256 << 10;

#[derive(Default)]
pub struct Input {
    buffer: Vec<u8>,
    /// Offset of the buffer's first byte in the client's stream.
    base: u64,
    eof: bool,
}

impl Input {
    /// The offset of the next byte that is not here yet.
    pub fn end(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Takes what is new of `data`, which begins at `offset` of the client's stream. False: a gap, or more than was
    /// allowed; nothing was taken and the client must begin again from [`Input::end`].
    pub fn accept(&mut self, offset: u64, data: &[u8], eof: bool) -> bool {
        let end = self.end();
        if offset > end {
            return false;
        }
        let known = usize::try_from(end - offset).unwrap_or(usize::MAX);
        let fresh = data.get(known..).unwrap_or_default();
        if self.buffer.len() + fresh.len() > 4 * CAP {
            return false;
        }
        if !self.eof {
            self.buffer.extend_from_slice(fresh);
            self.eof = eof && offset + data.len() as u64 == self.end();
        }
        true
    }

    /// What a task at `position` has not had yet.
    pub fn from(&self, position: u64) -> &[u8] {
        let skip = usize::try_from(position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.buffer.get(skip..).unwrap_or_default()
    }

    /// The client has ended its stream and a task at `position` has had it all.
    pub fn at_eof(&self, position: u64) -> bool {
        self.eof && position >= self.end()
    }

    /// Forgets what every reader has had; `slowest` is `None` when nobody reads (all is thrown away).
    pub fn trim(&mut self, slowest: Option<u64>) {
        let upto = slowest.unwrap_or(u64::MAX).min(self.end());
        let drop = usize::try_from(upto.saturating_sub(self.base)).unwrap_or(0);
        // Moving the rest costs: wait until it is worth it.
        if drop == self.buffer.len() || drop >= CAP / 4 {
            self.buffer.drain(..drop);
            self.base += drop as u64;
        }
    }

    /// The offset up to which the client may send.
    pub fn room(&self) -> u64 {
        self.base + CAP as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sent_again_are_taken_once_and_gaps_refused() {
        let mut input = Input::default();
        assert!(input.accept(0, b"abc", false));
        assert!(input.accept(1, b"bcde", false));
        assert!(!input.accept(9, b"x", false));
        assert_eq!(input.from(0), b"abcde");
        assert_eq!(input.from(3), b"de");
        assert!(input.accept(5, b"", true));
        assert!(input.at_eof(5) && !input.at_eof(4));
        assert!(input.accept(5, b"late", false));
        assert_eq!(input.end(), 5, "nothing comes after the end");
    }

    #[test]
    fn the_slowest_reader_sets_the_pace() {
        let mut input = Input::default();
        let data = vec![7; CAP];
        assert!(input.accept(0, &data, false));
        input.trim(Some(10));
        assert_eq!(input.room(), CAP as u64);
        input.trim(Some(CAP as u64));
        assert_eq!(input.room(), 2 * CAP as u64);
        input.accept(CAP as u64, b"xyz", false);
        input.trim(None);
        assert_eq!(input.from(input.end()), b"");
        assert_eq!(input.end(), CAP as u64 + 3);
    }
}
