//! Who may use how much of the cluster: accounts, users, associations and QOS, with their limits.
//!
//! Owns the types and the one parser and printer of each of their texts (TRES counts, shares, factors, QOS flags). The
//! cluster is the controller's own, so none of these names it. Nothing here is judged: the engine keeps the entities and
//! authorises changes, the scheduler applies the limits. Rules and names follow Slurm's sacctmgr manual page and
//! `resource_limits`.

mod association;
mod counts;
mod enforce;
mod limits;
mod qos;
mod request;

pub use association::{Account, AdminLevel, AssocId, Association, QosAccess, Shares, User};
pub use counts::{TresChange, TresCounts, TresKind, format_counts, parse_change};
pub use enforce::Enforce;
pub use limits::{CountLimit, Limits, TresLimit};
pub use qos::{Factor, PreemptMode, Qos, QosFlag};
pub use request::{
    AccountChange, AccountingReport, AccountingRequest, AssocChange, AssocFilter, AssocName, LimitsChange, ListEdit,
    QosChange, UserChange,
};

/// The account above all others, and the user whom Slurm puts below it from the start.
pub const ROOT: &str = "root";
/// The QOS that exists from the start, and that jobs get which name none.
pub const NORMAL_QOS: &str = "normal";

/// Names of accounts, users, QOS and wckeys: printable, without blanks, commas and the signs that sacctmgr's own
/// syntax uses; at most 128 bytes.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && !name.starts_with(['+', '-'])
        && !name.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, ',' | '=' | '|' | '"' | '\'' | ':'))
}
