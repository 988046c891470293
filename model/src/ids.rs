//! Identifiers. Each is its own type, so that a step number can't be passed where a job id belongs.

use std::fmt;
use std::sync::Arc;

/// A job's number, unique for the life of the cluster; never 0. Each started array task has one of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobId(pub u32);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which step of a job. Slurm's reserved numbers: batch −5, extern −4, interactive −6.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StepId {
    Batch,
    Extern,
    Interactive,
    Numbered(u32),
}

impl StepId {
    /// Slurm's 32-bit encoding of step ids (0xfffffffb for batch …), also our wire form.
    pub fn to_wire(self) -> u32 {
        match self {
            StepId::Batch => 0xffff_fffb,
            StepId::Extern => 0xffff_fffc,
            StepId::Interactive => 0xffff_fffa,
            StepId::Numbered(n) => n,
        }
    }
    pub fn from_wire(n: u32) -> Self {
        match n {
            0xffff_fffb => StepId::Batch,
            0xffff_fffc => StepId::Extern,
            0xffff_fffa => StepId::Interactive,
            n => StepId::Numbered(n),
        }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepId::Batch => f.pad("batch"),
            StepId::Extern => f.pad("extern"),
            StepId::Interactive => f.pad("interactive"),
            StepId::Numbered(n) => n.fmt(f),
        }
    }
}

/// One step of one attempt of one job: the key under which a launch is done at most once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StepKey {
    pub job: JobId,
    /// 0 for the first run, one more after each requeue (SLURM_RESTART_COUNT).
    pub attempt: u32,
    pub step: StepId,
}

impl fmt::Display for StepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job, self.step)
    }
}

/// Made at random by whoever submits, before the first try: a submission that is sent again because its answer was lost
/// carries the same key, and is taken once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubmissionKey(pub [u8; 16]);

impl fmt::Debug for SubmissionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A node's name as the configuration has it (`SLURMD_NODENAME`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    pub fn new(name: impl AsRef<str>) -> Self {
        NodeName(Arc::from(name.as_ref()))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl From<&str> for NodeName {
    fn from(s: &str) -> Self {
        NodeName::new(s)
    }
}
impl std::borrow::Borrow<str> for NodeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// SHA-256 of a script or an environment block; the bytes live in the controller's blob store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub [u8; 32]);

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for b in &self.0[..6] {
            write!(f, "{b:02x}")?;
        }
        Ok(())
    }
}
