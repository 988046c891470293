//! What a user submits. Immutable after submission except through `scontrol update`.

use crate::dependency::Dependency;
use crate::ids::BlobId;
use crate::index_set::IndexSet;
use crate::request::ResourceRequest;
use crate::shared::Shared;
use crate::text::OsBytes;
use crate::time::{Time, TimeLimit};
use std::collections::BTreeMap;

/// Batch jobs run a script on their first node; allocations are driven by a client (salloc, srun).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobKind {
    Batch {
        script: BlobId,
        /// Arguments after the script's name.
        args: Vec<OsBytes>,
    },
    Allocation,
}

/// `--array=0-15:4%3`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArraySpec {
    pub indices: IndexSet,
    /// `%limit`; None when unlimited.
    pub throttle: Option<u32>,
    /// The step given (`:4`), for SLURM_ARRAY_TASK_STEP; 1 when none.
    pub step: u32,
}

/// `--signal=[{R|B}:]sig_num[@sig_time]`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalRequest {
    pub signal: u8,
    /// Seconds before the time limit.
    pub before_secs: u32,
    /// `B:` – to the batch shell only.
    pub batch_shell: bool,
    /// `R:` – to make way for a reservation (stored).
    pub reservation: bool,
}

/// `--open-mode`
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpenMode {
    Append,
    Truncate,
}

/// Where the batch step's streams go. Patterns (`%j` …) unexpanded; None means Slurm's default.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct JobIo {
    pub stdin: Option<OsBytes>,
    pub stdout: Option<OsBytes>,
    pub stderr: Option<OsBytes>,
    pub open_mode: Option<OpenMode>,
}

/// Bits of `--mail-type`. ALL = BEGIN|END|FAIL|REQUEUE|STAGE_OUT|INVALID_DEPEND.
pub mod mail {
    pub const BEGIN: u32 = 1;
    pub const END: u32 = 1 << 1;
    pub const FAIL: u32 = 1 << 2;
    pub const REQUEUE: u32 = 1 << 3;
    pub const STAGE_OUT: u32 = 1 << 4;
    pub const INVALID_DEPEND: u32 = 1 << 5;
    pub const TIME_LIMIT: u32 = 1 << 6;
    pub const TIME_LIMIT_90: u32 = 1 << 7;
    pub const TIME_LIMIT_80: u32 = 1 << 8;
    pub const TIME_LIMIT_50: u32 = 1 << 9;
    pub const ARRAY_TASKS: u32 = 1 << 10;
}

/// One resource limit to propagate (setrlimit(2)); soft value, `u64::MAX` = unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PropagatedLimit {
    /// Slurm's name, one of `sharing::LIMIT_NAMES`.
    pub name: &'static str,
    pub soft: u64,
}

/// What was submitted. `user`, `uid`, `gid` and `group` are set by the controller from the proven identity. What many jobs
/// have in common is `Shared`, and what few have is boxed: there may be a hundred thousand of these in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobSpec {
    pub name: OsBytes,
    pub kind: JobKind,
    pub uid: u32,
    pub gid: u32,
    pub user: Shared<String>,
    pub group: Shared<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub wckey: Option<String>,
    /// In the user's order; empty = the default partition.
    pub partitions: Shared<Vec<String>>,
    pub request: Shared<ResourceRequest>,
    pub time_limit: Option<TimeLimit>,
    pub time_min: Option<TimeLimit>,
    pub begin: Option<Time>,
    pub deadline: Option<Time>,
    pub dependency: Option<Box<Dependency>>,
    pub array: Option<Box<ArraySpec>>,
    pub hold: bool,
    /// `--priority`
    pub priority: Option<u32>,
    pub nice: i32,
    /// Added to the priority by an operator (`scontrol update SiteFactor`).
    pub site_factor: i32,
    /// `--requeue` / `--no-requeue`; None = the cluster's default.
    pub requeue: Option<bool>,
    pub kill_on_invalid_dep: Option<bool>,
    pub signal: Option<SignalRequest>,
    pub comment: Option<OsBytes>,
    pub mail_type: u32,
    pub mail_user: Option<String>,
    pub reservation: Option<String>,
    /// name → count
    pub licenses: Shared<BTreeMap<String, u32>>,
    pub io: Shared<JobIo>,
    pub work_dir: OsBytes,
    /// `NAME=value` blocks, each ended by NUL.
    pub environment: BlobId,
    pub get_user_env: bool,
    pub limits: Shared<Vec<PropagatedLimit>>,
    pub umask: u32,
    pub submit_host: Shared<String>,
    /// The session id of the submitting process (AllocNode:Sid).
    pub submit_sid: u32,
    pub submit_line: OsBytes,
    /// The script's path as given (Command=); None for stdin and --wrap.
    pub command: Option<OsBytes>,
    /// `--immediate`: cancel when it can't start within so many seconds.
    pub immediate_secs: Option<u32>,
    /// An allocation for one step (srun alone): it ends with that step, also when the client that made it is gone.
    pub ends_with_step: bool,
    /// Options whose effect comes with a later release: long option name → value as given, checked for form.
    pub stored: Shared<BTreeMap<String, String>>,
}

impl JobSpec {
    /// A submission that says only what it is and whose; everything else is as if nothing had been asked for, with the
    /// umask 022. Where a job says more, take it with `..JobSpec::new(…)`.
    pub fn new(name: impl Into<OsBytes>, kind: JobKind, (uid, user): (u32, &str), (gid, group): (u32, &str)) -> Self {
        JobSpec {
            name: name.into(),
            kind,
            uid,
            gid,
            user: user.to_owned().into(),
            group: group.to_owned().into(),
            account: None,
            qos: None,
            wckey: None,
            partitions: Shared::default(),
            request: Shared::default(),
            time_limit: None,
            time_min: None,
            begin: None,
            deadline: None,
            dependency: None,
            array: None,
            hold: false,
            priority: None,
            nice: 0,
            site_factor: 0,
            requeue: None,
            kill_on_invalid_dep: None,
            signal: None,
            comment: None,
            mail_type: 0,
            mail_user: None,
            reservation: None,
            licenses: Shared::default(),
            io: Shared::default(),
            work_dir: OsBytes::default(),
            environment: BlobId([0; 32]),
            get_user_env: false,
            limits: Shared::default(),
            umask: 0o022,
            submit_host: Shared::default(),
            submit_sid: 0,
            submit_line: OsBytes::default(),
            command: None,
            immediate_secs: None,
            ends_with_step: false,
            stored: Shared::default(),
        }
    }
}
