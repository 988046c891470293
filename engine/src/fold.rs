//! Applies events. Cannot fail and reads nothing but the state and the event: replaying the journal gives the very same
//! state. An event about something that is not there changes nothing but the generation.

mod accounting;
mod config;
mod job;
mod node;

use crate::event::Event;
use crate::state::State;

/// Applies one event.
pub fn fold(state: &mut State, event: &Event) {
    state.generation = state.generation.wrapping_add(1);
    match event {
        Event::Configured { config } => config::configured(state, config),
        Event::PartitionUpdated { name, change } => config::partition_updated(state, name, change),
        Event::NodeRegistered { node, report, stale, at } => node::registered(state, node, report, stale, *at),
        Event::StaleGone { node, job, attempt } => state.edit_node(node, |n| {
            n.stale.remove(&(*job, *attempt));
        }),
        Event::NodeUpdated { node, change, reason } => node::updated(state, node, change, reason.as_ref()),
        Event::NodeHealth { node, not_responding, down, reason, at } => {
            node::health(state, node, *not_responding, *down, reason.as_ref(), *at);
        }
        Event::UsageCharged { job: _, charge } => state.usage.charge(charge),
        Event::UsageRebased { at, half_life_ms, constant } => state.usage.rebase(*at, *half_life_ms, constant),
        Event::UsageCleared { owners, at } => state.usage.clear(owners.as_deref(), *at),
        Event::ArchiveOrdered { at } => state.archive_ordered = Some(*at),
        Event::JobsPurged { jobs } => {
            for id in jobs {
                state.put(*id, None);
            }
            state.archive_ordered = None;
        }
        other => {
            if !accounting::apply(state, other) {
                job::apply(state, other);
            }
        }
    }
}
