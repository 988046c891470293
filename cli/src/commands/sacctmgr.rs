//! `sacctmgr`: accounts, users, associations and QOS.
//!
//! Owns the option table. Words without options are one command; none at all open the prompt. A change is first tried
//! on the controller without being made, shown, confirmed (unless `-i`), and then made. What Slurm has and this cluster
//! lacks is refused by name.

mod announce;
mod book;
mod change;
mod confirm;
mod fields;
mod file;
mod keys;
mod list;
mod problems;
mod session;
mod settings;
mod values;
mod words;

use crate::getopt::OptionSpec;
use crate::viewing;
use std::ffi::OsString;
use std::process::ExitCode;

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::flag("associations", "show the associations of accounts and users, too").short('s'),
    OptionSpec::flag("help", "show this text").short('h'),
    OptionSpec::flag("immediate", "make changes without asking").short('i'),
    OptionSpec::maybe("json", "data_parser", "").refused("lists are printed as text; use --parsable2"),
    OptionSpec::flag("noheader", "no header line").short('n'),
    OptionSpec::flag("oneliner", "one line for each record; always so").short('o'),
    OptionSpec::flag("parsable", "fields between |, one after the last, too").short('p'),
    OptionSpec::flag("parsable2", "fields between |").short('P'),
    OptionSpec::flag("quiet", "say only what is wrong").short('Q'),
    OptionSpec::flag("readonly", "refuse to change anything").short('r'),
    OptionSpec::flag("usage", "show the options in short"),
    OptionSpec::flag("verbose", "say more").short('v'),
    OptionSpec::flag("version", "say which Slurm this behaves like").short('V'),
    OptionSpec::maybe("yaml", "data_parser", "").refused("YAML is not printed; use --parsable2"),
];

pub fn options() -> &'static [OptionSpec] {
    OPTIONS
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(&words) {
        Ok(code) | Err(code) => code,
    }
}

fn run(words: &[OsString]) -> Result<ExitCode, ExitCode> {
    let parsed = match viewing::parse("sacctmgr", "[COMMAND]", OPTIONS, words) {
        // The commands belong to the help.
        Err(code) if words.iter().any(|w| w == "--help" || w == "-h") => {
            return Ok(crate::out::print_or_complain("sacctmgr", session::HELP.as_bytes(), code));
        }
        other => other?,
    };
    let mut session = session::Session {
        associations: parsed.has("associations"),
        immediate: parsed.has("immediate"),
        header: !parsed.has("noheader"),
        form: session::form(parsed.has("parsable"), parsed.has("parsable2")),
        quiet: parsed.has("quiet"),
        readonly: parsed.has("readonly"),
        client: None,
        finished: false,
    };
    let command: Vec<String> = parsed.operands.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    crate::client::block_on(async {
        if command.is_empty() {
            Ok(session::prompt(&mut session).await)
        } else {
            let done = session.perform(&command).await;
            Ok(ExitCode::from(u8::from(!done)))
        }
    })
}
