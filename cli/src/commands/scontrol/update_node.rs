//! `scontrol update NodeName=…`
//!
//! Source: scontrol(1), "SPECIFICATIONS FOR UPDATE COMMAND, NODES".

use super::session::{Done, Session};
use super::update::{Change, Wrong, key, list, number};
use crate::client::{Controller, Retry};
use sluice_proto::v1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Name,
    State,
    Reason,
    Weight,
    Features,
    Comment,
}

const KEYS: &[(&str, Key)] = &[
    ("NodeName", Key::Name),
    ("Node", Key::Name),
    ("State", Key::State),
    ("Reason", Key::Reason),
    ("Weight", Key::Weight),
    ("AvailableFeatures", Key::Features),
    ("ActiveFeatures", Key::Features),
    ("Features", Key::Features),
    ("Comment", Key::Comment),
];

/// Names that Slurm takes and what the controller calls them.
const STATES: &[(&str, &str)] = &[
    ("DRAIN", "DRAIN"),
    ("DRAINED", "DRAIN"),
    ("DRAINING", "DRAIN"),
    ("RESUME", "RESUME"),
    ("IDLE", "RESUME"),
    ("UNDRAIN", "UNDRAIN"),
    ("DOWN", "DOWN"),
    ("FAIL", "FAIL"),
];

const NO_REASON: &str = "You must specify a reason when DOWNING or DRAINING a node. Request denied";

fn read(changes: &[Change]) -> Result<v1::UpdateNodeAction, Wrong> {
    let mut action = v1::UpdateNodeAction::default();
    for change in changes {
        let unsupported = || Wrong::Unsupported(change.word.clone());
        let found =
            key(KEYS, &change.key).filter(|_| change.valued && change.sign.is_none()).ok_or_else(unsupported)?;
        let value = change.value.as_str();
        match found {
            Key::Name => {
                action.nodes = sluice_model::hostlist::expand(value)
                    .map_err(|e| Wrong::value("NodeName", &e.value, &e.allowed))?;
            }
            Key::State => {
                let named = STATES.iter().find(|(name, _)| name.eq_ignore_ascii_case(value));
                let (_, state) = named.ok_or_else(|| bad_state(&change.word))?;
                action.state = Some((*state).to_owned());
            }
            Key::Reason => action.reason = Some(value.to_owned()),
            Key::Weight => action.weight = Some(number("Weight", value)?),
            Key::Features => action.features = Some(list(value)),
            Key::Comment => action.comment = Some(value.to_owned()),
        }
    }
    Ok(action)
}

fn bad_state(word: &str) -> Wrong {
    Wrong::Text(format!(
        "Invalid input: {word}\nRequest aborted\nValid states are: DRAIN FAIL RESUME DOWN UNDRAIN\nNot all states are \
         valid given a node's prior state"
    ))
}

pub async fn perform(session: &mut Session, changes: &[Change]) -> Done {
    let action = match read(changes) {
        Ok(action) => action,
        Err(Wrong::Text(text)) if text.starts_with("Invalid input") => {
            crate::errln!("{text}");
            return false;
        }
        Err(wrong) => {
            wrong.say();
            return false;
        }
    };
    let needs_reason = matches!(action.state.as_deref(), Some("DOWN" | "DRAIN" | "FAIL"));
    if needs_reason && action.reason.as_deref().unwrap_or_default().is_empty() {
        crate::errln!("{NO_REASON}");
        return false;
    }
    let Some(client) = session.client() else { return false };
    let request = v1::ControlRequest { action: Some(v1::control_request::Action::UpdateNode(action)) };
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

    fn node(words: &[&str]) -> Result<v1::UpdateNodeAction, Wrong> {
        read(&parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()))
    }

    #[test]
    fn states_and_reasons_are_read() {
        let action = node(&["nodename=n[1-3]", "state=drain", "reason=bad disk"]).unwrap();
        assert_eq!(action.nodes, ["n1", "n2", "n3"]);
        assert_eq!((action.state.as_deref(), action.reason.as_deref()), (Some("DRAIN"), Some("bad disk")));
        assert_eq!(node(&["node=a", "State=idle"]).unwrap().state.as_deref(), Some("RESUME"));
    }

    #[test]
    fn unknown_keys_and_states_are_refused() {
        assert_eq!(node(&["node=a", "foo=1"]), Err(Wrong::Unsupported("foo=1".to_owned())));
        assert!(
            matches!(node(&["node=a", "state=foo"]), Err(Wrong::Text(t)) if t.starts_with("Invalid input: state=foo\n"))
        );
        assert!(node(&["node=a", "state=power_down"]).is_err());
    }
}
