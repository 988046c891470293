//! The fields that `sacct` can print: names, headers, widths, and the lists that `-b`, `-l` and the default stand for.
//!
//! Sources: sacct(1); widths and orders as Slurm was seen to print them (for fields newer than the version at hand the
//! width is our choice).

use crate::render::table::Column;

/// What a step used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    Cpu,
    DiskRead,
    DiskWrite,
    Pages,
    Rss,
    VmSize,
}

/// Over the tasks of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    Average,
    Maximum,
    Minimum,
    Total,
    /// Where the largest and the smallest occurred.
    MaxNode,
    MaxTask,
    MinNode,
    MinTask,
}

impl Field {
    /// Shown from a brief record: one without specification, allocation and steps.
    pub fn is_brief(self) -> bool {
        use Field::*;
        matches!(
            self,
            Account
                | AllocCpus
                | AllocNodes
                | Cluster
                | CpuTime
                | CpuTimeRaw
                | DbIndex
                | DerivedExitCode
                | Elapsed
                | ElapsedRaw
                | Eligible
                | End
                | ExitCode
                | Flags
                | Gid
                | JobId
                | JobIdRaw
                | JobName
                | Nodes
                | NodeList
                | Partition
                | Planned
                | Priority
                | Qos
                | QosRaw
                | Reason
                | Restarts
                | Start
                | State
                | Submit
                | Suspended
                | TimeLimit
                | TimeLimitRaw
                | Uid
                | User
                | Fixed(_)
        )
    }
}

/// What a column shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Account,
    AdminComment,
    AllocCpus,
    AllocNodes,
    AllocTres,
    AssocId,
    AveCpuFreq,
    Cluster,
    Comment,
    Constraints,
    CpuTime,
    CpuTimeRaw,
    DbIndex,
    DerivedExitCode,
    Elapsed,
    ElapsedRaw,
    Eligible,
    End,
    Exclusive,
    ExitCode,
    Flags,
    Gid,
    Group,
    JobId,
    JobIdRaw,
    JobName,
    Layout,
    Licenses,
    NodeList,
    Nodes,
    OverSubscribe,
    Partition,
    Planned,
    PlannedCpu,
    PlannedCpuRaw,
    Priority,
    Qos,
    QosRaw,
    QosRequested,
    Reason,
    ReqCpuFreq,
    ReqCpus,
    ReqMem,
    ReqNodes,
    ReqTres,
    Reservation,
    Restarts,
    SegmentSize,
    Start,
    State,
    StdErr,
    StdIn,
    StdOut,
    Submit,
    SubmitLine,
    Suspended,
    SystemComment,
    SystemCpu,
    Tasks,
    TimeLimit,
    TimeLimitRaw,
    TotalCpu,
    Uid,
    User,
    UserCpu,
    WcKey,
    WcKeyId,
    WorkDir,
    Used(Quantity, Figure),
    TresIn(Figure),
    TresOut(Figure),
    /// What this cluster has no notion of: always the same text.
    Fixed(&'static str),
}

const fn right(field: Field, header: &'static str, width: usize) -> Column<Field> {
    Column { field, header, width, right: true }
}
const fn left(field: Field, header: &'static str, width: usize) -> Column<Field> {
    Column { field, header, width, right: false }
}

/// In the order of `--helpformat`.
pub static FIELDS: &[Column<Field>] = &[
    right(Field::Account, "Account", 10),
    right(Field::AdminComment, "AdminComment", 15),
    right(Field::AllocCpus, "AllocCPUS", 10),
    right(Field::AllocNodes, "AllocNodes", 10),
    right(Field::AllocTres, "AllocTRES", 10),
    right(Field::AssocId, "AssocID", 7),
    right(Field::Used(Quantity::Cpu, Figure::Average), "AveCPU", 10),
    right(Field::AveCpuFreq, "AveCPUFreq", 10),
    right(Field::Used(Quantity::DiskRead, Figure::Average), "AveDiskRead", 14),
    right(Field::Used(Quantity::DiskWrite, Figure::Average), "AveDiskWrite", 14),
    right(Field::Used(Quantity::Pages, Figure::Average), "AvePages", 10),
    right(Field::Used(Quantity::Rss, Figure::Average), "AveRSS", 10),
    right(Field::Used(Quantity::VmSize, Figure::Average), "AveVMSize", 10),
    right(Field::Fixed(""), "BlockID", 16),
    right(Field::Cluster, "Cluster", 10),
    right(Field::Comment, "Comment", 14),
    right(Field::Constraints, "Constraints", 19),
    right(Field::Fixed("0"), "ConsumedEnergy", 14),
    right(Field::Fixed("0"), "ConsumedEnergyRaw", 17),
    right(Field::Fixed(""), "Container", 19),
    right(Field::CpuTime, "CPUTime", 10),
    right(Field::CpuTimeRaw, "CPUTimeRAW", 10),
    left(Field::DbIndex, "DBIndex", 10),
    right(Field::DerivedExitCode, "DerivedExitCode", 15),
    right(Field::Elapsed, "Elapsed", 10),
    right(Field::ElapsedRaw, "ElapsedRaw", 10),
    right(Field::Eligible, "Eligible", 19),
    right(Field::End, "End", 19),
    right(Field::Exclusive, "Exclusive", 9),
    right(Field::ExitCode, "ExitCode", 8),
    right(Field::Fixed(""), "Extra", 14),
    right(Field::Fixed(""), "FailedNode", 10),
    right(Field::Flags, "Flags", 19),
    right(Field::Gid, "GID", 6),
    right(Field::Group, "Group", 9),
    left(Field::JobId, "JobID", 12),
    left(Field::JobIdRaw, "JobIDRaw", 12),
    right(Field::JobName, "JobName", 10),
    right(Field::Layout, "Layout", 9),
    right(Field::Licenses, "Licenses", 10),
    right(Field::Used(Quantity::DiskRead, Figure::Maximum), "MaxDiskRead", 12),
    right(Field::Used(Quantity::DiskRead, Figure::MaxNode), "MaxDiskReadNode", 15),
    right(Field::Used(Quantity::DiskRead, Figure::MaxTask), "MaxDiskReadTask", 15),
    right(Field::Used(Quantity::DiskWrite, Figure::Maximum), "MaxDiskWrite", 12),
    right(Field::Used(Quantity::DiskWrite, Figure::MaxNode), "MaxDiskWriteNode", 16),
    right(Field::Used(Quantity::DiskWrite, Figure::MaxTask), "MaxDiskWriteTask", 16),
    right(Field::Used(Quantity::Pages, Figure::Maximum), "MaxPages", 8),
    right(Field::Used(Quantity::Pages, Figure::MaxNode), "MaxPagesNode", 12),
    right(Field::Used(Quantity::Pages, Figure::MaxTask), "MaxPagesTask", 14),
    right(Field::Used(Quantity::Rss, Figure::Maximum), "MaxRSS", 10),
    right(Field::Used(Quantity::Rss, Figure::MaxNode), "MaxRSSNode", 10),
    right(Field::Used(Quantity::Rss, Figure::MaxTask), "MaxRSSTask", 10),
    right(Field::Used(Quantity::VmSize, Figure::Maximum), "MaxVMSize", 10),
    right(Field::Used(Quantity::VmSize, Figure::MaxNode), "MaxVMSizeNode", 14),
    right(Field::Used(Quantity::VmSize, Figure::MaxTask), "MaxVMSizeTask", 14),
    right(Field::Fixed(""), "McsLabel", 12),
    right(Field::Used(Quantity::Cpu, Figure::Minimum), "MinCPU", 10),
    right(Field::Used(Quantity::Cpu, Figure::MinNode), "MinCPUNode", 10),
    right(Field::Used(Quantity::Cpu, Figure::MinTask), "MinCPUTask", 10),
    right(Field::AllocCpus, "NCPUS", 10),
    right(Field::Nodes, "NNodes", 8),
    right(Field::NodeList, "NodeList", 15),
    right(Field::Tasks, "NTasks", 8),
    right(Field::Fixed(""), "OriginalSLUID", 14),
    right(Field::OverSubscribe, "OverSubscribe", 13),
    right(Field::Partition, "Partition", 10),
    right(Field::Planned, "Planned", 10),
    right(Field::PlannedCpu, "PlannedCPU", 10),
    right(Field::PlannedCpuRaw, "PlannedCPURAW", 13),
    right(Field::Priority, "Priority", 10),
    right(Field::Qos, "QOS", 10),
    right(Field::QosRaw, "QOSRAW", 6),
    right(Field::QosRequested, "QOSREQ", 10),
    right(Field::Reason, "Reason", 22),
    right(Field::ReqCpuFreq, "ReqCPUFreq", 10),
    right(Field::ReqCpuFreq, "ReqCPUFreqGov", 13),
    right(Field::ReqCpuFreq, "ReqCPUFreqMax", 13),
    right(Field::ReqCpuFreq, "ReqCPUFreqMin", 13),
    right(Field::ReqCpus, "ReqCPUS", 8),
    right(Field::ReqMem, "ReqMem", 10),
    right(Field::ReqNodes, "ReqNodes", 8),
    right(Field::ReqTres, "ReqTRES", 10),
    right(Field::Reservation, "Reservation", 20),
    right(Field::Fixed(""), "ReservationId", 8),
    right(Field::Reservation, "ReqReservation", 20),
    right(Field::Restarts, "Restarts", 8),
    right(Field::SegmentSize, "SegmentSize", 11),
    right(Field::Fixed(""), "SLUID", 14),
    right(Field::Start, "Start", 19),
    right(Field::State, "State", 10),
    right(Field::StdErr, "StdErr", 20),
    right(Field::StdIn, "StdIn", 20),
    right(Field::StdOut, "StdOut", 20),
    right(Field::Submit, "Submit", 19),
    right(Field::SubmitLine, "SubmitLine", 20),
    right(Field::Suspended, "Suspended", 10),
    right(Field::SystemComment, "SystemComment", 15),
    right(Field::SystemCpu, "SystemCPU", 10),
    right(Field::TimeLimit, "Timelimit", 10),
    right(Field::TimeLimitRaw, "TimelimitRaw", 10),
    right(Field::TotalCpu, "TotalCPU", 10),
    right(Field::TresIn(Figure::Average), "TRESUsageInAve", 14),
    right(Field::TresIn(Figure::Maximum), "TRESUsageInMax", 14),
    right(Field::TresIn(Figure::MaxNode), "TRESUsageInMaxNode", 18),
    right(Field::TresIn(Figure::MaxTask), "TRESUsageInMaxTask", 18),
    right(Field::TresIn(Figure::Minimum), "TRESUsageInMin", 14),
    right(Field::TresIn(Figure::MinNode), "TRESUsageInMinNode", 18),
    right(Field::TresIn(Figure::MinTask), "TRESUsageInMinTask", 18),
    right(Field::TresIn(Figure::Total), "TRESUsageInTot", 14),
    right(Field::TresOut(Figure::Average), "TRESUsageOutAve", 15),
    right(Field::TresOut(Figure::Maximum), "TRESUsageOutMax", 15),
    right(Field::TresOut(Figure::MaxNode), "TRESUsageOutMaxNode", 19),
    right(Field::TresOut(Figure::MaxTask), "TRESUsageOutMaxTask", 19),
    right(Field::TresOut(Figure::Minimum), "TRESUsageOutMin", 15),
    right(Field::TresOut(Figure::MinNode), "TRESUsageOutMinNode", 19),
    right(Field::TresOut(Figure::MinTask), "TRESUsageOutMinTask", 19),
    right(Field::TresOut(Figure::Total), "TRESUsageOutTot", 15),
    right(Field::Uid, "UID", 6),
    right(Field::User, "User", 9),
    right(Field::UserCpu, "UserCPU", 10),
    right(Field::WcKey, "WCKey", 10),
    right(Field::WcKeyId, "WCKeyID", 10),
    right(Field::WorkDir, "WorkDir", 20),
];

/// Names of earlier Slurm versions, which scripts still use.
static FORMER: &[Column<Field>] = &[
    right(Field::Planned, "Reserved", 10),
    right(Field::PlannedCpu, "ResvCPU", 10),
    right(Field::PlannedCpuRaw, "ResvCPURAW", 10),
];

pub const DEFAULT: &str = "jobid,jobname,partition,account,alloccpus,state,exitcode";
pub const BRIEF: &str = "jobid,state,exitcode";
pub const LONG: &str = "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,\
    maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,mincputask,avecpu,\
    ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,reqcpufreqmax,reqcpufreqgov,reqmem,\
    consumedenergy,maxdiskread,maxdiskreadnode,maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,\
    maxdiskwritetask,avediskwrite,reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,\
    tresusageinmaxtask,tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,\
    tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot";

/// In any case; a name that is cut short stands for the first field that begins so.
fn find(name: &str) -> Option<Column<Field>> {
    let all = || FIELDS.iter().chain(FORMER);
    let begins = |c: &&Column<Field>| c.header.get(..name.len()).is_some_and(|h| h.eq_ignore_ascii_case(name));
    all().find(|c| c.header.eq_ignore_ascii_case(name)).or_else(|| all().find(begins)).copied()
}

/// Reads `name[%[-]width],…`; `ALL` stands for every field. Err holds the message.
pub fn parse(text: &str) -> Result<Vec<Column<Field>>, String> {
    let mut columns = Vec::new();
    for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        let (name, width) = match item.split_once('%') {
            Some((name, width)) => (name, Some(width)),
            None => (item, None),
        };
        if name.eq_ignore_ascii_case("all") {
            columns.extend_from_slice(FIELDS);
            continue;
        }
        let unknown = || format!("Invalid field requested: \"{name}\"");
        let mut column = Some(name).filter(|n| !n.is_empty()).and_then(find).ok_or_else(unknown)?;
        if let Some(width) = width {
            let (right, digits) = match width.strip_prefix('-') {
                Some(digits) => (false, digits),
                None => (true, width),
            };
            let width = digits.parse::<u16>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
            column.width = width.ok_or_else(|| format!("Invalid field width: \"{item}\""))?.into();
            column.right = right;
        }
        columns.push(column);
    }
    Ok(columns)
}

/// `--helpformat`: four names a line.
pub fn help_text() -> String {
    let mut text = String::new();
    for line in FIELDS.chunks(4) {
        let names: Vec<String> = line.iter().map(|c| format!("{:<19}", c.header)).collect();
        text.push_str(&names.join(" "));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &str) -> Vec<&'static str> {
        parse(text).unwrap().iter().map(|c| c.header).collect()
    }

    #[test]
    fn names_are_read_in_any_case_cut_short_and_in_former_spellings() {
        let read = headers("JOBID, jobIdRaw,stat,tresusageinmaxn,,Reserved");
        assert_eq!(read, ["JobID", "JobIDRaw", "State", "TRESUsageInMaxNode", "Reserved"]);
        assert_eq!(headers("all").len(), FIELDS.len());
        assert_eq!(parse("nosuch").unwrap_err(), "Invalid field requested: \"nosuch\"");
        assert!(parse("%20").is_err());
    }

    #[test]
    fn a_width_sets_the_side_as_well() {
        let columns = parse("jobid%5,state%-256,end").unwrap();
        let shape: Vec<_> = columns.iter().map(|c| (c.width, c.right)).collect();
        assert_eq!(shape, [(5, true), (256, false), (19, true)]);
        for bad in ["jobid%", "jobid%x", "jobid%-", "jobid%+3", "jobid%99999999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_field_of_the_list_can_be_asked_for_by_the_name_it_is_listed_under() {
        let text = help_text();
        let names: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(names.len(), FIELDS.len());
        assert_eq!(headers(&names.join(",")), names);
        assert!(text.starts_with("Account             AdminComment        AllocCPUS           AllocNodes         \n"));
    }
}
