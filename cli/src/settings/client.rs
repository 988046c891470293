//! Options that concern the command itself, srun's step, and those that are kept for later.

use super::value::{number, yes_no};
use super::{BadValue, Export, Redirect, Settings};
use crate::getopt::Given;
use sluice_model::signal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What `--propagate` may name, and getrlimit(2) knows.
pub const LIMITS: &[&str] = &["AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"];

impl Settings {
    /// False when the option is none of these.
    pub(super) fn set_client(
        &mut self,
        key: &'static str,
        value: &OsStr,
        text: &str,
        has_value: bool,
    ) -> Result<bool, BadValue> {
        let client = &mut self.client;
        let step = &mut client.step;
        match key {
            "verbose" => client.verbose = client.verbose.saturating_add(1),
            "quiet" => client.quiet = true,
            "export" => {
                let asked = export(value.as_bytes());
                client.export_text = (asked != Export::All).then(|| text.to_owned());
                client.export = Some(asked);
            }
            "export-file" => client.export_file = Some(value.to_owned()),
            "get-user-env" => {
                user_env(text)?;
                self.job.get_user_env = true;
            }
            "propagate" => client.propagate = Some(limits(text)?),
            "wrap" => client.wrap = Some(value.to_owned()),
            "parsable" => client.parsable = true,
            "wait" if key_is_flag(has_value) => client.wait = true,
            "wait" => step.wait_secs = Some(number(key, text, 0)?),
            "test-only" => client.test_only = true,
            "ignore-pbs" | "stepmgr" => {}
            "uid" => own_id(key, text, nix::unistd::getuid().as_raw(), |n| {
                nix::unistd::User::from_name(n).ok().flatten().map(|u| u.uid.as_raw())
            })?,
            "gid" => own_id(key, text, nix::unistd::getgid().as_raw(), |n| {
                nix::unistd::Group::from_name(n).ok().flatten().map(|g| g.gid.as_raw())
            })?,
            "clusters" => self.set_cluster(text)?,
            "bell" => client.bell = true,
            "no-bell" => client.bell = false,
            "no-shell" => client.no_shell = true,
            "kill-command" => {
                let number = if has_value { signal::parse_signal_name(text) } else { Some(15) };
                let bad = || BadValue::not_allowed(key, text, "the name or number of a signal");
                client.kill_command = Some(number.ok_or_else(bad)?);
            }
            "jobid" => {
                let target = sluice_model::job_target::parse(text);
                step.jobid = Some(target.map_err(|e| BadValue::specification(key, e))?.job.0);
            }
            "exact" => step.exact = true,
            "overlap" => step.overlap = true,
            "label" => step.label = true,
            "unbuffered" => step.unbuffered = true,
            "multi-prog" => step.multi_prog = true,
            "pty" => step.pty = true,
            "kill-on-bad-exit" => step.kill_on_bad_exit = Some(if has_value { yes_no(key, text)? } else { true }),
            "disable-status" => step.disable_status = true,
            "quit-on-interrupt" => step.quit_on_interrupt = true,
            "preserve-env" => step.preserve_env = true,
            "relative" => step.relative = Some(number(key, text, 0)?),
            "mpi" => mpi(text)?,
            "input" => step.stdin = redirect(value),
            "output" => step.stdout = redirect(value),
            "error" => step.stderr = Some(redirect(value)),
            "help" | "usage" | "version" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_cluster(&mut self, text: &str) -> Result<(), BadValue> {
        let own = crate::client_config::load().map(|c| c.cluster).unwrap_or_default();
        match text.split(',').find(|name| *name != own && *name != "all") {
            None => Ok(()),
            Some(other) => {
                let hint = format!(
                    "'{other}' can't be reached now, or it is an invalid entry for --cluster.  The cluster here is '{own}'."
                );
                Err(BadValue { lines: vec![format!("No cluster '{other}' known by database."), hint], code: 1 })
            }
        }
    }

    /// Options whose effect comes later: their form is checked here, so that a mistake is found today.
    pub(super) fn set_stored(&mut self, given: &Given, text: &str) -> Result<(), BadValue> {
        let key = given.key();
        match key {
            "core-spec" | "thread-spec" | "ntasks-per-gpu" | "cpus-per-gpu" | "msg-timeout" | "threads"
            | "treewidth" => {
                number(key, text, 0)?;
            }
            "hint" => match text {
                "compute_bound" | "memory_bound" | "multithread" | "nomultithread" => {}
                "help" => {
                    let line = "--hint is compute_bound, memory_bound, multithread or nomultithread".to_owned();
                    return Err(BadValue::line(0, line));
                }
                _ => {
                    let line = format!("unrecognized --hint argument \"{text}\", see --hint=help");
                    return Err(BadValue::line(1, line));
                }
            },
            "delay-boot" => {
                sluice_model::time::parse_time_limit(text).map_err(|e| BadValue::specification(key, e))?;
            }
            "wait-all-nodes" => {
                yes_no(key, text)?;
            }
            _ => {}
        }
        self.job.stored.insert(key.to_owned(), text.to_owned());
        Ok(())
    }
}

/// sbatch's `--wait` is a flag, srun's takes seconds.
fn key_is_flag(has_value: bool) -> bool {
    !has_value
}

/// `ALL`, `NONE`, `NIL`, or names and `NAME=value` with commas; quotes keep commas in values.
fn export(value: &[u8]) -> Export {
    let lower = value.to_ascii_lowercase();
    match lower.as_slice() {
        b"" | b"all" => return Export::All,
        b"none" => return Export::None,
        b"nil" => return Export::Nil,
        _ => {}
    }
    let mut all = false;
    let mut names = Vec::new();
    for item in split_quoted(value) {
        if item.eq_ignore_ascii_case(b"all") {
            all = true;
        } else if let Some(at) = item.iter().position(|b| *b == b'=') {
            names.push((item[..at].to_vec(), Some(item[at + 1..].to_vec())));
        } else if !item.is_empty() {
            names.push((item, None));
        }
    }
    Export::Some { all, names }
}

/// At commas outside quotes; the quotes go.
fn split_quoted(value: &[u8]) -> Vec<Vec<u8>> {
    let mut items = vec![Vec::new()];
    let mut quote = None;
    for &b in value {
        match (b, quote) {
            (b, Some(q)) if b == q => quote = None,
            (b'"' | b'\'', None) => quote = Some(b),
            (b',', None) => items.push(Vec::new()),
            (b, _) => items.last_mut().expect("never empty").push(b),
        }
    }
    items
}

/// `--get-user-env[=timeout][mode]`: seconds, and S (su) or L (login). Both are taken and make no difference.
fn user_env(text: &str) -> Result<(), BadValue> {
    let mode = text.trim_start_matches(|c: char| c.is_ascii_digit());
    if matches!(mode, "" | "S" | "L" | "s" | "l") {
        return Ok(());
    }
    Err(BadValue::not_allowed("get-user-env", text, "no value, or [seconds][S|L]"))
}

fn limits(text: &str) -> Result<Vec<&'static str>, BadValue> {
    if text.is_empty() || text.eq_ignore_ascii_case("all") {
        return Ok(LIMITS.to_vec());
    }
    if text.eq_ignore_ascii_case("none") {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|name| {
            let bare = name.to_ascii_uppercase();
            let bare = bare.strip_prefix("RLIMIT_").unwrap_or(&bare);
            LIMITS.iter().copied().find(|l| *l == bare).ok_or_else(|| BadValue {
                lines: vec![format!("Bad rlimit name: {name}"), format!("--propagate={text} is not valid.")],
                code: 1,
            })
        })
        .collect()
}

/// `--uid`, `--gid`: nobody may name another one here; root becomes the user first.
fn own_id(key: &str, text: &str, own: u32, find: impl Fn(&str) -> Option<u32>) -> Result<(), BadValue> {
    let id = text.parse::<u32>().ok().or_else(|| find(text));
    match id {
        None => Err(BadValue::not_allowed(key, text, "a known name or number")),
        Some(id) if id == own => Ok(()),
        Some(_) => {
            Err(BadValue::line(1, format!("--{key}={text}: only one's own is allowed; submit as that user instead")))
        }
    }
}

/// srun's own streams: `all`, `none`, a task's number, or a file pattern.
fn redirect(value: &OsStr) -> Redirect {
    let text = value.to_string_lossy();
    if text == "all" || text.is_empty() {
        return Redirect::All;
    }
    if text == "none" {
        return Redirect::Nothing;
    }
    if text.bytes().all(|b| b.is_ascii_digit())
        && let Ok(task) = text.parse()
    {
        return Redirect::OneTask(task);
    }
    Redirect::File(value.as_bytes().to_vec())
}

/// What of MPI is there. `--mpi=list` is answered before values are read.
fn mpi(text: &str) -> Result<(), BadValue> {
    match text {
        "none" | "" => Ok(()),
        "pmi2" | "pmix" | "pmix_v3" | "pmix_v4" | "pmix_v5" | "cray_shasta" => Err(BadValue::line(
            1,
            format!("--mpi={text} is not supported yet: only --mpi=none is; use the MPI library's own launcher"),
        )),
        _ => Err(BadValue::line(1, format!("Invalid MPI type '{text}', --mpi=list for acceptable types"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn export_splits_at_commas_outside_quotes() {
        assert_eq!(export(b"ALL"), Export::All);
        assert_eq!(export(b"none"), Export::None);
        assert_eq!(export(b"NIL"), Export::Nil);
        let names =
            vec![(b"A".to_vec(), None), (b"B".to_vec(), Some(b"x,y".to_vec())), (b"C".to_vec(), Some(b"a=b".to_vec()))];
        assert_eq!(export(b"A,B='x,y',C=a=b"), Export::Some { all: false, names: names.clone() });
        assert_eq!(export(b"ALL,A,B=\"x,y\",C=a=b"), Export::Some { all: true, names });
    }

    #[test]
    fn a_stream_is_all_none_a_task_or_a_file() {
        assert_eq!(redirect(OsStr::new("all")), Redirect::All);
        assert_eq!(redirect(OsStr::new("none")), Redirect::Nothing);
        assert_eq!(redirect(OsStr::new("3")), Redirect::OneTask(3));
        assert_eq!(redirect(OsStr::new("3x")), Redirect::File(b"3x".to_vec()));
    }

    #[test]
    fn old_and_new_forms_of_get_user_env_are_taken() {
        for ok in ["", "L", "S", "10L", "5"] {
            assert!(user_env(ok).is_ok(), "{ok}");
        }
        assert!(user_env("x").is_err());
    }
}
