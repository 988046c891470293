//! A value that can't be, and small readers of values.

use sluice_model::error::ParseError;

/// Lines for stderr (without the program's name) and the exit code, both as Slurm's commands have them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadValue {
    pub lines: Vec<String>,
    pub code: u8,
}

impl BadValue {
    pub fn line(code: u8, line: String) -> Self {
        BadValue { lines: vec![line], code }
    }

    /// `Invalid --time specification` after a line that says what is allowed.
    pub fn specification(key: &str, error: ParseError) -> Self {
        let detail = error.named(format!("--{key}")).to_string();
        BadValue { lines: vec![detail, format!("Invalid --{key} specification")], code: 255 }
    }

    /// The same where only this much is to be said.
    pub fn not_allowed(key: &str, value: &str, allowed: &str) -> Self {
        BadValue::specification(key, ParseError::new(key, value, allowed))
    }

    pub fn print(&self, program: &str) -> std::process::ExitCode {
        for line in &self.lines {
            crate::errln!("{program}: error: {line}");
        }
        std::process::ExitCode::from(self.code)
    }
}

/// A lone colon separates the parts of a heterogeneous job.
pub fn no_heterogeneous_parts(words: &[std::ffi::OsString]) -> Result<(), BadValue> {
    match words.iter().any(|word| word == ":") {
        true => Err(BadValue::line(1, "heterogeneous jobs (`:` between their parts) are not supported".to_owned())),
        false => Ok(()),
    }
}

/// A count of at least `min`. Slurm's message and exit code otherwise.
pub fn number(key: &str, text: &str, min: u32) -> Result<u32, BadValue> {
    // No count of anything in a job is larger than what a signed 32-bit number holds.
    match text.parse::<u32>() {
        Ok(n) if n >= min && n <= 0x7fff_ffff && text.bytes().all(|b| b.is_ascii_digit()) => Ok(n),
        _ => {
            let shown: String = text.chars().take(120).collect();
            Err(BadValue::line(1, format!("Invalid numeric value \"{shown}\" for --{key}.")))
        }
    }
}

/// `yes`/`no` and `0`/`1`.
pub fn yes_no(key: &str, text: &str) -> Result<bool, BadValue> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "1" | "y" => Ok(true),
        "no" | "0" | "n" => Ok(false),
        _ => Err(BadValue::not_allowed(key, text, "yes or no")),
    }
}

pub fn memory(key: &str, text: &str) -> Result<u64, BadValue> {
    sluice_model::memory::parse_memory_mb(text).map_err(|e| BadValue::specification(key, e))
}
