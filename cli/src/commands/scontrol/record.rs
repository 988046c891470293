//! The form of `scontrol show`: `Key=value` pairs in lines, records parted by a blank line, or one record a line.

/// Collects the lines of a record.
#[derive(Debug, Default)]
pub struct Record {
    lines: Vec<String>,
}

impl Record {
    /// Adds a line. Blanks at its end stay in the long form, where Slurm has them.
    pub fn line(&mut self, text: impl Into<String>) -> &mut Self {
        self.lines.push(text.into());
        self
    }

    /// Adds `Key=value` when there is a value.
    pub fn some(&mut self, key: &str, value: Option<String>) -> &mut Self {
        if let Some(value) = value {
            self.lines.push(format!("{key}={value}"));
        }
        self
    }

    /// One line without double blanks, or lines and an empty one.
    pub fn write(&self, one_line: bool, out: &mut String) {
        if one_line {
            let parts: Vec<&str> = self.lines.iter().map(|l| l.trim()).filter(|l| !l.is_empty()).collect();
            out.push_str(&parts.join(" "));
            out.push('\n');
        } else {
            out.push_str(&self.lines.join("\n   "));
            out.push_str("\n\n");
        }
    }
}

/// Text, or `(null)`.
pub fn or_null(text: &str) -> &str {
    if text.is_empty() { "(null)" } else { text }
}

pub fn yes(on: bool) -> &'static str {
    if on { "YES" } else { "NO" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_records_hold_no_double_blanks() {
        let mut record = Record::default();
        record.line("A=1 ").line("  B=2").some("C", None).some("D", Some("3".into()));
        let (mut long, mut short) = (String::new(), String::new());
        record.write(false, &mut long);
        record.write(true, &mut short);
        assert_eq!(long, "A=1 \n     B=2\n   D=3\n\n");
        assert_eq!(short, "A=1 B=2 D=3\n");
    }
}
