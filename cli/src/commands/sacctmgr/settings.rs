//! Values of the keys that associations, users, accounts and QOS take, and how `add` prints them.
//!
//! Source: sacctmgr(1), "GENERAL SPECIFICATIONS", "SPECIFICATIONS FOR …".

use super::keys::Key;
use super::words::{Sign, Word, lower_set};
use sluice_model::TimeLimit;
use sluice_model::accounting::{
    AccountChange, AdminLevel, AssocChange, CountLimit, Factor, LimitsChange, ListEdit, PreemptMode, QosChange,
    QosFlag, Shares, TresKind, TresLimit, UserChange, parse_change,
};
use sluice_model::time::parse_time_limit;
use std::collections::BTreeSet;

/// All that a command may set; each entity uses its part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Changes {
    pub assoc: AssocChange,
    pub user: UserChange,
    pub account: AccountChange,
    pub qos: QosChange,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

/// Sets one key. The error is a whole line.
pub fn set(changes: &mut Changes, key: Key, of_qos: bool, word: &Word) -> Result<(), String> {
    let value = word.value.as_deref().unwrap_or_default();
    let bad = |what: &str| Err(format!("Invalid value for {what} ({value})"));
    if word.sign != Sign::Plain && !key.takes_signs() {
        return Err(format!("{}: += and -= are for lists of names", word.text));
    }
    let limits = if of_qos { &mut changes.qos.limits } else { &mut changes.assoc.limits };
    match key {
        Key::Count(limit) => count(limits, limit, value)?,
        Key::Tres(limit) => {
            let change = parse_change(value).map_err(|e| e.to_string())?;
            limits.tres.entry(limit).or_default().extend(change);
        }
        Key::One(limit, kind) => {
            let kind = TresKind::parse(kind).unwrap_or(TresKind::Cpu);
            let number = number(value).ok_or_else(|| format!("Invalid value for {} ({value})", word.key))?;
            limits.tres.entry(limit).or_default().insert(kind, number.map(u64::from));
        }
        Key::Shares => match value {
            "-1" => changes.assoc.shares = Some(None),
            _ => match Shares::parse(value) {
                Some(shares) => changes.assoc.shares = Some(Some(shares)),
                None => return bad("Fairshare"),
            },
        },
        Key::Priority if of_qos => match number(value) {
            Some(priority) => changes.qos.priority = Some(priority.unwrap_or(0)),
            None => return bad("Priority"),
        },
        Key::Priority => match number(value) {
            Some(priority) => changes.assoc.priority = Some(priority),
            None => return bad("Priority"),
        },
        Key::Qos => changes.assoc.qos.extend(qos_edits(word, value)),
        Key::DefaultQos => {
            let name = value.to_lowercase();
            changes.assoc.default_qos = Some(Some(name).filter(|n| n != "-1" && !n.is_empty()));
        }
        Key::Comment => changes.assoc.comment = Some(value.to_owned()),
        Key::AdminLevel => match AdminLevel::parse(value) {
            Some(level) => changes.user.admin_level = Some(level),
            None => return bad("AdminLevel"),
        },
        Key::DefaultAccount => changes.user.default_account = Some(value.to_lowercase()),
        Key::DefaultWckey => changes.user.default_wckey = Some(value.to_owned()),
        Key::Wckeys => changes.user.wckeys.push(edit(word, super::words::list(value).into_iter().collect())),
        Key::Description if of_qos => changes.qos.description = Some(value.to_owned()),
        Key::Description => changes.account.description = Some(value.to_owned()),
        Key::Organization => changes.account.organization = Some(value.to_owned()),
        Key::Parent => changes.account.parent = Some(value.to_lowercase()),
        Key::Flags => {
            let mut names = BTreeSet::new();
            for name in super::words::list(value).iter().filter(|n| *n != "-1") {
                match QosFlag::parse(name) {
                    Some(flag) => names.insert(flag.as_str().to_owned()),
                    None => return bad("Flags"),
                };
            }
            changes.qos.flags.push(edit(word, names));
        }
        Key::GraceTime => match seconds(value) {
            Some(secs) => changes.qos.grace_secs = Some(secs.unwrap_or(0)),
            None => return bad("GraceTime"),
        },
        Key::Preempt => changes.qos.preempt.push(edit(word, lower_set(value))),
        Key::PreemptMode => match preempt_mode(value) {
            Some((mode, within)) => {
                changes.qos.preempt_mode = Some(mode);
                changes.qos.preempt_within = Some(within);
            }
            None => return bad("PreemptMode"),
        },
        Key::PreemptExemptTime => match seconds(value) {
            Some(secs) => changes.qos.preempt_exempt_secs = Some(secs),
            None => return bad("PreemptExemptTime"),
        },
        Key::UsageFactor => changes.qos.usage_factor = Some(factor(value)?.unwrap_or(Factor::ONE)),
        Key::UsageThreshold => changes.qos.usage_threshold = Some(factor(value)?),
        Key::LimitFactor => changes.qos.limit_factor = Some(factor(value)?),
    }
    Ok(())
}

fn edit(word: &Word, names: BTreeSet<String>) -> ListEdit {
    match word.sign {
        Sign::Plain => ListEdit::Set(names),
        Sign::Add => ListEdit::Add(names),
        Sign::Remove => ListEdit::Remove(names),
    }
}

/// Names may have signs of their own: `qos=+high,-normal`, as dumps have it.
fn qos_edits(word: &Word, value: &str) -> Vec<ListEdit> {
    let names = lower_set(value);
    if word.sign != Sign::Plain || !names.iter().any(|n| n.starts_with(['+', '-'])) {
        return vec![edit(word, names)];
    }
    let with = |sign: char| names.iter().filter_map(|n| n.strip_prefix(sign).map(str::to_owned)).collect();
    let plain: BTreeSet<String> = names.iter().filter(|n| !n.starts_with(['+', '-'])).cloned().collect();
    let edits = [ListEdit::Set(plain), ListEdit::Add(with('+')), ListEdit::Remove(with('-'))];
    edits.into_iter().filter(|e| !e.names().is_empty()).collect()
}

/// `-1` clears.
fn number(value: &str) -> Option<Option<u32>> {
    if value == "-1" {
        return Some(None);
    }
    let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| value.parse::<u32>().ok()).flatten().map(Some)
}

fn count(limits: &mut LimitsChange, limit: CountLimit, value: &str) -> Result<(), String> {
    let number = if limit.is_wall() { wall(value) } else { number(value) };
    match number {
        Some(number) => limits.counts.insert(limit, number),
        None => return Err(format!("Invalid value for {} ({value})", name_of(limit, true))),
    };
    Ok(())
}

/// Minutes; `-1` and UNLIMITED clear.
fn wall(value: &str) -> Option<Option<u32>> {
    match (value, parse_time_limit(value).ok()?) {
        ("0", _) => Some(Some(0)),
        (_, TimeLimit::Minutes(m)) => Some(Some(m)),
        (_, TimeLimit::Unlimited) => Some(None),
    }
}

/// Seconds, or minutes:seconds, hours:minutes:seconds, with days before; `-1` clears.
fn seconds(value: &str) -> Option<Option<u32>> {
    if let Some(plain) = number(value) {
        return Some(plain);
    }
    let (days, clock) = value.split_once('-').map_or((Some(0), value), |(d, c)| (d.parse::<u64>().ok(), c));
    let mut total = 0u64;
    for part in clock.split(':') {
        let n = number(part)??;
        total = total.checked_mul(60)?.checked_add(u64::from(n))?;
    }
    u32::try_from(days?.checked_mul(86_400)?.checked_add(total)?).ok().map(Some)
}

fn factor(value: &str) -> Result<Option<Factor>, String> {
    if value == "-1" {
        return Ok(None);
    }
    Factor::parse(value).map(Some).map_err(|e| e.to_string())
}

/// The name under which a limit is printed.
pub fn name_of(limit: CountLimit, short: bool) -> &'static str {
    match limit {
        CountLimit::GrpJobs => "GrpJobs",
        CountLimit::GrpJobsAccrue => "GrpJobsAccrue",
        CountLimit::GrpSubmit if short => "GrpSubmit",
        CountLimit::GrpSubmit => "GrpSubmitJobs",
        CountLimit::GrpWall => "GrpWall",
        CountLimit::MaxJobs => "MaxJobs",
        CountLimit::MaxJobsAccrue => "MaxJobsAccrue",
        CountLimit::MaxSubmit if short => "MaxSubmit",
        CountLimit::MaxSubmit => "MaxSubmitJobs",
        CountLimit::MaxWall => "MaxWall",
        CountLimit::MinPrioThreshold => "MinPrioThres",
        CountLimit::MaxJobsPerUser => "MaxJobsPU",
        CountLimit::MaxJobsPerAccount => "MaxJobsPA",
        CountLimit::MaxSubmitPerUser => "MaxSubmitPU",
        CountLimit::MaxSubmitPerAccount => "MaxSubmitPA",
        CountLimit::MaxJobsAccruePerUser => "MaxJobsAccruePU",
        CountLimit::MaxJobsAccruePerAccount => "MaxJobsAccruePA",
    }
}

pub fn name_of_tres(limit: TresLimit) -> &'static str {
    match limit {
        TresLimit::Grp => "GrpTRES",
        TresLimit::GrpMins => "GrpTRESMins",
        TresLimit::GrpRunMins => "GrpTRESRunMins",
        TresLimit::MaxPerJob => "MaxTRES",
        TresLimit::MaxPerNode => "MaxTRESPerNode",
        TresLimit::MaxMinsPerJob => "MaxTRESMins",
        TresLimit::MaxRunMins => "MaxTRESRunMins",
        TresLimit::MaxPerUser => "MaxTRESPU",
        TresLimit::MaxPerAccount => "MaxTRESPA",
        TresLimit::MaxRunMinsPerUser => "MaxTRESRunMinsPU",
        TresLimit::MaxRunMinsPerAccount => "MaxTRESRunMinsPA",
        TresLimit::MinPerJob => "MinTRES",
    }
}

/// `1-00:30:00` from minutes.
pub fn wall_text(minutes: u32) -> String {
    if minutes == 0 {
        return "00:00:00".to_owned();
    }
    sluice_model::time::format_time_limit_long(TimeLimit::Minutes(minutes))
}

fn limit_lines(limits: &LimitsChange, out: &mut Vec<(&'static str, String)>) {
    for (limit, change) in &limits.tres {
        let counts = change.iter().filter_map(|(k, n)| Some((k.clone(), (*n)?))).collect();
        out.push((name_of_tres(*limit), super::values::counts(&counts)));
    }
    for (limit, value) in &limits.counts {
        let text = value.map(|v| if limit.is_wall() { wall_text(v) } else { v.to_string() });
        out.push((name_of(*limit, false), text.unwrap_or_default()));
    }
}

/// Key and value of what is set on an association, in Slurm's order.
pub fn assoc_lines(c: &AssocChange) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if let Some(Some(shares)) = c.shares {
        out.push(("Fairshare", shares.to_string()));
    }
    limit_lines(&c.limits, &mut out);
    if let Some(Some(priority)) = c.priority {
        out.push(("Priority", priority.to_string()));
    }
    for edit in &c.qos {
        let names: Vec<&str> = edit.names().iter().map(String::as_str).collect();
        let sign = match edit {
            ListEdit::Set(_) => "",
            ListEdit::Add(_) => "+",
            ListEdit::Remove(_) => "-",
        };
        out.push(("QOS", format!("{sign}{}", names.join(","))));
    }
    if let Some(Some(name)) = &c.default_qos {
        out.push(("DefQOS", name.clone()));
    }
    if let Some(comment) = &c.comment {
        out.push(("Comment", comment.clone()));
    }
    out
}

/// The same of a QOS called `name`.
pub fn qos_lines(name: &str, c: &QosChange) -> Vec<(&'static str, String)> {
    let names = |edits: &[ListEdit]| {
        let all: BTreeSet<&str> = edits.iter().flat_map(ListEdit::names).map(String::as_str).collect();
        all.into_iter().collect::<Vec<_>>().join(",")
    };
    let mut out = vec![("Description", c.description.clone().unwrap_or_else(|| name.to_owned()))];
    if !c.flags.is_empty() {
        out.push(("Flags", names(&c.flags)));
    }
    if let Some(secs) = c.grace_secs {
        out.push(("GraceTime", super::values::clock(secs)));
    }
    limit_lines(&c.limits, &mut out);
    if !c.preempt.is_empty() {
        out.push(("Preempt", names(&c.preempt)));
    }
    if let Some(mode) = c.preempt_mode {
        let within = if c.preempt_within == Some(true) { "within," } else { "" };
        out.push(("PreemptMode", format!("{within}{}", mode.as_str())));
    }
    if let Some(Some(secs)) = c.preempt_exempt_secs {
        out.push(("PreemptExemptTime", super::values::clock(secs)));
    }
    if let Some(priority) = c.priority {
        out.push(("Priority", priority.to_string()));
    }
    for (key, factor) in [
        ("UsageFactor", c.usage_factor),
        ("UsageThreshold", c.usage_threshold.flatten()),
        ("LimitFactor", c.limit_factor.flatten()),
    ] {
        out.extend(factor.map(|f| (key, f.to_string())));
    }
    out
}

/// A mode, `within` beside it or alone, and `gang` beside `suspend`.
fn preempt_mode(value: &str) -> Option<(PreemptMode, bool)> {
    let words: Vec<String> = value.split(',').map(|w| w.trim().to_ascii_lowercase()).collect();
    let within = words.iter().any(|w| w == "within");
    let gang = |w: &str| w == "gang" && words.iter().any(|w| w == "suspend");
    let modes: Vec<&String> = words.iter().filter(|w| *w != "within" && !gang(w)).collect();
    match modes[..] {
        [] => Some((PreemptMode::Cluster, within)),
        [mode] => PreemptMode::parse(mode).map(|mode| (mode, within)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::super::words::parse;
    use super::*;

    fn assoc(words: &[&str]) -> Result<Changes, String> {
        let mut changes = Changes::default();
        for word in words {
            let word = parse(word);
            let key = keys::of_associations(&word.key).unwrap_or_else(|| panic!("no key {}", word.key));
            set(&mut changes, key, false, &word)?;
        }
        Ok(changes)
    }

    #[test]
    fn times_are_minutes_and_clocks_as_in_slurm() {
        let of = |text: &str| assoc(&[text]).unwrap().assoc.limits.counts[&CountLimit::MaxWall];
        assert_eq!(of("maxwall=30:00"), Some(30));
        assert_eq!(of("MaxWallDurationPerJob=1-0"), Some(1440));
        assert_eq!(of("maxwall=100"), Some(100));
        assert_eq!(of("maxwall=-1"), None);
        assert_eq!((wall_text(100), wall_text(0)), ("01:40:00".to_owned(), "00:00:00".to_owned()));
        assert_eq!(
            (seconds("60"), seconds("1:30"), seconds("1-0:0:5"), seconds("-1")),
            (Some(Some(60)), Some(Some(90)), Some(Some(86_405)), Some(None))
        );
    }

    #[test]
    fn old_names_of_limits_are_resources() {
        let c = assoc(&["grpcpus=10", "maxnodes=4", "maxtres=cpu=8", "grpnodes=-1"]).unwrap().assoc.limits;
        assert_eq!(c.tres[&TresLimit::Grp], parse_change("cpu=10,node=-1").unwrap());
        assert_eq!(c.tres[&TresLimit::MaxPerJob], parse_change("cpu=8,node=4").unwrap());
    }

    #[test]
    fn bad_values_are_named() {
        for (word, part) in [
            ("maxjobs=abc", "Invalid value for MaxJobs (abc)"),
            ("fairshare=x", "Invalid value for Fairshare (x)"),
            ("priority=1.5", "Invalid value for Priority (1.5)"),
            ("grptres=foo=1", "foo=1"),
            ("maxwall=never", "Invalid value for MaxWall (never)"),
            ("maxjobs+=3", "lists of names"),
        ] {
            let error = assoc(&[word]).unwrap_err();
            assert!(error.contains(part), "{word}: {error}");
        }
    }

    #[test]
    fn what_is_added_is_printed_under_slurms_names() {
        let c =
            assoc(&["fairshare=7", "maxjobs=2", "qos=normal,high", "defaultqos=high", "maxwall=1:00", "maxtres=cpu=3"]);
        let lines = assoc_lines(&c.unwrap().assoc);
        let text: Vec<String> = lines.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            text,
            ["Fairshare=7", "MaxTRES=cpu=3", "MaxJobs=2", "MaxWall=00:01:00", "QOS=high,normal", "DefQOS=high"]
        );
    }
}
