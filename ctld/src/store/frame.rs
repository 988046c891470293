//! Frames: how records lie in the store's files.
//!
//! `u32` length of the payload, `u32` CRC-32 of sequence number and payload, `u64` sequence number, payload; integers
//! little-endian. Sixteen zero bytes are no frame but the end: files are preallocated with zeros.

/// Bytes before each payload.
pub const HEADER: usize = 16;
/// No record is longer: a damaged length is not believed.
pub const MAX_PAYLOAD: usize = 1 << 30;

/// Appends one frame to `out`.
pub fn put(out: &mut Vec<u8>, seq: u64, payload: &[u8]) {
    out.extend_from_slice(&header(seq, payload));
    out.extend_from_slice(payload);
}

/// The header that goes before `payload`.
pub fn header(seq: u64, payload: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    // Callers keep payloads below MAX_PAYLOAD; a longer one is written with a length that no reader believes.
    header[0..4].copy_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    header[4..8].copy_from_slice(&checksum(seq, payload).to_le_bytes());
    header[8..16].copy_from_slice(&seq.to_le_bytes());
    header
}

fn checksum(seq: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&seq.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// What lies at an offset.
#[derive(PartialEq, Eq, Debug)]
pub enum Next<'a> {
    Frame {
        seq: u64,
        payload: &'a [u8],
        /// Offset after it.
        end: usize,
    },
    /// Nothing but zeros from here on.
    End,
    /// Not a whole frame.
    Bad(&'static str),
}

/// Reads the frame at `offset`.
pub fn read(data: &[u8], offset: usize) -> Next<'_> {
    let rest = data.get(offset..).unwrap_or(&[]);
    if rest.len() < HEADER || rest[..HEADER].iter().all(|b| *b == 0) {
        return if rest.iter().all(|b| *b == 0) { Next::End } else { Next::Bad("zeros before data") };
    }
    match frame_at(rest) {
        Some((seq, payload)) => Next::Frame { seq, payload, end: offset + HEADER + payload.len() },
        None => Next::Bad("checksum or length is wrong"),
    }
}

fn word(data: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&data[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// A valid frame at the start of `rest`.
fn frame_at(rest: &[u8]) -> Option<(u64, &[u8])> {
    let first = word(rest, 0);
    let (length, crc) = ((first & 0xffff_ffff) as usize, (first >> 32) as u32);
    if length > MAX_PAYLOAD {
        return None;
    }
    let payload = rest.get(HEADER..HEADER + length)?;
    let seq = word(rest, 8);
    (checksum(seq, payload) == crc).then_some((seq, payload))
}

/// Looks for a valid frame anywhere after `offset` whose sequence number is above `after`: if there is one, what is bad
/// at `offset` was flushed once and is damage, not a write cut short.
pub fn find_later(data: &[u8], offset: usize, after: u64) -> Option<usize> {
    let most = after.saturating_add(data.len() as u64);
    let last = data.len().checked_sub(HEADER)?;
    (offset + 1..=last).find(|at| {
        let seq = word(data, at + 8);
        seq > after && seq <= most && frame_at(&data[*at..]).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_read_back_and_zeros_end_them() {
        let mut data = Vec::new();
        put(&mut data, 7, b"seven");
        put(&mut data, 8, b"");
        data.extend_from_slice(&[0; 40]);
        let Next::Frame { seq: 7, payload: b"seven", end } = read(&data, 0) else { panic!("first frame") };
        let Next::Frame { seq: 8, payload: b"", end } = read(&data, end) else { panic!("second frame") };
        assert_eq!(read(&data, end), Next::End);
        assert_eq!(read(&data, data.len()), Next::End);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut data = Vec::new();
        put(&mut data, 7, b"seven");
        for bit in 0..data.len() * 8 {
            let mut bad = data.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(read(&bad, 0), Next::Bad(_)), "bit {bit}");
        }
    }

    #[test]
    fn a_valid_frame_after_a_bad_one_is_found() {
        let mut data = Vec::new();
        put(&mut data, 7, b"seven");
        let second = data.len();
        put(&mut data, 8, b"eight");
        data[3] ^= 1;
        assert_eq!(find_later(&data, 0, 6), Some(second));
        data[second + 5] ^= 1;
        assert_eq!(find_later(&data, 0, 6), None);
    }
}
