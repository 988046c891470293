//! Bytes of users (names, comments, paths, words of a command line) as text, and back.
//!
//! Owns how commands work with such bytes as strings and print them as they came. Each byte that is not part of UTF-8 is
//! held as a character of its own, U+10FF80 to U+10FFFF, in the plane that Unicode leaves to private use; what holds
//! these very characters in earnest is taken for bytes, too, so that [`release`] gives back exactly what [`hold`] got.
//! Everything that is printed is released by `out`; JSON, which must be UTF-8, shows U+FFFD instead.

use std::borrow::Cow;

const FIRST: u32 = 0x10_ff00;
/// How the held characters begin in UTF-8; the third byte is 0xbe or 0xbf.
const LEAD: [u8; 2] = [0xf4, 0x8f];

fn is_held(c: char) -> bool {
    (FIRST + 0x80..=FIRST + 0xff).contains(&u32::from(c))
}

fn push_held(bytes: &[u8], text: &mut String) {
    text.extend(bytes.iter().filter_map(|b| char::from_u32(FIRST + u32::from(*b))));
}

/// Text for any bytes. Nothing is lost: see `release`.
pub fn hold(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(is_held)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_held(c) {
                true => push_held(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
                false => text.push(c),
            }
        }
        push_held(chunk.invalid(), &mut text);
    }
    Cow::Owned(text)
}

/// The bytes that `hold` was given, for text that may hold some.
pub fn release(text: &[u8]) -> Cow<'_, [u8]> {
    let held = |at: &[u8]| at.len() >= 4 && at[..2] == LEAD && matches!(at[2], 0xbe | 0xbf);
    let Some(first) = text.windows(4).position(held) else { return Cow::Borrowed(text) };
    let mut bytes = text[..first].to_vec();
    let mut rest = &text[first..];
    while let Some(byte) = rest.first() {
        if held(rest) {
            bytes.push((rest[2] & 0x3f) << 6 | (rest[3] & 0x3f));
            rest = &rest[4..];
        } else {
            bytes.push(*byte);
            rest = &rest[1..];
        }
    }
    Cow::Owned(bytes)
}

/// The same as a value on the wire.
pub fn wire(text: &str) -> prost::bytes::Bytes {
    release(text.as_bytes()).into_owned().into()
}

/// For JSON: U+FFFD where the bytes are no UTF-8.
pub fn lossy(text: &str) -> Cow<'_, str> {
    match release(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back_as_they_were() {
        let all: Vec<u8> = (0..=255).collect();
        let private = "\u{10ff00}\u{10ff7f}\u{10ff80}\u{10ffff}\u{10feff}".as_bytes();
        for bytes in [&all[..], b"", b"plain", "schön".as_bytes(), b"\xff", b"a\xc3", b"\xf4\x8f\xbe", private] {
            let held = hold(bytes);
            assert_eq!(&*release(held.as_bytes()), bytes);
            assert_eq!(lossy(&held), String::from_utf8_lossy(bytes));
        }
        assert!(matches!(hold("schön".as_bytes()), Cow::Borrowed(_)));
        assert_eq!(hold(b"a\xff\xfe").chars().count(), 3, "one column for each such byte");
    }
}
