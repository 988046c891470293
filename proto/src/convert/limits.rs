//! Our own limits on what a message may hold. They are wide for people and narrow for attackers; a value above one is
//! an error that names the field.

/// Node names of one list.
pub const NODES: usize = 65_536;
/// Ranges of one index set.
pub const RANGES: usize = 65_536;
/// Terms of one dependency.
pub const DEPENDENCY_TERMS: usize = 16_384;
/// Parts of one constraint expression, and how deep they nest.
pub const CONSTRAINT_PARTS: usize = 1_024;
pub const CONSTRAINT_DEPTH: usize = 32;
/// GRES entries of one list.
pub const GRES: usize = 256;
/// Partitions, licences, stored options, limits of one job.
pub const LIST: usize = 1_024;
/// Arguments of one script.
pub const ARGS: usize = 65_536;
/// Bytes of one name or word (account, partition, feature, user …).
pub const WORD: usize = 1_024;
/// Bytes of a node's name.
pub const NODE_NAME: usize = 255;
/// Bytes of a path or a file-name pattern (PATH_MAX).
pub const PATH: usize = 4_096;
/// Bytes of a comment, an option's text or an expression.
pub const TEXT: usize = 65_536;
/// Bytes of one argument or of a command line as typed.
pub const ARGUMENT: usize = 2 << 20;
/// MiB of memory or disk, and counts of a GRES: sums over a whole cluster stay far below 2^64.
pub const QUANTITY: u64 = 1 << 40;
/// The latest point in time, ms: the end of the year 9999.
pub const LAST_TIME: i64 = 253_402_300_799_999;
