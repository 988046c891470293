//! One invocation of `sacctmgr`, or one sitting at its prompt: its switches, its connection, dispatch by command.
//!
//! Source: sacctmgr(1), "COMMANDS", "INTERACTIVE COMMANDS", "ENTITIES".

use super::book::Book;
use super::change::{self, Kind};
use super::fields::Entity;
use super::file;
use super::list::{self, Query};
use super::problems;
use super::words::find;
use crate::client::{Client, Controller, Retry};
use crate::commands::scontrol::prompt::split;
use crate::error::CallError;
use crate::render::table::Form;
use sluice_proto::v1;
use std::io::IsTerminal as _;
use std::process::ExitCode;

pub struct Session {
    pub associations: bool,
    pub immediate: bool,
    pub header: bool,
    pub form: Form,
    pub quiet: bool,
    pub readonly: bool,
    pub client: Option<Client>,
    /// `exit` was said.
    pub finished: bool,
}

/// Said and failed, or done.
pub type Done = bool;

pub fn form(parsable: bool, parsable2: bool) -> Form {
    if parsable || parsable2 {
        Form::Delimited { delimiter: "|".to_owned(), trailing: !parsable2 }
    } else {
        Form::Fixed
    }
}

pub const HELP: &str = "\
Usage: sacctmgr [OPTIONS] [COMMAND]

Without a command, commands are read from standard input.

Options:
  -s, --associations  show the associations of accounts and users, too
  -h, --help          show this text
  -i, --immediate     make changes without asking
  -n, --noheader      no header line
  -p, --parsable      fields between |, one after the last, too
  -P, --parsable2     fields between |
  -Q, --quiet         say only what is wrong
  -r, --readonly      refuse to change anything
  -V, --version       say which Slurm this behaves like

Commands:
  add ENTITY SPECS                  account, coordinator, qos, user (create is the same)
  modify ENTITY where SPECS set SPECS
                                    account, cluster, qos, user
  delete ENTITY where SPECS         account, coordinator, qos, user (remove is the same)
  list ENTITY [SPECS]               account, association, cluster, problem, qos, runawayjobs, tres, user, wckey
                                    (show is the same)
  dump [CLUSTER] [file=FILE]        write accounts, users and associations to a file
  load [file=]FILE                  add or change what such a file says, also one of Slurm's
  ping                              is the controller up?
  help, version, quit

Lists take format=FIELD[%WIDTH],...; lists of names take +=, -= and =; -1 takes a limit away.
";

#[derive(Clone, Copy)]
enum Command {
    Add,
    Modify,
    Delete,
    List,
    Help,
    Version,
    Quit,
    Ping,
    Dump,
    Load,
    Switch(fn(&mut Session)),
    Refused(&'static str),
}

static COMMANDS: &[(&str, Command)] = &[
    ("add", Command::Add),
    ("create", Command::Add),
    ("modify", Command::Modify),
    ("update", Command::Modify),
    ("delete", Command::Delete),
    ("remove", Command::Delete),
    ("list", Command::List),
    ("show", Command::List),
    ("help", Command::Help),
    ("version", Command::Version),
    ("exit", Command::Quit),
    ("quit", Command::Quit),
    ("ping", Command::Ping),
    ("associations", Command::Switch(|s| s.associations = true)),
    ("oneliner", Command::Switch(|_| ())),
    ("parsable", Command::Switch(|s| s.form = form(true, false))),
    ("parsable2", Command::Switch(|s| s.form = form(false, true))),
    ("quiet", Command::Switch(|s| s.quiet = true)),
    ("readonly", Command::Switch(|s| s.readonly = true)),
    ("verbose", Command::Switch(|_| ())),
    ("archive", Command::Refused("the controller keeps its history itself, without a database to archive")),
    ("clear", Command::Refused("there is no database daemon with statistics of its own")),
    ("dump", Command::Dump),
    ("load", Command::Load),
    ("reconfigure", Command::Refused("there is no database daemon; `scontrol reconfigure` reads the configuration")),
    ("shutdown", Command::Refused("there is no database daemon; `scontrol shutdown` stops the controller")),
];

#[derive(Clone, Copy)]
pub enum Named {
    Entity(Entity),
    Coordinator,
    Runaway,
    Refused(&'static str),
}

pub static ENTITIES: &[(&str, Named)] = &[
    ("Accounts", Named::Entity(Entity::Account)),
    ("Acct", Named::Entity(Entity::Account)),
    ("Associations", Named::Entity(Entity::Association)),
    ("Clusters", Named::Entity(Entity::Cluster)),
    ("Configuration", Named::Refused("`scontrol show config` shows the configuration")),
    ("Coordinators", Named::Coordinator),
    ("Events", Named::Refused("events of nodes come with a later release")),
    ("Federations", Named::Refused("clusters are not joined into federations")),
    ("Instances", Named::Refused("cloud instances are not recorded")),
    ("Jobs", Named::Refused("`scontrol update JobId=…` changes jobs")),
    ("Problems", Named::Entity(Entity::Problem)),
    ("QOS", Named::Entity(Entity::Qos)),
    ("Reservations", Named::Refused("reservations are shown by `scontrol show reservation`")),
    ("Resources", Named::Refused("licences are the cluster's own: `scontrol show licenses`")),
    ("RunawayJobs", Named::Runaway),
    ("Stats", Named::Refused("there is no database daemon with statistics of its own")),
    ("Transactions", Named::Refused("the list of changes comes with a later release; the controller's log has them")),
    ("TRES", Named::Entity(Entity::Tres)),
    ("Users", Named::Entity(Entity::User)),
    ("WCKeys", Named::Entity(Entity::Wckey)),
];

const LISTED: &str = "\"Account\", \"Association\", \"Cluster\", \"Configuration\",\n\"Event\", \"Federation\", \
                      \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n\"RunAwayJobs\", \"Stats\", \"Transaction\", \
                      \"TRES\", \"User\", or \"WCKey\"";

impl Session {
    pub fn print(&self, text: &str) {
        crate::out::print_or_complain("sacctmgr", text.as_bytes(), ExitCode::SUCCESS);
    }

    /// As `print`, but not with `--quiet`.
    pub fn talk(&self, text: &str) {
        if !self.quiet {
            self.print(text);
        }
    }

    pub fn fail(&self, text: &str) -> Done {
        crate::errln!("{text}");
        false
    }

    pub fn client(&mut self) -> Option<&mut Client> {
        if self.client.is_none() {
            self.client = Some(crate::viewing::client("sacctmgr").ok()?);
        }
        self.client.as_mut()
    }

    /// What went wrong between here and the controller.
    pub fn complain(&self, error: &CallError) -> Done {
        if let CallError::Refused(refusal) = error
            && refusal.code == crate::error::refusal::ACCOUNTING
        {
            return self.fail(refusal.detail.as_deref().unwrap_or(&refusal.message));
        }
        crate::error::print_call_error("sacctmgr", "", error);
        false
    }

    pub async fn book(&mut self) -> Option<Book> {
        let client = self.client()?;
        let list = client.call(Retry::Harmless, async |mut c: Controller| c.list_accounting(v1::Empty {}).await).await;
        match list.map(Book::try_from) {
            Ok(Ok(book)) => Some(book),
            Ok(Err(e)) => {
                self.fail(&format!("sacctmgr: error: the controller's list can't be read: {e}"));
                None
            }
            Err(e) => {
                self.complain(&e);
                None
            }
        }
    }

    pub async fn perform(&mut self, words: &[String]) -> Done {
        let Some((command, rest)) = words.split_first() else { return true };
        // `list` may be as short as `l`, `show` as `s`, and so on, where Slurm's own length allows it.
        let short = COMMANDS.iter().find(|(n, _)| command.len() >= 3 && n.starts_with(&command.to_ascii_lowercase()));
        let Some(found) = find(COMMANDS, command).or(short.map(|(_, c)| c)) else {
            return self.fail(&format!("invalid keyword: {command}"));
        };
        match *found {
            Command::Add => self.change(Kind::Add, rest).await,
            Command::Modify => self.change(Kind::Modify, rest).await,
            Command::Delete => self.change(Kind::Delete, rest).await,
            Command::List => self.list(rest).await,
            Command::Help => {
                self.print(HELP);
                true
            }
            Command::Version => {
                crate::help::print_version("sacctmgr");
                true
            }
            Command::Quit => {
                self.finished = true;
                true
            }
            Command::Ping => self.ping().await,
            Command::Dump => file::dump(self, rest).await,
            Command::Load => file::load(self, rest).await,
            Command::Switch(set) => {
                set(self);
                Box::pin(self.perform(rest)).await
            }
            Command::Refused(reason) => self.fail(&format!("sacctmgr: error: {command} is not supported: {reason}")),
        }
    }

    async fn ping(&mut self) -> Done {
        let Some(client) = self.client() else { return false };
        match client.call(Retry::Harmless, async |mut c: Controller| c.ping(v1::Empty {}).await).await {
            Ok(reply) => {
                self.print(&format!("slurmdbd(primary) at {} is UP\n", reply.hostname));
                true
            }
            Err(e) => self.complain(&e),
        }
    }

    async fn change(&mut self, kind: Kind, words: &[String]) -> Done {
        if self.readonly {
            return self.fail("Can't run this command in readonly mode.");
        }
        let named = words.first().and_then(|w| find(ENTITIES, w));
        match (named, words) {
            (Some(Named::Refused(reason)), [name, ..]) => {
                self.fail(&format!("sacctmgr: error: {} {name} is not supported: {reason}", kind.word()))
            }
            (Some(named), [_, rest @ ..]) => change::perform(self, kind, *named, rest).await,
            _ => self.fail(&format!(
                "No valid entity in {} command\nInput line must include {}",
                kind.word(),
                kind.entities()
            )),
        }
    }

    async fn list(&mut self, words: &[String]) -> Done {
        let Some(((name, named), rest)) =
            words.split_first().and_then(|(w, rest)| Some(((w, find(ENTITIES, w)?), rest)))
        else {
            return self.fail(&format!("No valid entity in list command\nInput line must include {LISTED}"));
        };
        let entity = match *named {
            Named::Entity(entity) => entity,
            Named::Coordinator => {
                return self.fail("sacctmgr: error: coordinators are listed by `list account withcoordinator`");
            }
            Named::Runaway => {
                let Some(book) = self.book().await else { return false };
                self.print(&format!("Runaway Jobs: No runaway jobs found on cluster {}\n", book.cluster));
                return true;
            }
            Named::Refused(reason) => {
                return self.fail(&format!("sacctmgr: error: list {name} is not supported: {reason}"));
            }
        };
        let mut query = match Query::parse(entity, rest) {
            Ok(query) => query,
            Err(line) => return self.fail(&line),
        };
        query.with_associations |= self.associations && matches!(entity, Entity::Account | Entity::User);
        let Some(book) = self.book().await else { return false };
        let texts = match entity {
            Entity::Tres => tres_lines(&book),
            Entity::Wckey => wckey_lines(&book, &query),
            Entity::Problem => {
                let known = |name: &str| nix::unistd::User::from_name(name).ok().flatten().is_some();
                problems::find(&book, known).into_iter().map(|p| p.to_vec()).collect()
            }
            Entity::Cluster => vec![self.control_host().await],
            _ => Vec::new(),
        };
        match list::listing(&book, &mut query, &self.form, self.header, &texts) {
            Ok(bytes) => {
                crate::out::print_or_complain("sacctmgr", &bytes, ExitCode::SUCCESS);
                true
            }
            Err(line) => self.fail(&line),
        }
    }

    /// Host, port and protocol number of the controller.
    async fn control_host(&mut self) -> Vec<String> {
        let Some(client) = self.client() else { return Vec::new() };
        let port = client.config.controller.as_ref().and_then(|c| Some(c.rsplit_once(':')?.1.to_owned()));
        let ping = client.call(Retry::Harmless, async |mut c: Controller| c.ping(v1::Empty {}).await).await;
        let host = ping.map(|p| p.hostname).unwrap_or_default();
        vec![host, port.unwrap_or_else(|| "0".to_owned()), RPC.to_owned()]
    }
}

/// The protocol number of the Slurm that this behaves like.
const RPC: &str = "11520";

fn tres_lines(book: &Book) -> Vec<Vec<String>> {
    let mut more = 1000;
    let mut out = Vec::new();
    for (n, name) in book.tres.iter().enumerate() {
        let (class, kind) = name.split_once('/').unwrap_or((name, ""));
        let id = if matches!(class, "gres" | "license") {
            more += 1;
            more
        } else {
            n + 1
        };
        out.push(vec![class.to_owned(), kind.to_owned(), id.to_string()]);
    }
    out
}

/// A user's default key has a star.
fn wckey_lines(book: &Book, query: &Query) -> Vec<Vec<String>> {
    let among = |list: &[String], name: &str| list.is_empty() || list.iter().any(|l| l == name);
    let mut out = Vec::new();
    for user in book.users.values().filter(|u| among(&query.users, &u.name)) {
        for key in user.wckeys.iter().filter(|k| among(&query.names, k)) {
            let star = if user.default_wckey.as_ref() == Some(key) { "*" } else { "" };
            out.push(vec![format!("{star}{key}"), user.name.clone()]);
        }
    }
    out.sort();
    out
}

/// Commands from standard input, one a line, until `exit` or its end.
pub async fn prompt(session: &mut Session) -> ExitCode {
    let mut last: Vec<String> = Vec::new();
    let mut done = true;
    while !session.finished {
        session.print("sacctmgr: ");
        // The answers to questions come from the same input.
        let Some(line) = super::confirm::line(None) else {
            if std::io::stdin().is_terminal() {
                session.print("\n");
            }
            break;
        };
        let words = match split(&line) {
            Ok(words) => words,
            Err(problem) => {
                crate::errln!("sacctmgr: error: {problem}");
                done = false;
                continue;
            }
        };
        let words = if words == ["!!"] { last.clone() } else { words };
        if !words.is_empty() {
            done = session.perform(&words).await;
            last = words;
        }
    }
    ExitCode::from(u8::from(!done))
}
