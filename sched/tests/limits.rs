//! Limits of associations and QOS: what each means, which holds when several are set, and what a pass makes of them.

mod scenario;

use scenario::{cluster, load, plan_and_audit};
use sluice_model::accounting::{CountLimit, Factor, Limits, Qos, QosFlag, TresKind, TresLimit, parse_change};
use sluice_model::tres::parse_tres;
use sluice_model::{JobId, Reason};
use sluice_sched::limits::{Ask, AssociationRule, Charge, LimitHit, QosRule, Rules, Tally, Used};
use std::collections::BTreeMap;
use std::sync::Arc;

/// `GrpTRES=cpu=4 GrpJobs=2 MaxTRESPU=cpu=2`, the names of sacctmgr.
fn limits(text: &str) -> Limits {
    let mut out = Limits::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        let count = match name {
            "GrpJobs" => Some(CountLimit::GrpJobs),
            "GrpWall" => Some(CountLimit::GrpWall),
            "MaxJobs" => Some(CountLimit::MaxJobs),
            "MaxWall" => Some(CountLimit::MaxWall),
            "MaxJobsPU" => Some(CountLimit::MaxJobsPerUser),
            "MaxJobsPA" => Some(CountLimit::MaxJobsPerAccount),
            "MinPrioThreshold" => Some(CountLimit::MinPrioThreshold),
            _ => None,
        };
        if let Some(limit) = count {
            out.set_count(limit, Some(value.parse().unwrap()));
            continue;
        }
        let limit = match name {
            "GrpTRES" => TresLimit::Grp,
            "GrpTRESMins" => TresLimit::GrpMins,
            "GrpTRESRunMins" => TresLimit::GrpRunMins,
            "MaxTRES" => TresLimit::MaxPerJob,
            "MaxTRESPerNode" => TresLimit::MaxPerNode,
            "MaxTRESMins" => TresLimit::MaxMinsPerJob,
            "MaxTRESPU" => TresLimit::MaxPerUser,
            "MaxTRESPA" => TresLimit::MaxPerAccount,
            "MaxTRESRunMinsPU" => TresLimit::MaxRunMinsPerUser,
            "MinTRES" => TresLimit::MinPerJob,
            _ => panic!("{name}"),
        };
        out.change_tres(limit, &parse_change(value).unwrap());
    }
    out
}

/// root (0), account a (1) with users u (2) and v (3), account b (4) with user w (5); the limits by label.
fn rules_with(set: &[(&str, &str)], used: &[(&str, f64)], qos: &[Qos], safe: bool) -> Arc<Rules> {
    let of = |label: &str| set.iter().find(|(l, _)| *l == label).map(|(_, t)| limits(t)).unwrap_or_default();
    let tree = [
        ("root", None, false),
        ("a", Some(0), false),
        ("u", Some(1), true),
        ("v", Some(1), true),
        ("b", Some(0), false),
        ("w", Some(4), true),
    ];
    let own: Vec<Limits> = tree.iter().map(|(label, ..)| of(label)).collect();
    let mut rules: Vec<AssociationRule<'_>> = Vec::new();
    for ((label, parent, is_user), own) in tree.iter().zip(&own) {
        let mut effective = own.clone();
        if let Some(p) = parent {
            effective.inherit(&rules[*p as usize].effective);
        }
        let cpu_secs = used.iter().find(|(l, _)| l == label).map_or(0.0, |(_, minutes)| minutes * 60.0);
        let used = Used { tres_secs: BTreeMap::from([(TresKind::Cpu, cpu_secs)]), wall_secs: cpu_secs };
        let label = if *is_user { format!("user {label}") } else { format!("account {label}") };
        rules.push(AssociationRule { label, parent: *parent, is_user: *is_user, own, effective, used });
    }
    let qos: Vec<QosRule<'_>> = (qos.iter())
        .map(|q| QosRule {
            name: &q.name,
            limits: &q.limits,
            flags: &q.flags,
            usage_factor: q.usage_factor,
            usage_threshold: q.usage_threshold,
            limit_factor: q.limit_factor,
            used: Used::default(),
        })
        .collect();
    Arc::new(Rules::new(&rules, &qos, safe))
}

fn qos(name: &str, text: &str, flags: &[QosFlag]) -> Qos {
    Qos { limits: limits(text), flags: flags.iter().copied().collect(), ..Qos::new(1, name) }
}

fn ask(tres: &str, minutes: u64) -> Ask {
    Ask { tres: parse_tres(tres).unwrap(), nodes: Vec::new(), minutes: Some(minutes) }
}

const U: Charge = Charge { association: Some(2), qos: None, uid: 1, fairshare: 500_000 };
const V: Charge = Charge { association: Some(3), qos: None, uid: 2, fairshare: 500_000 };
const W: Charge = Charge { association: Some(5), qos: None, uid: 3, fairshare: 500_000 };

fn hit(tally: &mut Tally, charge: Charge, partition_qos: Option<u32>, ask: &Ask) -> Option<LimitHit> {
    tally.check(&charge, partition_qos, ask).err()
}

fn reason(tally: &mut Tally, charge: Charge, ask: &Ask) -> Option<Reason> {
    hit(tally, charge, None, ask).map(|h| h.reason)
}

#[test]
fn a_group_limit_counts_all_users_below_the_account_and_says_its_numbers() {
    let mut tally = Tally::new(&rules_with(&[("a", "GrpTRES=cpu=10")], &[], &[], false));
    tally.add(&U, None, &ask("cpu=5", 10));
    tally.add(&V, None, &ask("cpu=3", 10));
    tally.add(&W, None, &ask("cpu=100", 10));
    assert_eq!(hit(&mut tally, V, None, &ask("cpu=2", 10)), None);
    let hit = hit(&mut tally, V, None, &ask("cpu=4", 10)).unwrap();
    assert_eq!(hit.reason, Reason::AssocGrpCpuLimit);
    assert_eq!(hit.to_string(), "GrpTRES of account a is cpu=10: 8 in use, 4 asked");
    assert_eq!(reason(&mut tally, W, &ask("cpu=4", 10)), None);
    tally.remove(&U, None, &ask("cpu=5", 10));
    assert_eq!(reason(&mut tally, V, &ask("cpu=4", 10)), None);
}

#[test]
fn each_limit_has_slurms_reason() {
    for (label, text, tres, minutes, expected) in [
        ("a", "GrpTRES=mem=1G", "cpu=1,mem=2G", 1, Reason::AssocGrpMemLimit),
        ("root", "GrpTRES=node=1", "node=2", 1, Reason::AssocGrpNodeLimit),
        ("u", "GrpTRES=gres/gpu=1", "gres/gpu=2", 1, Reason::AssocGrpGRES),
        ("a", "GrpTRES=gres/gpu:a100=0", "gres/gpu:a100=1", 1, Reason::AssocGrpGRES),
        ("a", "GrpTRES=license/x=0", "license/x=1", 1, Reason::AssocGrpLicense),
        ("a", "GrpTRES=billing=5", "billing=6", 1, Reason::AssocGrpBilling),
        ("a", "GrpJobs=0", "cpu=1", 1, Reason::AssocGrpJobsLimit),
        ("a", "MaxJobs=0", "cpu=1", 1, Reason::AssocMaxJobsLimit),
        ("a", "MaxWall=10", "cpu=1", 11, Reason::AssocMaxWallDurationPerJobLimit),
        ("a", "MaxTRES=cpu=2", "cpu=3", 1, Reason::AssocMaxCpuPerJobLimit),
        ("a", "MaxTRESMins=cpu=20", "cpu=3", 7, Reason::AssocMaxCpuMinutesPerJobLimit),
        ("a", "GrpTRESRunMins=cpu=20", "cpu=3", 7, Reason::AssocGrpCPURunMinutesLimit),
        ("a", "GrpTRESMins=cpu=0", "cpu=1", 1, Reason::AssocGrpCPUMinutesLimit),
        ("a", "GrpWall=0", "cpu=1", 1, Reason::AssocGrpWallLimit),
    ] {
        let mut tally = Tally::new(&rules_with(&[(label, text)], &[], &[], false));
        assert_eq!(reason(&mut tally, U, &ask(tres, minutes)), Some(expected), "{text}");
        let mut free = Tally::new(&rules_with(&[("b", text)], &[], &[], false));
        assert_eq!(reason(&mut free, U, &ask(tres, minutes)), None, "{text} of another account");
    }
    for (text, tres, minutes, expected) in [
        ("GrpTRES=cpu=1", "cpu=2", 1, Reason::QOSGrpCpuLimit),
        ("GrpJobs=0", "cpu=1", 1, Reason::QOSGrpJobsLimit),
        ("MaxJobsPU=0", "cpu=1", 1, Reason::QOSMaxJobsPerUserLimit),
        ("MaxJobsPA=0", "cpu=1", 1, Reason::MaxJobsPerAccount),
        ("MaxTRESPU=gres/gpu=1", "gres/gpu=2", 1, Reason::QOSMaxGRESPerUser),
        ("MaxTRESPA=cpu=1", "cpu=2", 1, Reason::MaxCpuPerAccount),
        ("MinTRES=gres/gpu=1", "cpu=2", 1, Reason::QOSMinGRES),
        ("MaxWall=5", "cpu=2", 6, Reason::QOSMaxWallDurationPerJobLimit),
        ("MaxTRESRunMinsPU=cpu=5", "cpu=2", 6, Reason::QOSMaxCpuPerUserLimit),
    ] {
        let mut tally = Tally::new(&rules_with(&[], &[], &[qos("q", text, &[])], false));
        let charge = Charge { qos: Some(0), ..U };
        assert_eq!(reason(&mut tally, charge, &ask(tres, minutes)), Some(expected), "{text}");
        assert_eq!(reason(&mut tally, U, &ask(tres, minutes)), None, "{text} of another QOS");
    }
}

#[test]
fn a_users_limit_counts_that_user_alone_and_zero_is_a_limit() {
    let mut tally = Tally::new(&rules_with(&[("a", "MaxJobs=1")], &[], &[], false));
    tally.add(&U, None, &ask("cpu=1", 1));
    assert_eq!(reason(&mut tally, U, &ask("cpu=1", 1)), Some(Reason::AssocMaxJobsLimit));
    assert_eq!(reason(&mut tally, V, &ask("cpu=1", 1)), None);
    let mut own = Tally::new(&rules_with(&[("a", "MaxJobs=1"), ("u", "MaxJobs=2")], &[], &[], false));
    own.add(&U, None, &ask("cpu=1", 1));
    assert_eq!(reason(&mut own, U, &ask("cpu=1", 1)), None, "set directly it overrides what is inherited");
    let mut per_user = Tally::new(&rules_with(&[], &[], &[qos("q", "MaxTRESPU=cpu=4", &[])], false));
    let [u, v] = [U, V].map(|c| Charge { qos: Some(0), ..c });
    per_user.add(&u, None, &ask("cpu=3", 1));
    let found = hit(&mut per_user, u, None, &ask("cpu=2", 1)).unwrap();
    assert_eq!(found.to_string(), "MaxTRESPU of user 1 in QOS q is cpu=4: 3 in use, 2 asked");
    assert_eq!(reason(&mut per_user, v, &ask("cpu=4", 1)), None);
}

#[test]
fn what_a_qos_says_stands_in_for_the_association_and_the_partitions_qos_comes_first() {
    let partition = qos("p", "MaxTRES=cpu=2", &[]);
    let job = qos("j", "MaxTRES=cpu=8,node=9", &[]);
    let over = qos("o", "MaxTRES=cpu=8", &[QosFlag::OverPartQos]);
    let rules = rules_with(&[("a", "MaxTRES=cpu=1,node=1")], &[], &[partition, job, over], false);
    let mut tally = Tally::new(&rules);
    let charge = |q: u32| Charge { qos: Some(q), ..U };
    assert_eq!(reason(&mut tally, charge(1), &ask("cpu=8,node=9", 1)), None, "the job's QOS before the association");
    let found = hit(&mut tally, charge(1), Some(0), &ask("cpu=3", 1)).unwrap();
    assert_eq!((found.reason, &*found.owner), (Reason::QOSMaxCpuPerJobLimit, "QOS p"));
    assert_eq!(hit(&mut tally, charge(2), Some(0), &ask("cpu=3", 1)), None, "OverPartQOS");
    let found = hit(&mut tally, charge(2), Some(0), &ask("cpu=3,node=2", 1)).unwrap();
    assert_eq!(found.reason, Reason::AssocMaxNodePerJobLimit, "resource by resource");
}

#[test]
fn a_job_exempted_by_its_qos_still_counts_for_its_account() {
    let rules = rules_with(&[("a", "GrpTRES=cpu=4")], &[], &[qos("big", "GrpTRES=cpu=100", &[])], false);
    let mut tally = Tally::new(&rules);
    let big = Charge { qos: Some(0), ..U };
    assert_eq!(reason(&mut tally, big, &ask("cpu=50", 1)), None);
    tally.add(&big, None, &ask("cpu=50", 1));
    assert_eq!(reason(&mut tally, V, &ask("cpu=1", 1)), Some(Reason::AssocGrpCpuLimit));
}

#[test]
fn minutes_used_up_hold_jobs_back_and_with_safe_those_that_could_pass_the_limit() {
    let set = [("a", "GrpTRESMins=cpu=100")];
    let mut easy = Tally::new(&rules_with(&set, &[("a", 90.0)], &[], false));
    assert_eq!(reason(&mut easy, U, &ask("cpu=10", 60)), None, "until the limit is reached");
    let mut full = Tally::new(&rules_with(&set, &[("a", 100.0)], &[], false));
    assert_eq!(reason(&mut full, U, &ask("cpu=1", 1)), Some(Reason::AssocGrpCPUMinutesLimit));
    let mut safe = Tally::new(&rules_with(&set, &[("a", 90.0)], &[], true));
    assert_eq!(reason(&mut safe, U, &ask("cpu=1", 10)), None);
    assert_eq!(reason(&mut safe, U, &ask("cpu=1", 11)), Some(Reason::AssocGrpCPUMinutesLimit));
    safe.add(&V, None, &ask("cpu=1", 5));
    assert_eq!(reason(&mut safe, U, &ask("cpu=1", 6)), Some(Reason::AssocGrpCPUMinutesLimit), "running ones count");
    let root = rules_with(&[("root", "GrpTRESMins=cpu=1")], &[("root", 9.0)], &[], false);
    assert_eq!(reason(&mut Tally::new(&root), U, &ask("cpu=1", 1)), None, "never enforced on root");
    // UsageFactorSafe: a job of this QOS uses twice as fast.
    let twice = Qos { usage_factor: Factor(2_000_000), ..qos("x", "", &[QosFlag::UsageFactorSafe]) };
    let mut fast = Tally::new(&rules_with(&set, &[("a", 90.0)], &[twice], true));
    assert_eq!(
        reason(&mut fast, Charge { qos: Some(0), ..U }, &ask("cpu=1", 6)),
        Some(Reason::AssocGrpCPUMinutesLimit)
    );
}

#[test]
fn a_qos_scales_group_limits_and_asks_for_a_least_fair_share() {
    let wide = Qos { limit_factor: Some(Factor(2_500_000)), ..qos("wide", "", &[]) };
    let picky = Qos { usage_threshold: Some(Factor(600_000)), ..qos("picky", "", &[]) };
    let mut tally = Tally::new(&rules_with(&[("a", "GrpTRES=cpu=4")], &[], &[wide, picky], false));
    assert_eq!(reason(&mut tally, Charge { qos: Some(0), ..U }, &ask("cpu=10", 1)), None);
    assert_eq!(reason(&mut tally, Charge { qos: Some(0), ..U }, &ask("cpu=11", 1)), Some(Reason::AssocGrpCpuLimit));
    let found = hit(&mut tally, Charge { qos: Some(1), ..U }, None, &ask("cpu=1", 1)).unwrap();
    assert_eq!(found.reason, Reason::QOSUsageThreshold);
    assert_eq!(hit(&mut tally, Charge { qos: Some(1), fairshare: 600_000, ..U }, None, &ask("cpu=1", 1)), None);
}

#[test]
fn without_an_end_a_job_takes_all_minutes() {
    let mut tally = Tally::new(&rules_with(&[("a", "GrpTRESRunMins=cpu=1000000")], &[], &[], false));
    let forever = Ask { minutes: None, ..ask("cpu=1", 0) };
    let found = hit(&mut tally, U, None, &forever).unwrap();
    assert_eq!(found.to_string(), "GrpTRESRunMins of account a is cpu=1000000: 0 in use, an unlimited amount asked");
}

/// One node of 8 CPUs.
fn pass(rules: Arc<Rules>, load_line: &str) -> sluice_sched::Plan {
    let mut input = cluster("node1 cpus=8 mem=8000");
    input.limits = Some(rules);
    load(&mut input, load_line);
    plan_and_audit(&input)
}

fn started(plan: &sluice_sched::Plan) -> Vec<u32> {
    let mut ids: Vec<u32> = plan.starts.iter().map(|s| s.job.0).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn a_job_behind_a_limit_is_passed_and_gets_no_planned_start() {
    let rules = rules_with(&[("a", "GrpTRES=cpu=4")], &[], &[], false);
    let plan = pass(rules, "R9 node1:3 10m charge=2/-/1; J1 -n2 -t10 charge=3/-/2 prio=900; J2 -n4 -t10 charge=5/-/3");
    assert_eq!(started(&plan), [2]);
    assert_eq!(plan.reasons, [(JobId(1), Reason::AssocGrpCpuLimit)]);
    assert!(plan.reservations.is_empty());
}

#[test]
fn what_the_pass_starts_counts_at_once_for_the_next_and_for_tasks_of_an_array() {
    let rules = rules_with(&[("a", "GrpJobs=3")], &[], &[], false);
    let plan = pass(rules, "J1 -n1 charge=2/-/1 prio=900; J2 -n1 --array=0-5 charge=3/-/2; J3 -n1 charge=5/-/3 prio=1");
    assert_eq!(started(&plan), [1, 2, 2, 3]);
    assert_eq!(plan.reasons, [(JobId(2), Reason::AssocGrpJobsLimit)]);
}

#[test]
fn a_limit_on_what_a_node_gives_holds_what_was_found_back() {
    let rules = rules_with(&[], &[], &[qos("q", "MaxTRESPerNode=cpu=2", &[])], false);
    let plan = pass(rules, "J1 -n3 charge=2/0/1; J2 -n2 charge=2/0/1 prio=1");
    assert_eq!(started(&plan), [2]);
    assert_eq!(plan.reasons, [(JobId(1), Reason::QOSMaxCpuPerNode)]);
    assert!(plan.reservations.is_empty());
}

#[test]
fn a_job_without_a_time_gets_its_longest_wall_and_one_with_more_waits() {
    let rules = rules_with(&[("a", "MaxWall=30")], &[], &[], false);
    let plan = pass(rules, "J1 -n1 charge=2/-/1; J2 -n1 -t31 charge=2/-/1; J3 -n1 charge=5/-/3");
    assert_eq!(started(&plan), [1, 3]);
    assert_eq!(plan.starts[0].time_limit, sluice_model::TimeLimit::Minutes(30));
    assert_eq!(plan.reasons, [(JobId(2), Reason::AssocMaxWallDurationPerJobLimit)]);
}

#[test]
fn a_job_that_may_reserve_nothing_lets_the_later_ones_pass() {
    let load = "R9 node1:6 10m; J1 -n8 -t10 charge=2/0/1 prio=900; J2 -n2 -t60 charge=5/-/3";
    let ordinary = pass(rules_with(&[], &[], &[qos("q", "GrpJobs=9", &[])], false), load);
    assert_eq!((started(&ordinary), ordinary.reservations.len()), (vec![], 1));
    let standby = pass(rules_with(&[], &[], &[qos("q", "GrpJobs=9", &[QosFlag::NoReserve])], false), load);
    assert_eq!((started(&standby), standby.reservations.len()), (vec![2], 0));
    let low = pass(rules_with(&[], &[], &[qos("q", "MinPrioThreshold=1000 GrpJobs=9", &[])], false), load);
    assert_eq!(started(&low), [2]);
}

#[test]
fn every_limit_in_the_way_is_told() {
    let mut input = cluster("node1 cpus=8 mem=8000");
    input.limits = Some(rules_with(&[("root", "GrpTRES=cpu=3"), ("a", "GrpTRES=cpu=2 MaxWall=5")], &[], &[], false));
    load(&mut input, "R9 node1:1 10m charge=2/-/1; J1 -n3 -t10 charge=3/-/2; J2 -n1 -t10 charge=5/-/3");
    let told = |at: usize| -> Vec<String> {
        sluice_sched::limits::hits(&input, &input.pending[at]).iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        told(0),
        [
            "MaxWall of user v is 5:00: 0:00 in use, 10:00 asked",
            "GrpTRES of account a is cpu=2: 1 in use, 3 asked",
            "GrpTRES of account root is cpu=3: 1 in use, 3 asked",
        ]
    );
    assert!(told(1).is_empty());
}
