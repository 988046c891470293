//! Priority: which facts of a job and of the cluster make it go first, as numbers.
//!
//! Owns Slurm's multifactor formula (slurm.conf, Priority…; Slurm's documentation of the multifactor priority): a weighted
//! sum of factors, most of them between 0 and 1, plus the site's, minus nice. Promises that the same facts give the same
//! number, that every factor is told apart (sprio), and that a job which is not held never falls to 0, which means held.
//! Must not know the time: it comes with the question. The rounding and the job size are as seen on Slurm 22.05.

use sluice_model::accounting::TresKind;
use sluice_model::config::{PriorityConfig, PriorityFlags};
use sluice_model::tres::Tres;
use sluice_model::{Time, TimeLimit};

/// What the factors are measured by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scales {
    pub nodes: u32,
    pub cpus: u64,
    /// The highest PriorityJobFactor of any partition, priority of any QOS, priority of any association.
    pub partition: u32,
    pub qos: u32,
    pub association: u32,
}

/// A job in one of its partitions.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub submitted: Time,
    /// Since when nothing but its turn holds it back; None: something does.
    pub eligible: Option<Time>,
    pub nodes: u32,
    pub cpus: u32,
    /// What it asks for in all.
    pub tres: &'a Tres,
    pub time_limit: TimeLimit,
    /// PriorityJobFactor and resources of the partition.
    pub partition_factor: u32,
    pub partition_tres: &'a Tres,
    pub qos_priority: u32,
    pub association_priority: u32,
    /// 0 to 1.
    pub fairshare: f64,
    pub site: i32,
    pub nice: i32,
}

/// Each part, before or after the weights.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Factors {
    pub age: f64,
    pub association: f64,
    pub fairshare: f64,
    pub job_size: f64,
    pub partition: f64,
    pub qos: f64,
    /// In the order of the weights.
    pub tres: Vec<(TresKind, f64)>,
    pub site: i32,
    pub nice: i32,
}

/// The factors, without weights.
pub fn factors(config: &PriorityConfig, scales: &Scales, job: &Facts<'_>, now: Time) -> Factors {
    let has = |flag| config.flags.has(flag);
    let normal = |value: u32, highest: u32, raw: PriorityFlags| match (has(raw), highest) {
        (true, _) => f64::from(value),
        (false, 0) => 0.0,
        (false, highest) => f64::from(value) / f64::from(highest),
    };
    let tres = config.weight_tres.0.iter().map(|(kind, _)| {
        let asked = kind.of(job.tres) as f64;
        let all = kind.of(job.partition_tres) as f64;
        let factor = match has(PriorityFlags::NO_NORMAL_TRES) {
            true => asked,
            false if all > 0.0 => (asked / all).min(1.0),
            false => 0.0,
        };
        (kind.clone(), factor)
    });
    Factors {
        age: age(config, job, now),
        association: normal(job.association_priority, scales.association, PriorityFlags::NO_NORMAL_ASSOC),
        fairshare: job.fairshare.clamp(0.0, 1.0),
        job_size: job_size(config, scales, job),
        partition: normal(job.partition_factor, scales.partition, PriorityFlags::NO_NORMAL_PART),
        qos: normal(job.qos_priority, scales.qos, PriorityFlags::NO_NORMAL_QOS),
        tres: tres.collect(),
        site: job.site,
        nice: job.nice,
    }
}

/// Time waited, of PriorityMaxAge.
fn age(config: &PriorityConfig, job: &Facts<'_>, now: Time) -> f64 {
    let since = if config.flags.has(PriorityFlags::ACCRUE_ALWAYS) { Some(job.submitted) } else { job.eligible };
    let Some(since) = since else { return 0.0 };
    let most = f64::from(config.max_age_secs.max(1));
    (now.since(since).as_secs_f64() / most).min(1.0)
}

/// The mean of its parts of the nodes and of the CPUs; relative to time, its part of the nodes by its limit in minutes.
fn job_size(config: &PriorityConfig, scales: &Scales, job: &Facts<'_>) -> f64 {
    let part = |of: f64, all: f64| if all > 0.0 { (of / all).clamp(0.0, 1.0) } else { 0.0 };
    let nodes = part(f64::from(job.nodes), f64::from(scales.nodes));
    let size = if config.flags.has(PriorityFlags::SMALL_RELATIVE_TO_TIME) {
        match job.time_limit {
            TimeLimit::Minutes(m) => nodes / f64::from(m.max(1)),
            TimeLimit::Unlimited => 0.0,
        }
    } else {
        (nodes + part(f64::from(job.cpus), scales.cpus as f64)) / 2.0
    };
    if config.favor_small { 1.0 - size } else { size }
}

impl Factors {
    /// Each part times its weight.
    pub fn weighted(&self, config: &PriorityConfig) -> Factors {
        Factors {
            age: self.age * f64::from(config.weight_age),
            association: self.association * f64::from(config.weight_assoc),
            fairshare: self.fairshare * f64::from(config.weight_fairshare),
            job_size: self.job_size * f64::from(config.weight_job_size),
            partition: self.partition * f64::from(config.weight_partition),
            qos: self.qos * f64::from(config.weight_qos),
            tres: (self.tres.iter().zip(&config.weight_tres.0))
                .map(|((kind, factor), (_, weight))| (kind.clone(), factor * weight.number()))
                .collect(),
            site: self.site,
            nice: self.nice,
        }
    }

    /// The sum of weighted parts as the queue's priority: cut to a whole number from 1 on (0 means held).
    pub fn total(&self) -> u32 {
        let sum = self.age
            + self.association
            + self.fairshare
            + self.job_size
            + self.partition
            + self.qos
            + self.tres.iter().map(|(_, f)| f).sum::<f64>()
            + f64::from(self.site)
            - f64::from(self.nice);
        // `as` saturates, and a sum that is no number becomes 0.
        (sum as u32).max(1)
    }
}

/// The priority after a new computation (PriorityFlags, INCR_ONLY).
pub fn refreshed(old: Option<u32>, new: u32, flags: PriorityFlags) -> u32 {
    match old {
        Some(old) if flags.has(PriorityFlags::INCR_ONLY) => old.max(new),
        _ => new,
    }
}
