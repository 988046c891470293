//! What scancel was asked to do: words and SCANCEL_* variables.

use crate::getopt::{Given, OptionSpec, Parsed};
use sluice_model::job_target::{self, JobTarget};
use sluice_model::{JobState, hostlist, signal};
use std::ffi::OsString;

pub static OPTIONS: &[OptionSpec] = &[
    OptionSpec::value("account", "account", "only jobs charged to this account").short('A'),
    OptionSpec::value("admin-comment", "text", "set the administrator's comment as well"),
    OptionSpec::flag("batch", "signal the batch shell only").short('b'),
    OptionSpec::value("clusters", "name", "the cluster; only this one is known").short('M'),
    OptionSpec::flag("ctld", "send through the controller; always so"),
    OptionSpec::flag("cron", "end a periodic job").short('c').refused("there are no periodic jobs yet"),
    OptionSpec::flag("full", "signal the batch shell and all steps").short('f'),
    OptionSpec::flag("help", "show this help"),
    OptionSpec::flag("hurry", "do not stage out; nothing is staged here").short('H'),
    OptionSpec::flag("interactive", "ask before each").short('i'),
    OptionSpec::value("jobname", "name", "").alias_of("name"),
    OptionSpec::value("name", "name", "only jobs of this name").short('n'),
    OptionSpec::flag("me", "only one's own jobs"),
    OptionSpec::value("nodelist", "hosts", "only jobs on these nodes").short('w'),
    OptionSpec::value("partition", "name", "only jobs in this partition").short('p'),
    OptionSpec::value("qos", "name", "only jobs of this quality of service").short('q'),
    OptionSpec::flag("quiet", "no warnings").short('Q'),
    OptionSpec::value("reservation", "name", "only jobs in this reservation").short('R'),
    OptionSpec::value("sibling", "cluster", "a job's sibling").refused("there are no federations of clusters"),
    OptionSpec::value("signal", "name|number", "send this signal instead of ending the job").short('s'),
    OptionSpec::value("state", "states", "only jobs in these states: PENDING, RUNNING, SUSPENDED").short('t'),
    OptionSpec::flag("usage", "show a short summary"),
    OptionSpec::value("user", "name", "only jobs of this user").short('u'),
    OptionSpec::flag("verbose", "say more").short('v'),
    OptionSpec::flag("version", "show the version").short('V'),
    OptionSpec::value("wckey", "key", "only jobs of this workload characterization key"),
];

/// Variables that stand for options (scancel's manual page).
const VARIABLES: &[(&str, &str)] = &[
    ("SCANCEL_ACCOUNT", "account"),
    ("SCANCEL_BATCH", "batch"),
    ("SCANCEL_CTLD", "ctld"),
    ("SCANCEL_FULL", "full"),
    ("SCANCEL_HURRY", "hurry"),
    ("SCANCEL_INTERACTIVE", "interactive"),
    ("SCANCEL_NAME", "name"),
    ("SCANCEL_PARTITION", "partition"),
    ("SCANCEL_QOS", "qos"),
    ("SCANCEL_STATE", "state"),
    ("SCANCEL_USER", "user"),
    ("SCANCEL_VERBOSE", "verbose"),
    ("SCANCEL_WCKEY", "wckey"),
    ("SLURM_CLUSTERS", "clusters"),
];

#[derive(Debug, Default)]
pub struct Settings {
    pub targets: Vec<JobTarget>,
    pub account: Option<String>,
    pub name: Option<String>,
    pub nodes: Vec<String>,
    pub partition: Option<String>,
    pub qos: Option<String>,
    pub reservation: Option<String>,
    pub states: Vec<JobState>,
    pub user: Option<String>,
    pub wckey: Option<String>,
    pub signal: Option<u8>,
    pub batch: bool,
    pub full: bool,
    pub interactive: bool,
    pub verbose: u32,
    pub admin_comment: Option<String>,
}

impl Settings {
    /// The error is what to print, line by line.
    pub fn resolve(parsed: &Parsed, lookup: &dyn Fn(&str) -> Option<OsString>) -> Result<Settings, Vec<String>> {
        let mut settings = Settings::default();
        for (variable, key) in VARIABLES {
            let Some(value) = lookup(variable) else { continue };
            let Some(spec) = OPTIONS.iter().find(|o| o.long == *key) else { continue };
            let text = value.to_string_lossy();
            let off = matches!(spec.arg, crate::getopt::Arg::None) && matches!(text.as_ref(), "0" | "no" | "false");
            if !off {
                settings.set(&Given { spec, value: Some(value) })?;
            }
        }
        parsed.options.iter().try_for_each(|given| settings.set(given))?;
        for operand in &parsed.operands {
            let text = operand.to_string_lossy();
            for part in split_ids(&text) {
                let target = job_target::parse(part);
                let target = target.map_err(|_| vec![format!("scancel: error: Invalid job id {part}")])?;
                settings.targets.push(target);
            }
        }
        if settings.targets.is_empty() && !settings.has_filters() {
            return Err(vec!["scancel: error: No job identification provided".to_owned()]);
        }
        Ok(settings)
    }

    fn set(&mut self, given: &Given) -> Result<(), Vec<String>> {
        let text = given.text();
        match given.key() {
            "account" => self.account = Some(text),
            "admin-comment" => self.admin_comment = Some(text),
            "batch" => self.batch = true,
            "full" => self.full = true,
            "interactive" => self.interactive = true,
            "name" => self.name = Some(text),
            "me" => self.user = Some(own_name()),
            "nodelist" => {
                let names =
                    hostlist::expand(&text).map_err(|e| vec![format!("scancel: error: {}", e.named("--nodelist"))])?;
                self.nodes = names;
            }
            "partition" => self.partition = Some(text),
            "qos" => self.qos = Some(text),
            "reservation" => self.reservation = Some(text),
            "signal" => {
                let number = signal::parse_signal_name(&text);
                self.signal = Some(number.ok_or_else(|| vec![format!("Unknown job signal: {text}")])?);
            }
            "state" => self.states = states(&text)?,
            "user" => self.user = Some(user_name(&text)?),
            "verbose" => self.verbose = self.verbose.saturating_add(1),
            "quiet" => self.verbose = 0,
            "wckey" => self.wckey = Some(text),
            "clusters" => own_cluster(&text)?,
            // `--ctld`: all goes through the controller. `--hurry`: nothing is staged out.
            _ => {}
        }
        Ok(())
    }

    pub fn has_filters(&self) -> bool {
        !self.filters().is_empty()
    }

    /// Jobs must be looked up before anything is done.
    pub fn needs_list(&self) -> bool {
        self.has_filters() || self.interactive
    }

    fn filters(&self) -> Vec<(&'static str, String)> {
        let mut filters = Vec::new();
        let mut add = |name, value: Option<String>| filters.extend(value.map(|v| (name, v)));
        add("account", self.account.clone());
        add("job_name", self.name.clone());
        add("nodelist", (!self.nodes.is_empty()).then(|| hostlist::fold(&self.nodes)));
        add("partition", self.partition.clone());
        add("qos", self.qos.clone());
        add("reservation", self.reservation.clone());
        let states: Vec<&str> = self.states.iter().map(|s| s.long()).collect();
        add("state", (!states.is_empty()).then(|| states.join(",")));
        add("user_name", self.user.clone());
        add("wckey", self.wckey.clone());
        filters
    }

    /// `job_name=nosuch state=RUNNING `
    pub fn filter_text(&self) -> String {
        let named = self.filters().into_iter().map(|(name, value)| format!("{name}={value} "));
        let ids = self.targets.iter().map(|t| format!("job_id={t} "));
        ids.chain(named).collect()
    }
}

/// At commas and blanks outside brackets.
fn split_ids(text: &str) -> Vec<&str> {
    let mut depth = 0u32;
    let parts = text.split(|c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    let parts: Vec<&str> = parts.filter(|p| !p.is_empty()).collect();
    if parts.is_empty() { vec![text] } else { parts }
}

fn states(text: &str) -> Result<Vec<JobState>, Vec<String>> {
    text.split(',')
        .map(|name| match JobState::parse(name) {
            Some(state @ (JobState::Pending | JobState::Running | JobState::Suspended)) => Ok(state),
            _ => Err(vec![
                format!("Invalid job state specified: {name}"),
                "Valid job states are PENDING, RUNNING, and SUSPENDED".to_owned(),
            ]),
        })
        .collect()
}

fn own_name() -> String {
    let uid = nix::unistd::getuid();
    nix::unistd::User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |u| u.name)
}

/// A name or number that exists.
fn user_name(text: &str) -> Result<String, Vec<String>> {
    let by_number = text.parse::<u32>().ok().map(nix::unistd::Uid::from_raw);
    let found = match by_number {
        Some(uid) => nix::unistd::User::from_uid(uid),
        None => nix::unistd::User::from_name(text),
    };
    match (found.ok().flatten(), by_number) {
        (Some(user), _) => Ok(user.name),
        (None, Some(uid)) => Ok(uid.to_string()),
        (None, None) => Err(vec![format!("scancel: error: Invalid user name: {text}")]),
    }
}

fn own_cluster(text: &str) -> Result<(), Vec<String>> {
    let own = crate::client_config::load().map(|c| c.cluster).unwrap_or_default();
    match text.split(',').find(|name| *name != own && *name != "all") {
        None => Ok(()),
        Some(other) => Err(vec![format!("scancel: error: No cluster '{other}' known by database.")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::{self, Operands};

    fn resolve(words: &[&str], vars: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = getopt::parse(OPTIONS, &words, Operands::Mixed).expect("parses");
        let lookup = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        Settings::resolve(&parsed, &lookup)
    }

    #[test]
    fn options_may_follow_ids() {
        let settings = resolve(&["12", "--signal", "USR2", "13_[1-4]", "14.0"], &[]).unwrap();
        assert_eq!(settings.signal, Some(12));
        let ids: Vec<String> = settings.targets.iter().map(ToString::to_string).collect();
        assert_eq!(ids, ["12", "13_[1-4]", "14.0"]);
        assert!(!settings.needs_list());
    }

    #[test]
    fn mistakes_are_told_in_slurms_words() {
        let error = |words: &[&str]| resolve(words, &[]).unwrap_err();
        assert_eq!(error(&[]), ["scancel: error: No job identification provided"]);
        for id in ["abc", "12x", "12_a", "12_[1-", "0"] {
            assert_eq!(error(&[id]), [format!("scancel: error: Invalid job id {id}")]);
        }
        assert_eq!(error(&["-s", "FOO", "1"]), ["Unknown job signal: FOO"]);
        assert_eq!(error(&["-t", "foo"])[0], "Invalid job state specified: foo");
        assert_eq!(error(&["-u", "no-such-user"]), ["scancel: error: Invalid user name: no-such-user"]);
    }

    #[test]
    fn filters_come_from_options_and_variables() {
        let settings =
            resolve(&["--name=wrap", "-t", "R"], &[("SCANCEL_PARTITION", "p"), ("SCANCEL_BATCH", "0")]).unwrap();
        assert_eq!(settings.filter_text(), "job_name=wrap partition=p state=RUNNING ");
        assert!(!settings.batch);
        assert!(settings.needs_list());
    }

    #[test]
    fn several_ids_may_stand_in_one_word() {
        let settings = resolve(&["12,13_[1,2]"], &[]).unwrap();
        assert_eq!(settings.targets.len(), 2);
    }
}
