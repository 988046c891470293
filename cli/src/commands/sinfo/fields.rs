//! The fields that `sinfo` can print: letters of `-o`, names of `-O`, headers, and which of them part nodes into lines.
//!
//! Source: sinfo(1); headers as Slurm prints them.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    ActiveFeatures,
    AllocMem,
    AllocNodes,
    Available,
    Cluster,
    Comment,
    Cores,
    CpuLoad,
    Cpus,
    CpusState,
    DefaultTime,
    Disk,
    Extra,
    Features,
    FreeMem,
    Gres,
    GresUsed,
    Groups,
    HostNames,
    MaxCpusPerNode,
    Memory,
    NodeAddr,
    NodeAi,
    NodeAiot,
    NodeList,
    Nodes,
    OverSubscribe,
    Partition,
    PartitionName,
    Port,
    PreemptMode,
    PriorityJobFactor,
    PriorityTier,
    Reason,
    Reservation,
    Root,
    Size,
    SocketCoreThread,
    Sockets,
    StateComplete,
    StateLong,
    StateShort,
    Threads,
    Time,
    TimeStamp,
    User,
    UserLong,
    Version,
    Weight,
}

/// How nodes of different values share a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// They never do.
    Apart,
    /// They do, as a minimum with `+` or a range, unless `--exact` is given.
    Range,
    /// The value sums up the line's nodes.
    Sum,
}

#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub field: Field,
    pub letter: Option<char>,
    /// Names of `-O`, lower case.
    pub names: &'static [&'static str],
    pub header: &'static str,
    pub grouping: Grouping,
}

const fn apart(field: Field, letter: char, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: Some(letter), names, header, grouping: Grouping::Apart }
}
const fn range(field: Field, letter: char, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: Some(letter), names, header, grouping: Grouping::Range }
}
const fn sum(field: Field, letter: char, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: Some(letter), names, header, grouping: Grouping::Sum }
}
const fn named(field: Field, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: None, names, header, grouping: Grouping::Apart }
}

pub static FIELDS: &[Info] = &[
    apart(Field::Available, 'a', &["available"], "AVAIL"),
    apart(Field::ActiveFeatures, 'b', &["features_act"], "ACTIVE_FEATURES"),
    range(Field::Cpus, 'c', &["cpus"], "CPUS"),
    range(Field::Disk, 'd', &["disk"], "TMP_DISK"),
    range(Field::FreeMem, 'e', &["freemem"], "FREE_MEM"),
    apart(Field::Features, 'f', &["features"], "AVAIL_FEATURES"),
    apart(Field::Groups, 'g', &["groups"], "GROUPS"),
    apart(Field::OverSubscribe, 'h', &["oversubscribe"], "OVERSUBSCRIBE"),
    apart(Field::Reservation, 'i', &["reservation"], "RESERVATION"),
    apart(Field::Time, 'l', &["time"], "TIMELIMIT"),
    range(Field::Memory, 'm', &["memory"], "MEMORY"),
    apart(Field::HostNames, 'n', &["nodehost"], "HOSTNAMES"),
    apart(Field::NodeAddr, 'o', &["nodeaddr"], "NODE_ADDR"),
    apart(Field::PriorityTier, 'p', &["prioritytier", "priority"], "PRIO_TIER"),
    apart(Field::Root, 'r', &["root"], "ROOT"),
    apart(Field::Size, 's', &["size"], "JOB_SIZE"),
    apart(Field::StateShort, 't', &["statecompact"], "STATE"),
    apart(Field::User, 'u', &["user"], "USER"),
    apart(Field::Version, 'v', &["version"], "VERSION"),
    range(Field::Weight, 'w', &["weight"], "WEIGHT"),
    range(Field::SocketCoreThread, 'z', &["socketcorethread"], "S:C:T"),
    sum(Field::NodeAi, 'A', &["nodeai"], "NODES(A/I)"),
    apart(Field::MaxCpusPerNode, 'B', &["maxcpuspernode"], "MAX_CPUS_PER_NODE"),
    sum(Field::CpusState, 'C', &["cpusstate"], "CPUS(A/I/O/T)"),
    sum(Field::Nodes, 'D', &["nodes"], "NODES"),
    apart(Field::Reason, 'E', &["reason"], "REASON"),
    sum(Field::NodeAiot, 'F', &["nodeaiot"], "NODES(A/I/O/T)"),
    apart(Field::Gres, 'G', &["gres"], "GRES"),
    apart(Field::TimeStamp, 'H', &["timestamp"], "TIMESTAMP"),
    apart(Field::PriorityJobFactor, 'I', &["priorityjobfactor"], "PRIO_JOB_FACTOR"),
    apart(Field::DefaultTime, 'L', &["defaulttime"], "DEFAULTTIME"),
    apart(Field::PreemptMode, 'M', &["preemptmode"], "PREEMPT_MODE"),
    sum(Field::NodeList, 'N', &["nodelist"], "NODELIST"),
    range(Field::CpuLoad, 'O', &["cpusload"], "CPU_LOAD"),
    apart(Field::Partition, 'P', &["partition"], "PARTITION"),
    apart(Field::PartitionName, 'R', &["partitionname"], "PARTITION"),
    apart(Field::AllocNodes, 'S', &["allocnodes"], "ALLOCNODES"),
    apart(Field::StateLong, 'T', &["statelong"], "STATE"),
    apart(Field::UserLong, 'U', &["userlong"], "USER"),
    apart(Field::Cluster, 'V', &["cluster"], "CLUSTER"),
    range(Field::Sockets, 'X', &["sockets"], "SOCKETS"),
    range(Field::Cores, 'Y', &["cores"], "CORES"),
    range(Field::Threads, 'Z', &["threads"], "THREADS"),
    named(Field::AllocMem, &["allocmem"], "ALLOCMEM"),
    named(Field::Comment, &["comment"], "COMMENT"),
    named(Field::Extra, &["extra"], "EXTRA"),
    named(Field::GresUsed, &["gresused"], "GRES_USED"),
    named(Field::Port, &["port"], "PORT"),
    named(Field::StateComplete, &["statecomplete"], "STATECOMPLETE"),
];

pub fn by_letter(letter: char) -> Option<&'static Info> {
    FIELDS.iter().find(|f| f.letter == Some(letter))
}

pub fn by_name(name: &str) -> Option<&'static Info> {
    FIELDS.iter().find(|f| f.names.iter().any(|n| n.eq_ignore_ascii_case(name)))
}

/// `%all`: every letter, lower case first. Slurm puts a blank before the bars of the upper-case ones.
pub fn all_letters() -> String {
    let mut letters: Vec<char> = FIELDS.iter().filter_map(|f| f.letter).filter(|c| *c != 'i').collect();
    letters.sort_by_key(|c| (c.is_ascii_uppercase(), *c));
    let one = |c: &char| if c.is_ascii_uppercase() { format!("%{c} ") } else { format!("%{c}") };
    letters.iter().map(one).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTERS: &str = "SaVYcOCLdfbeGgBmoAFnNDhPRMIpEirsXztTZlHuUvw";
    const NAMES: &str = "AllocMem AllocNodes Available Cluster Comment Cores CPUs CPUsLoad CPUsState DefaultTime Disk \
        Extra Features features_act FreeMem Gres GresUsed Groups MaxCPUsPerNode Memory NodeAddr NodeAI NodeAIOT \
        NodeHost NodeList Nodes OverSubscribe Partition PartitionName Port PreemptMode PriorityJobFactor PriorityTier \
        Reason Reservation Root Size Sockets SocketCoreThread StateCompact StateComplete StateLong Threads Time \
        TimeStamp User UserLong Version Weight";

    #[test]
    fn every_letter_and_name_of_slurm_is_known_in_any_case() {
        for letter in LETTERS.chars() {
            assert!(by_letter(letter).is_some(), "%{letter}");
        }
        for name in NAMES.split_whitespace() {
            assert!(by_name(name).is_some(), "{name}");
        }
    }
}
