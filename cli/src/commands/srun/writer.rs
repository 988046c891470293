//! Writing what tasks say.
//!
//! Owns the places output goes to (stdout, stderr, files) and one thread that writes to them, so that a slow reader
//! never keeps srun from handling signals. What may be on its way is bounded by the nodes, which send no more before
//! what they sent is acknowledged. A reader of stdout who went away is told as [`Written::Broken`]; what still comes is dropped.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc;
use tokio::sync::mpsc::UnboundedSender;

/// What has been written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written {
    /// Output of a node up to this sequence number.
    Output { node: usize, sequence: u64 },
    /// A line of srun's own.
    Talk,
    /// Nobody reads our stdout any more.
    Broken,
}

/// Where bytes go.
pub enum Sink {
    Stdout,
    Stderr,
    File { file: File, name: String },
}

struct Job {
    sink: usize,
    data: Vec<u8>,
    done: Option<Written>,
}

/// Hands bytes to the writing thread, which is started with the first of them.
pub struct Writer {
    sinks: Option<Vec<Sink>>,
    jobs: Option<mpsc::Sender<Job>>,
    done: UnboundedSender<Written>,
}

impl Writer {
    pub fn new(sinks: Vec<Sink>, done: UnboundedSender<Written>) -> Self {
        Writer { sinks: Some(sinks), jobs: None, done }
    }

    /// Writes after everything given before; then says so.
    pub fn write(&mut self, sink: usize, data: Vec<u8>, done: Option<Written>) {
        if self.jobs.is_none() {
            if data.is_empty() {
                done.map(|d| self.done.send(d));
                return;
            }
            let (sender, receiver) = mpsc::channel();
            let (sinks, done) = (self.sinks.take().unwrap_or_default(), self.done.clone());
            std::thread::spawn(move || run(sinks, &receiver, &done));
            self.jobs = Some(sender);
        }
        if let Some(jobs) = &self.jobs {
            // The thread lives as long as this does.
            let _ = jobs.send(Job { sink, data, done });
        }
    }
}

fn run(mut sinks: Vec<Sink>, jobs: &mpsc::Receiver<Job>, done: &UnboundedSender<Written>) {
    let mut closed = vec![false; sinks.len()];
    while let Ok(job) = jobs.recv() {
        if let (Some(sink), Some(false)) = (sinks.get_mut(job.sink), closed.get(job.sink))
            && !job.data.is_empty()
            && let Err(e) = write(sink, &job.data)
        {
            closed[job.sink] = true;
            if e.kind() == std::io::ErrorKind::BrokenPipe
                && matches!(sink, Sink::Stdout)
                && done.send(Written::Broken).is_err()
            {
                return;
            }
            if e.kind() != std::io::ErrorKind::BrokenPipe && !matches!(sink, Sink::Stderr) {
                let name = if let Sink::File { name, .. } = sink { name.as_str() } else { "standard output" };
                crate::errln!("srun: error: {name}: {e}; further output is lost");
            }
        }
        if job.done.is_some_and(|d| done.send(d).is_err()) {
            return;
        }
    }
}

fn write(sink: &mut Sink, data: &[u8]) -> std::io::Result<()> {
    match sink {
        Sink::Stdout => write_fd(1, data),
        Sink::Stderr => write_fd(2, data),
        Sink::File { file, .. } => file.write_all(data),
    }
}

/// Without the standard library's buffer and lock; waits when the descriptor is non-blocking and full.
fn write_fd(fd: i32, mut data: &[u8]) -> std::io::Result<()> {
    use std::os::fd::BorrowedFd;
    // SAFETY: 1 and 2 stay open for the life of the process (Rust opens them on /dev/null if need be).
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    while !data.is_empty() {
        match nix::unistd::write(fd, data) {
            Ok(n) => data = &data[n..],
            Err(nix::errno::Errno::EINTR) => {}
            Err(nix::errno::Errno::EAGAIN) => {
                let mut poll = [nix::poll::PollFd::new(fd, nix::poll::PollFlags::POLLOUT)];
                match nix::poll::poll(&mut poll, nix::poll::PollTimeout::NONE) {
                    Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
