//! Environment blocks: `NAME=value`, each ended by a NUL, in the order of the process that made them.
//!
//! Byte for byte: nothing is decoded, and entries without `=` are kept where the whole block is passed on.

/// Iterates the entries (without their NULs). A last entry without a NUL counts; empty ones do not.
pub fn entries(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.split(|b| *b == 0).filter(|e| !e.is_empty())
}

/// Iterates (name, value); entries without `=` are left out. A name may begin with `=` (the first byte never splits).
pub fn vars(block: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    entries(block).filter_map(split)
}

fn split(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = 1 + entry.iter().skip(1).position(|b| *b == b'=')?;
    Some((&entry[..at], &entry[at + 1..]))
}

/// The block of these variables. What can't be stored (a NUL inside, an empty name, `=` in a name) is left out, since
/// no process could have it either.
pub fn build<N: AsRef<[u8]>, V: AsRef<[u8]>>(vars: impl IntoIterator<Item = (N, V)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in vars {
        push(&mut out, name.as_ref(), value.as_ref());
    }
    out
}

/// Appends a variable; false when it can't be stored. Does not look for an older one of the same name.
pub fn push(block: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let bad_name = name.is_empty() || name.contains(&0) || name[1..].contains(&b'=') || name == b"=";
    if bad_name || value.contains(&0) {
        return false;
    }
    if block.last().is_some_and(|b| *b != 0) {
        block.push(0);
    }
    block.extend_from_slice(name);
    block.push(b'=');
    block.extend_from_slice(value);
    block.push(0);
    true
}

/// The value of the first variable of this name, as getenv(3) finds it.
pub fn get<'a>(block: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    vars(block).find(|(n, _)| *n == name).map(|(_, v)| v)
}

/// Replaces the variable where it stands, or appends it. Further ones of the same name go. False when it can't be
/// stored; the block is then unchanged.
pub fn set(block: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let mut entry = Vec::new();
    if !push(&mut entry, name, value) {
        return false;
    }
    let mut out = Vec::with_capacity(block.len() + entry.len());
    let mut placed = false;
    for old in entries(block) {
        if split(old).is_some_and(|(n, _)| n == name) {
            if !placed {
                out.extend_from_slice(&entry);
            }
            placed = true;
        } else {
            out.extend_from_slice(old);
            out.push(0);
        }
    }
    if !placed {
        out.extend_from_slice(&entry);
    }
    *block = out;
    true
}

/// Takes every variable of this name out; true when there was one.
pub fn remove(block: &mut Vec<u8>, name: &[u8]) -> bool {
    retain(block, |n| n != name)
}

/// Keeps the variables whose name passes; entries without a name stay. True when something went.
pub fn retain(block: &mut Vec<u8>, mut keep: impl FnMut(&[u8]) -> bool) -> bool {
    let mut out = Vec::with_capacity(block.len());
    let mut gone = false;
    for entry in entries(block) {
        if split(entry).is_none_or(|(n, _)| keep(n)) {
            out.extend_from_slice(entry);
            out.push(0);
        } else {
            gone = true;
        }
    }
    *block = out;
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_built_found_replaced_and_removed_byte_for_byte() {
        let mut b = build([("A", &b"1"[..]), ("B", b"x=y\xff"), ("C", b"")]);
        assert_eq!(b, b"A=1\0B=x=y\xff\0C=\0");
        assert_eq!(get(&b, b"B"), Some(&b"x=y\xff"[..]));
        assert_eq!(get(&b, b"C"), Some(&b""[..]));
        assert_eq!(get(&b, b"D"), None);
        assert!(set(&mut b, b"A", b"2"));
        assert!(set(&mut b, b"D", b"4"));
        assert!(remove(&mut b, b"B"));
        assert!(!remove(&mut b, b"B"));
        assert_eq!(b, b"A=2\0C=\0D=4\0");
    }

    #[test]
    fn what_no_process_could_hold_is_not_stored() {
        let mut b = b"A=1\0".to_vec();
        for (name, value) in [(&b""[..], &b"x"[..]), (b"A=B", b"x"), (b"A\0", b"x"), (b"A", b"x\0y"), (b"=", b"x")] {
            assert!(!set(&mut b, name, value));
        }
        assert_eq!(b, b"A=1\0");
    }

    #[test]
    fn odd_entries_are_passed_on_and_repeats_end_with_a_set() {
        let mut b = b"noequals\0A=1\0=C:=x\0A=2".to_vec();
        assert_eq!(get(&b, b"A"), Some(&b"1"[..]));
        assert_eq!(get(&b, b"=C:"), Some(&b"x"[..]));
        assert!(set(&mut b, b"A", b"3"));
        assert_eq!(b, b"noequals\0A=3\0=C:=x\0");
    }
}
