//! A record's fields as text.

use super::book::{Book, Node};
use super::fields::Field;
use super::settings::wall_text;
use sluice_model::accounting::{Account, Limits, PreemptMode, Qos, QosFlag, TresCounts, TresKind, User, format_counts};

/// What a line is about: an entity, and one association where associations are shown.
#[derive(Clone, Copy, Default)]
pub struct Line<'b> {
    pub account: Option<&'b Account>,
    pub user: Option<&'b User>,
    pub qos: Option<&'b Qos>,
    pub node: Option<Node<'b>>,
    /// Of the wckey, the TRES, the problem.
    pub text: &'b [String],
}

/// How associations are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Show {
    pub tree: bool,
    /// Limits of those above where none is set.
    pub inherited: bool,
    pub parents: bool,
    pub raw_qos: bool,
}

/// Name=count, names in order of the alphabet, as sacctmgr prints them.
pub fn counts(counts: &TresCounts) -> String {
    let text = format_counts(counts);
    let mut parts: Vec<&str> = text.split(',').collect();
    parts.sort_unstable();
    parts.join(",")
}

/// `00:01:00` from seconds, with days before when there are any.
pub fn clock(secs: u32) -> String {
    let (days, rest) = (secs / 86_400, secs % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days > 0 { format!("{days}-{clock}") } else { clock }
}

pub fn value(book: &Book, show: Show, line: &Line<'_>, field: Field) -> String {
    let a = line.node.map(|n| n.association);
    let text = |n: usize| line.text.get(n).cloned().unwrap_or_default();
    match field {
        Field::Cluster => book.cluster.clone(),
        Field::Account => match (a, line.account) {
            (Some(a), _) if show.tree => {
                format!("{}{}", " ".repeat(line.node.map_or(0, |n| n.depth)), a.account)
            }
            (Some(a), _) => a.account.clone(),
            (None, Some(account)) => account.name.clone(),
            (None, None) => text(0),
        },
        Field::User => match (line.user, a) {
            (Some(user), _) => user.name.clone(),
            (None, Some(a)) => a.user.clone().unwrap_or_default(),
            (None, None) => text(1),
        },
        Field::Partition => a.and_then(|a| a.partition.clone()).unwrap_or_default(),
        Field::Share => a.map(|a| a.shares.to_string()).unwrap_or_default(),
        Field::Priority => match (line.qos, a) {
            (Some(q), _) => q.priority.to_string(),
            (None, Some(a)) => {
                let above = book.chain(a).into_iter().take(if show.inherited { usize::MAX } else { 1 });
                above.filter_map(|x| x.priority).next().map(|p| p.to_string()).unwrap_or_default()
            }
            (None, None) => String::new(),
        },
        Field::Count(limit) => {
            let n = limits(book, show, line).and_then(|l| l.count(limit));
            n.map(|n| if limit.is_wall() { wall_text(n) } else { n.to_string() }).unwrap_or_default()
        }
        Field::Tres(limit) => limits(book, show, line).and_then(|l| l.tres(limit).map(counts)).unwrap_or_default(),
        Field::One(limit, kind) => {
            let kind = TresKind::parse(kind);
            let n = kind.and_then(|k| limits(book, show, line)?.tres(limit)?.get(&k).copied());
            n.map(|n| n.to_string()).unwrap_or_default()
        }
        Field::Qos => match a {
            Some(a) if show.raw_qos => Book::raw_qos(a),
            Some(a) => book.allowed_qos(a).into_iter().collect::<Vec<_>>().join(","),
            None => String::new(),
        },
        Field::QosRaw => {
            let ids = a.map(|a| book.allowed_qos(a)).unwrap_or_default();
            let ids = ids.iter().filter_map(|n| book.qos.get(n)).map(|q| q.id.to_string());
            ids.collect::<Vec<_>>().join(",")
        }
        Field::DefQos => a.and_then(|a| book.default_qos(a, show.inherited)).unwrap_or_default(),
        Field::Id => match (line.qos, a) {
            (Some(q), _) => q.id.to_string(),
            (None, Some(a)) => a.id.to_string(),
            (None, None) => text(2),
        },
        Field::ParentId => match a {
            Some(a) if show.parents => book.chain(a).get(1).map_or("0".to_owned(), |p| p.id.to_string()),
            _ => String::new(),
        },
        Field::ParentName => match a {
            Some(a) if show.parents && a.user.is_none() => {
                book.parent_account(&a.account).unwrap_or_default().to_owned()
            }
            _ => String::new(),
        },
        Field::Left => line.node.map(|n| n.left.to_string()).unwrap_or_default(),
        Field::Right => line.node.map(|n| n.right.to_string()).unwrap_or_default(),
        Field::Lineage => a.map(|a| lineage(book, a)).unwrap_or_default(),
        Field::Comment => a.map(|a| a.comment.clone()).unwrap_or_default(),
        Field::Description => match (line.account, line.qos) {
            (Some(account), _) => account.description.clone(),
            (None, Some(qos)) => qos.description.clone(),
            (None, None) => String::new(),
        },
        Field::Organization => line.account.map(|x| x.organization.clone()).unwrap_or_default(),
        Field::Coordinators => coordinators(book, line),
        Field::DefAccount => line.user.and_then(|u| u.default_account.clone()).unwrap_or_default(),
        Field::DefWckey => line.user.and_then(|u| u.default_wckey.clone()).unwrap_or_default(),
        Field::Admin => line.user.map(|u| u.admin_level.as_str().to_owned()).unwrap_or_default(),
        Field::Wckey | Field::ControlHost | Field::TresType => text(0),
        Field::ControlPort | Field::TresName => text(1),
        Field::Rpc => text(2),
        Field::Problem => text(3),
        Field::ClusterTres => book.tres.join(","),
        Field::Classification | Field::ClusterFlags => String::new(),
        Field::Name => line.qos.map(|q| q.name.clone()).unwrap_or_default(),
        Field::Flags => {
            let names: Vec<&str> = line.qos.iter().flat_map(|q| &q.flags).map(|f| QosFlag::as_str(*f)).collect();
            names.join(",")
        }
        Field::GraceTime => line.qos.map(|q| clock(q.grace_secs)).unwrap_or_default(),
        Field::Preempt => {
            let names: Vec<&str> = line.qos.iter().flat_map(|q| &q.preempt).map(String::as_str).collect();
            names.join(",")
        }
        Field::PreemptExempt => line.qos.and_then(|q| q.preempt_exempt_secs).map(clock).unwrap_or_default(),
        Field::PreemptMode => line.qos.map(preempt_mode).unwrap_or_default(),
        Field::UsageThreshold => line.qos.and_then(|q| q.usage_threshold).map(|f| f.to_string()).unwrap_or_default(),
        Field::UsageFactor => line.qos.map(|q| q.usage_factor.to_string()).unwrap_or_default(),
        Field::LimitFactor => line.qos.and_then(|q| q.limit_factor).map(|f| f.to_string()).unwrap_or_default(),
    }
}

fn limits(book: &Book, show: Show, line: &Line<'_>) -> Option<Limits> {
    match (line.qos, line.node) {
        (Some(q), _) => Some(q.limits.clone()),
        (None, Some(n)) => Some(book.limits(n.association, show.inherited)),
        (None, None) => None,
    }
}

/// `/science/phys/0-eve/`: the accounts from the top, then the user (and partition).
fn lineage(book: &Book, a: &sluice_model::accounting::Association) -> String {
    let accounts = book.chain(a).into_iter().filter(|x| x.user.is_none()).map(|x| x.account.clone());
    let mut names: Vec<String> = accounts.filter(|n| n != sluice_model::accounting::ROOT).collect();
    names.reverse();
    names.extend(a.user.iter().map(|u| format!("0-{u}")));
    names.extend(a.partition.clone());
    if names.is_empty() { "/".to_owned() } else { format!("/{}/", names.join("/")) }
}

/// `within` stands before the mode, and alone where that is the cluster's.
fn preempt_mode(q: &Qos) -> String {
    let mode = match q.preempt_mode {
        PreemptMode::Suspend => "gang,suspend",
        mode => mode.as_str(),
    };
    match (q.preempt_within, q.preempt_mode) {
        (true, PreemptMode::Cluster) => "within".to_owned(),
        (true, _) => format!("within,{mode}"),
        (false, _) => mode.to_owned(),
    }
}

/// Of an account: its coordinators; of a user: the accounts they coordinate.
fn coordinators(book: &Book, line: &Line<'_>) -> String {
    match (line.user, line.account) {
        (Some(user), _) => {
            let of = book.accounts.values().filter(|a| a.coordinators.contains(&user.name));
            of.map(|a| a.name.clone()).collect::<Vec<_>>().join(",")
        }
        (None, Some(account)) => account.coordinators.iter().cloned().collect::<Vec<_>>().join(","),
        (None, None) => String::new(),
    }
}
