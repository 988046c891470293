//! `scontrol update PartitionName=…`
//!
//! Source: scontrol(1), "SPECIFICATIONS FOR CREATE, UPDATE, AND DELETE COMMANDS, PARTITIONS".

use super::session::{Done, Session};
use super::update::{Change, Wrong, key, list, number, yes_no};
use crate::client::{Controller, Retry};
use sluice_model::config::Mode;
use sluice_proto::v1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Name,
    State,
    MaxTime,
    DefaultTime,
    MinNodes,
    MaxNodes,
    PriorityTier,
    PriorityJobFactor,
    Default,
    Hidden,
    RootOnly,
    AllowGroups,
    AllowAccounts,
    AllowQos,
    Nodes,
    GraceTime,
    PreemptMode,
}

const KEYS: &[(&str, Key)] = &[
    ("PartitionName", Key::Name),
    ("Partition", Key::Name),
    ("State", Key::State),
    ("MaxTime", Key::MaxTime),
    ("DefaultTime", Key::DefaultTime),
    ("MinNodes", Key::MinNodes),
    ("MaxNodes", Key::MaxNodes),
    ("PriorityTier", Key::PriorityTier),
    ("PriorityJobFactor", Key::PriorityJobFactor),
    ("Default", Key::Default),
    ("Hidden", Key::Hidden),
    ("RootOnly", Key::RootOnly),
    ("AllowGroups", Key::AllowGroups),
    ("AllowAccounts", Key::AllowAccounts),
    ("AllowQos", Key::AllowQos),
    ("Nodes", Key::Nodes),
    ("GraceTime", Key::GraceTime),
    ("PreemptMode", Key::PreemptMode),
];

/// The wire's "no limit".
const UNLIMITED: u32 = u32::MAX;

fn read(changes: &[Change]) -> Result<v1::UpdatePartitionAction, Wrong> {
    let mut action: v1::UpdatePartitionAction = Default::default();
    for change in changes {
        let unsupported = || Wrong::Unsupported(change.word.clone());
        let found =
            key(KEYS, &change.key).filter(|_| change.valued && change.sign.is_none()).ok_or_else(unsupported)?;
        let value = change.value.as_str();
        let limit = |what: &str| {
            sluice_model::time::parse_time_limit(value)
                .map(|l| v1::TimeLimit::from(&l))
                .map_err(|e| Wrong::value(what, &e.value, &e.allowed))
        };
        match found {
            Key::Name => action.name = value.to_owned(),
            Key::State => {
                let state = ["UP", "DOWN", "DRAIN", "INACTIVE"].into_iter().find(|s| s.eq_ignore_ascii_case(value));
                action.state = Some(state.ok_or_else(|| bad_state(&change.word))?.to_owned());
            }
            Key::MaxTime => action.max_time = Some(limit("MaxTime")?),
            Key::DefaultTime if value.eq_ignore_ascii_case("none") => action.clear_default_time = Some(true),
            Key::DefaultTime => action.default_time = Some(limit("DefaultTime")?),
            Key::MinNodes => action.min_nodes = Some(number("MinNodes", value)?),
            Key::MaxNodes if ["unlimited", "infinite"].iter().any(|w| value.eq_ignore_ascii_case(w)) => {
                action.max_nodes = Some(UNLIMITED);
            }
            Key::MaxNodes => action.max_nodes = Some(number("MaxNodes", value)?),
            Key::PriorityTier => action.priority_tier = Some(number("PriorityTier", value)?),
            Key::PriorityJobFactor => action.priority_job_factor = Some(number("PriorityJobFactor", value)?),
            Key::Default => action.default = Some(yes_no("Default", value)?),
            Key::Hidden => action.hidden = Some(yes_no("Hidden", value)?),
            Key::RootOnly => action.root_only = Some(yes_no("RootOnly", value)?),
            Key::AllowGroups => action.allow_groups = Some(list(value)),
            Key::AllowAccounts => action.allow_accounts = Some(list(value)),
            Key::AllowQos => action.allow_qos = Some(list(value)),
            Key::Nodes => {
                let items =
                    sluice_model::hostlist::expand(value).map_err(|e| Wrong::value("Nodes", &e.value, &e.allowed))?;
                action.nodes = Some(v1::StringList { items });
            }
            Key::PreemptMode => match Mode::parse(value) {
                Some(mode) => action.preempt_mode = Some(mode.as_str().to_owned()),
                None => {
                    return Err(Wrong::Text(format!(
                        "Invalid input: PreemptMode={value}\nscontrol: error: Acceptable PreemptMode values are OFF, CANCEL, \
                         REQUEUE and SUSPEND"
                    )));
                }
            },
            Key::GraceTime => action.grace_secs = Some(number("GraceTime", value)?),
        }
    }
    Ok(action)
}

fn bad_state(word: &str) -> Wrong {
    Wrong::Text(format!(
        "Invalid input: {word}\nscontrol: error: Acceptable State values are UP, DOWN, DRAIN and INACTIVE"
    ))
}

pub async fn perform(session: &mut Session, changes: &[Change]) -> Done {
    let action = match read(changes) {
        Ok(action) => action,
        Err(wrong) => {
            wrong.say();
            return false;
        }
    };
    let Some(client) = session.client() else { return false };
    let request = v1::ControlRequest { action: Some(v1::control_request::Action::UpdatePartition(action)) };
    match client.call(Retry::Harmless, async |mut c: Controller| c.control(request.clone()).await).await {
        Ok(_) => true,
        Err(error) => {
            if let Some(detail) = error.detail() {
                crate::errln!("scontrol: error: {detail}");
            }
            crate::errln!("slurm_update error: {}", error.reason());
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::update::parse;
    use super::*;

    fn partition(text: &str) -> Result<v1::UpdatePartitionAction, Wrong> {
        read(&parse(&text.split(' ').map(str::to_owned).collect::<Vec<_>>()))
    }

    #[test]
    fn limits_and_lists_are_read() {
        let action = partition(
            "PartitionName=p State=down MaxTime=1-0 MaxNodes=UNLIMITED AllowGroups=ALL Default=YES DefaultTime=NONE",
        )
        .unwrap();
        assert_eq!((action.name.as_str(), action.state.as_deref()), ("p", Some("DOWN")));
        assert_eq!(action.max_nodes, Some(UNLIMITED));
        assert_eq!(action.allow_groups.unwrap().items, Vec::<String>::new());
        assert_eq!((action.default, action.clear_default_time), (Some(true), Some(true)));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(partition("partition=p foo=1"), Err(Wrong::Unsupported("foo=1".to_owned())));
        assert!(matches!(partition("partition=p state=foo"), Err(Wrong::Text(t)) if t.contains("state=foo")));
        assert!(matches!(partition("partition=p hidden=maybe"), Err(Wrong::Text(t)) if t.contains("maybe")));
    }
}
