//! One invocation of `scontrol`, or one sitting at its prompt: its switches, its connection, dispatch by keyword.
//!
//! Source: scontrol(1), "COMMANDS". Keywords may be cut to the length that Slurm accepts.

use super::{admin, control, hosts, show, update};
use crate::client::Client;
use crate::render::json::Style;
use std::ffi::OsString;

pub struct Session {
    pub all: bool,
    pub details: bool,
    pub one_line: bool,
    pub quiet: bool,
    pub verbose: bool,
    pub json: Option<Style>,
    /// The words of the invocation, for JSON's `meta`.
    pub words: Vec<OsString>,
    pub client: Option<Client>,
    /// `exit` was said.
    pub finished: bool,
}

/// Said and failed, or done.
pub type Done = bool;

pub const HELP: &str = "\
Usage: scontrol [OPTIONS] [COMMAND]

Without a command, commands are read from standard input.

Options:
  -a, --all          show hidden partitions, too
  -d, --details      show more of jobs: cores, devices, exit codes
  -h, --help         show this text
      --hide         leave out hidden partitions (the default)
      --json         print JSON (show job, node, partition, reservation; ping)
  -M, --clusters=X   this cluster by its name, or all
  -o, --oneliner     one line for each record
  -Q, --quiet        say only what is wrong
  -v, --verbose      show when records were last changed
  -V, --version      say which Slurm this behaves like

Commands:
  show ENTITY [ID]            config, hostlist, hostlistsorted, hostnames, job, licenses, node, partition,
                              reservation, step
  hold JOBS                   keep waiting jobs from starting
  uhold JOBS                  the same; users may release them
  release JOBS                let held jobs start
  requeue JOBS                end running jobs and queue them again
  requeuehold JOBS            the same, and hold them
  suspend JOBS, resume JOBS   stop running jobs and let them go on
  update SPECIFICATION        change a job, node or partition: JobId=12 TimeLimit=30
  reconfigure                 read the controller's configuration again
  ping                        is the controller up?
  completing                  jobs that are being cleaned up
  wait_job JOB                wait until the job's nodes are ready
  write batch_script JOB [FILE|-]
  errnumstr NUMBER            the text of an error number
  shutdown                    stop the controller
  version                     say which Slurm this behaves like
  all, hide, details, oneliner, quiet, verbose   switches, as the options
  !!                          the last command again
  help, exit, quit

JOBS are job ids with commas or blanks between: 12,13_4,14_[1-3]; or jobname=NAME.
";

/// Commands of Slurm's that are refused, and why.
const REFUSED: &[(&str, &str)] = &[
    ("abort", "use shutdown"),
    ("cancel_reboot", "nodes are not rebooted by the controller"),
    ("create", "partitions are made in the configuration file, then reconfigure; there are no reservations yet"),
    ("delete", "partitions are removed in the configuration file, then reconfigure; there are no reservations yet"),
    ("fsdampeningfactor", "there is no fair-share yet"),
    ("getaddrs", "use show node"),
    ("getent", "users are looked up on the nodes"),
    ("listjobs", "use squeue --nodelist"),
    ("listpids", "processes are not listed yet"),
    ("liststeps", "use squeue --steps --nodelist"),
    ("notify", "messages to jobs are not sent yet"),
    ("pidinfo", "processes are not looked up yet"),
    ("power", "nodes are not powered by the controller"),
    ("reboot", "nodes are not rebooted by the controller"),
    ("schedloglevel", "the controller's log level is set where it is started"),
    ("setdebug", "the controller's log level is set where it is started"),
    ("setdebugflags", "the controller's log level is set where it is started"),
    ("takeover", "there is one controller"),
    ("token", "identities are proven by the hosts, not by tokens that users hold"),
    ("top", "use update JobId=… Priority=…"),
];

/// Keywords whose answers are text alone, and how short they may be cut.
const TEXT_ONLY: &[(&str, usize)] =
    &[("completing", 10), ("errnumstr", 9), ("reconfigure", 3), ("wait_job", 8), ("write", 5)];

/// Does the word name the keyword, cut to no less than `least` letters?
pub fn is(word: &str, keyword: &str, least: usize) -> bool {
    let word = word.to_ascii_lowercase();
    word.len() >= least && keyword.starts_with(&word)
}

impl Session {
    /// The connection; says why there is none.
    pub fn client(&mut self) -> Option<&mut Client> {
        if self.client.is_none() {
            self.client = crate::viewing::client("scontrol").ok();
        }
        self.client.as_mut()
    }

    /// One command. False when it failed; what was wrong has been said.
    pub async fn perform(&mut self, words: &[String]) -> Done {
        let Some((first, rest)) = words.split_first() else { return true };
        let (keyword, rest) = (first.as_str(), rest.to_vec());
        let text_only = TEXT_ONLY.iter().find(|(name, least)| is(keyword, name, *least));
        if let Some((name, _)) = text_only.filter(|_| self.json.is_some()) {
            return self.no_json(name);
        }
        match keyword.to_ascii_lowercase().as_str() {
            "all" => self.all = true,
            "hide" => self.all = false,
            "oneliner" => self.one_line = true,
            "exit" | "quit" => self.finished = true,
            "version" => {
                crate::help::print_version("scontrol");
            }
            "ping" => return admin::ping(self).await,
            "shutdown" => return admin::shutdown(self, &rest).await,
            "completing" => return show::completing(self).await,
            "errnumstr" => return admin::error_text(&rest),
            "wait_job" => return admin::wait_job(self, &rest).await,
            "write" => return admin::write(self, &rest).await,
            _ if is(keyword, "details", 1) => self.details = true,
            _ if is(keyword, "help", 2) => self.print(HELP.as_bytes()),
            _ if is(keyword, "quiet", 4) => self.quiet = true,
            _ if is(keyword, "verbose", 4) => self.verbose = true,
            _ if is(keyword, "reconfigure", 3) => return admin::reconfigure(self).await,
            _ if is(keyword, "show", 2) => return show::show(self, &rest).await,
            _ if is(keyword, "update", 1) => return update::update(self, &rest).await,
            _ => {
                if let Some(action) = control::Action::of(keyword) {
                    return control::perform(self, keyword, action, &rest).await;
                }
                if let Some((name, reason)) = REFUSED.iter().find(|(name, _)| *name == keyword.to_ascii_lowercase()) {
                    crate::errln!("scontrol: error: {name} is not supported: {reason}");
                } else {
                    crate::errln!("invalid keyword: {keyword}");
                }
                return false;
            }
        }
        true
    }

    /// Text where JSON was asked for would be taken for an empty answer.
    pub fn no_json(&self, what: &str) -> Done {
        crate::errln!(
            "scontrol: error: --json is not supported for {what}, only for show job, node, partition, reservation and ping"
        );
        false
    }

    pub fn print(&self, bytes: &[u8]) {
        crate::out::print_or_complain("scontrol", bytes, std::process::ExitCode::SUCCESS);
    }

    /// `show hostnames` and its like need no cluster.
    pub fn hosts(&self, entity: &str, rest: &[String]) -> Option<Done> {
        hosts::show(self, entity, rest)
    }
}
