//! Options inside a batch script: its `#SBATCH` lines.
//!
//! The rules are those seen of sbatch: a directive begins in the first column; directives end at the first line that
//! is neither blank nor a comment; double and single quotes group, and a backslash keeps the next character, also
//! inside quotes and before a blank; an unquoted `#` starts a comment, even inside a word. Bytes, not characters: what
//! is not UTF-8 stays as it is. `#PBS` and `#BSUB` lines are comments to us.

use crate::error::ParseError;
use std::fmt;

/// Why a text can't be a batch script. Prints Slurm's words, on several lines where Slurm uses several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScriptProblem {
    Empty,
    OnlyBlanks,
    NoInterpreter,
    DosLineBreaks,
    NulByte,
}

impl fmt::Display for ScriptProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ScriptProblem::Empty => "Batch script is empty!",
            ScriptProblem::OnlyBlanks => "Batch script contains only whitespace!",
            ScriptProblem::NoInterpreter => {
                "This does not look like a batch script.  The first\n\
                 line must start with #! followed by the path to an interpreter.\n\
                 For instance: #!/bin/sh"
            }
            ScriptProblem::DosLineBreaks => {
                "Batch script contains DOS line breaks (\\r\\n)\ninstead of expected UNIX line breaks (\\n)."
            }
            ScriptProblem::NulByte => {
                "The Slurm controller does not allow scripts that\ncontain a NULL character '\\0'."
            }
        })
    }
}

impl std::error::Error for ScriptProblem {}

/// Whether sbatch would take it as a script.
pub fn check_script(script: &[u8]) -> Result<(), ScriptProblem> {
    if script.is_empty() {
        Err(ScriptProblem::Empty)
    } else if script.iter().all(u8::is_ascii_whitespace) {
        Err(ScriptProblem::OnlyBlanks)
    } else if !script.starts_with(b"#!") {
        Err(ScriptProblem::NoInterpreter)
    } else {
        check_bytes(script)
    }
}

fn check_bytes(script: &[u8]) -> Result<(), ScriptProblem> {
    if script.contains(&0) {
        Err(ScriptProblem::NulByte)
    } else if script.windows(2).any(|w| w == b"\r\n") {
        Err(ScriptProblem::DosLineBreaks)
    } else {
        Ok(())
    }
}

/// The words of one directive line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directive {
    /// Counted from 1.
    pub line: usize,
    pub words: Vec<Vec<u8>>,
}

/// The words of all `#PREFIX` lines, in order, as one argument list. NUL bytes, DOS line ends and open quotes are
/// errors that name the line.
pub fn parse(script: &[u8], prefix: &str) -> Result<Vec<Vec<u8>>, ParseError> {
    Ok(parse_lines(script, prefix)?.into_iter().flat_map(|d| d.words).collect())
}

/// Like `parse`, with the line of each directive. Lines without words are left out.
pub fn parse_lines(script: &[u8], prefix: &str) -> Result<Vec<Directive>, ParseError> {
    check_bytes(script).map_err(|p| ParseError::new("batch script", "", p.to_string().replace('\n', " ")))?;
    let mut out = Vec::new();
    for (i, line) in script.split(|b| *b == b'\n').enumerate() {
        if let Some(rest) = line.strip_prefix(b"#").and_then(|l| l.strip_prefix(prefix.as_bytes())) {
            let words = words(rest).map_err(|quote| {
                let what = format!("directive in line {} of the batch script", i + 1);
                ParseError::new(what, String::from_utf8_lossy(line), format!("the quote {quote} is not closed"))
            })?;
            if !words.is_empty() {
                out.push(Directive { line: i + 1, words });
            }
            continue;
        }
        let first = line.iter().find(|b| !b.is_ascii_whitespace());
        if first.is_some_and(|b| *b != b'#') {
            break;
        }
    }
    Ok(out)
}

/// Words of a line; the error is the quote that stays open.
fn words(text: &[u8]) -> Result<Vec<Vec<u8>>, char> {
    let mut out = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(b) = bytes.next() {
        match (b, quote) {
            // At the line's end a backslash stands for nothing.
            (b'\\', _) => {
                if let Some(next) = bytes.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (b, Some(q)) if b == q => quote = None,
            (b, Some(_)) => word.get_or_insert_default().push(b),
            (b'"' | b'\'', None) => {
                quote = Some(b);
                word.get_or_insert_default();
            }
            (b'#', None) => break,
            (b, None) if b.is_ascii_whitespace() => out.extend(word.take()),
            (b, None) => word.get_or_insert_default().push(b),
        }
    }
    if let Some(q) = quote {
        return Err(char::from(q));
    }
    out.extend(word);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(body: &str) -> Vec<String> {
        let script = format!("#!/bin/sh\n{body}\n");
        let words = parse(script.as_bytes(), "SBATCH").unwrap();
        words.into_iter().map(|w| String::from_utf8(w).unwrap()).collect()
    }

    #[test]
    fn quotes_backslashes_and_comments_are_read_as_sbatch_reads_them() {
        for (body, words) in [
            (r#"#SBATCH --comment="x y" -c3"#, vec!["--comment=x y", "-c3"]),
            (r"#SBATCH --job-name=a\ b -c 3", vec!["--job-name=a b", "-c", "3"]),
            (r#"#SBATCH --comment="x \" y" -c3"#, vec![r#"--comment=x " y"#, "-c3"]),
            (r#"#SBATCH --comment='x \" y'"#, vec![r#"--comment=x " y"#]),
            (r"#SBATCH --comment=a\nb", vec!["--comment=anb"]),
            (r"#SBATCH --comment=a\#b", vec!["--comment=a#b"]),
            ("#SBATCH --comment=a#b -c3", vec!["--comment=a"]),
            ("#SBATCH --comment='x # y' # -n3", vec!["--comment=x # y"]),
            (r#"#SBATCH --comment=a"b c"d"#, vec!["--comment=ab cd"]),
            (r#"#SBATCH --comment="" ''"#, vec!["--comment=", ""]),
            ("#SBATCH --comment=ab\\", vec!["--comment=ab"]),
            ("#SBATCH\t-c2\n#SBATCH--nice=3", vec!["-c2", "--nice=3"]),
            ("#SBATCH   ", vec![]),
        ] {
            assert_eq!(words_of(body), words, "{body}");
        }
    }

    #[test]
    fn directives_end_at_the_first_command() {
        let comments = " #SBATCH -n2\n# SBATCH -n3\n##SBATCH -n3\n#PBS -N x\n#sbatch -n3\n\n  \n\t#";
        let body = format!("{comments}\n#SBATCH --mem=3\n: x\n#SBATCH -n4");
        assert_eq!(words_of(&body), ["--mem=3"]);
    }

    #[test]
    fn lines_are_counted_and_bytes_kept() {
        let found = parse_lines(b"#!/bin/sh\n\n#SBATCH -J \xff\xfe\n", "SBATCH").unwrap();
        assert_eq!(found, [Directive { line: 3, words: vec![b"-J".to_vec(), b"\xff\xfe".to_vec()] }]);
    }

    #[test]
    fn open_quotes_dos_line_ends_and_nuls_are_errors() {
        let e = parse(b"#!/bin/sh\n#SBATCH -J \"x\n", "SBATCH").unwrap_err();
        assert!(e.to_string().contains("line 2") && e.to_string().contains("the quote \" is not closed"), "{e}");
        assert!(parse(b"#!/bin/sh\r\n", "SBATCH").unwrap_err().to_string().contains("DOS line breaks"));
        assert!(parse(b"#!/bin/sh\n\0", "SBATCH").unwrap_err().to_string().contains("NULL character"));
    }

    #[test]
    fn what_is_no_script_is_told_apart() {
        for (script, problem) in [
            (&b""[..], ScriptProblem::Empty),
            (b" \n\t\n", ScriptProblem::OnlyBlanks),
            (b"echo hi\n", ScriptProblem::NoInterpreter),
            (b"#!/bin/sh\r\n", ScriptProblem::DosLineBreaks),
            (b"#!/bin/sh\na\0b", ScriptProblem::NulByte),
        ] {
            assert_eq!(check_script(script), Err(problem));
        }
        assert_eq!(check_script(b"#!/bin/sh\n"), Ok(()));
    }
}
