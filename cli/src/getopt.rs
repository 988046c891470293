//! Option parsing by the rules of GNU `getopt_long`, driven by tables.
//!
//! Owns the shape of an option table and the parser. Promises what scripts rely on: unique abbreviations of long names,
//! options after operands (unless the command stops at its first operand), bundled short options, attached values,
//! optional arguments (`--opt[=x]`, `-ox`), `--`, repeats kept in order, and the C library's messages. It must not know
//! any command or any value: tables come from the commands, values are judged by their settings.
//!
//! Source: getopt(3), and "Program Argument Syntax Conventions" of the GNU C library's manual.

use crate::text::hold;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Whether an option takes a value; the text names it in the help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    None,
    Required(&'static str),
    /// Only attached: `--opt=x`, `-ox`.
    Optional(&'static str),
}

/// How far the option is supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Done,
    /// Parsed, checked for form and kept with the job; its effect comes with a later release.
    Stored,
    /// Slurm has it, we do not: naming it is an error that says why.
    Refused(&'static str),
}

/// One row of a command's option table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionSpec {
    /// What the program matches on. Options of equal key and argument are spellings of one option.
    pub key: &'static str,
    /// Without dashes; empty for an option with a short name only.
    pub long: &'static str,
    pub short: Option<char>,
    pub arg: Arg,
    pub state: State,
    /// Left out of `--help` when empty (old spellings).
    pub help: &'static str,
}

impl OptionSpec {
    /// A switch without a value.
    pub const fn flag(long: &'static str, help: &'static str) -> Self {
        OptionSpec { key: long, long, short: None, arg: Arg::None, state: State::Done, help }
    }
    /// An option that takes a value.
    pub const fn value(long: &'static str, value: &'static str, help: &'static str) -> Self {
        OptionSpec { key: long, long, short: None, arg: Arg::Required(value), state: State::Done, help }
    }
    /// An option that may take an attached value.
    pub const fn maybe(long: &'static str, value: &'static str, help: &'static str) -> Self {
        OptionSpec { key: long, long, short: None, arg: Arg::Optional(value), state: State::Done, help }
    }
    pub const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }
    pub const fn stored(mut self) -> Self {
        self.state = State::Stored;
        self
    }
    pub const fn refused(mut self, reason: &'static str) -> Self {
        self.state = State::Refused(reason);
        self
    }
    /// Another spelling of the option with this key.
    pub const fn alias_of(mut self, key: &'static str) -> Self {
        self.key = key;
        self
    }
    /// `--long`, or `-s` for options that have only a short name.
    pub fn display(&self) -> String {
        match (self.long, self.short) {
            ("", Some(c)) => format!("-{c}"),
            (long, _) => format!("--{long}"),
        }
    }
}

/// Whether options may follow operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// Options are found anywhere before `--`.
    Mixed,
    /// The first operand ends the options (srun's and salloc's command).
    EndOptions,
}

/// An option as it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    pub spec: &'static OptionSpec,
    pub value: Option<OsString>,
}

impl Given {
    pub fn key(&self) -> &'static str {
        self.spec.key
    }
    /// The value as text (`text::hold`). Empty when there is none.
    pub fn text(&self) -> String {
        self.value.as_deref().map(|v| hold(v.as_bytes()).into_owned()).unwrap_or_default()
    }
}

/// Everything given, in its order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parsed {
    pub options: Vec<Given>,
    pub operands: Vec<OsString>,
}

impl Parsed {
    pub fn has(&self, key: &str) -> bool {
        self.options.iter().any(|o| o.key() == key)
    }
    /// The value of the last one given.
    pub fn last(&self, key: &str) -> Option<&Given> {
        self.options.iter().rev().find(|o| o.key() == key)
    }
    pub fn count(&self, key: &str) -> u32 {
        u32::try_from(self.options.iter().filter(|o| o.key() == key).count()).unwrap_or(u32::MAX)
    }
    /// Values of all that were given.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a Given> {
        self.options.iter().filter(move |o| o.key() == key)
    }
}

/// What is wrong with the words, in the C library's wording (without the program's name).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GetoptError {
    /// As written, `=value` included.
    Unrecognized(String),
    Ambiguous {
        given: String,
        possibilities: Vec<&'static str>,
    },
    NoArgumentAllowed(&'static str),
    ArgumentRequired(&'static str),
    InvalidShort(char),
    ShortArgumentRequired(char),
    /// Slurm has it, we do not.
    Refused {
        option: String,
        reason: &'static str,
    },
}

impl std::fmt::Display for GetoptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GetoptError::Unrecognized(given) => write!(f, "unrecognized option '--{given}'"),
            GetoptError::Ambiguous { given, possibilities } => {
                write!(f, "option '--{given}' is ambiguous; possibilities:")?;
                possibilities.iter().try_for_each(|p| write!(f, " '--{p}'"))
            }
            GetoptError::NoArgumentAllowed(name) => write!(f, "option '--{name}' doesn't allow an argument"),
            GetoptError::ArgumentRequired(name) => write!(f, "option '--{name}' requires an argument"),
            GetoptError::InvalidShort(c) => write!(f, "invalid option -- '{c}'"),
            GetoptError::ShortArgumentRequired(c) => write!(f, "option requires an argument -- '{c}'"),
            GetoptError::Refused { option, reason } => write!(f, "{option} is not supported: {reason}"),
        }
    }
}

/// Splits the words after the program's name into options and operands.
///
/// Refused options are errors too; they are found in the order given, like all others.
pub fn parse(specs: &'static [OptionSpec], words: &[OsString], operands: Operands) -> Result<Parsed, GetoptError> {
    let mut parsed = Parsed::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            parsed.operands.extend(rest.by_ref().cloned());
        } else if let Some(long) = bytes.strip_prefix(b"--") {
            let given = parse_long(specs, long, &mut rest)?;
            parsed.options.push(given);
        } else if bytes.len() > 1 && bytes[0] == b'-' {
            parse_cluster(specs, &bytes[1..], &mut rest, &mut parsed.options)?;
        } else {
            parsed.operands.push(word.clone());
            if operands == Operands::EndOptions {
                parsed.operands.extend(rest.by_ref().cloned());
            }
        }
    }
    for given in &parsed.options {
        if let State::Refused(reason) = given.spec.state {
            return Err(GetoptError::Refused { option: given.spec.display(), reason });
        }
    }
    Ok(parsed)
}

/// `name` or `name=value`, with the word after it when the value is due.
fn parse_long(
    specs: &'static [OptionSpec],
    long: &[u8],
    rest: &mut std::slice::Iter<'_, OsString>,
) -> Result<Given, GetoptError> {
    let (name, attached) = match long.iter().position(|b| *b == b'=') {
        Some(at) => (&long[..at], Some(OsString::from_vec(long[at + 1..].to_vec()))),
        None => (long, None),
    };
    let lossy = || hold(long).into_owned();
    let spec = find_long(specs, name, lossy)?;
    let value = match (spec.arg, attached) {
        (Arg::None, Some(_)) => return Err(GetoptError::NoArgumentAllowed(spec.long)),
        (Arg::None, None) => None,
        (Arg::Optional(_), attached) => attached,
        (Arg::Required(_), Some(value)) => Some(value),
        (Arg::Required(_), None) => Some(rest.next().cloned().ok_or(GetoptError::ArgumentRequired(spec.long))?),
    };
    Ok(Given { spec, value })
}

fn find_long(
    specs: &'static [OptionSpec],
    name: &[u8],
    given: impl Fn() -> String,
) -> Result<&'static OptionSpec, GetoptError> {
    if let Some(exact) = specs.iter().find(|s| !s.long.is_empty() && s.long.as_bytes() == name) {
        return Ok(exact);
    }
    let matches: Vec<&'static OptionSpec> =
        specs.iter().filter(|s| !s.long.is_empty() && s.long.as_bytes().starts_with(name)).collect();
    let Some(first) = matches.first() else { return Err(GetoptError::Unrecognized(given())) };
    if matches.iter().any(|s| s.key != first.key || s.arg != first.arg) {
        let possibilities = matches.iter().map(|s| s.long).collect();
        return Err(GetoptError::Ambiguous { given: given(), possibilities });
    }
    Ok(first)
}

/// `-abc`, `-n5`, `-n 5`.
fn parse_cluster(
    specs: &'static [OptionSpec],
    cluster: &[u8],
    rest: &mut std::slice::Iter<'_, OsString>,
    options: &mut Vec<Given>,
) -> Result<(), GetoptError> {
    let mut at = 0;
    while at < cluster.len() {
        let letter = char::from(cluster[at]);
        at += 1;
        let spec = specs.iter().find(|s| s.short == Some(letter)).ok_or(GetoptError::InvalidShort(letter))?;
        let attached = OsStr::from_bytes(&cluster[at..]);
        let value = match spec.arg {
            Arg::None => {
                options.push(Given { spec, value: None });
                continue;
            }
            Arg::Optional(_) if attached.is_empty() => None,
            Arg::Required(_) if attached.is_empty() => {
                Some(rest.next().cloned().ok_or(GetoptError::ShortArgumentRequired(letter))?)
            }
            Arg::Optional(_) | Arg::Required(_) => Some(attached.to_owned()),
        };
        options.push(Given { spec, value });
        return Ok(());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    static SPECS: &[OptionSpec] = &[
        OptionSpec::value("job-name", "name", "name").short('J'),
        OptionSpec::value("jobid", "id", "id"),
        OptionSpec::value("nodes", "n", "nodes").short('N'),
        OptionSpec::value("nodelist", "hosts", "hosts").short('w'),
        OptionSpec::value("ntasks", "n", "tasks").short('n'),
        OptionSpec::maybe("nice", "adjust", "nice"),
        OptionSpec::maybe("immediate", "secs", "immediate").short('I'),
        OptionSpec::flag("verbose", "talk").short('v'),
        OptionSpec::flag("hold", "hold").short('H'),
        OptionSpec::value("name", "name", "").alias_of("job-name"),
        OptionSpec::value("namex", "name", "").alias_of("job-name"),
        OptionSpec::value("bb", "spec", "burst buffer").refused("there are no burst buffers"),
    ];

    fn words(list: &[&str]) -> Vec<OsString> {
        list.iter().map(OsString::from).collect()
    }
    fn ok(list: &[&str]) -> (Vec<(String, Option<String>)>, Vec<String>) {
        let parsed = parse(SPECS, &words(list), Operands::Mixed).expect("parses");
        let text = |o: OsString| o.to_string_lossy().into_owned();
        (
            parsed.options.into_iter().map(|g| (g.spec.key.to_owned(), g.value.map(text))).collect(),
            parsed.operands.into_iter().map(|o| o.to_string_lossy().into_owned()).collect(),
        )
    }
    fn one(list: &[&str], key: &str, value: Option<&str>) {
        let (options, _) = ok(list);
        assert_eq!(options, [(key.to_owned(), value.map(str::to_owned))], "{list:?}");
    }
    fn message(list: &[&str]) -> String {
        parse(SPECS, &words(list), Operands::Mixed).expect_err("is refused").to_string()
    }

    #[test]
    fn a_value_may_be_attached_or_the_next_word() {
        one(&["--ntasks=5"], "ntasks", Some("5"));
        one(&["--ntasks", "5"], "ntasks", Some("5"));
        one(&["-n5"], "ntasks", Some("5"));
        one(&["-n", "5"], "ntasks", Some("5"));
        one(&["--ntasks="], "ntasks", Some(""));
        one(&["-n=5"], "ntasks", Some("=5"));
        one(&["-n", "-v"], "ntasks", Some("-v"));
        one(&["--ntasks", "--"], "ntasks", Some("--"));
    }

    #[test]
    fn unique_abbreviations_are_understood_and_others_named() {
        one(&["--nt=3"], "ntasks", Some("3"));
        one(&["--job-", "x"], "job-name", Some("x"));
        assert_eq!(message(&["--job=1"]), "option '--job=1' is ambiguous; possibilities: '--job-name' '--jobid'");
        assert_eq!(message(&["--node"]), "option '--node' is ambiguous; possibilities: '--nodes' '--nodelist'");
        // Spellings of one option are no ambiguity.
        one(&["--nam", "x"], "job-name", Some("x"));
    }

    #[test]
    fn options_follow_operands_unless_the_command_ends_them() {
        let (options, operands) = ok(&["a.sh", "-n", "2", "arg", "--hold", "--", "-v", "--"]);
        assert_eq!(options.len(), 2);
        assert_eq!(operands, ["a.sh", "arg", "-v", "--"]);
        let parsed = parse(SPECS, &words(&["-n2", "cmd", "-n", "x", "--"]), Operands::EndOptions).unwrap();
        assert_eq!(parsed.options.len(), 1);
        assert_eq!(parsed.operands, words(&["cmd", "-n", "x", "--"]));
        let parsed = parse(SPECS, &words(&["--", "-n", "x"]), Operands::EndOptions).unwrap();
        assert_eq!(parsed.operands, words(&["-n", "x"]));
    }

    #[test]
    fn short_options_bundle_and_a_value_ends_the_bundle() {
        let (options, _) = ok(&["-vvHn3"]);
        assert_eq!(options.iter().map(|o| o.0.as_str()).collect::<Vec<_>>(), ["verbose", "verbose", "hold", "ntasks"]);
        assert_eq!(options[3].1.as_deref(), Some("3"));
    }

    #[test]
    fn an_optional_value_is_taken_only_when_attached() {
        let (options, operands) = ok(&["--nice", "5", "-I", "-I7", "--nice=-3"]);
        let values: Vec<Option<String>> = options.into_iter().map(|o| o.1).collect();
        assert_eq!(values, [None, None, Some("7".into()), Some("-3".into())]);
        assert_eq!(operands, ["5"]);
    }

    #[test]
    fn a_lone_dash_is_an_operand() {
        assert_eq!(ok(&["-"]).1, ["-"]);
    }

    #[test]
    fn errors_are_worded_as_the_c_library_does() {
        assert_eq!(message(&["--foo=1"]), "unrecognized option '--foo=1'");
        assert_eq!(message(&["--hold=3"]), "option '--hold' doesn't allow an argument");
        assert_eq!(message(&["--hol=3"]), "option '--hold' doesn't allow an argument");
        assert_eq!(message(&["--ntasks"]), "option '--ntasks' requires an argument");
        assert_eq!(message(&["-Z"]), "invalid option -- 'Z'");
        assert_eq!(message(&["-n"]), "option requires an argument -- 'n'");
        assert_eq!(message(&["--bb=x"]), "--bb is not supported: there are no burst buffers");
    }

    #[test]
    fn values_keep_bytes_that_are_not_utf8() {
        let word = OsString::from_vec(b"--job-name=\xff\xfe".to_vec());
        let parsed = parse(SPECS, &[word], Operands::Mixed).unwrap();
        assert_eq!(parsed.options[0].value.as_deref().unwrap().as_bytes(), b"\xff\xfe");
    }
}
