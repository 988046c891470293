//! Where a batch job's streams go, with patterns expanded, as `scontrol show job` and JSON report them.
//!
//! Sources: sbatch(1), "filename pattern"; recorded outputs of Slurm 26.05 (`StdErr=` is empty when it follows stdout).

use super::job::text;
use crate::text::release;
use sluice_model::filename::{self, FilenameContext};
use sluice_proto::v1;

/// The pattern of the output file when the job names none.
pub fn default_pattern(job: &v1::JobRecord) -> &'static str {
    if job.array_job.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" }
}

/// As given, or the default; empty for jobs without a script.
pub fn stdout_pattern(job: &v1::JobRecord) -> String {
    match batch_io(job) {
        None => String::new(),
        Some(io) => io.stdout.as_deref().map_or_else(|| default_pattern(job).to_owned(), |p| text(p).into_owned()),
    }
}

pub fn stderr_pattern(job: &v1::JobRecord) -> String {
    batch_io(job).and_then(|io| io.stderr).map(|p| text(&p).into_owned()).unwrap_or_default()
}

pub fn stdin_pattern(job: &v1::JobRecord) -> String {
    match batch_io(job) {
        None => String::new(),
        Some(io) => io.stdin.as_deref().map_or_else(|| "/dev/null".to_owned(), |p| text(p).into_owned()),
    }
}

/// `/tmp/slurm-2.out`
pub fn stdout(job: &v1::JobRecord) -> String {
    expand(job, &stdout_pattern(job))
}
pub fn stderr(job: &v1::JobRecord) -> String {
    expand(job, &stderr_pattern(job))
}
pub fn stdin(job: &v1::JobRecord) -> String {
    expand(job, &stdin_pattern(job))
}

fn batch_io(job: &v1::JobRecord) -> Option<v1::JobIo> {
    let spec = job.spec.as_ref().filter(|s| s.batch)?;
    Some(spec.io.clone().unwrap_or_default())
}

fn expand(job: &v1::JobRecord, pattern: &str) -> String {
    if pattern.is_empty() {
        return String::new();
    }
    if pattern.eq_ignore_ascii_case("none") {
        return "/dev/null".to_owned();
    }
    // What waits of an array has no index yet: Slurm prints its "no value", as the model does for a missing one.
    let array = job.array_job.map(|base| (base, job.array_index.unwrap_or(u32::MAX - 1)));
    let context = FilenameContext {
        job_id: job.id,
        array,
        node: &job.batch_host,
        user: &job.user,
        job_name: &job.name,
        ..FilenameContext::default()
    };
    let file = text(&filename::expand(&release(pattern.as_bytes()), &context)).into_owned();
    let work_dir = job.spec.as_ref().map(|s| text(&s.work_dir).into_owned()).unwrap_or_default();
    if file.starts_with('/') || work_dir.is_empty() {
        file
    } else {
        format!("{}/{file}", work_dir.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    #[test]
    fn files_are_named_as_the_recorded_cluster_names_them() {
        assert_eq!(stdout(&fixture::job(2)), "/tmp/slurm-2.out");
        assert_eq!(stdout(&fixture::job(8)), "/tmp/slurm-3_0.out");
        assert_eq!(stdout(&fixture::job(3)), "/tmp/slurm-3_4294967294.out");
        assert_eq!(stderr(&fixture::job(2)), "");
        assert_eq!(stdin(&fixture::job(2)), "/dev/null");
    }

    #[test]
    fn given_patterns_are_expanded_below_the_work_directory() {
        let mut job = fixture::job(2);
        let io = v1::JobIo { stdout: Some(b"out/%x-%u.%j".to_vec().into()), ..Default::default() };
        job.spec.as_mut().unwrap().io = Some(io);
        assert_eq!(stdout(&job), "/tmp/out/running-user1.2");
        job.spec.as_mut().unwrap().batch = false;
        assert_eq!(stdout(&job), "");
    }
}
