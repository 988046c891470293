//! What a step has to say to its client: numbered frames, kept until acknowledged.
//!
//! Promises that numbers have no gap, that nothing is dropped before the client has it, and that no more than
//! [`CAP`] bytes (and one read) wait: above it the pipes of the tasks are left unread, which slows the tasks down
//! instead of filling memory.

use crate::frame;
use sluice_proto::v1::{StepOutput, step_output::Kind};
use std::collections::VecDeque;

/// Bytes that may wait for the client.
pub const CAP: usize = 1 << 20;

#[derive(Default)]
pub struct Output {
    /// Encoded frames of the sequence numbers `first` …
    frames: VecDeque<Vec<u8>>,
    first: u64,
    bytes: usize,
}

impl Output {
    pub fn new() -> Self {
        Output { first: 1, ..Output::default() }
    }

    /// Queues a message under the next sequence number (from 1).
    pub fn push(&mut self, kind: Kind) {
        let sequence = self.first + self.frames.len() as u64;
        let mut encoded = Vec::new();
        frame::encode(&StepOutput { sequence, kind: Some(kind) }, &mut encoded);
        self.bytes += encoded.len();
        self.frames.push_back(encoded);
    }

    /// The client has everything up to and with `sequence`.
    pub fn ack(&mut self, sequence: u64) {
        while self.first <= sequence {
            let Some(frame) = self.frames.pop_front() else { break };
            self.bytes -= frame.len();
            self.first += 1;
        }
    }

    /// The frame after `sequence`, with its number. A client that claims less than it acknowledged gets what is left.
    pub fn after(&self, sequence: u64) -> Option<(u64, &[u8])> {
        let next = sequence.saturating_add(1).max(self.first);
        let frame = self.frames.get(usize::try_from(next - self.first).ok()?)?;
        Some((next, frame))
    }

    pub fn has_room(&self) -> bool {
        self.bytes < CAP
    }

    /// All is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_proto::v1::StdinRoom;

    fn queue(n: u64) -> Output {
        let mut output = Output::new();
        for offset in 0..n {
            output.push(Kind::StdinRoom(StdinRoom { offset }));
        }
        output
    }

    #[test]
    fn a_client_that_comes_back_gets_exactly_what_it_lacks() {
        let mut output = queue(5);
        output.ack(2);
        let mut seen = Vec::new();
        let mut at = 3;
        while let Some((sequence, _)) = output.after(at) {
            seen.push(sequence);
            at = sequence;
        }
        assert_eq!(seen, [4, 5]);
        assert_eq!(output.after(0).unwrap().0, 3, "what was acknowledged can't come again");
        output.ack(u64::MAX);
        assert!(output.is_empty() && output.after(5).is_none());
        output.push(Kind::StdinRoom(StdinRoom { offset: 9 }));
        assert_eq!(output.after(5).unwrap().0, 6);
    }

    #[test]
    fn memory_is_bounded_by_leaving_pipes_unread() {
        let mut output = queue(0);
        while output.has_room() {
            output
                .push(Kind::Output(sluice_proto::v1::TaskOutput { data: vec![0; 65536].into(), ..Default::default() }));
        }
        assert!(output.bytes < CAP + 66_000);
    }
}
