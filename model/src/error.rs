//! The one error of every parser here: which option or key, which value, what would be allowed.

use std::fmt;

/// Values longer than this are cut in messages.
const SHOWN: usize = 120;

/// A text that can't be read. Prints as `invalid WHAT 'VALUE': ALLOWED`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The option, key or thing: `--time`, `host list`.
    pub what: String,
    /// As given; long values are cut and end in `…`.
    pub value: String,
    /// What is allowed or what is wrong, a short phrase.
    pub allowed: String,
}

impl ParseError {
    pub fn new(what: impl Into<String>, value: impl AsRef<str>, allowed: impl Into<String>) -> Self {
        ParseError { what: what.into(), value: shorten(value.as_ref()), allowed: allowed.into() }
    }

    /// The same problem under the name by which the user knows the option, `--mem` instead of `memory`.
    pub fn named(mut self, what: impl Into<String>) -> Self {
        self.what = what.into();
        self
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid {} '{}': {}", self.what, self.value, self.allowed)
    }
}

impl std::error::Error for ParseError {}

/// Digits only, no sign, within `max`. The base of every number parser here: `u64::from_str` would take `+5`.
pub(crate) fn digits(text: &str, max: u64) -> Option<u64> {
    if text.is_empty() || text.len() > 20 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse::<u64>().ok().filter(|n| *n <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_value_is_cut_in_the_message() {
        let e = ParseError::new("--time", "x".repeat(100_000), "minutes");
        assert!(e.to_string().len() < 200);
        assert!(e.to_string().starts_with("invalid --time 'xxx"));
    }

    #[test]
    fn numbers_take_digits_alone() {
        assert_eq!(digits("42", 100), Some(42));
        for bad in ["", "+4", "-4", " 4", "4 ", "1e9", "101", "99999999999999999999999"] {
            assert_eq!(digits(bad, 100), None, "{bad}");
        }
    }
}
