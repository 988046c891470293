//! Workloads made up from a seed.
//!
//! Owns a model of the Lublin-Feitelson kind ("The workload on parallel supercomputers", JPDC 2003): sizes from a
//! two-stage uniform distribution of the logarithm with many serial jobs and powers of two, run times from a hyper-gamma
//! distribution of the logarithm whose mixture depends on the size, gaps between arrivals log-gamma and stretched by the
//! daily cycle. Added: users (Zipf) who repeat what they ran before, and requested times rounded up to the values people
//! write (Tsafrir, Etsion, Feitelson 2005). Promises the same trace for the same numbers. Makes processors only, no GPUs.

use crate::random::Random;
use crate::trace::{Trace, TraceJob};

// The published fit of the model to three production logs.
const SERIAL: f64 = 0.2927;
const POWER_OF_TWO: f64 = 0.6686;
const SIZE_LOW: f64 = 0.8;
const SIZE_MIDDLE_BELOW_TOP: f64 = 2.5;
const SIZE_SMALLER: f64 = 0.705;
const SHORT: (f64, f64) = (4.2, 0.94);
const LONG: (f64, f64) = (312.0, 0.03);
const SHORT_SHARE: (f64, f64) = (-0.0054, 0.78);
const GAP: (f64, f64) = (10.2303, 0.4871);
const DAY: (f64, f64) = (8.1737, 3.9631);

/// Half hours of a day.
const SLOTS: usize = 48;
const SLOT_SECS: f64 = 1800.0;
/// So that the busiest slot is at three in the afternoon.
const DAY_SHIFT: usize = 2;
const LONGEST_RUN: f64 = 5.0 * 86_400.0;
/// What users write as limits, in minutes.
const ROUND: [i64; 17] = [5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1080, 1440, 2160, 2880, 4320, 7200];
/// A job is more often a repetition than something new.
const REPEATS: f64 = 0.7;
const PROGRAMS: usize = 4;

/// What to make: `jobs=450000,seed=1,procs=1024,load=1.02`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recipe {
    pub jobs: u32,
    pub seed: u64,
    pub procs: u32,
    /// Work over what the machine could do between the first and the last submission. None: as the model's gaps have it.
    pub load: Option<f64>,
}

impl Recipe {
    pub fn parse(text: &str) -> Result<Recipe, String> {
        const ALLOWED: &str = "jobs (1 to 10000000), seed, procs (1 to 1000000), load (0.01 to 10)";
        let mut recipe = Recipe { jobs: 1000, seed: 1, procs: 128, load: None };
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let whole = |low: u64, high: u64| value.parse::<u64>().ok().filter(|n| (low..=high).contains(n));
            let known = match key.trim() {
                "jobs" => whole(1, 10_000_000).map(|n| recipe.jobs = n as u32),
                "seed" => whole(0, u64::MAX).map(|n| recipe.seed = n),
                "procs" => whole(1, 1_000_000).map(|n| recipe.procs = n as u32),
                "load" => {
                    let load = value.parse::<f64>().ok().filter(|l| (0.01..=10.0).contains(l));
                    load.map(|l| recipe.load = Some(l))
                }
                _ => return Err(format!("unknown key '{key}'; allowed are {ALLOWED}")),
            };
            known.ok_or_else(|| format!("{key} can't be '{value}'; allowed are {ALLOWED}"))?;
        }
        Ok(recipe)
    }
}

/// What a user runs again and again.
#[derive(Clone, Copy)]
struct Program {
    cpus: u32,
    run: f64,
    requested: i64,
}

pub fn generate(recipe: &Recipe) -> Trace {
    let mut random = Random::new(recipe.seed);
    let users = (recipe.jobs as usize / 250).clamp(8, 400);
    let zipf = zipf(users);
    let mut programs: Vec<Vec<Program>> = vec![Vec::new(); users];
    let mut jobs = Vec::with_capacity(recipe.jobs as usize);
    let mut gaps = Vec::with_capacity(recipe.jobs as usize);
    for number in 1..=recipe.jobs {
        let user = zipf.partition_point(|sum| *sum < random.unit()).min(users - 1);
        let known = &mut programs[user];
        let program = if !known.is_empty() && random.chance(REPEATS) {
            known[random.below(known.len())]
        } else {
            let program = program(&mut random, recipe.procs);
            if known.len() < PROGRAMS {
                known.push(program);
            } else {
                known[random.below(PROGRAMS)] = program;
            }
            program
        };
        let run = (program.run * (0.3 * random.normal()).exp()).clamp(1.0, LONGEST_RUN) as i64;
        jobs.push(TraceJob {
            line: number,
            number: u64::from(number),
            submit: 0,
            run: run.min(program.requested),
            requested: program.requested,
            cpus: program.cpus,
            widest: program.cpus,
            nodes: 0,
            gpus: 0,
            memory_mb: 0,
            partition: None,
            gpu_type: None,
            user: user as u32,
            group: user as u32 % 8,
        });
        gaps.push(random.gamma(GAP.0, GAP.1).exp());
    }
    if let Some(load) = recipe.load {
        let work: f64 = jobs.iter().map(|j| j.run as f64 * f64::from(j.cpus)).sum();
        let wanted = work / (f64::from(recipe.procs) * load);
        let factor = wanted / gaps.iter().sum::<f64>().max(1.0);
        gaps.iter_mut().for_each(|g| *g *= factor);
    }
    arrive(&mut jobs, &gaps);
    Trace {
        name: format!("generated (jobs={}, seed={}, procs={})", recipe.jobs, recipe.seed, recipe.procs),
        jobs,
        users: (1..=users).map(|n| format!("user{n}")).collect(),
        groups: (1..=8).map(|n| format!("group{n}")).collect(),
        max_procs: Some(recipe.procs),
        ..Trace::default()
    }
}

fn program(random: &mut Random, procs: u32) -> Program {
    let cpus = size(random, procs);
    let share = (SHORT_SHARE.0 * f64::from(cpus) + SHORT_SHARE.1).clamp(0.05, 0.95);
    let (shape, scale) = if random.chance(share) { SHORT } else { LONG };
    let run = random.gamma(shape, scale).exp().clamp(1.0, LONGEST_RUN);
    // Some write the largest value, most some multiple of what they expect.
    let asked = if random.chance(0.1) { LONGEST_RUN } else { run * random.between(1.0, 8.0) + 60.0 };
    let minutes = ROUND.iter().copied().find(|m| (*m * 60) as f64 >= asked).unwrap_or(ROUND[ROUND.len() - 1]);
    Program { cpus, run, requested: minutes * 60 }
}

fn size(random: &mut Random, procs: u32) -> u32 {
    if procs < 2 || random.chance(SERIAL) {
        return 1;
    }
    let top = f64::from(procs).log2();
    let low = SIZE_LOW.min(top);
    let middle = (top - SIZE_MIDDLE_BELOW_TOP).max(low);
    let log = if random.chance(SIZE_SMALLER) { random.between(low, middle) } else { random.between(middle, top) };
    let size = if random.chance(POWER_OF_TWO) { log.round().exp2() } else { log.exp2().round() };
    (size as u32).clamp(1, procs)
}

/// Sums of the users' shares: the n-th most active submits 1/n of what the first does.
fn zipf(users: usize) -> Vec<f64> {
    let total: f64 = (1..=users).map(|n| 1.0 / n as f64).sum();
    let mut sum = 0.0;
    (1..=users)
        .map(|n| {
            sum += 1.0 / n as f64 / total;
            sum
        })
        .collect()
}

/// Lays the gaps into days: a slot with twice the weight passes twice as much of them.
fn arrive(jobs: &mut [TraceJob], gaps: &[f64]) {
    let weights = day();
    let (mut slot, mut left, mut clock) = (16usize, weights[16] * SLOT_SECS, 0.0);
    for (job, gap) in jobs.iter_mut().zip(gaps) {
        job.submit = clock as i64;
        let mut gap = *gap;
        while gap > left {
            gap -= left;
            clock += left / weights[slot];
            slot = (slot + 1) % SLOTS;
            left = weights[slot] * SLOT_SECS;
        }
        left -= gap;
        clock += gap / weights[slot];
    }
}

/// Weights with mean 1: the gamma density of arrivals over the day, with a floor for the small hours.
fn day() -> [f64; SLOTS] {
    let mut weights = [0.0; SLOTS];
    for (slot, weight) in weights.iter_mut().enumerate() {
        let x = ((slot + SLOTS - DAY_SHIFT) % SLOTS) as f64 + 0.5;
        *weight = ((DAY.0 - 1.0) * x.ln() - x / DAY.1).exp();
    }
    let mean = weights.iter().sum::<f64>() / SLOTS as f64;
    weights.iter_mut().for_each(|w| *w = *w / mean * 0.9 + 0.1);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_recipe_makes_the_same_trace() {
        let recipe = Recipe { jobs: 500, seed: 3, procs: 64, load: Some(0.8) };
        assert_eq!(generate(&recipe).jobs, generate(&recipe).jobs);
        assert_ne!(generate(&recipe).jobs, generate(&Recipe { seed: 4, ..recipe }).jobs);
    }

    #[test]
    fn jobs_fit_the_machine_and_the_load_is_what_was_asked_for() {
        let recipe = Recipe { jobs: 5000, seed: 1, procs: 128, load: Some(0.7) };
        let trace = generate(&recipe);
        assert_eq!(trace.jobs.len(), 5000);
        assert!(trace.jobs.is_sorted_by_key(|j| j.submit));
        assert!(trace.jobs.iter().all(|j| (1..=128).contains(&j.cpus) && 0 < j.run && j.run <= j.requested));
        let work: i64 = trace.jobs.iter().map(|j| j.run * i64::from(j.cpus)).sum();
        let load = work as f64 / (trace.jobs[4999].submit * 128) as f64;
        assert!((load - 0.7).abs() < 0.05, "{load}");
        let serial = trace.jobs.iter().filter(|j| j.cpus == 1).count();
        assert!((1000..2500).contains(&serial), "{serial} serial jobs");
    }

    #[test]
    fn a_recipe_names_what_is_wrong_with_it() {
        assert_eq!(
            Recipe::parse("jobs=10,seed=2,procs=8,load=0.5"),
            Ok(Recipe { jobs: 10, seed: 2, procs: 8, load: Some(0.5) })
        );
        for (bad, names) in [("jobs=0", "jobs"), ("load=x", "load"), ("colour=red", "colour"), ("procs", "procs")] {
            let message = Recipe::parse(bad).unwrap_err();
            assert!(message.contains(names) && message.contains("allowed"), "{message}");
        }
    }
}
