//! The fields of a job that `squeue` can print: letters of `-o`, names of `-O`, headers.
//!
//! Source: squeue(1); headers as Slurm prints them.

/// What a column shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Account,
    AccrueTime,
    AdminComment,
    AllocNodes,
    AllocSid,
    ArrayJobId,
    ArrayTaskId,
    AssocId,
    BatchFlag,
    BatchHost,
    Cluster,
    Command,
    Comment,
    Contiguous,
    CpusPerTask,
    Deadline,
    Dependency,
    DerivedExit,
    EligibleTime,
    EndTime,
    ExcNodes,
    Exclusive,
    ExitCode,
    Features,
    Prefer,
    Sockets,
    Cores,
    Threads,
    ReqSwitch,
    SegmentSize,
    TasksPerCore,
    TasksPerSocket,
    WaitForSwitch,
    GroupId,
    GroupName,
    JobArrayId,
    JobId,
    LastSchedEval,
    Licenses,
    LicensesAlloc,
    MaxCpus,
    MaxNodes,
    MinCpus,
    MinMemory,
    MinTime,
    MinTmpDisk,
    Name,
    Nice,
    NodeList,
    NumCpus,
    NumNodes,
    NumTasks,
    OverSubscribe,
    Partition,
    PendingTime,
    PriorityFraction,
    Priority,
    Qos,
    Reason,
    ReasonList,
    ReqNodes,
    Requeue,
    Reservation,
    RestartCount,
    SchedNodes,
    StartTime,
    State,
    StateShort,
    StdErr,
    StdIn,
    StdOut,
    SubmitTime,
    PreemptTime,
    SystemComment,
    TasksPerNode,
    TimeLeft,
    TimeLimit,
    TimeUsed,
    TresAlloc,
    TresPerJob,
    TresPerNode,
    TresPerSocket,
    TresPerTask,
    UserId,
    UserName,
    WcKey,
    WorkDir,
    /// What this cluster has no notion of: always the same text.
    Fixed(&'static str),
}

impl Field {
    /// Slurm pads durations and never cuts them.
    pub fn is_duration(self) -> bool {
        matches!(self, Field::TimeLimit | Field::TimeLeft | Field::TimeUsed)
    }
}

/// One row of the field table.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub field: Field,
    /// The letter of `-o`, if it has one.
    pub letter: Option<char>,
    /// Names of `-O`, lower case.
    pub names: &'static [&'static str],
    pub header: &'static str,
    /// Needs the detailed record.
    pub detail: bool,
}

const fn brief(field: Field, letter: char, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: Some(letter), names, header, detail: false }
}
const fn detail(field: Field, letter: char, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: Some(letter), names, header, detail: true }
}
const fn named(field: Field, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: None, names, header, detail: true }
}
const fn fixed(text: &'static str, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field: Field::Fixed(text), letter: None, names, header, detail: false }
}
const fn fixed_letter(text: &'static str, letter: char, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field: Field::Fixed(text), letter: Some(letter), names, header, detail: false }
}

pub static FIELDS: &[Info] = &[
    brief(Field::Account, 'a', &["account"], "ACCOUNT"),
    detail(Field::TresPerNode, 'b', &["tres-per-node", "gres"], "TRES_PER_NODE"),
    detail(Field::MinCpus, 'c', &["mincpus"], "MIN_CPUS"),
    detail(Field::MinTmpDisk, 'd', &["mintmpdisk"], "MIN_TMP_DISK"),
    brief(Field::EndTime, 'e', &["endtime"], "END_TIME"),
    detail(Field::Features, 'f', &["feature"], "FEATURES"),
    detail(Field::GroupName, 'g', &["groupname"], "GROUP"),
    detail(Field::OverSubscribe, 'h', &["oversubscribe"], "OVER_SUBSCRIBE"),
    brief(Field::JobArrayId, 'i', &["jobarrayid"], "JOBID"),
    brief(Field::Name, 'j', &["name"], "NAME"),
    detail(Field::Comment, 'k', &["comment"], "COMMENT"),
    brief(Field::TimeLimit, 'l', &["timelimit"], "TIME_LIMIT"),
    detail(Field::MinMemory, 'm', &["minmemory"], "MIN_MEMORY"),
    detail(Field::ReqNodes, 'n', &["reqnodes"], "REQ_NODES"),
    detail(Field::Command, 'o', &["command"], "COMMAND"),
    brief(Field::PriorityFraction, 'p', &["priority"], "PRIORITY"),
    brief(Field::Qos, 'q', &["qos"], "QOS"),
    brief(Field::Reason, 'r', &["reason"], "REASON"),
    fixed_letter("", 's', &["selectjobinfo"], ""),
    brief(Field::StateShort, 't', &["statecompact"], "ST"),
    brief(Field::UserName, 'u', &["username"], "USER"),
    detail(Field::Reservation, 'v', &["reservation"], "RESERVATION"),
    detail(Field::WcKey, 'w', &["wckey"], "WCKEY"),
    detail(Field::ExcNodes, 'x', &["excnodes"], "EXC_NODES"),
    detail(Field::Nice, 'y', &["nice"], "NICE"),
    fixed_letter("*:*:*", 'z', &["sct"], "S:C:T"),
    brief(Field::JobId, 'A', &["jobid"], "JOBID"),
    detail(Field::BatchHost, 'B', &["batchhost"], "EXEC_HOST"),
    brief(Field::NumCpus, 'C', &["numcpus"], "CPUS"),
    brief(Field::NumNodes, 'D', &["numnodes"], "NODES"),
    detail(Field::Dependency, 'E', &["dependency"], "DEPENDENCY"),
    brief(Field::ArrayJobId, 'F', &["arrayjobid"], "ARRAY_JOB_ID"),
    brief(Field::GroupId, 'G', &["groupid"], "GROUP"),
    detail(Field::Sockets, 'H', &["sockets"], "SOCKETS_PER_NODE"),
    detail(Field::Cores, 'I', &["cores"], "CORES_PER_SOCKET"),
    detail(Field::Threads, 'J', &["threads"], "THREADS_PER_CORE"),
    brief(Field::ArrayTaskId, 'K', &["arraytaskid"], "ARRAY_TASK_ID"),
    brief(Field::TimeLeft, 'L', &["timeleft"], "TIME_LEFT"),
    brief(Field::TimeUsed, 'M', &["timeused"], "TIME"),
    brief(Field::NodeList, 'N', &["nodelist"], "NODELIST"),
    detail(Field::Contiguous, 'O', &["contiguous"], "CONTIGUOUS"),
    brief(Field::Partition, 'P', &["partition"], "PARTITION"),
    brief(Field::Priority, 'Q', &["prioritylong"], "PRIORITY"),
    brief(Field::ReasonList, 'R', &["reasonlist"], "NODELIST(REASON)"),
    brief(Field::StartTime, 'S', &["starttime"], "START_TIME"),
    brief(Field::State, 'T', &["state"], "STATE"),
    brief(Field::UserId, 'U', &["userid"], "UID"),
    brief(Field::SubmitTime, 'V', &["submittime"], "SUBMIT_TIME"),
    detail(Field::Licenses, 'W', &["licenses"], "LICENSES"),
    fixed_letter("N/A", 'X', &["corespec"], "CORE_SPEC"),
    brief(Field::SchedNodes, 'Y', &["schednodes"], "SCHEDNODES"),
    detail(Field::WorkDir, 'Z', &["workdir"], "WORK_DIR"),
    named(Field::AccrueTime, &["accruetime"], "ACCRUE_TIME"),
    named(Field::AdminComment, &["admin_comment"], "ADMIN_COMMENT"),
    named(Field::AllocNodes, &["allocnodes"], "ALLOC_NODES"),
    named(Field::AllocSid, &["allocsid"], "ALLOC_SID"),
    named(Field::AssocId, &["associd"], "ASSOC_ID"),
    named(Field::BatchFlag, &["batchflag"], "BATCH_FLAG"),
    fixed("0", &["boardspernode"], "BOARDS_PER_NODE"),
    fixed("(null)", &["burstbuffer"], "BURST_BUFFER"),
    fixed("(null)", &["burstbufferstate"], "BURST_BUFFER_STATE"),
    named(Field::Cluster, &["cluster"], "CLUSTER"),
    fixed("(null)", &["clusterfeature"], "CLUSTER_FEATURES"),
    fixed("(null)", &["container"], "CONTAINER"),
    fixed("(null)", &["containerid"], "CONTAINER_ID"),
    fixed("(null)", &["containertype"], "CONTAINER_TYPE"),
    named(Field::CpusPerTask, &["cpus-per-task", "cpuspertask"], "CPUS_PER_TASK"),
    fixed("N/A", &["cpus-per-tres"], "CPUS_PER_TRES"),
    fixed("N/A", &["cronjob"], "CRON_JOB"),
    named(Field::Deadline, &["deadline"], "DEADLINE"),
    fixed("0:00", &["delayboot"], "DELAY_BOOT"),
    named(Field::DerivedExit, &["derivedec"], "DERIVED_EC"),
    named(Field::EligibleTime, &["eligibletime"], "ELIGIBLE_TIME"),
    named(Field::Exclusive, &["exclusive"], "EXCLUSIVE"),
    named(Field::ExitCode, &["exit_code"], "EXIT_CODE"),
    fixed("N/A", &["hetjobid"], "HET_JOB_ID"),
    fixed("N/A", &["hetjobidset"], "HET_JOB_ID_SET"),
    fixed("N/A", &["hetjoboffset"], "HET_JOB_OFFSET"),
    named(Field::LastSchedEval, &["lastschedeval"], "LAST_SCHED_EVAL"),
    named(Field::LicensesAlloc, &["licensesalloc"], "LICENSES_ALLOC"),
    named(Field::MaxCpus, &["maxcpus"], "MAX_CPUS"),
    named(Field::MaxNodes, &["maxnodes"], "MAX_NODES"),
    fixed("N/A", &["mem-per-tres"], "MEM_PER_TRES"),
    fixed("(null)", &["mcslabel"], "MCSLABEL"),
    named(Field::MinTime, &["mintime"], "TIME_MIN"),
    fixed("(null)", &["network"], "NETWORK"),
    named(Field::TasksPerCore, &["ntpercore"], "NTASKS_PER_CORE"),
    named(Field::TasksPerNode, &["ntpernode"], "NTASKS_PER_NODE"),
    named(Field::TasksPerSocket, &["ntpersocket"], "NTASKS_PER_SOCKET"),
    fixed("0", &["ntperboard"], "NTASKS_PER_BOARD"),
    named(Field::NumTasks, &["numtasks"], "TASKS"),
    fixed("NA", &["origin"], "ORIGIN"),
    fixed("NA", &["originraw"], "ORIGIN_RAW"),
    named(Field::PendingTime, &["pendingtime"], "PENDING_TIME"),
    named(Field::PreemptTime, &["preempttime"], "PREEMPT_TIME"),
    named(Field::Prefer, &["prefer"], "PREFER"),
    fixed("NotSet", &["profile"], "PROFILE"),
    fixed("0", &["reboot"], "REBOOT"),
    named(Field::ReqSwitch, &["reqswitch"], "REQ_SWITCH"),
    named(Field::Requeue, &["requeue"], "REQUEUE"),
    fixed("N/A", &["resizetime"], "RESIZE_TIME"),
    named(Field::RestartCount, &["restartcnt"], "RESTART_COUNT"),
    named(Field::SegmentSize, &["segmentsize"], "SEGMENT_SIZE"),
    fixed("NA", &["siblingsactive"], "ACTIVE_SIBLINGS"),
    fixed("NA", &["siblingsactiveraw"], "ACTIVE_SIBLINGS_RAW"),
    fixed("NA", &["siblingsviable"], "VIABLE_SIBLINGS"),
    fixed("NA", &["siblingsviableraw"], "VIALBLE_SIBLINGS_RAW"),
    fixed("N/A", &["sluid"], "SLUID"),
    fixed("0", &["sperboard"], "SOCKETS_PER_BOARD"),
    named(Field::StdErr, &["stderr"], "STDERR"),
    named(Field::StdIn, &["stdin"], "STDIN"),
    named(Field::StdOut, &["stdout"], "STDOUT"),
    named(Field::SystemComment, &["system_comment"], "SYSTEM_COMMENT"),
    named(Field::TresAlloc, &["tres-alloc"], "TRES_ALLOC"),
    fixed("N/A", &["tres-bind"], "TRES_BIND"),
    fixed("N/A", &["tres-freq"], "TRES_FREQ"),
    named(Field::TresPerJob, &["tres-per-job"], "TRES_PER_JOB"),
    named(Field::TresPerSocket, &["tres-per-socket"], "TRES_PER_SOCKET"),
    named(Field::TresPerTask, &["tres-per-task"], "TRES_PER_TASK"),
    named(Field::WaitForSwitch, &["wait4switch"], "WAIT4SWITCH"),
];

pub fn by_letter(letter: char) -> Option<&'static Info> {
    FIELDS.iter().find(|f| f.letter == Some(letter))
}

pub fn by_name(name: &str) -> Option<&'static Info> {
    FIELDS.iter().find(|f| f.names.iter().any(|n| n.eq_ignore_ascii_case(name)))
}

/// `%all`: every letter, lower case first, with bars between.
pub fn all_letters() -> String {
    let mut letters: Vec<char> = FIELDS.iter().filter_map(|f| f.letter).collect();
    letters.sort_by_key(|c| (c.is_ascii_uppercase(), *c));
    letters.iter().map(|c| format!("%{c}")).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// squeue's `-o` letters and `-O` names in Slurm 26.05.
    const LETTERS: &str = "aFKBokOIXEexfGgiAWcmdjyNCDhPpQqrRnvYzsHSTtVJLlMUuwZ";
    const NAMES: &str = "Account AccrueTime admin_comment AllocNodes AllocSID ArrayJobId ArrayTaskId AssocId BatchFlag \
        BatchHost BoardsPerNode BurstBuffer BurstBufferState Cluster ClusterFeature Command Comment Container \
        ContainerId ContainerType Contiguous Cores CoreSpec CPUsPerTask cpus-per-task cpus-per-tres CronJob Deadline \
        DelayBoot Dependency DerivedEC EligibleTime EndTime ExcNodes Exclusive exit_code Feature GroupId GroupName \
        HetJobId HetJobIdSet HetJobOffset JobArrayId JobId LastSchedEval Licenses LicensesAlloc MaxCPUs MaxNodes \
        mem-per-tres MCSLabel MinCPUs MinMemory MinTime MinTmpDisk Name Network Nice NodeList NTPerCore NTPerNode \
        NTPerSocket NTPerBoard NumCPUs NumNodes NumTasks Origin OriginRaw OverSubscribe Partition PendingTime \
        PreemptTime Prefer Priority PriorityLong Profile QOS Reason ReasonList Reboot ReqNodes ReqSwitch Requeue \
        Reservation ResizeTime RestartCnt SchedNodes SCT SegmentSize SiblingsActive SiblingsActiveRaw SiblingsViable \
        SiblingsViableRaw SLUID Sockets SPerBoard StartTime State StateCompact StdErr StdIn StdOut SubmitTime \
        system_comment Threads TimeLeft TimeLimit TimeUsed tres-alloc tres-bind tres-freq tres-per-job \
        tres-per-socket tres-per-task UserId UserName Wait4Switch WCKey WorkDir tres-per-node SelectJobInfo";

    #[test]
    fn every_letter_and_name_of_slurm_is_known_in_any_case() {
        for letter in LETTERS.chars() {
            assert!(by_letter(letter).is_some(), "%{letter}");
        }
        for name in NAMES.split_whitespace() {
            assert!(by_name(name).is_some(), "{name}");
            assert!(by_name(&name.to_uppercase()).is_some(), "{name}");
        }
    }

    #[test]
    fn letters_are_unique() {
        let mut letters: Vec<char> = FIELDS.iter().filter_map(|f| f.letter).collect();
        let all = letters.len();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), all);
    }
}
