//! The replay against a reference of a few lines: processors as a plain count, FCFS order, three ways to backfill. Every
//! start of generated workloads must agree, to the second.

use sluice_sim::cluster::Machine;
use sluice_sim::generate::{Recipe, generate};
use sluice_sim::policy::Policy;
use sluice_sim::replay::{Estimates, replay};
use sluice_sim::trace::{Trace, TraceJob};

#[derive(Clone, Copy, PartialEq)]
enum Way {
    None,
    Easy,
    Conservative,
}

struct Running {
    end: i64,
    planned: i64,
    cpus: i64,
}

/// Starts by position. `length` is what the planner takes a job to run.
fn reference(jobs: &[TraceJob], procs: i64, way: Way, length: impl Fn(&TraceJob) -> i64) -> Vec<i64> {
    let mut starts = vec![-1; jobs.len()];
    let (mut queue, mut running, mut next) = (Vec::<usize>::new(), Vec::<Running>::new(), 0);
    loop {
        let arrival = jobs.get(next).map(|j| j.submit);
        let end = running.iter().map(|r| r.end).min();
        let Some(now) = [arrival, end].into_iter().flatten().min() else { return starts };
        running.retain(|r| r.end > now);
        while jobs.get(next).is_some_and(|j| j.submit <= now) {
            queue.push(next);
            next += 1;
        }
        // Free processors from now on as (from, free), falling and rising.
        let mut profile = Profile::new(procs, now, &running);
        let mut planned = 0;
        queue.retain(|&at| {
            let job = &jobs[at];
            let (cpus, length) = (i64::from(job.cpus), length(job));
            if planned > 0 && way == Way::None {
                return true;
            }
            let start = profile.earliest(now, length, cpus);
            if start == now {
                profile.take(now, now + length, cpus);
                running.push(Running { end: now + job.run, planned: now + length, cpus });
                starts[at] = now;
                return false;
            }
            if planned == 0 || way == Way::Conservative {
                profile.take(start, start + length, cpus);
            }
            planned += 1;
            true
        });
    }
}

/// Free processors over time: (from, free), ascending; the last goes on for ever.
struct Profile(Vec<(i64, i64)>);

impl Profile {
    fn new(procs: i64, now: i64, running: &[Running]) -> Profile {
        let mut profile = Profile(vec![(now, procs)]);
        for r in running {
            profile.take(now, r.planned, r.cpus);
        }
        profile
    }
    fn cut(&mut self, at: i64) {
        let i = self.0.partition_point(|p| p.0 <= at) - 1;
        if self.0[i].0 < at {
            let free = self.0[i].1;
            self.0.insert(i + 1, (at, free));
        }
    }
    fn take(&mut self, from: i64, to: i64, cpus: i64) {
        self.cut(from);
        self.cut(to);
        self.0.iter_mut().filter(|p| (from..to).contains(&p.0)).for_each(|p| p.1 -= cpus);
    }
    fn earliest(&self, now: i64, length: i64, cpus: i64) -> i64 {
        let fits = |t: i64| {
            let first = self.0.partition_point(|p| p.0 <= t) - 1;
            self.0[first..].iter().take_while(|p| p.0 < t + length).all(|p| p.1 >= cpus)
        };
        self.0.iter().map(|p| p.0.max(now)).find(|t| fits(*t)).expect("the machine is large enough")
    }
}

fn ours(trace: &Trace, policy: &str, estimates: Estimates) -> Vec<i64> {
    let policy = Policy::load(policy).unwrap();
    let config = Machine::of_processors(trace.max_procs.unwrap()).and_then(|m| m.under(&policy, None)).unwrap();
    let done = replay(trace, config, &policy, estimates).unwrap();
    done.starts.into_iter().map(|s| s.expect("it starts")).collect()
}

/// Requested times as users give them, to the second: limits are whole minutes, plans are not.
fn workload(seed: u64, jobs: u32, procs: u32, load: f64) -> Trace {
    let mut trace = generate(&Recipe { jobs, seed, procs, load: Some(load) });
    for (n, job) in trace.jobs.iter_mut().enumerate() {
        job.requested += (n as i64 * 7) % 59;
    }
    trace
}

fn compare(policy: &str, way: Way, estimates: Estimates) {
    for (seed, procs, load) in [(1, 8, 0.9), (2, 64, 1.1), (3, 100, 0.7), (4, 1, 0.9), (5, 240, 1.0)] {
        let trace = workload(seed, 150, procs, load);
        let length = |j: &TraceJob| if estimates == Estimates::Exact { j.run } else { j.requested };
        let expected = reference(&trace.jobs, i64::from(procs), way, length);
        let ours = ours(&trace, policy, estimates);
        let wrong = ours.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(wrong, None, "seed {seed}: job {wrong:?} starts at another time than the reference's");
    }
}

#[test]
fn fcfs_starts_every_job_when_the_reference_does() {
    compare("fcfs", Way::None, Estimates::Limit);
}

#[test]
fn easy_starts_every_job_when_the_reference_does() {
    compare("easy", Way::Easy, Estimates::Limit);
}

#[test]
fn easy_with_exact_estimates_starts_every_job_when_the_reference_does() {
    compare("easy", Way::Easy, Estimates::Exact);
}

#[test]
fn conservative_backfill_starts_every_job_when_the_reference_does() {
    compare("conservative", Way::Conservative, Estimates::Limit);
}

#[test]
fn no_policy_gives_more_than_the_machine_has_or_starts_a_job_before_it_is_submitted() {
    let trace = workload(9, 200, 50, 1.2);
    for policy in ["default", "sjf", "ljf", "saf", "narrow", "wide", "sjf-conservative"] {
        let starts = ours(&trace, policy, Estimates::Limit);
        let mut changes: Vec<(i64, i64)> = Vec::new();
        for (job, start) in trace.jobs.iter().zip(&starts) {
            assert!(*start >= job.submit, "{policy}");
            changes.extend([(*start, i64::from(job.cpus)), (start + job.run, -i64::from(job.cpus))]);
        }
        changes.sort_unstable();
        let mut used = 0;
        for (_, change) in changes {
            used += change;
            assert!((0..=50).contains(&used), "{policy}: {used} processors in use");
        }
    }
}
