//! The multifactor priority: the numbers that Slurm 22.05 gave for the same jobs, and what each setting changes.

use sluice_model::config::{PriorityConfig, PriorityFlags, PriorityKind};
use sluice_model::tres::{Tres, parse_tres};
use sluice_model::tres_weights::TresWeights;
use sluice_model::{Time, TimeLimit};
use sluice_sched::priority::{Factors, Facts, Scales, factors, refreshed};

const NOW: Time = Time(1_800_000_000_000);

/// Three nodes of four CPUs and 4000 MiB; partitions debug (1), long (4) and gpu (8, two nodes with two GPUs each).
const SCALES: Scales = Scales { nodes: 3, cpus: 12, partition: 8, qos: 40, association: 60 };

fn config() -> PriorityConfig {
    PriorityConfig {
        kind: PriorityKind::Multifactor,
        weight_age: 1000,
        weight_fairshare: 10_000,
        weight_job_size: 1000,
        weight_partition: 1000,
        weight_qos: 2000,
        weight_assoc: 500,
        weight_tres: TresWeights::parse("CPU=1000,Mem=2000,GRES/gpu=3000").unwrap(),
        ..PriorityConfig::default()
    }
}

struct Job {
    nodes: u32,
    tres: Tres,
    minutes: u32,
    partition: (u32, Tres),
    qos: u32,
    association: u32,
    fairshare: f64,
    nice: i32,
}

fn job(nodes: u32, tres: &str, minutes: u32, fairshare: u32) -> Job {
    Job {
        nodes,
        tres: parse_tres(tres).unwrap(),
        minutes,
        partition: (1, parse_tres("cpu=12,mem=12000M").unwrap()),
        qos: 10,
        association: 0,
        fairshare: f64::from(fairshare) / 14.0,
        nice: 0,
    }
}

fn of(config: &PriorityConfig, job: &Job, waited_secs: i64) -> Factors {
    let facts = Facts {
        submitted: NOW,
        eligible: Some(Time(NOW.0 - waited_secs * 1000)),
        nodes: job.nodes,
        cpus: job.tres.cpus as u32,
        tres: &job.tres,
        time_limit: TimeLimit::Minutes(job.minutes),
        partition_factor: job.partition.0,
        partition_tres: &job.partition.1,
        qos_priority: job.qos,
        association_priority: job.association,
        fairshare: job.fairshare,
        site: 0,
        nice: job.nice,
    };
    factors(config, &SCALES, &facts, NOW)
}

fn priority(config: &PriorityConfig, job: &Job, waited_secs: i64) -> u32 {
    of(config, job, waited_secs).weighted(config).total()
}

/// (priority by default, with FavorSmall, with FavorSmall relative to time, relative to time, without normalisation)
fn recorded() -> [(Job, [u32; 5]); 6] {
    let long = || (4, parse_tres("cpu=12,mem=12000M").unwrap());
    [
        (job(1, "cpu=1,mem=100M", 60, 6), [5219, 5802, 6005, 5016, 226_494]),
        (job(3, "cpu=12,mem=1200M", 60, 6), [7110, 6110, 7094, 6127, 2_438_286]),
        (job(2, "cpu=5,mem=500M", 10, 6), [5952, 5869, 6344, 5477, 1_030_827]),
        (Job { qos: 40, association: 30, ..job(1, "cpu=4,mem=400M", 60, 3) }, [5251, 5584, 5912, 4923, 902_476]),
        (
            Job {
                partition: (8, parse_tres("cpu=8,mem=8000M,gres/gpu=4").unwrap()),
                association: 30,
                ..job(1, "cpu=1,mem=1000M,gres/gpu=1", 30, 3)
            },
            [5226, 5809, 6007, 5029, 2_049_351],
        ),
        (
            Job { partition: long(), association: 60, nice: 100, ..job(1, "cpu=2,mem=200M", 100, 5) },
            [5421, 5921, 6168, 5175, 459_721],
        ),
    ]
}

#[test]
fn totals_are_those_that_sprio_showed_for_the_same_jobs() {
    let small = PriorityConfig { favor_small: true, ..config() };
    let relative = |c: PriorityConfig| PriorityConfig { flags: PriorityFlags::SMALL_RELATIVE_TO_TIME, ..c };
    let raw = PriorityConfig { flags: PriorityFlags::NO_NORMAL_ALL, ..config() };
    let configs = [config(), small.clone(), relative(small), relative(config()), raw];
    for (n, (job, totals)) in recorded().iter().enumerate() {
        for (at, (config, total)) in configs.iter().zip(totals).enumerate() {
            // They were read one after another, a minute and more apart.
            assert_eq!(priority(config, job, at as i64 * 80), *total, "job {n}, setting {at}");
        }
    }
}

#[test]
fn each_factor_is_told_apart() {
    let (job, _) = &recorded()[4];
    let f = of(&config(), job, 0);
    assert_eq!((f.partition, f.qos, f.association), (1.0, 0.25, 0.5));
    let tres: Vec<String> = f.weighted(&config()).tres.iter().map(|(k, v)| format!("{k}={v:.0}")).collect();
    assert_eq!(tres.join(","), "cpu=125,mem=250,gres/gpu=750");
}

#[test]
fn age_grows_to_its_maximum_from_the_moment_of_eligibility() {
    let tres = Tres::default();
    let at = |config: &PriorityConfig, submitted: i64, eligible: Option<i64>| {
        let facts = Facts {
            submitted: Time(NOW.0 - submitted * 3_600_000),
            eligible: eligible.map(|h| Time(NOW.0 - h * 3_600_000)),
            nodes: 1,
            cpus: 1,
            tres: &tres,
            time_limit: TimeLimit::Unlimited,
            partition_factor: 1,
            partition_tres: &tres,
            qos_priority: 0,
            association_priority: 0,
            fairshare: 0.0,
            site: 0,
            nice: 0,
        };
        factors(config, &SCALES, &facts, NOW).age
    };
    let week = config();
    assert_eq!(at(&week, 200, Some(84)), 0.5);
    assert_eq!(at(&week, 200, Some(200)), 1.0);
    assert_eq!(at(&week, 200, None), 0.0);
    assert_eq!(at(&week, 1, Some(-5)), 0.0, "eligible in the future");
    let always = PriorityConfig { flags: PriorityFlags::ACCRUE_ALWAYS, ..config() };
    assert_eq!(at(&always, 84, None), 0.5);
}

#[test]
fn a_job_that_is_not_held_stays_between_1_and_the_largest_number() {
    let mut low = job(1, "cpu=1", 1, 0);
    low.nice = i32::MAX;
    assert_eq!(priority(&config(), &low, 0), 1);
    let heavy = PriorityConfig { weight_qos: u32::MAX - 1, flags: PriorityFlags::NO_NORMAL_QOS, ..config() };
    let mut high = job(1, "cpu=1", 1, 14);
    (high.qos, high.nice) = (u32::MAX, i32::MIN);
    assert_eq!(priority(&heavy, &high, 0), u32::MAX);
    let none = Scales::default();
    let tres = Tres::default();
    let facts = Facts {
        submitted: NOW,
        eligible: None,
        nodes: 0,
        cpus: 0,
        tres: &tres,
        time_limit: TimeLimit::Minutes(0),
        partition_factor: 0,
        partition_tres: &tres,
        qos_priority: 0,
        association_priority: 0,
        fairshare: f64::NAN,
        site: 0,
        nice: 0,
    };
    assert_eq!(factors(&config(), &none, &facts, NOW).weighted(&config()).total(), 1);
}

#[test]
fn with_incr_only_a_priority_never_falls() {
    let only = PriorityFlags::INCR_ONLY;
    assert_eq!((refreshed(Some(9), 5, only), refreshed(Some(9), 10, only), refreshed(None, 5, only)), (9, 10, 5));
    assert_eq!(refreshed(Some(9), 5, PriorityFlags::default()), 5);
}
