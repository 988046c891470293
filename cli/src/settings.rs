//! What sbatch, salloc or srun was asked to do, resolved from all places where it can be said.
//!
//! Owns the precedence (command line over environment over `#SBATCH` lines; the last one said wins within each) and
//! turns each value into its type exactly once. Promises Slurm's messages and exit codes for values that can't be.
//! It must not talk to anyone: no network, nothing printed.

mod client;
mod gpus;
mod job;
mod resources;
mod show;
pub mod value;

use crate::getopt::{Given, State};
use crate::options::Submitter;
pub use client::LIMITS;
use sluice_model::job::{JobKind, JobSpec};
use sluice_model::request::GresRequest;
use sluice_model::{BlobId, OsBytes, Time};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
pub use value::BadValue;

/// `--export`
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Export {
    /// Everything.
    #[default]
    All,
    /// Only SLURM_* variables; the login environment is loaded.
    None,
    /// Only SLURM_* variables.
    Nil,
    /// `names` (with a value: set to it); with everything else when `all`.
    Some { all: bool, names: Vec<(Vec<u8>, Option<Vec<u8>>)> },
}

/// Where one stream of srun's tasks goes or comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Redirect {
    /// srun's own stream, all tasks.
    #[default]
    All,
    Nothing,
    OneTask(u32),
    File(Vec<u8>),
}

/// What concerns the client alone and is not part of the job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientSettings {
    pub verbose: u32,
    pub quiet: bool,
    pub export: Option<Export>,
    pub export_text: Option<String>,
    pub export_file: Option<OsString>,
    pub propagate: Option<Vec<&'static str>>,
    // sbatch
    pub wrap: Option<OsString>,
    pub parsable: bool,
    pub wait: bool,
    pub test_only: bool,
    // salloc
    pub bell: bool,
    pub no_shell: bool,
    pub kill_command: Option<u8>,
    // srun
    pub step: StepSettings,
}

/// What concerns srun's step alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepSettings {
    pub jobid: Option<u32>,
    pub exact: bool,
    pub overlap: bool,
    pub exclusive: bool,
    pub label: bool,
    pub unbuffered: bool,
    pub multi_prog: bool,
    pub pty: bool,
    pub kill_on_bad_exit: Option<bool>,
    /// `--wait`: seconds after the first task ended; None and 0: no limit.
    pub wait_secs: Option<u32>,
    pub disable_status: bool,
    pub quit_on_interrupt: bool,
    pub preserve_env: bool,
    pub relative: Option<u32>,
    pub stdin: Redirect,
    pub stdout: Redirect,
    /// None: as stdout.
    pub stderr: Option<Redirect>,
}

/// Options whose values are bytes, kept as they are; those of all others are text.
const BYTES: &[&str] = &["job-name", "comment", "chdir", "input", "output", "error", "export", "export-file", "wrap"];

/// The whole of it.
#[derive(Clone, Debug)]
pub struct Settings {
    pub command: Submitter,
    /// What the controller is asked for; user fields are filled in there.
    pub job: JobSpec,
    pub client: ClientSettings,
    /// Values of the GRES options by option, put together at the end.
    gres: BTreeMap<&'static str, Vec<GresRequest>>,
    /// `--chdir` as given.
    pub chdir: Option<OsString>,
    /// Every option that was given, with its value as `-v` shows it.
    shown: BTreeMap<&'static str, String>,
    now: Time,
    /// None: the system's, looked up when it is needed.
    tz: Option<jiff::tz::TimeZone>,
}

impl Settings {
    pub fn new(command: Submitter, now: Time, tz: Option<jiff::tz::TimeZone>) -> Self {
        Settings {
            command,
            job: empty_job(command),
            client: ClientSettings::default(),
            gres: BTreeMap::new(),
            chdir: None,
            shown: BTreeMap::new(),
            now,
            tz,
        }
    }

    fn tz(&self) -> jiff::tz::TimeZone {
        self.tz.clone().unwrap_or_else(jiff::tz::TimeZone::system)
    }

    /// Takes options in order; a later one wins over an earlier one.
    pub fn apply(&mut self, options: &[Given]) -> Result<(), BadValue> {
        options.iter().try_for_each(|given| self.set(given))
    }

    /// Takes one option.
    pub fn set(&mut self, given: &Given) -> Result<(), BadValue> {
        let key = given.key();
        if let State::Refused(reason) = given.spec.state {
            return Err(BadValue::line(255, format!("{} is not supported: {reason}", given.spec.display())));
        }
        let value = given.value.as_deref();
        let text = given.text();
        if !BYTES.contains(&key) && value.is_some_and(|v| v.to_str().is_none()) {
            return Err(BadValue::not_allowed(key, &text, "text in UTF-8"));
        }
        let known = self.set_resource(key, &text, value.is_some())?
            || self.set_job(key, value.unwrap_or_default(), &text, value.is_some())?
            || self.set_client(key, value.unwrap_or_default(), &text, value.is_some())?;
        if !known {
            self.set_stored(given, &text)?;
        }
        self.shown.insert(given.spec.key, self.display(key, &text, value.is_some()));
        Ok(())
    }

    /// Was it said anywhere?
    pub fn given(&self, key: &str) -> bool {
        self.shown.contains_key(key)
    }

    /// The value of an option that was given, as it was understood.
    pub fn shown_value(&self, key: &str) -> Option<String> {
        self.shown.get(key).cloned()
    }

    /// Brings together what options say jointly. Call once, after the last `apply`.
    pub fn finish(&mut self) -> Result<(), BadValue> {
        self.job.request.gres = self.joined_gres()?;
        if self.client.verbose > 0 && self.client.quiet {
            return Err(BadValue::line(1, "don't specify both --verbose (-v) and --quiet (-Q)".to_owned()));
        }
        let step = &self.client.step;
        if step.relative.is_some() && (self.given("nodelist") || self.given("exclude")) {
            let text = "-r,--relative not allowed with -w,--nodelist or -x,--exclude.";
            return Err(BadValue::line(1, text.to_owned()));
        }
        if step.exclusive && step.overlap {
            return Err(BadValue::line(1, "--exclusive and --overlap are mutually exclusive".to_owned()));
        }
        if let (Some(limit), Some(min)) = (self.job.time_limit, self.job.time_min)
            && min > limit
        {
            let (limit, min) =
                (sluice_model::time::format_time_limit(limit), sluice_model::time::format_time_limit(min));
            let detail = format!("--time-min={min} is longer than --time={limit}");
            return Err(self.refused("Requested time limit is invalid (missing or exceeds some limit)", Some(detail)));
        }
        Ok(())
    }

    /// As if the controller had refused it: Slurm's client leaves these to its controller.
    fn refused(&self, reason: &str, detail: Option<String>) -> BadValue {
        let mut lines: Vec<String> = detail.into_iter().collect();
        lines.push(format!("{}: {reason}", self.command.failure()));
        BadValue { lines, code: 1 }
    }

    /// The table that `-v` prints on stderr, without the program's name before each line.
    pub fn table(&self) -> Vec<String> {
        let mut lines = vec!["defined options".to_owned(), "-------------------- --------------------".to_owned()];
        lines.extend(self.shown.iter().map(|(key, value)| format!("{key:<20}: {value}")));
        lines.push("-------------------- --------------------".to_owned());
        lines.push("end of defined options".to_owned());
        lines
    }

    /// The working directory: `--chdir` taken from the present one.
    pub fn work_dir(&self, cwd: &OsStr) -> OsBytes {
        match &self.chdir {
            Some(dir) if !dir.is_empty() => OsBytes::from(std::path::Path::new(cwd).join(dir).as_os_str()),
            _ => OsBytes::new(cwd.as_bytes()),
        }
    }
}

fn empty_job(command: Submitter) -> JobSpec {
    let kind = match command {
        Submitter::Sbatch => JobKind::Batch { script: BlobId([0; 32]), args: Vec::new() },
        Submitter::Salloc | Submitter::Srun => JobKind::Allocation,
    };
    JobSpec::new(OsBytes::default(), kind, (0, ""), (0, ""))
}
