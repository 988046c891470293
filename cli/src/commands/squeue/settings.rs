//! What one invocation of `squeue` was asked for: options over environment over defaults.
//!
//! Sources: squeue(1), options and "ENVIRONMENT VARIABLES"; default formats as listed there.

use super::fields::{self, Info};
use super::{sort, steps};
use crate::getopt::Parsed;
use crate::view::columns::Layout;
use crate::viewing::{self, env};
use sluice_model::JobState;
use sluice_model::job_target::{self, JobTarget};
use std::process::ExitCode;
use std::time::Duration;

const DEFAULT: &str = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
const LONG: &str = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
const START: &str = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R";
const STEPS: &str = "%.15i %.8j %.9P %.8u %.9M %N";
const STATES_ONLY: &str = "%.18i %.13T";

/// The columns: of jobs or of steps.
pub enum Shown {
    Jobs(Layout<&'static Info>),
    Steps(Layout<steps::Shown>),
}

pub struct Settings {
    pub shown: Shown,
    pub long: bool,
    pub header: bool,
    pub start: bool,
    pub split_arrays: bool,
    pub by_partition: bool,
    pub show_hidden: bool,
    pub iterate: Option<Duration>,
    /// None: the default order.
    pub sort: Option<String>,
    pub jobs: Vec<JobTarget>,
    /// Steps named by `--steps=`.
    pub steps: Vec<JobTarget>,
    pub users: Vec<String>,
    pub not_me: bool,
    /// Long state names; empty: those not finished. `ALL`: every one.
    pub states: Vec<String>,
    pub partitions: Vec<String>,
    pub accounts: Vec<String>,
    pub names: Vec<String>,
    pub qos: Vec<String>,
    pub nodes: Vec<String>,
    pub licenses: Vec<String>,
    pub reservations: Vec<String>,
    pub running_over: Option<Duration>,
    pub running_under: Option<Duration>,
    pub clusters: Option<String>,
}

fn fail(message: &str) -> ExitCode {
    crate::errln!("squeue: error: {message}");
    ExitCode::from(1)
}

pub fn read(parsed: &Parsed) -> Result<Settings, ExitCode> {
    let mut operands = parsed.operands.iter().map(|o| o.to_string_lossy().into_owned());
    // Their values must be attached, but Slurm takes the next word as well.
    let mut optional = |key: &str| -> Option<String> {
        let given = parsed.last(key)?;
        Some(if given.value.is_some() { given.text() } else { operands.next().unwrap_or_default() })
    };
    let job_list = optional("jobs");
    let step_list = optional("steps");
    if let Some(extra) = operands.next() {
        crate::errln!("squeue: error: Unrecognized option: {extra}");
        crate::out::talk_bytes(crate::help::usage_text("squeue", "", super::OPTIONS).as_bytes());
        return Err(ExitCode::from(1));
    }
    let value = |key: &str, variable: &str| parsed.last(key).map(|g| g.text()).or_else(|| env(variable));
    let list = |key: &str, variable: &str| value(key, variable).map(|v| viewing::list(&v)).unwrap_or_default();
    let flag = |key: &str, variable: &str| parsed.has(key) || std::env::var_os(variable).is_some();

    let start = parsed.has("start");
    let mut users = list("user", "SQUEUE_USERS");
    let mut not_me = parsed.has("notme");
    if parsed.has("me") {
        users = vec![viewing::me().user];
        not_me = false;
    } else {
        let (known, unknown) = viewing::users(&users);
        for user in &unknown {
            crate::errln!("squeue: error: Invalid user: {user}");
        }
        // A user this host lacks may still be one of the cluster's.
        users = known.into_iter().chain(unknown).collect();
    }
    let states = match value("states", "SQUEUE_STATES") {
        Some(text) => parse_states(&text)?,
        None if start => vec![JobState::Pending.long().to_owned()],
        None => Vec::new(),
    };
    let steps_mode = step_list.is_some();
    Ok(Settings {
        shown: shown(parsed, steps_mode, start)?,
        long: parsed.has("long"),
        header: !parsed.has("noheader"),
        start,
        split_arrays: flag("array", "SQUEUE_ARRAY"),
        by_partition: flag("priority", "SQUEUE_PRIORITY"),
        show_hidden: (flag("all", "SQUEUE_ALL") && !parsed.has("hide")) || job_list.is_some(),
        iterate: parsed.last("iterate").map(|g| viewing::seconds("squeue", "iterate", &g.text())).transpose()?,
        sort: value("sort", "SQUEUE_SORT"),
        jobs: targets(job_list.as_deref())?,
        steps: targets(step_list.as_deref())?,
        users,
        not_me,
        states,
        partitions: list("partition", "SQUEUE_PARTITION"),
        accounts: list("account", "SQUEUE_ACCOUNT"),
        names: list("name", "SQUEUE_NAMES"),
        qos: list("qos", "SQUEUE_QOS"),
        nodes: match parsed.last("nodelist") {
            Some(given) => nodes(&given.text())?,
            None => Vec::new(),
        },
        licenses: list("licenses", "SQUEUE_LICENSES"),
        reservations: parsed.last("reservation").map(|g| viewing::list(&g.text())).unwrap_or_default(),
        running_over: duration(parsed, "running-over")?,
        running_under: duration(parsed, "running-under")?,
        clusters: value("clusters", "SLURM_CLUSTERS"),
    })
}

/// Columns: `-O` and `-o` in the order given, then the environment, then the defaults.
fn shown(parsed: &Parsed, steps_mode: bool, start: bool) -> Result<Shown, ExitCode> {
    let given = parsed.options.iter().rev().find(|o| matches!(o.key(), "format" | "Format"));
    let (text, names) = match given {
        Some(option) => (option.text(), option.key() == "Format"),
        None => match (env("SQUEUE_FORMAT"), env("SQUEUE_FORMAT2")) {
            // An option for a whole format beats the environment.
            _ if parsed.has("long") || start || steps_mode || parsed.has("only-job-state") => (String::new(), false),
            (Some(letters), _) => (letters, false),
            (None, Some(long)) => (long, true),
            (None, None) => (String::new(), false),
        },
    };
    let all = if names { text.eq_ignore_ascii_case("all") } else { text == "%all" };
    let letters = match (steps_mode, text.as_str()) {
        (true, "") => STEPS.to_owned(),
        (true, _) if all => steps::ALL_LETTERS.to_owned(),
        (false, _) if all => fields::all_letters(),
        (false, "") if start => START.to_owned(),
        (false, "") if parsed.has("only-job-state") => STATES_ONLY.to_owned(),
        (false, "") if parsed.has("long") => LONG.to_owned(),
        (false, "") => DEFAULT.to_owned(),
        (_, given) => given.to_owned(),
    };
    let what = if steps_mode { "job step format" } else { "job format" };
    let complain = |bad: &str| crate::errln!("squeue: error: Invalid {what} specification: {bad}");
    let by_names = names && !all;
    Ok(if steps_mode {
        Shown::Steps(layout(&letters, by_names, steps::by_letter, steps::by_name, complain))
    } else {
        Shown::Jobs(layout(&letters, by_names, fields::by_letter, fields::by_name, complain))
    })
}

/// Reads a layout and complains about each letter or name that is not known.
fn layout<F: Copy>(
    text: &str,
    names: bool,
    by_letter: impl Fn(char) -> Option<F>,
    by_name: impl Fn(&str) -> Option<F>,
    complain: impl Fn(&str),
) -> Layout<F> {
    if names {
        let (layout, unknown) = Layout::parse_names(text, by_name);
        unknown.iter().for_each(|name| complain(name));
        layout
    } else {
        let (layout, unknown) = Layout::parse_letters(text, by_letter);
        unknown.iter().for_each(|letter| complain(&letter.to_string()));
        layout
    }
}

/// Long names of the states; `ALL` for all.
pub fn parse_states(text: &str) -> Result<Vec<String>, ExitCode> {
    let mut states = Vec::new();
    for word in viewing::list(text) {
        if word.eq_ignore_ascii_case("all") {
            return Ok(vec!["ALL".to_owned()]);
        }
        match JobState::parse(&word) {
            Some(state) => states.push(state.long().to_owned()),
            // States that Slurm knows and no job here is ever in.
            None if NEVER
                .iter()
                .any(|(long, short)| word.eq_ignore_ascii_case(long) || word.eq_ignore_ascii_case(short)) =>
            {
                states.push(word.to_ascii_uppercase());
            }
            None => {
                let valid: Vec<&str> =
                    JobState::ALL.iter().map(|s| s.long()).chain(NEVER.iter().map(|(long, _)| *long)).collect();
                crate::errln!("squeue: error: Invalid job state specified: {word}");
                crate::errln!("squeue: error: Valid job states include: {}\n", valid.join(","));
                return Err(ExitCode::from(1));
            }
        }
    }
    Ok(states)
}

const NEVER: &[(&str, &str)] = &[
    ("CONFIGURING", "CF"),
    ("RESIZING", "RS"),
    ("RESV_DEL_HOLD", "RD"),
    ("REQUEUE_FED", "RF"),
    ("REQUEUE_HOLD", "RH"),
    ("REVOKED", "RV"),
    ("SIGNALING", "SI"),
    ("STAGE_OUT", "SO"),
    ("STOPPED", "ST"),
    ("LAUNCH_FAILED", "LF"),
    ("RECONFIG_FAIL", "RE"),
];

fn targets(text: Option<&str>) -> Result<Vec<JobTarget>, ExitCode> {
    let Some(text) = text.filter(|t| !t.is_empty()) else { return Ok(Vec::new()) };
    job_target::parse_list(text).map_err(|error| fail(&format!("Invalid job id: {}", error.value)))
}

fn nodes(text: &str) -> Result<Vec<String>, ExitCode> {
    let mut names = sluice_model::hostlist::expand(text).map_err(|_| fail(&format!("Invalid node name {text}")))?;
    for name in names.iter_mut().filter(|n| *n == "localhost") {
        if let Some(host) = nix::unistd::gethostname().ok().and_then(|h| h.into_string().ok()) {
            *name = host.split('.').next().unwrap_or_default().to_owned();
        }
    }
    Ok(names)
}

fn duration(parsed: &Parsed, key: &str) -> Result<Option<Duration>, ExitCode> {
    let Some(given) = parsed.last(key) else { return Ok(None) };
    let text = given.text();
    match sluice_model::time::parse_time_limit(&text).ok().and_then(|l| l.duration()) {
        Some(duration) => Ok(Some(duration)),
        None => Err(fail(&format!("Invalid --{key} specification: {text}"))),
    }
}

impl Settings {
    /// The sort list in force.
    pub fn order(&self) -> Result<Vec<sort::Key>, ExitCode> {
        let default = if self.start { sort::DEFAULT_START } else { sort::DEFAULT };
        sort::parse(self.sort.as_deref().unwrap_or(default))
            .map_err(|letter| fail(&format!("Invalid sort specification: {letter}")))
    }

    /// `--verbose`
    pub fn talk(&self) {
        let targets = |t: &[JobTarget]| t.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let rows = [
            ("account", self.accounts.join(",")),
            ("jobs", targets(&self.jobs)),
            ("names", self.names.join(",")),
            ("nodes", self.nodes.join(",")),
            ("partitions", self.partitions.join(",")),
            ("qos", self.qos.join(",")),
            ("reservation", self.reservations.join(",")),
            ("sort", self.sort.clone().unwrap_or_default()),
            ("states", self.states.join(",")),
            ("steps", targets(&self.steps)),
            ("users", self.users.join(",")),
        ];
        crate::errln!("-----------------------------");
        for (name, value) in rows {
            crate::errln!("{name:11} = {}", if value.is_empty() { "(null)" } else { &value });
        }
        crate::errln!("-----------------------------\n");
    }
}

#[cfg(test)]
pub mod test {
    use super::*;

    /// Settings of a command line, or the exit code.
    pub fn of(words: &[&str]) -> Result<Settings, ExitCode> {
        let words: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        let specs = super::super::OPTIONS;
        let parsed = crate::getopt::parse(specs, &words, crate::getopt::Operands::Mixed).expect("the words parse");
        read(&parsed)
    }

    #[test]
    fn jobs_may_follow_as_the_next_word() {
        for words in [&["-j", "7,8_[1-2]"][..], &["-j7,8_[1-2]"], &["--jobs=7,8_[1-2]"], &["--job", "7,8_[1-2]", "-h"]]
        {
            let settings = of(words).ok().unwrap();
            assert_eq!(settings.jobs.len(), 2, "{words:?}");
            assert!(settings.show_hidden);
        }
        assert!(of(&["-j", "2,abc"]).is_err());
        assert!(of(&["7"]).is_err());
    }

    #[test]
    fn states_are_taken_in_both_forms_and_any_case() {
        assert_eq!(of(&["-t", "pd,Running,oom"]).ok().unwrap().states, ["PENDING", "RUNNING", "OUT_OF_MEMORY"]);
        assert_eq!(of(&["-t", "all"]).ok().unwrap().states, ["ALL"]);
        assert_eq!(of(&["-t", "CF"]).ok().unwrap().states, ["CF"]);
        assert!(of(&["-t", "foo"]).is_err());
        assert_eq!(of(&["--start"]).ok().unwrap().states, ["PENDING"]);
    }

    #[test]
    fn bad_values_end_the_command() {
        for words in [["-i", "0"], ["-i", "x"], ["--running-over", "x"], ["-w", "n[1"]] {
            assert!(of(&words).is_err(), "{words:?}");
        }
        assert!(of(&["-S", "xx!"]).ok().unwrap().order().is_err());
    }
}
