//! `--mail-type`: texts for the bits of `job::mail`.

use crate::error::ParseError;
use crate::job::mail as bit;

const NAMES: [(&str, u32); 11] = [
    ("BEGIN", bit::BEGIN),
    ("END", bit::END),
    ("FAIL", bit::FAIL),
    ("REQUEUE", bit::REQUEUE),
    ("STAGE_OUT", bit::STAGE_OUT),
    ("INVALID_DEPEND", bit::INVALID_DEPEND),
    ("TIME_LIMIT", bit::TIME_LIMIT),
    ("TIME_LIMIT_90", bit::TIME_LIMIT_90),
    ("TIME_LIMIT_80", bit::TIME_LIMIT_80),
    ("TIME_LIMIT_50", bit::TIME_LIMIT_50),
    ("ARRAY_TASKS", bit::ARRAY_TASKS),
];
/// ALL (sbatch's manual page).
pub const ALL: u32 = bit::BEGIN | bit::END | bit::FAIL | bit::REQUEUE | bit::STAGE_OUT | bit::INVALID_DEPEND;

/// `END,FAIL`, `ALL`, `NONE`, in any case.
pub fn parse(text: &str) -> Result<u32, ParseError> {
    let mut bits = 0;
    for word in text.split(',') {
        if word.eq_ignore_ascii_case("NONE") {
            bits = 0;
        } else if word.eq_ignore_ascii_case("ALL") {
            bits |= ALL;
        } else {
            let known = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
            let names = || NAMES.map(|(n, _)| n).join(", ");
            bits |= known.ok_or_else(|| ParseError::new("mail type", text, format!("NONE, ALL, {}", names())))?.1;
        }
    }
    Ok(bits)
}

/// `NONE`, or the names with commas; INVALID_DEPEND and its likes are spelled out, never `ALL` (scontrol's form).
pub fn format(bits: u32) -> String {
    let names: Vec<&str> = NAMES.iter().filter(|(_, b)| bits & b != 0).map(|(n, _)| *n).collect();
    if names.is_empty() { "NONE".into() } else { names.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_in_any_case_and_printed_in_full() {
        assert_eq!(parse("end,FAIL").unwrap(), bit::END | bit::FAIL);
        assert_eq!(parse("ALL,TIME_LIMIT_90").unwrap(), ALL | bit::TIME_LIMIT_90);
        assert_eq!(parse("NONE").unwrap(), 0);
        assert_eq!(format(0), "NONE");
        assert_eq!(format(ALL), "BEGIN,END,FAIL,REQUEUE,STAGE_OUT,INVALID_DEPEND");
        for bits in 0..1 << 11 {
            assert_eq!(parse(&format(bits)).unwrap(), bits);
        }
        assert!(parse("").is_err());
        assert!(parse("SOMETIMES").unwrap_err().to_string().contains("TIME_LIMIT_80"));
    }
}
