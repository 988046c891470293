//! The `[preemption]` section: who may take resources from running jobs, and what becomes of those.
//!
//! Owns the words. What they mean for a pair of jobs is worked out by the engine.

use super::fields::{Field, quote};
use super::reader::Section;
use crate::accounting::PreemptMode;
use crate::time::format_elapsed_long;
use std::time::Duration;

/// Who may preempt whom (PreemptType).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PreemptKind {
    /// Nobody.
    #[default]
    None,
    /// A job those of the QOS that its QOS lists.
    Qos,
    /// A job those in partitions of a lower PriorityTier.
    PartitionPrio,
}

impl PreemptKind {
    pub const ALL: [PreemptKind; 3] = [PreemptKind::None, PreemptKind::Qos, PreemptKind::PartitionPrio];
    /// In the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            PreemptKind::None => "none",
            PreemptKind::Qos => "qos",
            PreemptKind::PartitionPrio => "partition_prio",
        }
    }
    /// As Slurm names it.
    pub fn plugin(self) -> &'static str {
        match self {
            PreemptKind::None => "(null)",
            PreemptKind::Qos => "preempt/qos",
            PreemptKind::PartitionPrio => "preempt/partition_prio",
        }
    }
    /// With or without Slurm's `preempt/`.
    pub fn parse(text: &str) -> Option<PreemptKind> {
        let text = text.strip_prefix("preempt/").unwrap_or(text);
        PreemptKind::ALL.into_iter().find(|k| k.as_str().eq_ignore_ascii_case(text))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PreemptionConfig {
    pub kind: PreemptKind,
    /// What is done with victims whose QOS or partition says nothing. Never `Cluster` or `Gang`.
    pub mode: Mode,
    /// Jobs of one QOS may preempt each other, by priority (WITHIN).
    pub within: bool,
    /// A job must have run so long before it can be preempted (PreemptExemptTime).
    pub exempt_secs: u32,
}

/// What is done with a victim in the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Mode {
    #[default]
    Off,
    Cancel,
    /// Back to the queue; jobs that can't be requeued are cancelled.
    Requeue,
    /// Stopped, and resumed when its cores are free again.
    Suspend,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Off, Mode::Cancel, Mode::Requeue, Mode::Suspend];
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Cancel => "cancel",
            Mode::Requeue => "requeue",
            Mode::Suspend => "suspend",
        }
    }
    /// As `PreemptMode=` shows it.
    pub fn shown(self) -> &'static str {
        match self {
            Mode::Off => "OFF",
            Mode::Cancel => "CANCEL",
            Mode::Requeue => "REQUEUE",
            Mode::Suspend => "GANG,SUSPEND",
        }
    }
    /// One mode; `gang` beside `suspend` says what is done anyway, and alone it is no mode of preemption.
    pub fn parse(text: &str) -> Option<Mode> {
        let mut words: Vec<String> = text.split(',').map(|w| w.trim().to_ascii_lowercase()).collect();
        if words.len() > 1 && words.iter().any(|w| w == "suspend") {
            words.retain(|w| w != "gang");
        }
        let [word] = &words[..] else { return None };
        Mode::ALL.into_iter().find(|m| m.as_str() == word)
    }
    /// Stable on disk.
    pub fn code(self) -> u32 {
        self as u32
    }
    pub fn from_code(code: u32) -> Option<Mode> {
        Mode::ALL.into_iter().find(|m| m.code() == code)
    }
    /// What a QOS says; None: what the cluster says.
    pub fn of_qos(mode: PreemptMode) -> Option<Mode> {
        match mode {
            PreemptMode::Cluster => None,
            PreemptMode::Cancel => Some(Mode::Cancel),
            PreemptMode::Requeue => Some(Mode::Requeue),
            PreemptMode::Suspend | PreemptMode::Gang => Some(Mode::Suspend),
            PreemptMode::Off => Some(Mode::Off),
        }
    }
}

const YEAR: u32 = 365 * 86_400;

/// A mode; a problem of the key where it is none.
pub(super) fn mode(s: &mut Section<'_, '_, '_>, key: &'static str) -> Option<Mode> {
    let text = s.text(key)?;
    let found = Mode::parse(&text);
    if found.is_none() {
        s.problem(key, format!("expected off, cancel, requeue or suspend, found \"{text}\""));
    }
    found
}

pub(super) fn read(mut s: Section<'_, '_, '_>) -> PreemptionConfig {
    let kind = s.text("type").and_then(|text| {
        let found = PreemptKind::parse(&text);
        if found.is_none() {
            s.problem("type", format!("expected none, qos or partition_prio, found \"{text}\""));
        }
        found
    });
    let out = PreemptionConfig {
        kind: kind.unwrap_or_default(),
        mode: mode(&mut s, "mode").unwrap_or_default(),
        within: s.boolean("within").unwrap_or(false),
        exempt_secs: s.seconds("exempt_time", 0..=YEAR).unwrap_or(0),
    };
    if out.kind != PreemptKind::None && kind.is_some() && out.mode == Mode::Off {
        s.problem("mode", "preemption needs a mode: cancel, requeue or suspend");
    }
    if out.kind == PreemptKind::None && out.mode != Mode::Off {
        s.problem("mode", "has no effect without a type: qos or partition_prio");
    }
    if out.within && out.kind != PreemptKind::Qos {
        s.problem("within", "needs type = \"qos\"");
    }
    s.finish();
    out
}

pub(super) fn fields(p: &PreemptionConfig) -> Vec<Field> {
    let PreemptionConfig { kind, mode, within, exempt_secs } = p;
    vec![
        ("type", Some(quote(kind.as_str()))),
        ("mode", Some(quote(mode.as_str()))),
        ("within", Some(within.to_string())),
        ("exempt_time", Some(quote(&format_elapsed_long(Duration::from_secs(u64::from(*exempt_secs)))))),
    ]
}
