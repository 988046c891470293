//! `docs/compatibility.md`: what of Slurm's command line is there, option by option, made from the option tables.
//!
//! A test holds the page to the tables, so that it can't promise what is not so. `sluice compat` prints it.

use crate::commands::{COMMANDS, LATER};
use crate::getopt::{OptionSpec, State};
use std::fmt::Write;

const TOP: &str = "# Slurm's commands in Sluice\n\n\
<!-- Made from the option tables by `sluice compat`; a test compares. Change the tables, not this page. -->\n\n\
Names follow Slurm 26.05. **done**: works. **kept**: parsed, checked for form and kept with the job; its effect comes\n\
with a later release. **refused**: naming it is an error that says why. What a page does not list is unknown to the\n\
command and refused as unrecognized.\n";

/// The whole page.
pub fn page() -> String {
    let mut text = TOP.to_owned();
    for command in COMMANDS {
        let options = (command.options)();
        let count = |f: fn(&OptionSpec) -> bool| options.iter().filter(|o| f(o)).count();
        let done = count(|o| o.state == State::Done);
        let kept = count(|o| o.state == State::Stored);
        let refused = count(|o| matches!(o.state, State::Refused(_)));
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n## {}\n\n{}: {done} options done, {kept} kept, {refused} refused.\n\n| Option | State | What it does |\n|---|---|---|\n",
            command.name,
            capital(command.about)
        );
        for option in options {
            let _ = writeln!(text, "| {} | {} | {} |", cell(&synopsis(option)), state(option), cell(option.help));
        }
    }
    text.push_str("\n## Commands that come later\n\n| Command | Why it is not there |\n|---|---|\n");
    for (name, reason) in LATER {
        let _ = writeln!(text, "| `{name}` | {reason} |");
    }
    text
}

fn synopsis(option: &OptionSpec) -> String {
    format!("`{}`", crate::help::synopsis(option).trim())
}

fn state(option: &OptionSpec) -> String {
    match option.state {
        State::Done => "done".to_owned(),
        State::Stored => "kept".to_owned(),
        State::Refused(reason) => format!("refused: {reason}"),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_compatibility_page_says_what_the_tables_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/compatibility.md");
        let on_disk = std::fs::read_to_string(path).expect("docs/compatibility.md is there");
        assert!(on_disk == super::page(), "docs/compatibility.md differs: write it anew with `sluice compat`");
    }
}
