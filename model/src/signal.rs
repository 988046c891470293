//! Signal names and numbers (Linux), and `--signal`.

use crate::error::{ParseError, digits};
use crate::job::SignalRequest;

/// Names without `SIG`, by number from 1 (signal(7), x86 and ARM).
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];
/// The last real-time signal.
const MAX: u64 = 64;
/// `--signal=USR1` without a time.
const DEFAULT_BEFORE_SECS: u32 = 60;

/// `USR1`, `SIGUSR1`, `usr1`, `10`, `SIG34`.
pub fn parse_signal_name(text: &str) -> Option<u8> {
    if let Some(n) = digits(text, MAX) {
        return (n > 0).then_some(n as u8);
    }
    let upper = text.get(..text.len().min(16))?.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    // `SIG34`, as `name` prints those without a name.
    if let Some(n) = digits(bare, MAX) {
        return (n > 0).then_some(n as u8);
    }
    let bare = match bare {
        "IOT" => "ABRT",
        "CLD" => "CHLD",
        "POLL" => "IO",
        other => other,
    };
    NAMES.iter().position(|n| *n == bare).map(|i| i as u8 + 1)
}

/// `USR1`; `SIG34` … for those without a name.
pub fn name(number: u8) -> String {
    match NAMES.get(usize::from(number).wrapping_sub(1)) {
        Some(name) => (*name).to_owned(),
        None => format!("SIG{number}"),
    }
}

/// `[{R|B}:]signal[@seconds]`; both letters may be given.
pub fn parse_signal_request(text: &str) -> Result<SignalRequest, ParseError> {
    let fail = |allowed: &str| ParseError::new("signal request", text, allowed);
    let (letters, rest) = text.split_once(':').unwrap_or(("", text));
    let mut request =
        SignalRequest { signal: 0, before_secs: DEFAULT_BEFORE_SECS, batch_shell: false, reservation: false };
    if text.contains(':') && letters.is_empty() {
        return Err(fail("before ':' comes R or B"));
    }
    for letter in letters.chars() {
        match letter {
            'B' | 'b' => request.batch_shell = true,
            'R' | 'r' => request.reservation = true,
            _ => return Err(fail("before ':' comes R or B")),
        }
    }
    let (signal, before) = match rest.split_once('@') {
        Some((s, t)) => (s, Some(t)),
        None => (rest, None),
    };
    request.signal = parse_signal_name(signal).ok_or_else(|| fail("a signal's name or number, such as USR1 or 10"))?;
    if let Some(t) = before {
        request.before_secs = digits(t, 65_535).ok_or_else(|| fail("after @ come 0 to 65535 seconds"))? as u32;
    }
    Ok(request)
}

/// As `parse_signal_request` reads it: `B:USR1@90`.
pub fn format_signal_request(r: &SignalRequest) -> String {
    let letters = match (r.reservation, r.batch_shell) {
        (false, false) => "",
        (true, false) => "R:",
        (false, true) => "B:",
        (true, true) => "RB:",
    };
    format!("{letters}{}@{}", name(r.signal), r.before_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read_with_and_without_sig() {
        for (text, n) in
            [("USR1", 10), ("SIGUSR1", 10), ("sigterm", 15), ("10", 10), ("KILL", 9), ("64", 64), ("CLD", 17)]
        {
            assert_eq!(parse_signal_name(text), Some(n), "{text}");
        }
        for bad in ["", "0", "65", "-9", "FOO", "SIG", "ööööööööööööööööööööö", "99999999999999999999999"]
        {
            assert_eq!(parse_signal_name(bad), None, "{bad}");
        }
        assert_eq!((name(12).as_str(), name(34).as_str(), name(0).as_str()), ("USR2", "SIG34", "SIG0"));
        assert!((1..=64).all(|n| parse_signal_name(&name(n)) == Some(n)));
    }

    #[test]
    fn requests_are_read_in_every_form_of_the_manual_page() {
        for (text, same) in [
            ("USR2@90", "USR2@90"),
            ("B:USR1", "B:USR1@60"),
            ("R:10@0", "R:USR1@0"),
            ("rb:TERM@65535", "RB:TERM@65535"),
        ] {
            let r = parse_signal_request(text).unwrap();
            assert_eq!(format_signal_request(&r), same);
        }
        for bad in ["", "@90", "USR2@", "USR2@-1", "USR2@65536", "X:USR2", ":USR2", "B:", "B:B:USR1"] {
            assert!(parse_signal_request(bad).is_err(), "{bad}");
        }
    }
}
