//! What each node is told to run, and where the streams of the tasks go.
//!
//! Owns `--input`, `--output`, `--error`: a pattern that names one file for each task or node is opened there; one file
//! for all is opened here, by srun; everything else is streamed.

use super::lines::{Lines, Mode};
use super::session::Outlet;
use super::stdin::Source;
use super::step::Step;
use super::writer::Sink;
use crate::settings::{BadValue, Redirect, Settings};
use sluice_model::filename::{self, FilenameContext};
use sluice_model::job::OpenMode;
use sluice_model::{OsBytes, StepId};
use sluice_proto::v1;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Everything about the streams.
pub struct Streams {
    pub sinks: Vec<Sink>,
    pub stdout: Outlet,
    pub stderr: Outlet,
    pub stdin: Option<Source>,
    paths: Paths,
}

/// What the nodes open.
#[derive(Default)]
struct Paths {
    stdin: Option<Vec<u8>>,
    stdout: Option<Vec<u8>>,
    stderr: Option<Vec<u8>>,
}

/// Facts for file names.
pub struct Names<'a> {
    pub user: &'a str,
    pub job_name: &'a [u8],
    pub array: Option<(u32, u32)>,
}

const STDOUT: usize = 0;
/// srun's own stderr among the sinks.
pub const STDERR: usize = 1;

impl Streams {
    pub fn open(settings: &Settings, step: &Step, names: &Names<'_>) -> Result<Streams, BadValue> {
        let asked = &settings.client.step;
        let context = FilenameContext {
            job_id: step.key.job,
            array: names.array,
            step: Some(StepId::from_wire(step.key.step)),
            user: names.user,
            job_name: names.job_name,
            ..FilenameContext::default()
        };
        let mode = mode(settings, step.body.ntasks);
        let append = settings.job.io.open_mode == Some(OpenMode::Append);
        let mut opener =
            Opener { sinks: vec![Sink::Stdout, Sink::Stderr], context, append, work_dir: &settings.job.work_dir };
        let mut paths = Paths::default();
        let (out_sink, out_only) = opener.output(&asked.stdout, STDOUT, "stdout", &mut paths.stdout)?;
        let (err_sink, err_only) = match &asked.stderr {
            Some(redirect) => opener.output(redirect, STDERR, "stderr", &mut paths.stderr)?,
            // Without --error, what --output says holds for both.
            None => match asked.stdout {
                Redirect::All => (Some(STDERR), None),
                Redirect::OneTask(task) => (Some(STDERR), Some(task)),
                Redirect::File(_) | Redirect::Nothing => {
                    paths.stderr.clone_from(&paths.stdout);
                    (out_sink, None)
                }
            },
        };
        let stdin = match &asked.stdin {
            Redirect::Nothing => None,
            Redirect::All | Redirect::OneTask(_) => Some(Source::Stdin),
            Redirect::File(pattern) if per_task(pattern) => {
                paths.stdin = Some(pattern.clone());
                None
            }
            Redirect::File(pattern) => Some(Source::File(opener.input(pattern)?)),
        };
        Ok(Streams {
            sinks: opener.sinks,
            stdout: Outlet { sink: out_sink, lines: Lines::new(mode), only: out_only },
            stderr: Outlet { sink: err_sink, lines: Lines::new(mode), only: err_only },
            stdin,
            paths,
        })
    }
}

fn mode(settings: &Settings, tasks: u32) -> Mode {
    let asked = &settings.client.step;
    match (asked.pty, asked.label, asked.unbuffered) {
        (true, _, _) => Mode::Raw,
        (_, true, _) => Mode::labelled(tasks),
        (_, _, true) => Mode::Raw,
        // Nothing to mix with: as it comes, prompts included.
        _ if tasks == 1 => Mode::Raw,
        _ => Mode::Lines,
    }
}

fn per_task(pattern: &[u8]) -> bool {
    let (task, node) = filename::is_per_task_or_node(pattern);
    task || node
}

struct Opener<'a> {
    sinks: Vec<Sink>,
    context: FilenameContext<'a>,
    append: bool,
    work_dir: &'a OsBytes,
}

impl Opener<'_> {
    /// The sink and the only task to show; a path for the nodes when they write it.
    fn output(
        &mut self,
        redirect: &Redirect,
        standard: usize,
        what: &str,
        path: &mut Option<Vec<u8>>,
    ) -> Result<(Option<usize>, Option<u32>), BadValue> {
        match redirect {
            Redirect::All => Ok((Some(standard), None)),
            Redirect::OneTask(task) => Ok((Some(standard), Some(*task))),
            Redirect::Nothing => {
                *path = Some(b"/dev/null".to_vec());
                Ok((None, None))
            }
            Redirect::File(pattern) if per_task(pattern) => {
                *path = Some(pattern.clone());
                Ok((None, None))
            }
            Redirect::File(pattern) => {
                let name = self.expand(pattern);
                let mut options = File::options();
                options.create(true).write(true).append(self.append).truncate(!self.append);
                let file = options.open(&name).map_err(|e| {
                    let detail = format!("{}: {e}", name.display());
                    BadValue { lines: vec![detail, format!("Could not open {what} file: {}", plain(&e))], code: 1 }
                })?;
                self.sinks.push(Sink::File { file, name: name.display().to_string() });
                Ok((Some(self.sinks.len() - 1), None))
            }
        }
    }

    fn input(&self, pattern: &[u8]) -> Result<File, BadValue> {
        let name = self.expand(pattern);
        File::open(&name).map_err(|e| {
            let detail = format!("{}: {e}", name.display());
            BadValue { lines: vec![detail, format!("Could not open stdin file: {}", plain(&e))], code: 1 }
        })
    }

    fn expand(&self, pattern: &[u8]) -> std::path::PathBuf {
        let name = filename::expand(pattern, &self.context);
        Path::new(self.work_dir.as_os_str()).join(OsStr::from_bytes(&name))
    }
}

/// The system's text alone, without Rust's "(os error 2)".
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// The launch message for each node of the step.
pub fn launches(
    settings: &Settings,
    step: &Step,
    streams: &Streams,
    argv: &[Vec<u8>],
    programs: &[Vec<Vec<u8>>],
    environment: Vec<u8>,
) -> Vec<v1::StepLaunch> {
    use v1::step_launch::StdinTo;
    let asked = &settings.client.step;
    let stdin_to = match &asked.stdin {
        Redirect::Nothing => StdinTo::NoTask(true),
        Redirect::OneTask(task) => StdinTo::OneTask(*task),
        // A terminal has one reader.
        _ if asked.pty => StdinTo::OneTask(0),
        _ => StdinTo::AllTasks(true),
    };
    let (rows, cols) = super::terminal::size().filter(|_| asked.pty).unwrap_or((0, 0));
    let environment = prost::bytes::Bytes::from(environment);
    step.body
        .nodes
        .iter()
        .map(|node| v1::StepLaunch {
            grant: Some(step.grant.clone()),
            node: node.node.clone(),
            argv: argv.iter().map(|a| a.clone().into()).collect(),
            environment: environment.clone(),
            work_dir: settings.job.work_dir.as_bytes().to_vec().into(),
            umask: settings.job.umask,
            limits: settings.job.limits.iter().map(v1::PropagatedLimit::from).collect(),
            stdout_path: streams.paths.stdout.clone().map(Into::into),
            stderr_path: streams.paths.stderr.clone().map(Into::into),
            stdin_path: streams.paths.stdin.clone().map(Into::into),
            append: settings.job.io.open_mode == Some(OpenMode::Append),
            stdin_to: Some(stdin_to),
            kill_on_bad_exit: asked.kill_on_bad_exit == Some(true),
            programs: node
                .tasks
                .iter()
                .filter_map(|task| {
                    let argv = programs.get(*task as usize)?;
                    Some(v1::MultiProg { task: *task, argv: argv.iter().map(|a| a.clone().into()).collect() })
                })
                .collect(),
            pty: asked.pty,
            pty_rows: rows,
            pty_cols: cols,
        })
        .collect()
}

/// Which nodes have tasks that read srun's stdin.
pub fn readers(settings: &Settings, step: &Step, streams: &Streams) -> Vec<bool> {
    let asked = &settings.client.step;
    step.body
        .nodes
        .iter()
        .map(|node| {
            streams.stdin.is_some()
                && match asked.stdin {
                    Redirect::OneTask(task) => node.tasks.contains(&task),
                    _ if asked.pty => node.tasks.contains(&0),
                    _ => true,
                }
        })
        .collect()
}
