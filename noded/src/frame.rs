//! Frames between the node daemon and its step supervisors: a 32-bit big-endian length, then one protobuf message.
//!
//! Owns the framing alone. Promises that a frame split at any byte is put together again, and that a length beyond
//! [`MAX_FRAME`] is an error before anything is allocated for it. Knows nothing of sockets.

use prost::Message;

/// Larger frames are refused: nothing that noded and a supervisor say to each other comes near it.
pub const MAX_FRAME: usize = 16 << 20;

/// Appends `message` as one frame.
pub fn encode(message: &impl Message, out: &mut Vec<u8>) {
    let len = message.encoded_len();
    out.extend_from_slice(&(len as u32).to_be_bytes());
    out.reserve(len);
    // A Vec grows as needed, so that encoding can't run out of room.
    if let Err(e) = message.encode(out) {
        unreachable!("a Vec has room: {e}");
    }
}

/// Bytes that came in, until they make whole frames.
#[derive(Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
}

/// What came can't be a frame; the connection is of no more use.
#[derive(Debug, PartialEq, Eq)]
pub struct BadFrame(pub String);

impl std::fmt::Display for BadFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BadFrame {}

impl Decoder {
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        } else if self.start > (1 << 20) {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message, `None` until more bytes are pushed.
    pub fn take<M: Message + Default>(&mut self) -> Result<Option<M>, BadFrame> {
        let rest = &self.buffer[self.start..];
        let Some((head, body)) = rest.split_at_checked(4) else { return Ok(None) };
        let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if len > MAX_FRAME {
            return Err(BadFrame(format!("a frame of {len} bytes; at most {MAX_FRAME} are allowed")));
        }
        let Some(body) = body.get(..len) else { return Ok(None) };
        let message = M::decode(body).map_err(|e| BadFrame(format!("not a message: {e}")))?;
        self.start += 4 + len;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_proto::v1;

    #[test]
    fn frames_split_at_any_byte_come_out_whole() {
        let mut wire = Vec::new();
        for offset in 0..3 {
            encode(&v1::StdinRoom { offset }, &mut wire);
        }
        let mut decoder = Decoder::default();
        let mut seen = Vec::new();
        for byte in wire {
            decoder.push(&[byte]);
            while let Some(room) = decoder.take::<v1::StdinRoom>().unwrap() {
                seen.push(room.offset);
            }
        }
        assert_eq!(seen, [0, 1, 2]);
    }

    #[test]
    fn an_absurd_length_is_refused_at_once() {
        let mut decoder = Decoder::default();
        decoder.push(&[0xff; 4]);
        assert!(decoder.take::<v1::StdinRoom>().is_err());
    }
}
