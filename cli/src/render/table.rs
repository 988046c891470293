//! Tables of accounting: fixed widths with `+` where a value was cut, or values between delimiters.
//!
//! Source: sacct(1), `--format`, `--parsable`, `--parsable2`, `--delimiter`.

use std::io::Write as _;

/// How rows are laid out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// Columns of fixed width with a blank after each.
    Fixed,
    /// `-p` (a delimiter after the last value too) and `-P` (none).
    Delimited { delimiter: String, trailing: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column<F> {
    pub field: F,
    pub header: &'static str,
    pub width: usize,
    pub right: bool,
}

/// Header and, for fixed columns, the line of dashes.
pub fn write_header<F>(form: &Form, columns: &[Column<F>], out: &mut Vec<u8>) {
    match form {
        Form::Fixed => {
            for column in columns {
                let name: String = column.header.chars().take(column.width).collect();
                pad(&name, column.width, column.right, out);
            }
            out.push(b'\n');
            for column in columns {
                out.resize(out.len() + column.width, b'-');
                out.push(b' ');
            }
            out.push(b'\n');
        }
        Form::Delimited { .. } => write_row(form, columns, |c| c.header.to_owned(), out),
    }
}

/// One line. `value` gives the text of a column.
pub fn write_row<F>(form: &Form, columns: &[Column<F>], value: impl Fn(&Column<F>) -> String, out: &mut Vec<u8>) {
    for (n, column) in columns.iter().enumerate() {
        let text = value(column);
        match form {
            Form::Fixed => {
                if text.chars().count() > column.width {
                    let kept: String = text.chars().take(column.width.saturating_sub(1)).collect();
                    pad(&format!("{kept}+"), column.width, column.right, out);
                } else {
                    pad(&text, column.width, column.right, out);
                }
            }
            Form::Delimited { delimiter, trailing } => {
                out.extend_from_slice(text.as_bytes());
                if *trailing || n + 1 < columns.len() {
                    out.extend_from_slice(delimiter.as_bytes());
                }
            }
        }
    }
    out.push(b'\n');
}

fn pad(text: &str, width: usize, right: bool, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = if right { write!(out, "{text:>width$} ") } else { write!(out, "{text:<width$} ") };
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column<usize>] = &[
        Column { field: 0, header: "JobID", width: 12, right: false },
        Column { field: 1, header: "State", width: 10, right: true },
        Column { field: 2, header: "TimelimitRaw", width: 5, right: true },
    ];
    fn table(form: Form, row: [&str; 3]) -> String {
        let mut out = Vec::new();
        write_header(&form, COLUMNS, &mut out);
        write_row(&form, COLUMNS, |c| row[c.field].to_owned(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fixed_columns_are_ruled_padded_and_cut_with_a_plus() {
        let text = table(Form::Fixed, ["1", "CANCELLED by 1001", "60"]);
        let expected =
            "JobID             State Timel \n------------ ---------- ----- \n1            CANCELLED+    60 \n";
        assert_eq!(text, expected);
    }

    #[test]
    fn delimited_rows_have_equally_many_delimiters() {
        let row = ["1", "CANCELLED by 1001", ""];
        let form = |trailing| Form::Delimited { delimiter: "::".into(), trailing };
        assert_eq!(table(form(false), row), "JobID::State::TimelimitRaw\n1::CANCELLED by 1001::\n");
        assert_eq!(table(form(true), row), "JobID::State::TimelimitRaw::\n1::CANCELLED by 1001::::\n");
    }
}
