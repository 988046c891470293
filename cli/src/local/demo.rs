//! `sluice local demo`: a real job on a fresh cluster, shown as it happens, and nothing left behind.
//!
//! The jobs are those of `etc/examples/`; every command shown is run as shown, by the cluster's own programs.

use super::arguments::{Demo, ShapeFlags};
use super::layout::Layout;
use super::{LocalError, Result, at, down, interrupt, link, say, up};
use sluice_model::IndexSet;
use sluice_proto::v1;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

const PICTURE: (&str, &str) = ("mandelbrot.sh", include_str!("../../../etc/examples/mandelbrot.sh"));
const GATHER: (&str, &str) = ("mandelbrot-gather.sh", include_str!("../../../etc/examples/mandelbrot-gather.sh"));

/// The jobs take seconds; a machine where they take longer than this is broken.
const DEADLINE: Duration = Duration::from_secs(300);

pub(super) fn main(options: &Demo) -> Result<ExitCode> {
    interrupt::catch()?;
    let place = Place::new(options.dir.as_deref())?;
    let shown = show(&place);
    if matches!(shown, Err(LocalError::Said(_))) && interrupt::check().is_ok() {
        place.show_logs();
    }
    let ended = place.end();
    shown.and(ended)?;
    Ok(ExitCode::SUCCESS)
}

/// The demo's folder; its cluster is stopped and a temporary one removed in `end`, or at the latest when dropped.
struct Place {
    dir: PathBuf,
    temporary: bool,
    ended: std::cell::Cell<bool>,
}

impl Place {
    fn new(asked: Option<&Path>) -> Result<Place> {
        let (dir, temporary) = match asked {
            Some(dir) => {
                if dir.exists() {
                    return Err(LocalError::Said(format!(
                        "{} is there already; the demo makes a new folder",
                        dir.display()
                    )));
                }
                std::fs::create_dir_all(dir).map_err(at(dir))?;
                (dir.to_owned(), false)
            }
            None => {
                let template = std::env::temp_dir().join("sluice-demo-XXXXXX");
                let made = nix::unistd::mkdtemp(&template).map_err(|e| at(&template)(e.into()))?;
                (made, true)
            }
        };
        let dir = dir.canonicalize().map_err(at(&dir))?;
        Ok(Place { dir, temporary, ended: std::cell::Cell::new(false) })
    }

    /// A failed demo says why: with the ends of the logs, since the folder goes.
    fn show_logs(&self) {
        let Ok(entries) = std::fs::read_dir(self.dir.join("log")) else { return };
        for path in entries.flatten().map(|e| e.path()) {
            let text = std::fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            crate::errln!("--- the end of {}", path.display());
            for line in &lines[lines.len().saturating_sub(8)..] {
                crate::errln!("{line}");
            }
        }
    }

    fn end(&self) -> Result<()> {
        if self.ended.replace(true) {
            return Ok(());
        }
        if let Ok(layout) = Layout::existing(&self.dir) {
            down::stop(&layout)?;
        }
        if self.temporary {
            std::fs::remove_dir_all(&self.dir).map_err(at(&self.dir))?;
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(e) = self.end() {
            crate::errln!("sluice local: error: {e}");
        }
    }
}

fn show(place: &Place) -> Result<()> {
    say("Starting a cluster on this machine: a controller and three node daemons …")?;
    let begin = Instant::now();
    let shape = ShapeFlags { nodes: Some(3), cpus: Some(4), cluster: Some("demo".to_owned()), ..Default::default() };
    let cluster = up::start(&place.dir, &shape, None, "info", None)?;
    let layout = &cluster.layout;
    say(&format!("up after {:.1} s in {}", begin.elapsed().as_secs_f64(), layout.dir().display()))?;
    for text in up::missing_isolation(&cluster.nodes) {
        say(&format!("  (not isolated here: {text})"))?;
    }

    let work = layout.dir().join("work");
    std::fs::create_dir_all(work.join("mandelbrot")).map_err(at(&work))?;
    for (name, text) in [PICTURE, GATHER] {
        std::fs::write(work.join(name), text).map_err(at(&work))?;
    }
    say("\nA picture of the Mandelbrot set: one array task for each band, then a job that waits for all of them.")?;
    let picture = submit(layout, &work, &["sbatch", PICTURE.0])?;
    let after = format!("--dependency=afterok:{picture}");
    let gather = submit(layout, &work, &["sbatch", &after, GATHER.0])?;
    say("")?;
    crate::client::block_on(watch(layout, picture, gather))?;

    let output = work.join(format!("mandelbrot/gather-{gather}.out"));
    let text = std::fs::read_to_string(&output).map_err(at(&output))?;
    say(&format!("\n$ cat mandelbrot/gather-{gather}.out\n{}", text.trim_end()))?;
    run(layout, &work, &["squeue", "--states=all"])?;
    run(layout, &work, &["sinfo"])?;
    let jobs = format!("{picture}_8,{gather}");
    let columns = "--format=JobID%-14,JobName%-12,NTasks,AllocCPUS,NodeList%-12,Elapsed,State,ExitCode";
    run(layout, &work, &["sacct", "-j", &jobs, columns])?;
    let me = std::env::current_exe().map_or_else(|_| "sluice".to_owned(), |p| p.display().to_string());
    say(&format!(
        "\nThat was real: real daemons, real processes. Now a cluster of your own, to keep:\n\
         \n  {me} local up --dir ~/my-cluster --nodes 4 --cpus 8 --gpus 2\
         \n  eval \"$({me} local env --dir ~/my-cluster)\"\
         \n  sbatch --gpus=1 --wrap 'echo \"I have GPU $CUDA_VISIBLE_DEVICES on $SLURMD_NODENAME\"'\
         \n  srun --nodes=4 --label hostname ; squeue ; sacct\
         \n  {me} local down --dir ~/my-cluster\n"
    ))
}

/// A command of the cluster, as a user without anything of another cluster in their environment would run it.
fn command(layout: &Layout, work: &Path, words: &[&str]) -> Result<std::process::Output> {
    interrupt::check()?;
    let program = layout.program(words[0]);
    let foreign = |name: &str| {
        ["SLUICE_", "SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SACCT_"].iter().any(|p| name.starts_with(p))
    };
    let environment = std::env::vars_os().filter(|(name, _)| !name.to_str().is_some_and(foreign));
    let mut command = Command::new(&program);
    command.args(&words[1..]).env_clear().envs(environment).current_dir(work);
    let out = command.output().map_err(at(&program))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
        return Err(LocalError::Said(format!("{} failed ({}): {said}", words.join(" "), out.status)));
    }
    Ok(out)
}

/// Shows the command and what it says.
fn run(layout: &Layout, work: &Path, words: &[&str]) -> Result<String> {
    say(&format!("\n$ {}", words.join(" ")))?;
    let out = command(layout, work, words)?;
    let text = String::from_utf8_lossy(&out.stdout).trim_end().to_owned();
    say(&text)?;
    Ok(text)
}

/// The job's id, from `Submitted batch job 12`.
fn submit(layout: &Layout, work: &Path, words: &[&str]) -> Result<u32> {
    let text = run(layout, work, words)?;
    let id = text.rsplit(' ').next().and_then(|id| id.parse().ok());
    id.ok_or_else(|| LocalError::Said(format!("sbatch said {text:?}, which names no job")))
}

/// Tells every change of the two jobs until the second is over.
async fn watch(layout: &Layout, picture: u32, gather: u32) -> Result<()> {
    let begin = Instant::now();
    let mut controller = link::connect(layout).await?;
    let mut last = String::new();
    loop {
        interrupt::check()?;
        let jobs = all_jobs(&mut controller, &[picture, gather]).await?;
        let line = progress(&jobs, picture, gather);
        if line != last {
            say(&format!("{:6.1} s  {line}", begin.elapsed().as_secs_f64()))?;
            last = line;
        }
        if let Some(job) = jobs.iter().find(|j| j.id == gather)
            && is_over(&job.state)
        {
            if job.state == "COMPLETED" {
                return Ok(());
            }
            return Err(LocalError::Said(format!("job {gather} ended as {}", job.state)));
        }
        let never = jobs.iter().any(|j| j.id == gather && j.dependency_failed);
        if never {
            return Err(LocalError::Said(format!("a task of job {picture} failed")));
        }
        if begin.elapsed() > DEADLINE {
            return Err(LocalError::Said(format!("the jobs are not over after {} s", DEADLINE.as_secs())));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn all_jobs(controller: &mut link::Controller, ids: &[u32]) -> Result<Vec<v1::JobRecord>> {
    let jobs = ids.iter().map(|&job| v1::JobTarget { job, tasks: None }).collect();
    let request = v1::ListJobsRequest { jobs, states: vec!["ALL".to_owned()], ..Default::default() };
    let mut stream = link::ask(controller.list_jobs(request)).await?;
    let mut jobs = Vec::new();
    while let Some(part) = stream.message().await.map_err(|s| LocalError::Said(s.message().to_owned()))? {
        jobs.extend(part.jobs);
    }
    Ok(jobs)
}

fn is_over(state: &str) -> bool {
    sluice_model::JobState::parse(state).is_some_and(sluice_model::JobState::is_finished)
}

/// `picture: 4 done, 6 running, 2 waiting     gather: waiting (Dependency)`
fn progress(jobs: &[v1::JobRecord], picture: u32, gather: u32) -> String {
    let (mut done, mut running, mut waiting) = (0, 0, 0);
    for job in jobs.iter().filter(|j| j.id == picture || j.array_job == Some(picture)) {
        let pending = job.array_pending.clone().and_then(|set| IndexSet::try_from(set).ok()).map_or(0, |set| set.len());
        match job.state.as_str() {
            "PENDING" => waiting += pending.max(1),
            state if is_over(state) => done += 1,
            _ => running += 1,
        }
    }
    let second = jobs.iter().find(|j| j.id == gather).map_or_else(String::new, |job| {
        let reason = sluice_model::Reason::from_number(job.reason);
        match job.state.as_str() {
            "PENDING" => format!("waiting ({reason})"),
            "RUNNING" => format!("running on {}", job.node_list),
            state => state.to_lowercase(),
        }
    });
    format!("picture: {done:2} done, {running:2} running, {waiting:2} waiting    gather: {second}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_tasks_that_have_no_record_of_their_own_yet() {
        let record = |id, array_job, state: &str, pending: Option<IndexSet>| v1::JobRecord {
            id,
            array_job,
            state: state.to_owned(),
            array_pending: pending.as_ref().map(Into::into),
            ..Default::default()
        };
        let mut waiting = record(1, Some(1), "PENDING", Some(IndexSet::range(3, 11)));
        let after =
            v1::JobRecord { reason: sluice_model::Reason::Dependency.number(), ..record(2, None, "PENDING", None) };
        let jobs = [waiting.clone(), record(3, Some(1), "RUNNING", None), record(4, Some(1), "COMPLETED", None), after];
        assert_eq!(progress(&jobs, 1, 2), "picture:  1 done,  1 running,  9 waiting    gather: waiting (Dependency)");
        waiting.array_pending = None;
        assert!(progress(&[waiting], 1, 2).contains(" 1 waiting"));
    }
}
