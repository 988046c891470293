//! What is wrong with a configuration file, and where.

use std::fmt;

/// One problem. Prints as `FILE:LINE: KEY: MESSAGE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigProblem {
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// `timing.kill_wait_secs`, `partition main.nodes`; empty for the file as a whole.
    pub key: String,
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigProblem {}

/// The known key that `unknown` may have been meant to be. Case, `_` and `-` do not count, so that slurm.conf's
/// spelling (`MaxTime`, `KillWait`) finds ours.
pub(super) fn did_you_mean<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    // Slurm's words for which ours differ.
    const SLURM: [(&str, &str); 7] = [
        ("realmemory", "memory_mb"),
        ("tmpdisk", "tmp_disk_mb"),
        ("nodename", "name"),
        ("partitionname", "name"),
        ("nodeaddr", "address"),
        ("slurmdtimeout", "node_timeout_secs"),
        ("clustername", "cluster_name"),
    ];
    let squash = |t: &str| t.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_ascii_lowercase();
    let wanted = squash(&unknown.chars().take(64).collect::<String>());
    let by_slurm = SLURM.iter().find(|(slurm, _)| *slurm == wanted).map(|(_, ours)| *ours);
    if let Some(found) = known.iter().find(|k| Some(**k) == by_slurm || squash(k) == wanted) {
        return Some(found);
    }
    if wanted.len() >= 4
        && let Some(found) = known.iter().find(|k| squash(k).starts_with(&wanted))
    {
        return Some(found);
    }
    let near = known.iter().map(|k| (distance(&wanted, &squash(k)), *k)).min()?;
    (near.0 <= 1 + wanted.len() / 5).then_some(near.1)
}

/// Levenshtein's edit distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn typing_errors_and_slurms_spelling_find_the_key() {
        let known = ["name", "memory_mb", "max_time", "kill_wait_secs"];
        for (typed, meant) in
            [("nmae", None), ("namee", Some("name")), ("MaxTime", Some("max_time")), ("RealMemory", Some("memory_mb"))]
        {
            assert_eq!(did_you_mean(typed, &known), meant, "{typed}");
        }
        assert_eq!(did_you_mean("KillWait", &known), Some("kill_wait_secs"));
        assert_eq!(did_you_mean("something_else", &known), None);
        assert_eq!(did_you_mean(&"x".repeat(100_000), &known), None);
    }
}
