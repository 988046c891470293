//! `--help`, `--usage` and `--version`, made from the option tables.

use crate::getopt::{Arg, OptionSpec, State};
use std::process::ExitCode;

/// What `-V` says: tools read it to decide which of Slurm's features they may use.
pub const SLURM_VERSION: &str = "26.05.0";

/// `slurm 26.05.0`, or what the client configuration asks for. Works without any configuration.
pub fn print_version(program: &str) -> ExitCode {
    let asked = crate::client_config::load().ok().and_then(|c| c.slurm_version);
    let version = asked.as_deref().unwrap_or(SLURM_VERSION);
    crate::out::print_or_complain(program, format!("slurm {version}\n").as_bytes(), ExitCode::SUCCESS)
}

/// `-n, --ntasks=number`
pub fn synopsis(spec: &OptionSpec) -> String {
    let long = match (spec.long, spec.arg) {
        ("", _) => String::new(),
        (long, Arg::None) => format!("--{long}"),
        (long, Arg::Required(value)) => format!("--{long}={value}"),
        (long, Arg::Optional(value)) => format!("--{long}[={value}]"),
    };
    match (spec.short, spec.arg, long.as_str()) {
        (Some(c), Arg::Required(value), "") => format!("-{c} {value}"),
        (Some(c), Arg::Optional(value), "") => format!("-{c}[{value}]"),
        (Some(c), Arg::None, "") => format!("-{c}"),
        (Some(c), _, long) => format!("-{c}, {long}"),
        (None, _, long) => format!("    {long}"),
    }
}

/// The whole help text.
pub fn help_text(usage: &str, specs: &[OptionSpec]) -> String {
    const COLUMN: usize = 30;
    let mut text = format!("Usage: {usage}\n\nOptions:\n");
    for spec in specs.iter().filter(|s| !s.help.is_empty() && !matches!(s.state, State::Refused(_))) {
        let left = synopsis(spec);
        let note = if spec.state == State::Stored { " (kept with the job; no effect yet)" } else { "" };
        if left.chars().count() + 2 > COLUMN {
            text.push_str(&format!("  {left}\n  {:COLUMN$}{}{note}\n", "", spec.help));
        } else {
            text.push_str(&format!("  {left:COLUMN$}{}{note}\n", spec.help));
        }
    }
    text
}

/// `Usage: sbatch [-A account] [--array=indexes] … args`, in lines that fit a terminal.
pub fn usage_text(program: &str, operands: &str, specs: &[OptionSpec]) -> String {
    const WIDTH: usize = 80;
    let mut text = String::new();
    let mut line = format!("Usage: {program}");
    let indent = line.len();
    let mut add = |word: &str| {
        if line.len() + 1 + word.len() > WIDTH && line.len() > indent {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(indent);
        }
        line.push(' ');
        line.push_str(word);
    };
    for spec in specs.iter().filter(|s| !s.help.is_empty() && !matches!(s.state, State::Refused(_))) {
        let word = match (spec.short, spec.arg) {
            (Some(c), Arg::None) => format!("-{c}"),
            (Some(c), Arg::Required(value)) => format!("-{c} {value}"),
            (None, Arg::None) => format!("--{}", spec.long),
            (None, Arg::Required(value)) => format!("--{}={value}", spec.long),
            (Some(c), Arg::Optional(value)) => format!("-{c}[{value}]"),
            (None, Arg::Optional(value)) => format!("--{}[={value}]", spec.long),
        };
        add(&format!("[{word}]"));
    }
    if !operands.is_empty() {
        add(operands);
    }
    text + &line + "\n"
}

/// `; did you mean 'local'?` when a word is nearly one of these, else nothing.
pub fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known.map(|k| (distance(word, k), k)).filter(|(d, k)| *d <= 2 && *d < k.len()).min();
    near.map(|(_, k)| format!("; did you mean '{k}'?")).unwrap_or_default()
}

/// Letters to insert, remove, replace or swap with their neighbour to get from one word to the other (the optimal string
/// alignment distance).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(40).collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Answers a mistake in the words: the C library's line, then where to read on. Slurm's exit code for it is 255.
pub fn bad_usage(program: &str, error: &crate::getopt::GetoptError) -> ExitCode {
    match error {
        crate::getopt::GetoptError::Refused { .. } => crate::errln!("{program}: error: {error}"),
        _ => {
            crate::errln!("{program}: {error}");
            crate::errln!("Try \"{program} --help\" for more information");
        }
    }
    ExitCode::from(255)
}

/// `--help`, `--usage`, `--version`: answered before anything else is looked at.
pub fn answer(
    program: &str,
    usage: &str,
    operands: &str,
    specs: &[OptionSpec],
    parsed: &crate::getopt::Parsed,
) -> Option<ExitCode> {
    let asked = parsed.options.iter().find(|o| matches!(o.spec.long, "help" | "usage" | "version"))?;
    Some(match asked.spec.long {
        "help" => crate::out::print_or_complain(program, help_text(usage, specs).as_bytes(), ExitCode::SUCCESS),
        "usage" => {
            let text = usage_text(program, operands, specs);
            crate::out::print_or_complain(program, text.as_bytes(), ExitCode::SUCCESS)
        }
        _ => print_version(program),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_wrapped_and_names_everything() {
        let text = usage_text("squeue", "[jobs]", crate::commands::squeue::options());
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.starts_with("Usage: squeue [-A accounts] [-a] "), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("              [")), "{text}");
        assert!(text.ends_with(" [-V]\n              [jobs]\n"), "{text}");
    }

    #[test]
    fn a_word_that_is_nearly_a_known_one_is_understood() {
        let meant = |word| meant(word, ["sbatch", "squeue", "local", "up"].into_iter());
        assert_eq!(meant("locl"), "; did you mean 'local'?");
        assert_eq!(meant("sbtach"), "; did you mean 'sbatch'?");
        assert_eq!(meant("u"), "; did you mean 'up'?");
        assert_eq!((meant("frobnicate"), meant(""), meant("xy")), (String::new(), String::new(), String::new()));
    }
}
