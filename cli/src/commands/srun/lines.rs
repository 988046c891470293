//! Merging the streams of several tasks line by line, with labels.
//!
//! Pure. Promises that lines of different tasks never mix, that no byte is lost or doubled, and that a line which never
//! ends is passed on in pieces instead of filling memory.

use std::collections::BTreeMap;

/// A line longer than this is passed on in pieces.
const LONGEST: usize = 64 << 10;

/// How bytes become output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// As they come.
    Raw,
    /// Whole lines.
    Lines,
    /// Whole lines, each after the task's number in this many columns.
    Labelled { width: usize },
}

impl Mode {
    pub fn labelled(tasks: u32) -> Mode {
        Mode::Labelled { width: tasks.saturating_sub(1).to_string().len() }
    }
}

/// One of the two streams of all tasks.
pub struct Lines {
    mode: Mode,
    partial: BTreeMap<u32, Vec<u8>>,
}

impl Lines {
    pub fn new(mode: Mode) -> Self {
        Lines { mode, partial: BTreeMap::new() }
    }

    /// Takes what a task wrote; returns what can be passed on now.
    pub fn push(&mut self, task: u32, data: &[u8], eof: bool) -> Vec<u8> {
        if self.mode == Mode::Raw {
            return data.to_vec();
        }
        let mut out = Vec::new();
        let held = self.partial.remove(&task).unwrap_or_default();
        let mut line = held;
        let mut rest = data;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            line.extend_from_slice(&rest[..=end]);
            self.emit(task, &line, &mut out);
            line.clear();
            rest = &rest[end + 1..];
        }
        line.extend_from_slice(rest);
        if line.len() >= LONGEST || (eof && !line.is_empty()) {
            self.emit(task, &line, &mut out);
            // A label begins a line; so a labelled piece must end one.
            if matches!(self.mode, Mode::Labelled { .. }) {
                out.push(b'\n');
            }
            line.clear();
        }
        if !line.is_empty() {
            self.partial.insert(task, line);
        }
        out
    }

    fn emit(&self, task: u32, line: &[u8], out: &mut Vec<u8>) {
        if let Mode::Labelled { width } = self.mode {
            out.extend_from_slice(format!("{task:>width$}: ").as_bytes());
        }
        out.extend_from_slice(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_are_held_until_they_end() {
        let mut lines = Lines::new(Mode::Lines);
        assert_eq!(text(lines.push(0, b"abc0", false)), "");
        assert_eq!(text(lines.push(1, b"abc1", false)), "");
        assert_eq!(text(lines.push(0, b"def\nxyz", false)), "abc0def\n");
        assert_eq!(text(lines.push(1, b"def\nxyz", false)), "abc1def\n");
        assert_eq!(text(lines.push(0, b"", true)), "xyz");
        assert_eq!(text(lines.push(1, b"", true)), "xyz");
    }

    #[test]
    fn labels_are_as_wide_as_the_largest_rank() {
        let mut lines = Lines::new(Mode::labelled(11));
        assert_eq!(text(lines.push(8, b"vm\n\nx", false)), " 8: vm\n 8: \n");
        assert_eq!(text(lines.push(10, b"vm\n", false)), "10: vm\n");
        assert_eq!(text(lines.push(8, b"", true)), " 8: x\n");
        assert_eq!(Mode::labelled(10), Mode::Labelled { width: 1 });
    }

    #[test]
    fn raw_bytes_pass_as_they_come() {
        let mut lines = Lines::new(Mode::Raw);
        assert_eq!(lines.push(0, b"a\xff", false), b"a\xff");
    }

    #[test]
    fn an_endless_line_is_passed_on_in_pieces() {
        let mut lines = Lines::new(Mode::Lines);
        let mut passed = 0;
        for _ in 0..100 {
            passed += lines.push(0, &[b'x'; 10_000], false).len();
        }
        assert!(passed > 900_000);
        passed += lines.push(0, b"", true).len();
        assert_eq!(passed, 1_000_000);
    }
}
