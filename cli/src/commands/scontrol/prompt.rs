//! The prompt: commands from standard input, one a line, until `exit` or its end.
//!
//! Blanks part words; quotes of both kinds hold them together. `!!` repeats the last command.

use super::session::Session;
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

pub async fn run(session: &mut Session) -> ExitCode {
    let mut last: Vec<String> = Vec::new();
    let mut done = true;
    while !session.finished {
        session.print(b"scontrol: ");
        let mut line = String::new();
        match std::io::stdin().lock().read_line(&mut line) {
            Ok(0) => {
                if std::io::stdin().is_terminal() {
                    session.print(b"\n");
                }
                break;
            }
            Ok(_) => {}
            Err(e) => {
                crate::errln!("scontrol: error: reading standard input: {e}");
                return ExitCode::from(1);
            }
        }
        let words = match split(&line) {
            Ok(words) => words,
            Err(problem) => {
                crate::errln!("scontrol: error: {problem}");
                done = false;
                continue;
            }
        };
        let words = if words == ["!!"] { last.clone() } else { words };
        if !words.is_empty() {
            done = session.perform(&words).await;
            last = words;
        }
    }
    ExitCode::from(u8::from(!done))
}

/// The words of a line.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(q) = quote {
        return Err(format!("there is no closing {q}"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(split("show job 12\n").unwrap(), ["show", "job", "12"]);
        assert_eq!(
            split(r#"update NodeName=n1 Reason="bad disk" x='a "b"'"#).unwrap()[2..],
            ["Reason=bad disk", "x=a \"b\""]
        );
        assert_eq!(split("  \n").unwrap(), Vec::<String>::new());
        assert_eq!(split("a ''").unwrap(), ["a", ""]);
        assert!(split("a \"b").is_err());
    }
}
