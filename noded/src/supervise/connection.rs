//! One connection to the supervisor: the node daemon that watches the step, or the way to its client.
//!
//! Promises bounded memory for a peer that does not read, and that a broken connection loses nothing: what the client
//! has not acknowledged stays in [`Output`] for the next one.

use super::output::Output;
use crate::frame::{self, Decoder};
use sluice_proto::v1::{StepOutput, SupervisorCommand};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// Bytes put into the socket's queue ahead of its reader.
const AHEAD: usize = 256 << 10;

pub struct Connection {
    pub stream: UnixStream,
    decoder: Decoder,
    pending: Vec<u8>,
    written: usize,
    /// The last sequence sent here; `None` while this is no client.
    pub sent: Option<u64>,
    /// Commands of this connection have ended (or broke the rules): it is dropped.
    pub closed: bool,
    /// Asked to be told of the step's beginning and end.
    pub watches: bool,
    /// Has been told how the step began.
    pub greeted: bool,
    /// Has been told that the step is over.
    pub told_end: bool,
}

impl Connection {
    pub fn new(stream: UnixStream) -> Self {
        Connection {
            stream,
            decoder: Decoder::default(),
            pending: Vec::new(),
            written: 0,
            sent: None,
            closed: false,
            watches: false,
            greeted: false,
            told_end: false,
        }
    }

    pub fn is_client(&self) -> bool {
        self.sent.is_some()
    }

    /// What can be read now. Commands that came before the end of the stream are still carried out.
    pub fn read(&mut self) -> Vec<SupervisorCommand> {
        let mut chunk = [0; 65536];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.closed = true,
            Ok(n) => self.decoder.push(&chunk[..n]),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.closed = true,
        }
        let mut commands = Vec::new();
        loop {
            match self.decoder.take() {
                Ok(Some(command)) => commands.push(command),
                Ok(None) => break,
                Err(_) => {
                    self.closed = true;
                    break;
                }
            }
        }
        commands
    }

    /// Queues a message that is not part of the numbered output.
    pub fn send(&mut self, message: &StepOutput) {
        frame::encode(message, &mut self.pending);
    }

    /// Takes numbered output as far as this connection keeps up.
    pub fn fill(&mut self, output: &Output) {
        let Some(mut sent) = self.sent else { return };
        while self.pending.len() - self.written < AHEAD {
            let Some((sequence, frame)) = output.after(sent) else { break };
            self.pending.extend_from_slice(frame);
            sent = sequence;
        }
        self.sent = Some(sent);
    }

    pub fn has_pending(&self) -> bool {
        self.written < self.pending.len()
    }

    pub fn write(&mut self) {
        while self.has_pending() {
            match self.stream.write(&self.pending[self.written..]) {
                Ok(0) => self.closed = true,
                Ok(n) => self.written += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => self.closed = true,
            }
            if self.closed {
                return;
            }
        }
        self.pending.clear();
        self.written = 0;
    }
}
