//! What users' last runs did.

use super::{ConvertError, Result, time_to_disk};
use sluice_engine::habits::{HabitBook, UserHabits};
use sluice_model::Time;
use sluice_proto::v1;
use sluice_sched::prediction::{EndedRun, Habits};
use std::sync::Arc;

pub fn habits_to_disk(book: &HabitBook) -> v1::snapshot_chunk::Habits {
    let HabitBook { users } = book;
    let one = |(uid, known): (&u32, &Arc<UserHabits>)| {
        let UserHabits { habits, last } = &**known;
        let mut disk = v1::DiskHabits { uid: *uid, last: time_to_disk(*last), ..v1::DiskHabits::default() };
        for run in habits.runs() {
            let EndedRun { ran_secs, limit_secs, width } = *run;
            disk.ran_secs.push(ran_secs);
            disk.limit_secs.push(limit_secs);
            disk.width.push(width);
        }
        disk
    };
    v1::snapshot_chunk::Habits { users: users.iter().map(one).collect() }
}

pub fn habits_from_disk(kept: v1::snapshot_chunk::Habits) -> Result<HabitBook> {
    let mut book = HabitBook::default();
    for user in kept.users {
        let count = user.ran_secs.len();
        if user.limit_secs.len() != count || user.width.len() != count {
            return Err(ConvertError::new("habits", format!("of user {} are lists of different lengths", user.uid)));
        }
        let mut habits = Habits::default();
        // The oldest first.
        for at in (0..count).rev() {
            let (ran_secs, limit_secs, width) = (user.ran_secs[at], user.limit_secs[at], user.width[at]);
            habits.add(EndedRun { ran_secs, limit_secs, width });
        }
        book.users.insert(user.uid, Arc::new(UserHabits { habits, last: user.last.map(Time) }));
    }
    Ok(book)
}
