//! Events about accounts, users, associations and QOS: whole records come and go.

use crate::event::Event;
use crate::state::State;

/// False when the event is about something else.
pub(super) fn apply(state: &mut State, event: &Event) -> bool {
    let a = &mut state.accounting;
    match event {
        Event::AccountSet { account } => {
            let moved = a.accounts.get(&account.name).is_some_and(|old| old.parent != account.parent);
            a.put_account((**account).clone());
            if moved {
                // Jobs count for everybody above their association.
                state.recount_submitted();
            }
        }
        Event::AccountRemoved { name } => {
            a.accounts.remove(name);
        }
        Event::UserSet { user } => a.put_user((**user).clone()),
        Event::UserRemoved { name } => {
            a.users.remove(name);
        }
        Event::AssociationSet { association } => a.put_association((**association).clone()),
        Event::AssociationRemoved { id } => a.remove_association(*id),
        Event::QosSet { qos } => a.put_qos((**qos).clone()),
        Event::QosRemoved { name } => {
            a.qos.remove(name);
        }
        _ => return false,
    }
    true
}
