//! `squeue --steps`: the fields of a step and their values.
//!
//! Source: squeue(1), `--steps` and the fields "valid for job steps"; headers as Slurm prints them.

use super::values::Context;
use crate::view::{clock, job as facts, tres};
use sluice_model::hostlist;
use sluice_proto::v1;
use std::cmp::Ordering;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    ArrayJobId,
    ArrayTaskId,
    Cluster,
    CpuFreq,
    JobId,
    Name,
    Nodes,
    NumCpus,
    NumTasks,
    Partition,
    StartTime,
    State,
    StepId,
    TimeLimit,
    TimeUsed,
    TresPerStep,
    UserId,
    UserName,
    /// What steps here never have.
    Null,
}

struct Info {
    field: Field,
    letter: Option<char>,
    names: &'static [&'static str],
    header: &'static str,
}

const fn row(field: Field, letter: char, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: Some(letter), names, header }
}
const fn named(field: Field, names: &'static [&'static str], header: &'static str) -> Info {
    Info { field, letter: None, names, header }
}

static FIELDS: &[Info] = &[
    row(Field::TresPerStep, 'b', &["tres-per-node"], "TRES_PER_NODE"),
    row(Field::StepId, 'i', &["stepid"], "STEPID"),
    row(Field::Name, 'j', &["stepname"], "NAME"),
    row(Field::TimeLimit, 'l', &["timelimit"], "TIME_LIMIT"),
    row(Field::UserName, 'u', &["username"], "USER"),
    row(Field::NumTasks, 'A', &["numtasks"], "TASKS"),
    row(Field::TimeUsed, 'M', &["timeused"], "TIME"),
    row(Field::Nodes, 'N', &["nodes", "nodelist"], "NODELIST"),
    row(Field::Partition, 'P', &["partition"], "PARTITION"),
    row(Field::StartTime, 'S', &["starttime"], "START_TIME"),
    row(Field::UserId, 'U', &["userid"], "UID"),
    named(Field::State, &["stepstate"], "STATE"),
    named(Field::JobId, &["jobid"], "JOB_ID"),
    named(Field::ArrayJobId, &["arrayjobid"], "ARRAY_JOB_ID"),
    named(Field::ArrayTaskId, &["arraytaskid"], "ARRAY_TASK_ID"),
    named(Field::Cluster, &["cluster"], "CLUSTER"),
    named(Field::CpuFreq, &["cpufreq"], "CPU_FREQ"),
    named(Field::NumCpus, &["numcpus"], "NUM_CPUS"),
    named(Field::TresPerStep, &["tres-per-step"], "TRES_PER_STEP"),
    named(Field::Null, &["container"], "CONTAINER"),
    named(Field::Null, &["containerid"], "CONTAINER_ID"),
    named(Field::Null, &["containertype"], "CONTAINER_TYPE"),
    named(Field::Null, &["network"], "NETWORK"),
    named(Field::Null, &["resvport"], "RESV_PORTS"),
    named(Field::Null, &["cpus-per-tres"], "CPUS_PER_TRES"),
    named(Field::Null, &["mem-per-tres"], "MEM_PER_TRES"),
    named(Field::Null, &["tres-bind"], "TRES_BIND"),
    named(Field::Null, &["tres-freq"], "TRES_FREQ"),
    named(Field::Null, &["tres-per-job"], "TRES_PER_JOB"),
    named(Field::Null, &["tres-per-socket"], "TRES_PER_SOCKET"),
    named(Field::Null, &["tres-per-task"], "TRES_PER_TASK"),
];

/// A field with its header: two fields may share a value and differ in their heading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    pub field: Field,
    pub header: &'static str,
}

pub fn by_letter(letter: char) -> Option<Shown> {
    FIELDS.iter().find(|f| f.letter == Some(letter)).map(|f| Shown { field: f.field, header: f.header })
}

pub fn by_name(name: &str) -> Option<Shown> {
    FIELDS
        .iter()
        .find(|f| f.names.iter().any(|n| n.eq_ignore_ascii_case(name)))
        .map(|f| Shown { field: f.field, header: f.header })
}

/// `%all`. Slurm ends this line, unlike that of jobs, with a bar.
pub const ALL_LETTERS: &str = "%b|%i|%j|%l|%u|%A|%M|%N|%P|%S|%U|";

/// A running step of a job.
pub type Row<'a> = (&'a v1::JobRecord, &'a v1::StepRecord);

/// Steps that have not ended, in the default order: partition, then step id.
pub fn running(jobs: &[v1::JobRecord]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> =
        jobs.iter().flat_map(|j| j.steps.iter().filter(|s| s.end.is_none()).map(move |s| (j, s))).collect();
    rows.sort_by(|a, b| a.0.partition.cmp(&b.0.partition).then(compare(Field::StepId, *a, *b)));
    rows
}

/// Sorts by a list such as `P,i`; an unknown letter is the error.
pub fn sort(rows: &mut [Row<'_>], list: &str) -> Result<(), char> {
    let mut keys = Vec::new();
    let mut descending = false;
    for letter in list.chars() {
        match letter {
            ',' | ' ' | '+' => descending = false,
            '-' => descending = true,
            letter => {
                keys.push((by_letter(letter).ok_or(letter)?.field, descending));
                descending = false;
            }
        }
    }
    rows.sort_by(|a, b| {
        keys.iter().fold(Ordering::Equal, |order, (field, descending)| {
            let next = compare(*field, *a, *b);
            order.then(if *descending { next.reverse() } else { next })
        })
    });
    Ok(())
}

fn compare(field: Field, a: Row<'_>, b: Row<'_>) -> Ordering {
    let number = |s: &v1::StepRecord| s.key.map_or(0, |k| k.step);
    match field {
        Field::StepId => facts::order(a.0).cmp(&facts::order(b.0)).then(number(a.1).cmp(&number(b.1))),
        Field::Partition => a.0.partition.cmp(&b.0.partition),
        Field::Name => a.1.name.cmp(&b.1.name),
        Field::UserName => a.0.user.cmp(&b.0.user),
        Field::UserId => a.0.uid.cmp(&b.0.uid),
        Field::NumTasks => a.1.tasks.cmp(&b.1.tasks),
        Field::StartTime => a.1.start.cmp(&b.1.start),
        Field::TimeUsed => b.1.start.cmp(&a.1.start),
        Field::Nodes => a.1.nodes.cmp(&b.1.nodes),
        _ => Ordering::Equal,
    }
}

pub fn write(context: &Context<'_>, field: Field, (job, step): Row<'_>, out: &mut Vec<u8>) {
    let text = match field {
        Field::StepId => facts::step_id(job, step),
        Field::Name => facts::text(&step.name).into_owned(),
        Field::Partition => job.partition.clone(),
        Field::UserName => job.user.clone(),
        Field::UserId => job.uid.to_string(),
        Field::NumTasks => step.tasks.to_string(),
        Field::NumCpus => step.cpus.to_string(),
        Field::TimeUsed => clock::elapsed(context.clock.now.0.saturating_sub(step.start)),
        Field::TimeLimit => "UNLIMITED".to_owned(),
        Field::Nodes => hostlist::fold(&step.nodes),
        Field::StartTime => context.clock.time(step.start),
        Field::State => step.state.clone(),
        Field::JobId => job.id.to_string(),
        Field::ArrayJobId => job.array_job.unwrap_or(0).to_string(),
        Field::ArrayTaskId => job.array_index.map_or_else(|| "N/A".to_owned(), |i| i.to_string()),
        Field::Cluster => context.cluster.to_owned(),
        Field::CpuFreq => "Unknown-Unknown:Unknown".to_owned(),
        Field::TresPerStep => match tres::gres_specs(&step.gres) {
            gres if gres.is_empty() => "(null)".to_owned(),
            gres => gres.split(',').map(|g| format!("gres/{g}")).collect::<Vec<_>>().join(","),
        },
        Field::Null => "(null)".to_owned(),
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    #[test]
    fn numbered_steps_come_before_the_batch_step() {
        let mut jobs = fixture::jobs();
        jobs.retain(|j| j.state == "RUNNING");
        let ids = |rows: &[Row<'_>]| rows.iter().map(|(j, s)| facts::step_id(j, s)).collect::<Vec<_>>();
        let mut rows = running(&jobs);
        assert_eq!(ids(&rows), ["2.0", "2.batch", "3_0.batch", "3_1.batch"]);
        sort(&mut rows, "-i").unwrap();
        assert_eq!(ids(&rows), ["3_1.batch", "3_0.batch", "2.batch", "2.0"]);
        assert_eq!(sort(&mut rows, "R"), Err('R'));
    }
}
