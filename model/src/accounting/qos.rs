//! Quality of service: priority, limits, and who may preempt whom.

use super::NORMAL_QOS;
use super::limits::Limits;
use crate::error::ParseError;
use std::collections::BTreeSet;
use std::fmt;

/// A decimal number such as `1.500000`, exact to millionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Factor(pub u64);

impl Factor {
    pub const ONE: Factor = Factor(1_000_000);

    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Digits with an optional fraction; more than six decimals are cut. At most a million.
    pub fn parse(text: &str) -> Result<Factor, ParseError> {
        let fail = || ParseError::new("factor", text, "a number such as 1.5, from 0 to 1000000");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let whole = if whole.is_empty() { Some(0) } else { crate::error::digits(whole, 1_000_000) };
        if text.is_empty() || fraction.len() > 18 || !fraction.bytes().all(|b| b.is_ascii_digit()) || text == "." {
            return Err(fail());
        }
        let six: String = fraction.chars().chain("000000".chars()).take(6).collect();
        let (Some(whole), Ok(six)) = (whole, six.parse::<u64>()) else { return Err(fail()) };
        Ok(Factor(whole * 1_000_000 + six))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000))
    }
}

/// What is done with a victim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum PreemptMode {
    /// The cluster's mode.
    #[default]
    Cluster,
    Cancel,
    Requeue,
    Suspend,
    Gang,
    /// Off for this QOS.
    Off,
}

impl PreemptMode {
    pub const ALL: [PreemptMode; 6] = [
        PreemptMode::Cluster,
        PreemptMode::Cancel,
        PreemptMode::Requeue,
        PreemptMode::Suspend,
        PreemptMode::Gang,
        PreemptMode::Off,
    ];
    /// As sacctmgr prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            PreemptMode::Cluster => "cluster",
            PreemptMode::Cancel => "cancel",
            PreemptMode::Requeue => "requeue",
            PreemptMode::Suspend => "suspend",
            PreemptMode::Gang => "gang",
            PreemptMode::Off => "off",
        }
    }
    pub fn parse(text: &str) -> Option<PreemptMode> {
        PreemptMode::ALL.into_iter().find(|m| m.as_str().eq_ignore_ascii_case(text))
    }
    /// Stable on the wire and on disk.
    pub fn code(self) -> u32 {
        self as u32
    }
    pub fn from_code(code: u32) -> Option<PreemptMode> {
        PreemptMode::ALL.into_iter().find(|m| m.code() == code)
    }
}

/// What a QOS enforces or overrides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QosFlag {
    DenyOnLimit,
    EnforceUsageThreshold,
    NoDecay,
    NoReserve,
    OverPartQos,
    PartitionMaxNodes,
    PartitionMinNodes,
    PartitionTimeLimit,
    Relative,
    RequiresReservation,
    UsageFactorSafe,
}

impl QosFlag {
    /// In the order of the codes.
    pub const ALL: [QosFlag; 11] = [
        QosFlag::DenyOnLimit,
        QosFlag::EnforceUsageThreshold,
        QosFlag::NoDecay,
        QosFlag::NoReserve,
        QosFlag::OverPartQos,
        QosFlag::PartitionMaxNodes,
        QosFlag::PartitionMinNodes,
        QosFlag::PartitionTimeLimit,
        QosFlag::Relative,
        QosFlag::RequiresReservation,
        QosFlag::UsageFactorSafe,
    ];
    pub fn as_str(self) -> &'static str {
        match self {
            QosFlag::DenyOnLimit => "DenyOnLimit",
            QosFlag::EnforceUsageThreshold => "EnforceUsageThreshold",
            QosFlag::NoDecay => "NoDecay",
            QosFlag::NoReserve => "NoReserve",
            QosFlag::OverPartQos => "OverPartQOS",
            QosFlag::PartitionMaxNodes => "PartitionMaxNodes",
            QosFlag::PartitionMinNodes => "PartitionMinNodes",
            QosFlag::PartitionTimeLimit => "PartitionTimeLimit",
            QosFlag::Relative => "Relative",
            QosFlag::RequiresReservation => "RequiresReservation",
            QosFlag::UsageFactorSafe => "UsageFactorSafe",
        }
    }
    /// In any case. `RequiresRes` is what older releases print.
    pub fn parse(text: &str) -> Option<QosFlag> {
        if text.eq_ignore_ascii_case("RequiresRes") {
            return Some(QosFlag::RequiresReservation);
        }
        QosFlag::ALL.into_iter().find(|f| f.as_str().eq_ignore_ascii_case(text))
    }
    /// Stable on the wire and on disk.
    pub fn code(self) -> u32 {
        self as u32 + 1
    }
    pub fn from_code(code: u32) -> Option<QosFlag> {
        QosFlag::ALL.into_iter().find(|f| f.code() == code)
    }
}

/// One quality of service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Qos {
    /// Never given twice.
    pub id: u32,
    pub name: String,
    pub description: String,
    pub priority: u32,
    pub flags: BTreeSet<QosFlag>,
    /// A victim's time between warning and end.
    pub grace_secs: u32,
    /// QOS whose jobs it may preempt.
    pub preempt: BTreeSet<String>,
    /// What is done with jobs of this QOS when they are preempted.
    pub preempt_mode: PreemptMode,
    /// Its jobs may preempt each other, by priority (WITHIN).
    pub preempt_within: bool,
    /// A job must have run so long before it can be preempted; None: the cluster's time.
    pub preempt_exempt_secs: Option<u32>,
    /// Usage is multiplied by it.
    pub usage_factor: Factor,
    /// Least fair-share factor of a job's association.
    pub usage_threshold: Option<Factor>,
    /// Multiplies the associations' group limits.
    pub limit_factor: Option<Factor>,
    pub limits: Limits,
}

impl Qos {
    /// With Slurm's defaults.
    pub fn new(id: u32, name: &str) -> Qos {
        Qos {
            id,
            name: name.to_owned(),
            description: name.to_owned(),
            priority: 0,
            flags: BTreeSet::new(),
            grace_secs: 0,
            preempt: BTreeSet::new(),
            preempt_mode: PreemptMode::Cluster,
            preempt_within: false,
            preempt_exempt_secs: None,
            usage_factor: Factor::ONE,
            usage_threshold: None,
            limit_factor: None,
            limits: Limits::default(),
        }
    }

    /// The one that exists from the start.
    pub fn normal() -> Qos {
        Qos { description: "Normal QOS default".to_owned(), ..Qos::new(1, NORMAL_QOS) }
    }

    pub fn has(&self, flag: QosFlag) -> bool {
        self.flags.contains(&flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_exact_to_millionths() {
        for (text, printed) in [("1", "1.000000"), ("0.5", "0.500000"), (".25", "0.250000"), ("2.1234567", "2.123456")]
        {
            assert_eq!(Factor::parse(text).unwrap().to_string(), printed);
        }
        for bad in ["", ".", "-1", "1.x", "1e3", "x", "1000001", "1.2.3"] {
            assert!(Factor::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn flags_and_modes_read_back() {
        for f in QosFlag::ALL {
            assert_eq!(QosFlag::parse(&f.as_str().to_uppercase()), Some(f));
            assert_eq!(QosFlag::from_code(f.code()), Some(f));
        }
        for m in PreemptMode::ALL {
            assert_eq!(PreemptMode::parse(m.as_str()), Some(m));
            assert_eq!(PreemptMode::from_code(m.code()), Some(m));
        }
    }
}
