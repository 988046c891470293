//! Why a job waits or how it ended, in Slurm's words (squeue's manual page, "JOB REASON CODES").
//!
//! The numbers are ours and are persisted: add at the end, never renumber. A reason never holds a blank.

macro_rules! reasons {
    ($first:ident = $fnum:literal $ftext:literal, $($name:ident = $num:literal $text:literal),* $(,)?) => {
        /// A reason code.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(u16)]
        pub enum Reason {
            #[default]
            $first = $fnum,
            $($name = $num),*
        }
        impl Reason {
            pub const ALL: &'static [Reason] = &[Reason::$first, $(Reason::$name),*];
            pub fn as_str(self) -> &'static str {
                match self { Reason::$first => $ftext, $(Reason::$name => $text),* }
            }
            /// Unknown numbers (from a newer release) read as None.
            pub fn from_number(n: u32) -> Reason {
                match n { $($num => Reason::$name,)* _ => Reason::$first }
            }
            pub fn number(self) -> u32 {
                u32::from(self as u16)
            }
        }
    };
}

reasons! {
    None = 0 "None",
    Priority = 1 "Priority",
    Resources = 2 "Resources",
    Dependency = 3 "Dependency",
    DependencyNeverSatisfied = 4 "DependencyNeverSatisfied",
    BeginTime = 5 "BeginTime",
    JobHeldUser = 6 "JobHeldUser",
    JobHeldAdmin = 7 "JobHeldAdmin",
    JobArrayTaskLimit = 8 "JobArrayTaskLimit",
    PartitionDown = 9 "PartitionDown",
    PartitionInactive = 10 "PartitionInactive",
    PartitionNodeLimit = 11 "PartitionNodeLimit",
    PartitionTimeLimit = 12 "PartitionTimeLimit",
    NodeDown = 13 "NodeDown",
    ReqNodeNotAvail = 14 "ReqNodeNotAvail",
    BadConstraints = 15 "BadConstraints",
    Licenses = 16 "Licenses",
    Reservation = 17 "Reservation",
    DeadLine = 18 "DeadLine",
    JobHoldMaxRequeue = 19 "JobHoldMaxRequeue",
    JobLaunchFailure = 20 "JobLaunchFailure",
    NonZeroExitCode = 21 "NonZeroExitCode",
    RaisedSignal = 22 "RaisedSignal",
    TimeLimit = 23 "TimeLimit",
    OutOfMemory = 24 "OutOfMemory",
    NodeFail = 25 "NodeFail",
    InactiveLimit = 26 "InactiveLimit",
    SystemFailure = 27 "SystemFailure",
    AssocMaxJobsLimit = 28 "AssocMaxJobsLimit",
    AccountNotAllowed = 29 "AccountNotAllowed",
    QOSNotAllowed = 30 "QOSNotAllowed",
    InvalidAccount = 31 "InvalidAccount",
    InvalidQOS = 32 "InvalidQOS",
    Prolog = 33 "Prolog",
    Cleaning = 34 "Cleaning",
    SchedDefer = 35 "SchedDefer",
    MaxRequeueLimit = 36 "MaxRequeueLimit",
    UserNotAllowed = 37 "UserNotAllowed",
    GroupNotAllowed = 38 "GroupNotAllowed",
    Immediate = 39 "Immediate",
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
