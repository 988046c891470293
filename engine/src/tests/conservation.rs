use super::world::*;
use crate::command::{Command, JobTarget};
use crate::job::{ArrayRole, Phase};
use proptest::prelude::*;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobState};

const ALL: u32 = 10;

/// What somebody does to some tasks of the array.
#[derive(Clone, Debug)]
enum Act {
    Cancel(Vec<u32>),
    Hold(Vec<u32>),
    Release(Vec<u32>),
    Requeue(Vec<u32>),
    Schedule,
    End { well: bool },
    Wait(i64),
}

fn act() -> impl Strategy<Value = Act> {
    let some = || prop::collection::vec(0..ALL, 1..4);
    prop_oneof![
        some().prop_map(Act::Cancel),
        some().prop_map(Act::Hold),
        some().prop_map(Act::Release),
        some().prop_map(Act::Requeue),
        Just(Act::Schedule),
        Just(Act::Schedule),
        any::<bool>().prop_map(|well| Act::End { well }),
        (1..60i64).prop_map(Act::Wait),
    ]
}

fn perform(w: &mut World, id: JobId, act: Act) {
    let target = |indices: Vec<u32>| JobTarget::Tasks(id, indices.into_iter().collect::<IndexSet>());
    let caller = user(1500);
    // What can't be done is refused, and must then have changed nothing.
    let before = w.state.generation;
    let command = match act {
        Act::Cancel(i) => Command::Cancel { caller, target: target(i) },
        Act::Hold(i) => Command::Hold { caller, target: target(i), user_hold: false },
        Act::Release(i) => Command::Release { caller, target: target(i) },
        Act::Requeue(i) => Command::Requeue { caller, target: target(i), hold: false },
        Act::Schedule => {
            w.schedule();
            return;
        }
        Act::End { well } => {
            if let Some(job) = w.state.index.active.get_min().copied() {
                w.confirm(job);
                w.batch_ends(job, if well { OK } else { code(1) });
                w.clean(job);
            }
            return;
        }
        Act::Wait(secs) => {
            w.pass(secs);
            return;
        }
    };
    if w.try_command(command).is_err() {
        assert_eq!(w.state.generation, before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// The world's own audit says that none is there twice.
    #[test]
    fn whatever_is_done_to_an_array_every_task_stays_in_exactly_one_record(acts in prop::collection::vec(act(), 1..40)) {
        let mut w = World::new();
        let id = w.submit(throttled("0-9", 3));
        for act in acts {
            perform(&mut w, id, act);
            let mut there = IndexSet::new();
            for job in w.state.jobs.values() {
                match &job.array {
                    ArrayRole::Pending { indices, .. } | ArrayRole::Block { indices, .. } => there = there.union(indices),
                    ArrayRole::Task { index, .. } => {
                        there.insert(*index);
                    }
                    ArrayRole::None => {}
                }
            }
            prop_assert_eq!(there, IndexSet::range(0, ALL - 1));
        }
        w.assert_replays();
        // And all of it can be brought to an end.
        let target = JobTarget::Job(id);
        // Refused when all is over already.
        let _ = w.try_command(Command::Cancel { caller: user(1500), target });
        for job in w.state.jobs.keys().copied().collect::<Vec<_>>() {
            if matches!(w.job(job).phase, Phase::Running(_)) {
                w.pass(KILL_WAIT);
            }
            w.clean(job);
            prop_assert!(w.state_of(job).is_finished() && w.state_of(job) != JobState::Requeued);
        }
    }
}
