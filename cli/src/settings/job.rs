//! Options that say what the job is, when it may run and what becomes of it.

use super::value::{number, yes_no};
use super::{BadValue, Settings};
use crate::options::Submitter;
use sluice_model::job::OpenMode;
use sluice_model::time::{parse_time_limit, parse_when};
use sluice_model::{OsBytes, TimeLimit, array, dependency, licenses, mail, signal};
use std::ffi::OsStr;

/// The controller knows its own limit (MaxArraySize); this one only keeps the set small.
const ARRAY_INDEX_LIMIT: u32 = 0x7fff_fffe;
/// Slurm's bound of `--nice`.
const NICE_LIMIT: i64 = 2_147_483_645;

impl Settings {
    /// False when the option is none of these.
    pub(super) fn set_job(
        &mut self,
        key: &'static str,
        value: &OsStr,
        text: &str,
        has_value: bool,
    ) -> Result<bool, BadValue> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        match key {
            "job-name" => self.job.name = OsBytes::from(value),
            "account" => self.job.account = some(text),
            "qos" => self.job.qos = some(text),
            "wckey" => self.job.wckey = some(text),
            "reservation" => self.job.reservation = some(text),
            "partition" => self.set_partition(text)?,
            "time" => self.job.time_limit = time_limit(key, text)?,
            "time-min" => self.job.time_min = time_limit(key, text)?,
            "begin" => {
                let when = parse_when(text, self.now, &self.tz());
                self.job.begin = Some(when.map_err(|e| BadValue::specification(key, e))?);
            }
            "deadline" => {
                let when = parse_when(text, self.now, &self.tz());
                self.job.deadline = Some(when.map_err(|e| BadValue::specification(key, e))?);
            }
            "dependency" => {
                let parsed = dependency::parse(text);
                let refused = |e: sluice_model::error::ParseError| {
                    self.refused("Job dependency problem", Some(e.named("--dependency").to_string()))
                };
                self.job.dependency = Some(Box::new(parsed.map_err(refused)?));
            }
            "array" => {
                let parsed = array::parse_array(text, ARRAY_INDEX_LIMIT);
                let refused = |e: sluice_model::error::ParseError| {
                    self.refused("Invalid job array specification", Some(e.named("--array").to_string()))
                };
                self.job.array = Some(Box::new(parsed.map_err(refused)?));
            }
            "hold" => self.job.hold = true,
            "priority" => self.job.priority = priority(text)?,
            "nice" => self.job.nice = nice(text, has_value)?,
            "requeue" => self.job.requeue = Some(true),
            "no-requeue" => self.job.requeue = Some(false),
            "kill-on-invalid-dep" => self.job.kill_on_invalid_dep = Some(yes_no(key, text)?),
            "signal" => {
                let parsed = signal::parse_signal_request(text);
                self.job.signal = Some(parsed.map_err(|e| BadValue::specification(key, e))?);
            }
            "comment" => self.job.comment = Some(OsBytes::from(value)),
            "mail-type" => {
                self.job.mail_type = mail::parse(text).map_err(|e| BadValue::specification(key, e))?;
            }
            "mail-user" => self.job.mail_user = some(text),
            "licenses" => {
                let parsed = licenses::parse(text).map_err(|e| {
                    self.refused("Invalid license specification", Some(e.named("--licenses").to_string()))
                })?;
                self.job.licenses = parsed.into();
            }
            "open-mode" => self.job.io.open_mode = Some(open_mode(text)?),
            "immediate" => self.job.immediate_secs = Some(if has_value { number(key, text, 0)?.max(1) } else { 1 }),
            "chdir" => self.chdir = Some(value.to_owned()),
            "input" if self.command == Submitter::Sbatch => self.job.io.stdin = Some(OsBytes::from(value)),
            "output" if self.command == Submitter::Sbatch => self.job.io.stdout = Some(OsBytes::from(value)),
            "error" if self.command == Submitter::Sbatch => self.job.io.stderr = Some(OsBytes::from(value)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_partition(&mut self, text: &str) -> Result<(), BadValue> {
        let names: Vec<String> = text.split(',').filter(|n| !n.is_empty()).map(str::to_owned).collect();
        if names.is_empty() {
            let detail = "invalid partition specified: (null)".to_owned();
            return Err(self.refused("Invalid partition name specified", Some(detail)));
        }
        self.job.partitions = names.into();
        Ok(())
    }
}

/// Zero is no limit of its own: the partition's counts.
fn time_limit(key: &str, text: &str) -> Result<Option<TimeLimit>, BadValue> {
    let limit = parse_time_limit(text).map_err(|e| BadValue::specification(key, e))?;
    Ok((limit != TimeLimit::Minutes(0)).then_some(limit))
}

fn priority(text: &str) -> Result<Option<u32>, BadValue> {
    if text.eq_ignore_ascii_case("top") {
        return Ok(Some(u32::MAX - 1));
    }
    if text.starts_with('-') {
        return Err(BadValue::line(255, "Priority must be >= 0".to_owned()));
    }
    let number = text.parse::<u32>().ok().filter(|n| *n < u32::MAX);
    number.map(Some).ok_or_else(|| BadValue::not_allowed("priority", text, "0 to 4294967294, or TOP"))
}

fn nice(text: &str, has_value: bool) -> Result<i32, BadValue> {
    if !has_value {
        return Ok(100);
    }
    let number =
        text.parse::<i64>().map_err(|_| BadValue::not_allowed("nice", text, "a whole number within +/- 2147483645"))?;
    if number.abs() > NICE_LIMIT {
        let line = format!("Invalid --nice value, out of range (+/- {NICE_LIMIT})");
        return Err(BadValue::line(255, line));
    }
    i32::try_from(number).map_err(|_| BadValue::not_allowed("nice", text, "a number within +/- 2147483645"))
}

fn open_mode(text: &str) -> Result<OpenMode, BadValue> {
    match text.to_ascii_lowercase().as_str() {
        "a" | "append" => Ok(OpenMode::Append),
        "t" | "truncate" => Ok(OpenMode::Truncate),
        _ => Err(BadValue::not_allowed("open-mode", text, "append or truncate")),
    }
}
