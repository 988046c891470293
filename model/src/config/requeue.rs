//! `[requeue]`: after which failures a batch job goes back to the queue, how long it waits then, and when it is held.
//!
//! Owns the rule of back-off: each further failure of the same cause in a row waits twice as long, up to a longest wait,
//! and after so many the job is held (slurm.conf: RequeueExit, RequeueExitHold, MaxBatchRequeue; the causes are ours).

use super::LimitsConfig;
use super::TimingConfig;
use super::fields::{Field, quote};
use super::reader::Section;
use crate::index_set::IndexSet;
use crate::state::ExitStatus;

/// Why a job is put back by the cluster, not by somebody who asked for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RequeueCause {
    /// One of its nodes was lost.
    NodeFailure,
    /// A node could not start its script.
    LaunchFailure,
    /// Its script ended with one of `exit_codes`.
    ExitCode,
    /// A job of a higher rank took its resources.
    Preemption,
}

impl RequeueCause {
    pub const ALL: [RequeueCause; 4] =
        [RequeueCause::NodeFailure, RequeueCause::LaunchFailure, RequeueCause::ExitCode, RequeueCause::Preemption];

    /// As its section of the file is called: `[requeue.node_failure]`.
    pub fn as_str(self) -> &'static str {
        match self {
            RequeueCause::NodeFailure => "node_failure",
            RequeueCause::LaunchFailure => "launch_failure",
            RequeueCause::ExitCode => "exit_code",
            RequeueCause::Preemption => "preemption",
        }
    }

    fn section(self) -> &'static str {
        match self {
            RequeueCause::NodeFailure => "requeue.node_failure",
            RequeueCause::LaunchFailure => "requeue.launch_failure",
            RequeueCause::ExitCode => "requeue.exit_code",
            RequeueCause::Preemption => "requeue.preemption",
        }
    }
}

/// What holds for one cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RequeueRule {
    /// Times in a row before the job is held. None: `limits.max_requeue`; for preemption, which is no fault of the job, any
    /// number.
    pub retries: Option<u32>,
    /// The first wait, seconds. None: `timing.requeue_delay_secs`.
    pub delay_secs: Option<u32>,
    /// No wait is longer, seconds. None: 15 minutes, or the first wait where that is longer; for preemption the first wait.
    pub longest_delay_secs: Option<u32>,
}

/// What `longest_delay_secs` is where nothing is said.
const LONGEST_SECS: u32 = 900;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequeueConfig {
    /// Exit codes after which a batch job goes back to the queue (RequeueExit).
    pub exit_codes: IndexSet,
    /// Exit codes after which it does, held in the state SPECIAL_EXIT (RequeueExitHold).
    pub hold_exit_codes: IndexSet,
    /// In the order of `RequeueCause::ALL`.
    pub rules: [RequeueRule; 4],
}

/// What becomes of a batch job that ended by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterExit {
    Ends,
    Requeued,
    RequeuedHeld,
}

impl RequeueConfig {
    pub fn after_exit(&self, exit: ExitStatus) -> AfterExit {
        let code = u32::from(exit.code);
        match exit.signal {
            0 if self.hold_exit_codes.contains(code) => AfterExit::RequeuedHeld,
            0 if self.exit_codes.contains(code) => AfterExit::Requeued,
            _ => AfterExit::Ends,
        }
    }

    pub fn rule(&self, cause: RequeueCause) -> RequeueRule {
        self.rules[cause as usize]
    }

    /// How often in a row the cause may put a job back; None for any number.
    pub fn retries(&self, cause: RequeueCause, limits: &LimitsConfig) -> Option<u32> {
        let otherwise = (cause != RequeueCause::Preemption).then_some(limits.max_requeue);
        self.rule(cause).retries.or(otherwise)
    }

    /// Seconds that a job waits after the cause's `nth` time in a row (1 for the first).
    pub fn delay_secs(&self, cause: RequeueCause, nth: u32, timing: &TimingConfig) -> u32 {
        let rule = self.rule(cause);
        let first = rule.delay_secs.unwrap_or(timing.requeue_delay_secs);
        let otherwise = if cause == RequeueCause::Preemption { first } else { first.max(LONGEST_SECS) };
        let longest = rule.longest_delay_secs.unwrap_or(otherwise);
        let doublings = nth.saturating_sub(1).min(31);
        let wait = u64::from(first) << doublings;
        u32::try_from(wait).unwrap_or(u32::MAX).min(longest)
    }
}

pub(super) fn read(mut s: Section<'_, '_, '_>) -> RequeueConfig {
    let mut codes = |key: &'static str| {
        let text = s.text(key)?;
        if text.is_empty() {
            return None;
        }
        let set = IndexSet::parse(&text, 256).ok().map(|(set, _)| set).filter(|set| !set.contains(0));
        if set.is_none() {
            let shown: String = text.chars().take(40).collect();
            s.problem(key, format!("'{shown}' is no list of exit codes from 1 to 255, such as \"1-9,18\""));
        }
        set
    };
    let exit_codes = codes("exit_codes").unwrap_or_default();
    let hold_exit_codes = codes("hold_exit_codes").unwrap_or_default();
    let rules = RequeueCause::ALL.map(|cause| s.subsection(cause.as_str(), read_rule).unwrap_or_default());
    s.finish();
    RequeueConfig { exit_codes, hold_exit_codes, rules }
}

fn read_rule(s: &mut Section<'_, '_, '_>) -> RequeueRule {
    const DAY: u32 = 86_400;
    let rule = RequeueRule {
        retries: s.number("retries", 0..=1_000_000),
        delay_secs: s.number("delay_secs", 0..=DAY),
        longest_delay_secs: s.number("longest_delay_secs", 0..=7 * DAY),
    };
    if let (Some(first), Some(longest)) = (rule.delay_secs, rule.longest_delay_secs)
        && longest < first
    {
        s.problem("longest_delay_secs", format!("{longest} is less than delay_secs ({first})"));
    }
    rule
}

/// The section, and one for each cause about which something is said.
pub(super) fn fields(c: &RequeueConfig) -> Vec<(&'static str, Vec<Field>)> {
    let codes = |set: &IndexSet| Some(quote(&set.plain().to_string()));
    let mut out =
        vec![("requeue", vec![("exit_codes", codes(&c.exit_codes)), ("hold_exit_codes", codes(&c.hold_exit_codes))])];
    let number = |n: Option<u32>| n.map(|n| n.to_string());
    out.extend(RequeueCause::ALL.map(|cause| {
        let RequeueRule { retries, delay_secs, longest_delay_secs } = c.rule(cause);
        let fields = vec![
            ("retries", number(retries)),
            ("delay_secs", number(delay_secs)),
            ("longest_delay_secs", number(longest_delay_secs)),
        ];
        (cause.section(), fields)
    }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_in_a_row_waits_twice_as_long_up_to_the_longest_wait() {
        let timing = TimingConfig { requeue_delay_secs: 2, ..TimingConfig::default() };
        let mut c = RequeueConfig::default();
        let waits = |c: &RequeueConfig, cause| [1, 2, 3, 10, 40].map(|nth| c.delay_secs(cause, nth, &timing));
        assert_eq!(waits(&c, RequeueCause::NodeFailure), [2, 4, 8, 900, 900]);
        assert_eq!(waits(&c, RequeueCause::Preemption), [2; 5]);
        c.rules[RequeueCause::ExitCode as usize] =
            RequeueRule { retries: Some(9), delay_secs: Some(60), longest_delay_secs: Some(100) };
        assert_eq!(waits(&c, RequeueCause::ExitCode), [60, 100, 100, 100, 100]);
        assert_eq!(c.retries(RequeueCause::ExitCode, &LimitsConfig::default()), Some(9));
        assert_eq!(c.retries(RequeueCause::NodeFailure, &LimitsConfig::default()), Some(5));
        assert_eq!(c.retries(RequeueCause::Preemption, &LimitsConfig::default()), None);
    }
}
