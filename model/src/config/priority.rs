//! The `[priority]` section: what makes one job go before another (slurm.conf, Priority…).
//!
//! Owns its values, their reading and their printing. What they mean for a job is `sluice_sched::priority`.

use super::fields::{Field, list, quote};
use super::reader::Section;
use crate::time::{Time, format_elapsed_long};
use crate::tres_weights::TresWeights;
use jiff::tz::TimeZone;
use std::time::Duration;

/// How the queue is ordered (PriorityType).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PriorityKind {
    /// First come, first served (priority/basic).
    Fifo,
    /// Smaller jobs first, within a budget of being overtaken (`sluice_sched::overtaking`).
    #[default]
    SmallestFirst,
    /// Slurm's weighted sum of factors (priority/multifactor).
    Multifactor,
}

impl PriorityKind {
    pub const ALL: &'static [PriorityKind] =
        &[PriorityKind::SmallestFirst, PriorityKind::Fifo, PriorityKind::Multifactor];

    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            PriorityKind::SmallestFirst => "smallest_first",
            PriorityKind::Fifo => "fifo",
            PriorityKind::Multifactor => "multifactor",
        }
    }
    /// As `scontrol show config` says it.
    pub fn plugin(self) -> &'static str {
        match self {
            PriorityKind::SmallestFirst => "priority/smallest_first",
            PriorityKind::Fifo => "priority/basic",
            PriorityKind::Multifactor => "priority/multifactor",
        }
    }
    /// The word of the configuration, or Slurm's.
    pub fn parse(text: &str) -> Option<PriorityKind> {
        let same = |k: &&PriorityKind| text.eq_ignore_ascii_case(k.as_str()) || text.eq_ignore_ascii_case(k.plugin());
        PriorityKind::ALL.iter().find(same).copied()
    }
}

/// When all usage is forgotten at once (PriorityUsageResetPeriod), at midnight of the controller's time zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UsageReset {
    #[default]
    None,
    /// When the controller reads this setting: at its start, and when the configuration is read again.
    Now,
    Daily,
    /// On Sundays.
    Weekly,
    Monthly,
    Quarterly,
    Yearly,
}

impl UsageReset {
    pub const ALL: &'static [UsageReset] = &[
        UsageReset::None,
        UsageReset::Now,
        UsageReset::Daily,
        UsageReset::Weekly,
        UsageReset::Monthly,
        UsageReset::Quarterly,
        UsageReset::Yearly,
    ];
    pub fn as_str(self) -> &'static str {
        match self {
            UsageReset::None => "NONE",
            UsageReset::Now => "NOW",
            UsageReset::Daily => "DAILY",
            UsageReset::Weekly => "WEEKLY",
            UsageReset::Monthly => "MONTHLY",
            UsageReset::Quarterly => "QUARTERLY",
            UsageReset::Yearly => "YEARLY",
        }
    }
    /// The last midnight, up to now, at which all usage is forgotten; None: there is none.
    pub fn last_due(self, now: Time, tz: &TimeZone) -> Option<Time> {
        let date = jiff::Timestamp::from_millisecond(now.0).ok()?.to_zoned(tz.clone()).date();
        let first = match self {
            UsageReset::None | UsageReset::Now => return None,
            UsageReset::Daily => date,
            UsageReset::Weekly => {
                let days = i64::from(date.weekday().to_sunday_zero_offset());
                date.checked_sub(jiff::Span::new().days(days)).ok()?
            }
            UsageReset::Monthly => date.first_of_month(),
            UsageReset::Quarterly => jiff::civil::Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).ok()?,
            UsageReset::Yearly => date.first_of_year(),
        };
        Some(Time(first.to_zoned(tz.clone()).ok()?.timestamp().as_millisecond()))
    }
    /// Whether all usage is to be forgotten now: a period has begun since that was `last` done, or since the controller
    /// `started` where it never was. With NOW it is due once at each start.
    pub fn is_due(self, last: Option<Time>, started: Time, now: Time, tz: &TimeZone) -> bool {
        match self {
            UsageReset::Now => last.is_none_or(|last| last < started),
            _ => self.last_due(now, tz).is_some_and(|due| due > last.unwrap_or(started)),
        }
    }
    pub fn parse(text: &str) -> Option<UsageReset> {
        UsageReset::ALL.iter().find(|r| r.as_str().eq_ignore_ascii_case(text)).copied()
    }
}

/// PriorityFlags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PriorityFlags(u32);

const FLAGS: &[(&str, PriorityFlags)] = &[
    ("ACCRUE_ALWAYS", PriorityFlags::ACCRUE_ALWAYS),
    ("CALCULATE_RUNNING", PriorityFlags::CALCULATE_RUNNING),
    ("DEPTH_OBLIVIOUS", PriorityFlags::DEPTH_OBLIVIOUS),
    ("INCR_ONLY", PriorityFlags::INCR_ONLY),
    ("MAX_TRES", PriorityFlags::MAX_TRES),
    ("NO_FAIR_TREE", PriorityFlags::NO_FAIR_TREE),
    ("NO_NORMAL_ASSOC", PriorityFlags::NO_NORMAL_ASSOC),
    ("NO_NORMAL_PART", PriorityFlags::NO_NORMAL_PART),
    ("NO_NORMAL_QOS", PriorityFlags::NO_NORMAL_QOS),
    ("NO_NORMAL_TRES", PriorityFlags::NO_NORMAL_TRES),
    ("SMALL_RELATIVE_TO_TIME", PriorityFlags::SMALL_RELATIVE_TO_TIME),
];

impl PriorityFlags {
    pub const ACCRUE_ALWAYS: PriorityFlags = PriorityFlags(1);
    pub const CALCULATE_RUNNING: PriorityFlags = PriorityFlags(1 << 1);
    pub const DEPTH_OBLIVIOUS: PriorityFlags = PriorityFlags(1 << 2);
    pub const INCR_ONLY: PriorityFlags = PriorityFlags(1 << 3);
    pub const MAX_TRES: PriorityFlags = PriorityFlags(1 << 4);
    pub const NO_FAIR_TREE: PriorityFlags = PriorityFlags(1 << 5);
    pub const NO_NORMAL_ASSOC: PriorityFlags = PriorityFlags(1 << 6);
    pub const NO_NORMAL_PART: PriorityFlags = PriorityFlags(1 << 7);
    pub const NO_NORMAL_QOS: PriorityFlags = PriorityFlags(1 << 8);
    pub const NO_NORMAL_TRES: PriorityFlags = PriorityFlags(1 << 9);
    pub const SMALL_RELATIVE_TO_TIME: PriorityFlags = PriorityFlags(1 << 10);
    pub const NO_NORMAL_ALL: PriorityFlags = PriorityFlags(0b1111 << 6);

    pub fn has(self, flag: PriorityFlags) -> bool {
        self.0 & flag.0 == flag.0
    }
    #[must_use]
    pub fn with(self, flag: PriorityFlags) -> PriorityFlags {
        PriorityFlags(self.0 | flag.0)
    }
    /// The flags' names, sorted.
    pub fn names(self) -> Vec<&'static str> {
        FLAGS.iter().filter(|(_, f)| self.has(*f)).map(|(name, _)| *name).collect()
    }
    /// One flag, in any case; NO_NORMAL_ALL and FAIR_TREE (the default) are understood.
    pub fn parse(text: &str) -> Option<PriorityFlags> {
        if text.eq_ignore_ascii_case("NO_NORMAL_ALL") {
            return Some(PriorityFlags::NO_NORMAL_ALL);
        }
        if text.eq_ignore_ascii_case("FAIR_TREE") {
            return Some(PriorityFlags(0));
        }
        FLAGS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, flag)| *flag)
    }
}

/// `[priority]`. Weights are those of slurm.conf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PriorityConfig {
    pub kind: PriorityKind,
    pub weight_age: u32,
    pub weight_assoc: u32,
    pub weight_fairshare: u32,
    pub weight_job_size: u32,
    pub weight_partition: u32,
    pub weight_qos: u32,
    pub weight_tres: TresWeights,
    /// A job that has waited so long has all of the age factor.
    pub max_age_secs: u32,
    pub favor_small: bool,
    /// Half of all usage is forgotten after so long; 0: nothing is.
    pub decay_half_life_secs: u32,
    pub usage_reset: UsageReset,
    /// How often priorities are computed anew.
    pub calc_period_secs: u32,
    /// PriorityFairShareDampeningFactor, where Fair Tree is off.
    pub dampening_factor: u32,
    pub flags: PriorityFlags,
    /// Smallest first: a job's length is what its user's earlier runs make probable, instead of its time limit.
    pub predictions: bool,
}

/// Slurm's defaults, but for the order.
impl Default for PriorityConfig {
    fn default() -> Self {
        PriorityConfig {
            kind: PriorityKind::default(),
            weight_age: 0,
            weight_assoc: 0,
            weight_fairshare: 0,
            weight_job_size: 0,
            weight_partition: 0,
            weight_qos: 0,
            weight_tres: TresWeights::default(),
            max_age_secs: 7 * 86_400,
            favor_small: false,
            decay_half_life_secs: 7 * 86_400,
            usage_reset: UsageReset::None,
            calc_period_secs: 300,
            dampening_factor: 1,
            flags: PriorityFlags::default(),
            predictions: true,
        }
    }
}

const TEN_YEARS: u32 = 3650 * 86_400;

pub(super) fn read(mut s: Section<'_, '_, '_>) -> PriorityConfig {
    let d = PriorityConfig::default();
    let kind = s.text("type").and_then(|text| {
        let found = PriorityKind::parse(&text);
        if found.is_none() {
            let words: Vec<&str> = PriorityKind::ALL.iter().map(|k| k.as_str()).collect();
            s.problem("type", format!("expected one of {}, found \"{text}\"", words.join(", ")));
        }
        found
    });
    let weight = |s: &mut Section<'_, '_, '_>, key| s.number(key, 0..=u32::MAX - 1).unwrap_or(0);
    let out = PriorityConfig {
        kind: kind.unwrap_or(d.kind),
        weight_age: weight(&mut s, "weight_age"),
        weight_assoc: weight(&mut s, "weight_assoc"),
        weight_fairshare: weight(&mut s, "weight_fairshare"),
        weight_job_size: weight(&mut s, "weight_job_size"),
        weight_partition: weight(&mut s, "weight_partition"),
        weight_qos: weight(&mut s, "weight_qos"),
        weight_tres: tres_weights(&mut s, "weight_tres"),
        max_age_secs: s.seconds("max_age", 1..=TEN_YEARS).unwrap_or(d.max_age_secs),
        favor_small: s.boolean("favor_small").unwrap_or(d.favor_small),
        decay_half_life_secs: s.seconds("decay_half_life", 0..=TEN_YEARS).unwrap_or(d.decay_half_life_secs),
        usage_reset: reset(&mut s).unwrap_or_default(),
        calc_period_secs: s.seconds("calc_period", 1..=86_400).unwrap_or(d.calc_period_secs),
        dampening_factor: s.number("dampening_factor", 1..=65_533).unwrap_or(d.dampening_factor),
        flags: flags(&mut s),
        predictions: s.boolean("predictions").unwrap_or(d.predictions),
    };
    if out.kind != PriorityKind::SmallestFirst && s.has("predictions") {
        s.problem("predictions", "only type smallest_first goes by run times");
    }
    if out.decay_half_life_secs == 0 && s.has("decay_half_life") && out.usage_reset == UsageReset::None {
        s.problem("decay_half_life", "0 needs usage_reset_period: usage would grow for ever");
    }
    s.finish();
    out
}

/// Weights by resource; a problem of the key where they can't be read.
pub(super) fn tres_weights(s: &mut Section<'_, '_, '_>, key: &'static str) -> TresWeights {
    let Some(text) = s.text(key) else { return TresWeights::default() };
    let weights = TresWeights::parse(&text);
    s.parsed(key, weights).unwrap_or_default()
}

fn reset(s: &mut Section<'_, '_, '_>) -> Option<UsageReset> {
    let text = s.text("usage_reset_period")?;
    let found = UsageReset::parse(&text);
    if found.is_none() {
        let words: Vec<&str> = UsageReset::ALL.iter().map(|r| r.as_str()).collect();
        s.problem("usage_reset_period", format!("expected one of {}, found \"{text}\"", words.join(", ")));
    }
    found
}

fn flags(s: &mut Section<'_, '_, '_>) -> PriorityFlags {
    let mut all = PriorityFlags::default();
    for word in s.words("flags") {
        match PriorityFlags::parse(&word) {
            Some(flag) => all = all.with(flag),
            None => {
                let known: Vec<&str> = FLAGS.iter().map(|(name, _)| *name).collect();
                s.problem("flags", format!("'{word}' is no priority flag; known: {}", known.join(", ")));
            }
        }
    }
    all
}

pub(super) fn fields(p: &PriorityConfig) -> Vec<Field> {
    let PriorityConfig {
        kind,
        weight_age,
        weight_assoc,
        weight_fairshare,
        weight_job_size,
        weight_partition,
        weight_qos,
        weight_tres,
        max_age_secs,
        favor_small,
        decay_half_life_secs,
        usage_reset,
        calc_period_secs,
        dampening_factor,
        flags,
        predictions,
    } = p;
    let time = |secs: u32| Some(quote(&format_elapsed_long(Duration::from_secs(u64::from(secs)))));
    let number = |n: u32| Some(n.to_string());
    vec![
        ("type", Some(quote(kind.as_str()))),
        ("weight_age", number(*weight_age)),
        ("weight_assoc", number(*weight_assoc)),
        ("weight_fairshare", number(*weight_fairshare)),
        ("weight_job_size", number(*weight_job_size)),
        ("weight_partition", number(*weight_partition)),
        ("weight_qos", number(*weight_qos)),
        ("weight_tres", Some(quote(&weight_tres.to_string()))),
        ("max_age", time(*max_age_secs)),
        ("favor_small", Some(favor_small.to_string())),
        ("decay_half_life", time(*decay_half_life_secs)),
        ("usage_reset_period", Some(quote(usage_reset.as_str()))),
        ("calc_period", time(*calc_period_secs)),
        ("dampening_factor", number(*dampening_factor)),
        ("flags", Some(list(flags.names()))),
        ("predictions", (*kind == PriorityKind::SmallestFirst).then(|| predictions.to_string())),
    ]
}
