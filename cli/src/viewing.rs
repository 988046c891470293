//! What the viewing commands (squeue, sinfo, scontrol, sacct) share at their edge: environment, users, clusters, JSON.
//!
//! Owns answers that are the same for all of them. It prints errors in Slurm's words and returns exit codes; it knows no
//! record.

pub mod undecoded;

use crate::client::Client;
use crate::getopt::{self, Operands, OptionSpec, Parsed};
use crate::help;
use crate::render::json;
use std::ffi::OsString;
use std::process::ExitCode;

/// A variable of the environment that is set and not empty.
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// Splits the words, answers `--help`, `--usage` and `--version`. Err holds the exit code of a finished invocation.
pub fn parse(
    program: &str,
    operands: &str,
    specs: &'static [OptionSpec],
    words: &[OsString],
) -> Result<Parsed, ExitCode> {
    let parsed = getopt::parse(specs, words, Operands::Mixed).map_err(|error| help::bad_usage(program, &error))?;
    if parsed.has("help") {
        let text = help::help_text(&format!("{program} [OPTIONS] {operands}"), specs);
        return Err(crate::out::print_or_complain(program, text.as_bytes(), ExitCode::SUCCESS));
    }
    if parsed.has("usage") {
        let text = help::usage_text(program, operands, specs);
        return Err(crate::out::print_or_complain(program, text.as_bytes(), ExitCode::SUCCESS));
    }
    if parsed.has("version") {
        return Err(help::print_version(program));
    }
    Ok(parsed)
}

/// The client configuration, or the message that there is none.
pub fn client(program: &str) -> Result<Client, ExitCode> {
    Client::new().map_err(|error| {
        crate::error::print_call_error(program, "", &error);
        ExitCode::from(1)
    })
}

/// `--clusters`: this cluster, `all`, or an error. True when the output is to be headed by the cluster's name.
pub fn clusters(program: &str, asked: Option<&str>, ours: &str) -> Result<bool, ExitCode> {
    let Some(asked) = asked.filter(|a| !a.is_empty()) else { return Ok(false) };
    let mut others = asked.split(',').filter(|n| !n.is_empty() && *n != "all" && *n != ours);
    if let Some(name) = others.next() {
        crate::errln!("{program}: error: No cluster '{name}' known by database.");
        crate::errln!("{program}: error: '{name}' can't be reached now, or it is an invalid entry for --cluster.");
        return Err(ExitCode::from(1));
    }
    Ok(true)
}

/// Items of a comma separated list, blanks around them and empty ones dropped.
pub fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned).collect()
}

/// The caller, by the system's user database; numbers stand for missing names.
pub struct Me {
    pub uid: u32,
    pub user: String,
    pub group: String,
}

pub fn me() -> Me {
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    let user = nix::unistd::User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |u| u.name);
    let group = nix::unistd::Group::from_gid(gid).ok().flatten().map_or_else(|| gid.to_string(), |g| g.name);
    Me { uid: uid.as_raw(), user, group }
}

/// Names and numbers of users as the controller matches them. Those that this host does not know are returned apart:
/// the cluster may know them, but Slurm says so.
pub fn users(asked: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for user in asked {
        let found = match user.parse::<u32>() {
            Ok(uid) => {
                known.push(user.clone());
                nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(uid)).ok().flatten()
            }
            Err(_) => match nix::unistd::User::from_name(user).ok().flatten() {
                None => {
                    unknown.push(user.clone());
                    None
                }
                found => found,
            },
        };
        known.extend(found.map(|u| u.name));
    }
    (known, unknown)
}

/// The JSON that the options and `SLURM_JSON` ask for. Err holds the exit code of a finished invocation.
pub fn json_request(program: &str, parsed: &Parsed) -> Result<Option<json::Style>, ExitCode> {
    let given = parsed.last("json");
    let environment = std::env::var("SLURM_JSON").ok();
    if given.is_none() && environment.is_none() {
        return Ok(None);
    }
    match json::request(given.map(|g| g.text()).as_deref(), environment.as_deref()) {
        Ok(json::Request::Print(style)) => Ok(Some(style)),
        Ok(json::Request::List) => {
            Err(crate::out::print_or_complain(program, json::list_text().as_bytes(), ExitCode::SUCCESS))
        }
        Err(problem) => {
            crate::errln!("{program}: error: {problem}");
            Err(ExitCode::from(1))
        }
    }
}

/// The records with `meta`, `errors` and `warnings`, as text.
pub fn json_answer(
    program: &str,
    words: &[OsString],
    client: &Client,
    style: json::Style,
    records: Vec<(&str, serde_json::Value)>,
) -> Vec<u8> {
    let me = me();
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let version = client.config.slurm_version.clone().unwrap_or_else(|| help::SLURM_VERSION.to_owned());
    let asker = json::Asker {
        program,
        words: &words,
        cluster: &client.config.cluster,
        version: &version,
        user: &me.user,
        group: &me.group,
    };
    json::to_bytes(&json::answer(records, &asker), style)
}

/// `--iterate=N` and its like: whole seconds of at least one.
pub fn seconds(program: &str, option: &str, value: &str) -> Result<std::time::Duration, ExitCode> {
    match value.parse::<u32>() {
        Ok(secs) if secs > 0 => Ok(std::time::Duration::from_secs(u64::from(secs))),
        _ => {
            crate::errln!("{program}: error: --{option}={value}");
            Err(ExitCode::from(1))
        }
    }
}
