//! A wide job under an endless stream of small ones that keep the machine full.

mod scenario;
use proptest::prelude::*;
use scenario::*;
use sluice_model::{JobId, Time};
use sluice_sched::{Scheduler, audit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Minutes: the longest limit of the stream.
const LONGEST: i64 = 60;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// The bound follows from the policy: the first in line has a planned start, nothing that starts later may delay it, and
    /// all that runs when it becomes the first is gone after the longest limit. So it starts within that time after the
    /// last of those that stand before it.
    #[test]
    fn it_starts_when_all_that_ran_before_it_is_gone_at_the_latest(
        order in prop::sample::select(&["", "order=shortest", "order=area", "reservations=3", "reservations=100"][..]),
        sizes in prop::collection::vec((1u32..5, 1u32..=LONGEST as u32, any::<bool>()), 40..200),
    ) {
        let mut input = cluster(&format!("node[1-4] cpus=4; policy {order}"));
        let mut scheduler = Scheduler::default();
        scheduler.rebuild(&input);
        let mut next = 1;
        let mut stream = sizes.iter().cycle();
        let mut wide_since = None;
        let minute = |m: i64| Time(NOW.0 + m * 60_000);
        for now in 0..400 {
            input.now = Some(minute(now));
            for gone in input.running.extract_if(.., |r| r.ends.is_some_and(|e| e <= minute(now))) {
                scheduler.remove_running(gone.job);
            }
            // So many that the machine is never short of them. Half of them run as long as they may.
            let waiting = input.pending.len();
            for _ in waiting..20 {
                let (cpus, minutes, _) = stream.next().expect("endless");
                load(&mut input, &format!("J{next} -c{cpus} -t{minutes} at={}", minute(now).0));
                next += 1;
                scheduler.put_pending(input.pending.last().expect("submitted").clone());
            }
            if now == 100 {
                load(&mut input, &format!("J1000000 -N4 -c4 -t30 at={}", minute(now).0));
                scheduler.put_pending(input.pending.last().expect("submitted").clone());
            }
            let wide = JobId(1_000_000);
            let ahead = input.pending.iter().filter(|p| p.job != wide && p.submitted <= minute(100)).count();
            if now >= 100 && ahead == 0 && wide_since.is_none() {
                wide_since = Some(now);
            }
            let plan = scheduler.plan(input.generation, minute(now));
            prop_assert_eq!(audit(&input, &plan), vec![]);
            for start in &plan.starts {
                if start.job == wide {
                    let since = wide_since.unwrap_or(now);
                    prop_assert!(now - since <= LONGEST, "first in line since {since}, started at {now}");
                    return Ok(());
                }
                let at = input.pending.iter().position(|p| p.job == start.job).expect("pending");
                scheduler.remove_pending(start.job);
                input.pending.remove(at);
                let running = sluice_sched::RunningJob {
                    job: start.job,
                    allocation: Arc::new(start.allocation.clone()),
                    ends: start.time_limit.duration().map(|d| minute(now).plus(d)),
                    expected_end: None,
                    exclusive: false,
                    partition: Some(0),
                    licenses: BTreeMap::new(),
                    charge: sluice_sched::limits::Charge::default(),
victim: None,};
                scheduler.put_running(running.clone());
                input.running.push(running);
            }
            // Some end early.
            if let Some((_, _, true)) = sizes.get(now as usize % sizes.len())
                && !input.running.is_empty()
            {
                let gone = input.running.remove(now as usize % input.running.len());
                scheduler.remove_running(gone.job);
            }
        }
        prop_assert!(false, "it never started");
    }
}
