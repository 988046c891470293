//! A scheduler that is fed with changes plans as one that sees all for the first time.

mod scenario;
use proptest::prelude::*;
use scenario::*;
use sluice_model::config::Mode;
use sluice_model::{JobId, Time};
use sluice_sched::preemption::{Claim, Preemption, Victim};
use sluice_sched::{Input, RunningJob, Scheduler, audit, plan};
use std::sync::Arc;

fn pick(options: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(options)
}

fn cluster_line() -> impl Strategy<Value = String> {
    let kinds = pick(&[
        "node[1-6] cpus=4",
        "node[1-3] cpus=2 mem=300; node[4-6] cpus=8 gres=gpu:2 features=a",
        "node[1-2] cpus=4 gres=gpu:a100:1,gpu:v100:2 features=a,b weight=3; node[3-6] cpus=8 mem=1000",
        "node[1-2] features=a; node3 features=a,b weight=2; node[4-6] cpus=8 features=b",
        "node[1-6] cpus=16 mem=2000",
        "node[1-6]; switch s1=node[1-2] s2=node[3-4] s3=node[5-6] t=s1,s2",
        "node[1-6] cpus=8 sockets=2 cores=4 gres=gpu:4(mem=8G!cores=0-3/4-7!links=0,1,4,1/1,0,1,4/4,1,0,1/1,4,1,0)",
        "node[1-6]; block b1=node[1-3] b2=node[4-6] sizes=3,6",
    ]);
    let partition = || pick(&["", "tier=2", "max=40", "exclusive", "maxcpus=2", "lln"]);
    let policy = pick(&[
        "",
        "",
        "nobackfill",
        "reservations=0",
        "reservations=3",
        "reservations=100",
        "order=shortest",
        "order=area",
        "depth=4",
        "overrun=steps",
        "overrun=limit",
        "lln",
    ]);
    let preempt = pick(&["1>", "1>0 2>0,1", "1>0 2>0,1", "tiers"]);
    (kinds, partition(), partition(), policy, preempt).prop_map(|(kinds, a, b, policy, preempt)| {
        format!("{kinds}; p=node[1-6] {a}; q=node[3-6] {b}; policy {policy}; license x=2; preempt {preempt}")
    })
}

fn job_words() -> impl Strategy<Value = String> {
    let size = pick(&[
        "",
        "",
        "-c2",
        "-c4",
        "-n2",
        "-n5",
        "-n12",
        "-N2",
        "-N3 -n6",
        "-N1-3",
        "-N2 --contiguous",
        "--exclusive",
        "--ntasks-per-node=2 -N2",
        "-w node4",
        "-x node1",
        "--overcommit -n9",
        "-C a*2&b*1",
        "-N2 -C [a|b]",
        "-n7 -C [a*1&b*2]",
        "-N2 --prefer=b",
        "-n6 --spread-job",
        "-N1-4 -n4 --use-min-nodes",
        "-N3 --switches=1",
        "-N2 --segment=2",
        "-n4 --ntasks-per-socket=1",
        "-c3 --gres=gpu:1 --enforce-binding",
        "--gres=gpu:2 --gpu-mem=8G",
        "-n6 --prefer=[a|b] -C [a*1&b*1] --batch=b",
    ]);
    let more = pick(&["", "", "", "--mem=250", "--gres=gpu:1", "--gpus=3", "-L x:1", "-L x:2"]);
    let time = pick(&[
        "-t10",
        "-t20",
        "-t5",
        "-t60",
        "-t61",
        "-t7 --expected=3",
        "",
        "-t60 --time-min=5",
        "-t30 --deadline=35",
    ]);
    let whereto = pick(&["-p p", "-p p", "-p q", "-p p,q", "-p q,p"]);
    let array = pick(&["", "", "", "", "--array=0-2"]);
    let rank = pick(&["", "rank=0", "rank=1", "rank=1+", "rank=2"]);
    (size, more, time, whereto, array, 1u32..4, rank).prop_map(|(size, more, time, whereto, array, prio, rank)| {
        format!("{size} {more} {time} {whereto} {array} prio={prio} {rank}")
    })
}

/// One thing that happens.
#[derive(Clone, Debug)]
enum News {
    Submit(String),
    /// The job at this place of the queue, or of those that run.
    Cancel(usize),
    End(usize),
    /// Applies what was planned.
    Start,
    /// Minutes.
    Time(i64),
    Node(usize, bool),
    /// It is expected to end after so many minutes from now.
    Expect(usize, i64),
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![
        6 => job_words().prop_map(News::Submit),
        1 => (0usize..50).prop_map(News::Cancel),
        3 => (0usize..50).prop_map(News::End),
        4 => Just(News::Start),
        2 => (0i64..30).prop_map(News::Time),
        1 => (0usize..6, any::<bool>()).prop_map(|(n, up)| News::Node(n, up)),
        1 => (0usize..50, -5i64..20).prop_map(|(n, m)| News::Expect(n, m)),
    ]
}

struct World {
    input: Input,
    scheduler: Scheduler,
    next: u32,
}

impl World {
    fn apply(&mut self, news: &News) {
        match news {
            News::Submit(words) => {
                load(&mut self.input, &format!("J{} {words}", self.next));
                self.next += 1;
                self.scheduler.put_pending(self.input.pending.last().expect("submitted").clone());
            }
            News::Cancel(at) if !self.input.pending.is_empty() => {
                let at = at % self.input.pending.len();
                self.scheduler.remove_pending(self.input.pending.remove(at).job);
            }
            News::End(at) if !self.input.running.is_empty() => {
                let at = at % self.input.running.len();
                self.scheduler.remove_running(self.input.running.remove(at).job);
            }
            News::Start => self.start(),
            News::Time(minutes) => {
                let now = self.input.now.expect("now");
                self.input.now = Some(Time(now.0 + minutes * 60_000));
            }
            News::Node(node, up) => {
                self.input.nodes[*node].available = *up;
                self.scheduler.set_available(*node as u32, *up);
            }
            News::Expect(at, minutes) if !self.input.running.is_empty() => {
                let at = at % self.input.running.len();
                let job = &mut self.input.running[at];
                job.expected_end = Some(Time(self.input.now.expect("now").0 + minutes * 60_000));
                self.scheduler.put_running(job.clone());
            }
            News::Cancel(_) | News::End(_) | News::Expect(..) => {}
        }
    }

    fn claim(&mut self, id: JobId, claim: Option<Arc<Claim>>) {
        let job = self.input.pending.iter_mut().find(|p| p.job == id).expect("pending");
        job.claim = claim;
        self.scheduler.put_pending(job.clone());
    }

    fn start(&mut self) {
        let now = self.input.now.expect("now");
        let plan = plan(&self.input);
        for id in &plan.lapsed {
            self.claim(*id, None);
        }
        for preemption in &plan.preemptions {
            let starts = plan.starts.iter().any(|s| s.job == preemption.job && s.index == preemption.index);
            for (id, mode) in &preemption.victims {
                let at = self.input.running.iter().position(|r| r.job == *id).expect("running");
                if *mode == Mode::Suspend {
                    // As if it had ended: who lends what is the engine's business.
                    self.scheduler.remove_running(self.input.running.remove(at).job);
                } else {
                    let victim = &mut self.input.running[at];
                    let grace = victim.victim.take().map_or(0, |v| v.grace_ms);
                    victim.ends = Some(Time(now.0 + grace));
                    self.scheduler.put_running(victim.clone());
                }
            }
            // A claim of an array's task is that of a job of its own.
            if !starts && preemption.index.is_none() {
                let partition = self.input.partitions.iter().position(|p| p.name == preemption.partition);
                let claim = Claim {
                    partition: partition.expect("partition") as u32,
                    nodes: preemption.needs.iter().map(|n| n.node.clone()).collect(),
                    victims: preemption.victims.iter().map(|v| v.0).collect(),
                };
                self.claim(preemption.job, Some(Arc::new(claim)));
            }
        }
        for start in plan.starts {
            let at = self.input.pending.iter().position(|p| p.job == start.job).expect("pending");
            let job = &mut self.input.pending[at];
            let partition = self.input.partitions.iter().position(|p| p.name == start.partition).expect("partition");
            let exclusive = job.exclusive
                || self.input.partitions[partition].exclusive
                || job.request.request.exclusive != sluice_model::request::Exclusive::No;
            let running = RunningJob {
                job: JobId(100_000 + self.next),
                allocation: Arc::new(start.allocation.clone()),
                ends: start.time_limit.duration().map(|d| now.plus(d)),
                expected_end: job.expected_ms.map(|ms| Time(now.0 + ms)),
                exclusive,
                partition: Some(partition as u32),
                licenses: std::collections::BTreeMap::clone(&job.request.licenses),
                charge: job.charge,
                victim: (!self.next.is_multiple_of(4)).then(|| Victim {
                    rank: match self.input.preemption {
                        Preemption::Tiers => self.input.partitions[partition].priority_tier,
                        _ => job.preemptor.map_or(0, |p| p.rank),
                    },
                    priority: start.priority,
                    mode: [Mode::Cancel, Mode::Requeue, Mode::Suspend][self.next as usize % 3],
                    grace_ms: i64::from(self.next % 5) * 60_000,
                    exempt_until: Time(now.0 + i64::from(self.next % 2) * 300_000),
                    began: now,
                }),
            };
            self.next += 1;
            match start.index {
                Some(index) => job.indices.retain(|i| *i != index),
                None => job.indices.clear(),
            }
            if job.indices.is_empty() {
                self.scheduler.remove_pending(self.input.pending.remove(at).job);
            } else {
                self.scheduler.put_pending(job.clone());
            }
            self.scheduler.put_running(running.clone());
            self.input.running.push(running);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_fed_with_changes_plans_as_what_sees_all_anew(
        line in cluster_line(), news in prop::collection::vec((news(), any::<bool>()), 1..60),
    ) {
        let input = cluster(&line);
        let mut world = World { scheduler: Scheduler::default(), input, next: 1 };
        world.scheduler.rebuild(&world.input);
        for (news, look) in &news {
            world.apply(news);
            // Several changes may lie between two passes.
            if *look {
                let now = world.input.now.expect("now");
                let fresh = plan(&world.input);
                prop_assert_eq!(audit(&world.input, &fresh), vec![], "{:?}", fresh);
                let fed = world.scheduler.plan(world.input.generation, now);
                prop_assert_eq!(fed, fresh, "after {:?}", news);
            }
        }
    }
}

/// A job with a planned start in one partition gets an earlier one in another: the place that becomes free goes to nobody,
/// be it known or not that the next class of the first partition is full.
#[test]
fn a_planned_start_that_moves_away_leaves_full_classes_as_they_are() {
    let line =
        "node[1-2] cpus=4 weight=3; node[3-6] cpus=8; p=node[1-6] lln; q=node[3-6] tier=2; policy order=shortest";
    let mut input = cluster(line);
    load(
        &mut input,
        "R101 node1:1 5m; R102 node3:8 10m; R103 node4:5 10m; R104 node5:8 10m; R105 node6:5 10m; R106 node2:4 5m; \
         R107 node4:1 5m; R108 node6:1 5m",
    );
    load(&mut input, "J8 -n12 -t10 -p q prio=1; J15 -N2 --contiguous -t10 -p p,q prio=2; J16 -t10 -p p prio=1");
    let mut scheduler = Scheduler::default();
    scheduler.rebuild(&input);
    let now = input.now.expect("now");
    assert_eq!(scheduler.plan(input.generation, now), plan(&input));
    load(&mut input, "J17 -t10 -p p prio=1");
    scheduler.put_pending(input.pending.last().expect("submitted").clone());
    let fresh = plan(&input);
    assert_eq!(audit(&input, &fresh), vec![]);
    assert_eq!(scheduler.plan(input.generation, now), fresh);
}
