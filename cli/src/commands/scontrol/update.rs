//! `scontrol update`: which entity is meant, then its keys and values.
//!
//! Source: scontrol(1), "SPECIFICATIONS FOR UPDATE COMMAND". Keys in any case; a beginning that fits one key alone is
//! enough. A key that is not supported stops the whole update, as in Slurm.

use super::session::{Done, Session};
use super::{update_job, update_node, update_partition};

/// One `key=value` word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// As written, for messages.
    pub word: String,
    pub key: String,
    pub value: String,
    /// The word had a `=`.
    pub valued: bool,
    /// `+=` and `-=` are written to lists.
    pub sign: Option<char>,
}

/// What is wrong with a change; said by `say`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// Slurm's answer to keys that it does not know.
    Unsupported(String),
    /// `scontrol: error: …`
    Text(String),
}

impl Wrong {
    pub fn say(&self) {
        match self {
            Wrong::Unsupported(word) => {
                crate::errln!("Update of this parameter is not supported: {word}");
                crate::errln!("Request aborted");
            }
            Wrong::Text(text) => crate::errln!("scontrol: error: {text}"),
        }
    }

    pub fn value(what: &str, value: &str, allowed: &str) -> Wrong {
        let allowed = if allowed.is_empty() { String::new() } else { format!(": {allowed}") };
        Wrong::Text(format!("Invalid {what} value: {value}{allowed}"))
    }
}

pub fn parse(words: &[String]) -> Vec<Change> {
    words.iter().map(|word| change(word)).collect()
}

fn change(word: &str) -> Change {
    let (key, value, valued) = match word.split_once('=') {
        Some((key, value)) => (key, value, true),
        None => (word, "", false),
    };
    let (key, sign) = match key.strip_suffix('+') {
        Some(key) => (key, Some('+')),
        None => match key.strip_suffix('-') {
            Some(key) => (key, Some('-')),
            None => (key, None),
        },
    };
    // Values may be quoted, as `show` prints those with blanks.
    let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    Change { word: word.to_owned(), key: key.to_owned(), value: value.to_owned(), valued, sign }
}

/// The key that is meant: an exact one, or the only one that begins so (three letters at least).
pub fn key<'a, T: Copy>(table: &'a [(&'a str, T)], written: &str) -> Option<T> {
    let written = written.to_ascii_lowercase();
    if let Some((_, exact)) = table.iter().find(|(name, _)| name.eq_ignore_ascii_case(&written)) {
        return Some(*exact);
    }
    let mut fits = table.iter().filter(|(name, _)| name.to_ascii_lowercase().starts_with(&written));
    match (fits.next(), fits.next()) {
        (Some((_, one)), None) if written.len() >= 3 => Some(*one),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entity {
    Job,
    Node,
    Partition,
    Refused(&'static str),
}

const ENTITIES: &[(&str, Entity)] = &[
    ("JobId", Entity::Job),
    ("JobName", Entity::Job),
    ("NodeName", Entity::Node),
    ("PartitionName", Entity::Partition),
    ("ReservationName", Entity::Refused("there are no reservations yet")),
    ("StepId", Entity::Refused("steps have no limits of their own yet")),
    ("FrontendName", Entity::Refused("there are no front ends")),
    ("SlurmctldDebug", Entity::Refused("the controller's log level is set where it is started")),
    ("SuspendExcNodes", Entity::Refused("nodes are not powered by the controller")),
    ("SuspendExcParts", Entity::Refused("nodes are not powered by the controller")),
    ("SuspendExcStates", Entity::Refused("nodes are not powered by the controller")),
];

/// The first word that names an entity decides; `JobName` alone names jobs only when no id is given.
fn entity(changes: &[Change]) -> Option<Entity> {
    let of = |c: &Change| {
        // `job`, `node` and `partition` are enough.
        let short = [
            ("job", Entity::Job),
            ("node", Entity::Node),
            ("partition", Entity::Partition),
            ("part", Entity::Partition),
        ];
        short.iter().find(|(n, _)| c.key.eq_ignore_ascii_case(n)).map(|(_, e)| *e).or_else(|| key(ENTITIES, &c.key))
    };
    let ids = ["jobid", "job", "nodename", "node", "nodenames"];
    let by_id = changes.iter().find(|c| ids.contains(&c.key.to_ascii_lowercase().as_str())).and_then(of);
    by_id.or_else(|| changes.iter().find_map(of))
}

pub async fn update(session: &mut Session, words: &[String]) -> Done {
    let changes = parse(words);
    if changes.is_empty() {
        crate::errln!("too few arguments for keyword:update");
        return false;
    }
    match entity(&changes) {
        Some(Entity::Job) => update_job::perform(session, &changes).await,
        Some(Entity::Node) => update_node::perform(session, &changes).await,
        Some(Entity::Partition) => update_partition::perform(session, &changes).await,
        Some(Entity::Refused(reason)) => {
            crate::errln!("scontrol: error: update {} is not supported: {reason}", words.join(" "));
            false
        }
        None => {
            crate::errln!("No valid entity in update command");
            crate::errln!("Input line must include \"NodeName\", \"PartitionName\", or \"JobId\"");
            false
        }
    }
}

/// `yes`/`no` and their like.
pub fn yes_no(what: &str, value: &str) -> Result<bool, Wrong> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "1" | "true" | "y" => Ok(true),
        "no" | "0" | "false" | "n" => Ok(false),
        _ => Err(Wrong::value(what, value, "yes or no")),
    }
}

pub fn number<T: std::str::FromStr>(what: &str, value: &str) -> Result<T, Wrong> {
    value.parse().map_err(|_| Wrong::value(what, value, ""))
}

/// A list; `ALL` and nothing mean no restriction.
pub fn list(value: &str) -> sluice_proto::v1::StringList {
    let items = if value.eq_ignore_ascii_case("all") { Vec::new() } else { crate::viewing::list(value) };
    sluice_proto::v1::StringList { items }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Change> {
        parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_entity_is_found_in_any_case_and_shortened() {
        assert_eq!(entity(&words("jobid=2 foo=1")), Some(Entity::Job));
        assert_eq!(entity(&words("Name=x JOB=3")), Some(Entity::Job));
        assert_eq!(entity(&words("nodename=n1 state=drain")), Some(Entity::Node));
        assert_eq!(entity(&words("partition=p state=up")), Some(Entity::Partition));
        assert_eq!(entity(&words("JobId=3 Partition=p")), Some(Entity::Job));
        assert_eq!(entity(&words("foo")), None);
    }

    #[test]
    fn keys_may_be_cut_while_they_fit_one_alone() {
        let table = [("TimeLimit", 1), ("TimeMin", 2), ("Nice", 3)];
        assert_eq!(key(&table, "timel"), Some(1));
        assert_eq!(key(&table, "time"), None);
        assert_eq!(key(&table, "NICE"), Some(3));
        assert_eq!(key(&table, "ni"), None);
        assert_eq!(key(&table, "foo"), None);
    }

    #[test]
    fn signs_and_quotes_are_taken_off() {
        let change = &words("ReqNodeList+=n1")[0];
        assert_eq!((change.key.as_str(), change.sign, change.value.as_str()), ("ReqNodeList", Some('+'), "n1"));
        assert_eq!(parse(&["Comment=\"a b\"".to_owned()])[0].value, "a b");
        assert!(!words("Nice")[0].valued);
    }
}
