//! From records to lines: expands arrays and partitions, sorts, writes header and rows. No call is made here.

use super::settings::{Settings, Shown};
use super::steps;
use super::values::Context;
use crate::view::columns::Layout;
use sluice_model::JobState;
use sluice_model::job_target::JobTarget;
use sluice_model::{JobId, StepId};
use sluice_proto::v1;
use std::process::ExitCode;

/// Above the table: the time with `--long` and `--iterate`, the header unless it is unwanted.
pub fn head(settings: &Settings, context: &Context<'_>, headed: bool, out: &mut Vec<u8>) {
    if headed {
        out.extend_from_slice(format!("CLUSTER: {}\n", context.cluster).as_bytes());
    }
    if !settings.header {
        return;
    }
    if settings.long || settings.iterate.is_some() {
        out.extend_from_slice(format!("{}\n", context.clock.heading()).as_bytes());
    }
    match &settings.shown {
        Shown::Jobs(layout) => layout.row(out, |f, out| out.extend_from_slice(f.header.as_bytes())),
        Shown::Steps(layout) => layout.row(out, |f, out| out.extend_from_slice(f.header.as_bytes())),
    }
}

/// Keeps what the controller does not select itself.
pub fn keep(settings: &Settings, me: Option<&str>, job: &v1::JobRecord) -> bool {
    let spec = job.spec.as_ref();
    let licensed = || {
        spec.is_some_and(|s| {
            settings.licenses.iter().any(|l| s.licenses.contains_key(l.split(':').next().unwrap_or_default()))
        })
    };
    let reserved = || spec.and_then(|s| s.reservation.as_ref()).is_some_and(|r| settings.reservations.contains(r));
    let ran = u128::try_from(job.elapsed_ms).unwrap_or(0);
    let running = job.state == JobState::Running.long();
    (settings.licenses.is_empty() || licensed())
        && (settings.reservations.is_empty() || reserved())
        && settings.running_over.is_none_or(|d| running && ran > d.as_millis())
        && settings.running_under.is_none_or(|d| running && ran < d.as_millis())
        && me.is_none_or(|me| job.user != me)
}

/// A waiting job of several partitions as one record for each, as `--priority` shows it.
pub fn split_partitions(settings: &Settings, job: v1::JobRecord) -> Vec<v1::JobRecord> {
    if !crate::view::job::is_waiting(&job) || !job.partition.contains(',') {
        return vec![job];
    }
    let wanted = |p: &&str| settings.partitions.is_empty() || settings.partitions.iter().any(|w| w == p);
    let one = |partition: &str| v1::JobRecord { partition: partition.to_owned(), ..job.clone() };
    job.partition.split(',').filter(wanted).map(one).collect()
}

/// Is the job, or task, one of those named? All are when none is.
pub fn wanted(targets: &[JobTarget], job: &v1::JobRecord) -> bool {
    targets.is_empty() || targets.iter().any(|t| covers(t, job))
}

fn covers(target: &JobTarget, job: &v1::JobRecord) -> bool {
    let ids = [Some(job.id), job.array_job];
    ids.contains(&Some(target.job.0))
        && target.tasks.as_ref().is_none_or(|tasks| job.array_index.is_some_and(|i| tasks.contains(i)))
}

/// Rows of steps.
pub fn step_rows(
    settings: &Settings,
    layout: &Layout<steps::Shown>,
    context: &Context<'_>,
    records: &[v1::JobRecord],
    out: &mut Vec<u8>,
) -> Result<(), ExitCode> {
    let mut rows = steps::running(records);
    rows.retain(|(job, step)| {
        let number = StepId::from_wire(step.key.map_or(0, |k| k.step));
        settings.steps.is_empty()
            || settings.steps.iter().any(|t| covers(t, job) && t.step.is_none_or(|wanted| wanted == number))
    });
    if let Some(list) = &settings.sort {
        steps::sort(&mut rows, list).map_err(|letter| {
            crate::errln!("squeue: error: Invalid sort specification: {letter}");
            ExitCode::from(1)
        })?;
    }
    for row in rows {
        layout.row(out, |shown, out| steps::write(context, shown.field, row, out));
    }
    Ok(())
}

/// The target's job ids, for the request.
pub fn wire_targets(targets: &[JobTarget]) -> Vec<v1::JobTarget> {
    let one = |t: &JobTarget| {
        let JobId(job) = t.job;
        v1::JobTarget { job, tasks: t.tasks.as_ref().map(v1::IndexSet::from) }
    };
    targets.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fields::Info;
    use super::super::rows::Rows;
    use super::super::settings::test::of;
    use super::*;
    use crate::view::{fixture, recorded};
    use std::collections::BTreeMap;

    fn rows(
        settings: &Settings,
        layout: &Layout<&'static Info>,
        context: &Context<'_>,
        records: &[v1::JobRecord],
        tiers: Option<&BTreeMap<String, u32>>,
    ) -> Vec<u8> {
        let mut rows = Rows::new(settings, layout, context, settings.order().ok().unwrap(), tiers, 0);
        records.iter().for_each(|job| rows.add(job));
        rows.finish()
    }
    fn print(words: &[&str], records: Vec<v1::JobRecord>) -> String {
        let settings = of(words).ok().unwrap();
        let clock = fixture::clock();
        let context = Context { clock: &clock, cluster: "test_cluster", bitstr_len: 64 };
        let mut out = Vec::new();
        head(&settings, &context, false, &mut out);
        match &settings.shown {
            Shown::Jobs(layout) => out.extend(rows(&settings, layout, &context, &records, None)),
            Shown::Steps(layout) => step_rows(&settings, layout, &context, &records, &mut out).ok().unwrap(),
        }
        String::from_utf8(out).unwrap()
    }
    /// Those that squeue shows unless told otherwise.
    fn live() -> Vec<v1::JobRecord> {
        fixture::jobs().into_iter().filter(|j| j.state != "FAILED").collect()
    }
    /// The recorded tables hold a user name that was put in the place of a shorter one, and have jobs of equal priority
    /// in the order of Slurm's own list.
    fn compare(ours: &str, recorded: &str) {
        let recorded = recorded.replace("     user1", "   user1");
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines.join("\n")
        };
        recorded::assert_same(sorted(ours).lines(), sorted(&recorded).lines());
    }

    #[test]
    fn the_default_and_long_tables_are_as_recorded() {
        compare(&print(&[], live()), include_str!("../../../tests/data/squeue.txt"));
        compare(&print(&["-l"], live()), include_str!("../../../tests/data/squeue-l.txt"));
        assert!(print(&["-l"], live()).starts_with("Mon Nov 30 09:59:56 2026\n             JOBID PARTITION"));
    }

    #[test]
    fn arrays_may_be_split_into_tasks() {
        compare(&print(&["-r"], live()), include_str!("../../../tests/data/squeue-r.txt"));
        let named = print(&["-r", "-h", "-j", "3_[2,4]", "-o", "%i"], vec![fixture::job(3)]);
        assert_eq!(named, "3_2\n3_4\n");
    }

    #[test]
    fn steps_and_expected_starts_are_as_recorded() {
        compare(&print(&["-s"], live()), include_str!("../../../tests/data/squeue-s.txt"));
        let waiting = live().into_iter().filter(|j| j.state == "PENDING").collect();
        compare(&print(&["--start"], waiting), include_str!("../../../tests/data/squeue-start.txt"));
        assert_eq!(print(&["-h", "-s2.0", "-o", "%i %A"], live()), "2.0 2\n");
    }

    #[test]
    fn what_is_absent_has_slurms_words() {
        let held = print(&["-h", "-o", "%r|%R|%B|%S|%b|%k|%N|%E"], vec![fixture::job(4)]);
        assert_eq!(held, "JobHeldUser|(JobHeldUser)|n/a|N/A|N/A|(null)||(null)\n");
        let failed = print(&["-h", "-O", "jobarrayid:12,statecompact:12,reason:30"], vec![fixture::job(1)]);
        assert_eq!(failed.split_whitespace().collect::<Vec<_>>(), ["1", "F", "NonZeroExitCode"]);
    }

    #[test]
    fn all_fields_have_equally_many_bars() {
        let text = print(&["-o", "%all"], live());
        let header = "ACCOUNT|TRES_PER_NODE|MIN_CPUS|MIN_TMP_DISK|END_TIME|FEATURES|GROUP|OVER_SUBSCRIBE|JOBID|NAME|COMMENT|\
            TIME_LIMIT|MIN_MEMORY|REQ_NODES|COMMAND|PRIORITY|QOS|REASON||ST|USER|RESERVATION|WCKEY|EXC_NODES|NICE|S:C:T|JOBID|\
            EXEC_HOST|CPUS|NODES|DEPENDENCY|ARRAY_JOB_ID|GROUP|SOCKETS_PER_NODE|CORES_PER_SOCKET|THREADS_PER_CORE|\
            ARRAY_TASK_ID|TIME_LEFT|TIME|NODELIST|CONTIGUOUS|PARTITION|PRIORITY|NODELIST(REASON)|START_TIME|STATE|UID|\
            SUBMIT_TIME|LICENSES|CORE_SPEC|SCHEDNODES|WORK_DIR";
        assert_eq!(text.lines().next(), Some(header));
        assert!(text.lines().all(|l| l.matches('|').count() == header.matches('|').count()));
        assert!(text.contains("|0.00000257929787|"), "{text}");
    }

    #[test]
    fn a_job_of_several_partitions_shows_once_for_each_with_priority() {
        let mut job = fixture::job(5);
        job.partition = "primary,second".into();
        let tiers = BTreeMap::from([("primary".to_owned(), 1), ("second".to_owned(), 9)]);
        let settings = of(&["-P", "-h", "-o", "%P", "-S", "-p"]).ok().unwrap();
        let clock = fixture::clock();
        let context = Context { clock: &clock, cluster: "c", bitstr_len: 64 };
        let Shown::Jobs(layout) = &settings.shown else { panic!("jobs are shown") };
        let out = rows(&settings, layout, &context, std::slice::from_ref(&job), Some(&tiers));
        assert_eq!(String::from_utf8(out).unwrap(), "second\nprimary\n");
        assert_eq!(print(&["-h", "-o", "%P"], vec![job]), "primary,second\n");
    }

    #[test]
    fn filters_that_the_controller_lacks_are_applied_here() {
        let count = |words: &[&str]| {
            let settings = of(words).ok().unwrap();
            let mut records = live();
            records[0].spec.as_mut().unwrap().licenses.insert("ansys".into(), 2);
            records.iter().filter(|j| keep(&settings, None, j)).count()
        };
        assert_eq!(count(&["-L", "ansys:1,fluent"]), 1);
        assert_eq!(count(&["--running-over", "0:05"]), 0);
        assert_eq!(count(&["--running-under", "10"]), 3);
        assert_eq!(count(&["-R", "none"]), 0);
    }
}
