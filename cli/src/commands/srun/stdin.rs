//! srun's stdin on its way to the tasks.
//!
//! Owns reading it and what must be kept until every node has it. Promises that each node gets each byte once and in
//! order, also across a broken connection, and that no more is read than nodes have room for.

use sluice_proto::v1;
use std::fs::File;
use std::io::Read;
use tokio::sync::mpsc;

/// One read.
const CHUNK: usize = 64 << 10;
/// Nodes hold at most this much that tasks have not read; what lies further back than this from a node's room has
/// certainly reached it.
const KEPT: u64 = 1 << 20;
/// Read no further ahead than this.
const AHEAD: u64 = 4 * CHUNK as u64;

/// Where the bytes come from.
pub enum Source {
    Stdin,
    File(File),
}

/// Reads in a thread of its own: a terminal or pipe may block for ever. An empty chunk is the end.
pub fn start(source: Source) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(2);
    std::thread::spawn(move || {
        let mut source = source;
        loop {
            let mut chunk = vec![0; CHUNK];
            let read = match &mut source {
                Source::Stdin => read_stdin(&mut chunk),
                Source::File(file) => file.read(&mut chunk).unwrap_or(0),
            };
            chunk.truncate(read);
            if sender.blocking_send(chunk).is_err() || read == 0 {
                return;
            }
        }
    });
    receiver
}

/// A background process may not read its terminal: that is EIO here, as SIGTTIN is ignored; then wait until it may.
fn read_stdin(chunk: &mut [u8]) -> usize {
    loop {
        // SAFETY: descriptor 0 stays open for the life of the process.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(0) };
        match nix::unistd::read(fd, chunk) {
            Ok(n) => return n,
            Err(nix::errno::Errno::EINTR) => {}
            Err(nix::errno::Errno::EAGAIN) => {
                let mut poll = [nix::poll::PollFd::new(fd, nix::poll::PollFlags::POLLIN)];
                let _ = nix::poll::poll(&mut poll, nix::poll::PollTimeout::NONE);
            }
            Err(nix::errno::Errno::EIO) if in_background() => std::thread::sleep(std::time::Duration::from_millis(500)),
            Err(_) => return 0,
        }
    }
}

fn in_background() -> bool {
    let Ok(tty) = File::open("/dev/tty") else { return false };
    nix::unistd::tcgetpgrp(&tty).is_ok_and(|group| group != nix::unistd::getpgrp())
}

/// A node's place in the stream.
#[derive(Clone, Copy, Default)]
struct Place {
    reads: bool,
    started: bool,
    sent: u64,
    room: u64,
    eof_sent: bool,
}

/// What was read and not yet certainly delivered.
pub struct Stdin {
    buffer: Vec<u8>,
    base: u64,
    eof: bool,
    places: Vec<Place>,
}

impl Stdin {
    /// `reads[i]`: node i has a task that reads srun's stdin.
    pub fn new(reads: &[bool]) -> Self {
        let places = reads.iter().map(|reads| Place { reads: *reads, ..Place::default() }).collect();
        Stdin { buffer: Vec::new(), base: 0, eof: false, places }
    }

    fn end(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Someone can take more.
    pub fn wants_more(&self) -> bool {
        let slowest = self.places.iter().filter(|p| p.reads).map(|p| if p.started { p.room } else { 0 }).min();
        !self.eof && slowest.is_some_and(|room| self.end() < room.saturating_add(AHEAD) && room > 0)
    }

    /// Takes a chunk; an empty one is the end.
    pub fn take(&mut self, chunk: &[u8]) {
        self.eof |= chunk.is_empty();
        self.buffer.extend_from_slice(chunk);
    }

    /// The node has everything before `offset`; what comes later is sent (again) from there.
    pub fn started(&mut self, node: usize, offset: u64) {
        if let Some(place) = self.places.get_mut(node) {
            *place = Place { started: true, sent: offset, eof_sent: false, ..*place };
        }
    }

    pub fn room(&mut self, node: usize, offset: u64) {
        if let Some(place) = self.places.get_mut(node) {
            place.room = place.room.max(offset);
        }
    }

    /// The connection broke: nothing is sent until the node says where it stands.
    pub fn detached(&mut self, node: usize) {
        if let Some(place) = self.places.get_mut(node) {
            place.started = false;
        }
    }

    pub fn ended(&mut self, node: usize) {
        if let Some(place) = self.places.get_mut(node) {
            place.reads = false;
        }
    }

    /// What can be sent to whom now.
    pub fn pump(&mut self, mut send: impl FnMut(usize, v1::StdinData)) {
        let end = self.end();
        for (node, place) in self.places.iter_mut().enumerate().filter(|(_, p)| p.reads && p.started) {
            while place.sent < end.min(place.room) {
                let from = usize::try_from(place.sent.saturating_sub(self.base)).unwrap_or(usize::MAX);
                let most = usize::try_from(place.room - place.sent).unwrap_or(usize::MAX).min(CHUNK);
                let rest = self.buffer.get(from..).unwrap_or_default();
                let data = &rest[..rest.len().min(most)];
                if data.is_empty() {
                    break;
                }
                send(node, v1::StdinData { data: data.to_vec().into(), eof: false, offset: place.sent });
                place.sent += data.len() as u64;
            }
            if self.eof && place.sent >= end && !place.eof_sent {
                place.eof_sent = true;
                send(node, v1::StdinData { data: Default::default(), eof: true, offset: end });
            }
        }
        self.trim();
    }

    fn trim(&mut self) {
        let delivered = |p: &Place| if p.started { p.room.saturating_sub(KEPT).min(p.sent) } else { 0 };
        let kept = self.places.iter().filter(|p| p.reads).map(delivered).min().unwrap_or(self.end());
        let drop = usize::try_from(kept.saturating_sub(self.base)).unwrap_or(0).min(self.buffer.len());
        if drop > CHUNK {
            self.buffer.drain(..drop);
            self.base += drop as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends and remembers, as a node would take it.
    fn pump(stdin: &mut Stdin, got: &mut [Vec<u8>], eof: &mut [bool]) {
        stdin.pump(|node, data| {
            assert_eq!(data.offset, got[node].len() as u64, "no gap and nothing twice");
            got[node].extend_from_slice(&data.data);
            eof[node] |= data.eof;
        });
    }

    #[test]
    fn every_node_gets_every_byte_at_its_own_pace() {
        let mut stdin = Stdin::new(&[true, true, false]);
        let (mut got, mut eof) = (vec![Vec::new(); 3], vec![false; 3]);
        assert!(!stdin.wants_more(), "nobody has room yet");
        for node in 0..2 {
            stdin.started(node, 0);
            stdin.room(node, 4);
        }
        assert!(stdin.wants_more());
        stdin.take(b"hello world");
        stdin.take(b"");
        pump(&mut stdin, &mut got, &mut eof);
        assert_eq!(got[0], b"hell");
        stdin.room(0, 100);
        pump(&mut stdin, &mut got, &mut eof);
        assert_eq!((got[0].as_slice(), got[1].as_slice()), (&b"hello world"[..], &b"hell"[..]));
        assert_eq!(eof, [true, false, false]);
        stdin.room(1, 100);
        pump(&mut stdin, &mut got, &mut eof);
        assert_eq!(got[1], b"hello world");
        assert_eq!(eof, [true, true, false]);
        assert!(got[2].is_empty());
    }

    #[test]
    fn after_a_break_it_goes_on_from_where_the_node_stands() {
        let mut stdin = Stdin::new(&[true]);
        stdin.started(0, 0);
        stdin.room(0, 100);
        stdin.take(b"0123456789");
        let (mut got, mut eof) = (vec![Vec::new()], vec![false]);
        pump(&mut stdin, &mut got, &mut eof);
        stdin.detached(0);
        stdin.take(b"abc");
        pump(&mut stdin, &mut got, &mut eof);
        assert_eq!(got[0].len(), 10, "nothing is sent while detached");
        // The node had got only the first four.
        got[0].truncate(4);
        stdin.started(0, 4);
        pump(&mut stdin, &mut got, &mut eof);
        assert_eq!(got[0], b"0123456789abc");
    }

    #[test]
    fn a_long_stream_does_not_pile_up() {
        let mut stdin = Stdin::new(&[true]);
        stdin.started(0, 0);
        let mut sent = 0;
        for _ in 0..1000 {
            stdin.room(0, sent + 256 * 1024);
            assert!(stdin.wants_more());
            stdin.take(&[7; CHUNK]);
            stdin.pump(|_, data| sent += data.data.len() as u64);
        }
        assert_eq!(sent, 1000 * CHUNK as u64);
        assert!(stdin.buffer.len() < 3 << 20, "{}", stdin.buffer.len());
    }
}
