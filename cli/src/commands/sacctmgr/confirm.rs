//! Questions before a change: yes or no, within 30 seconds; silence and the end of the input are a no.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// Slurm's question, once more after every answer that is neither.
pub fn ask(question: &str) -> bool {
    show(&format!("{question} (You have 30 seconds to decide)\n(N/y): "));
    let give_up = Instant::now() + PATIENCE;
    loop {
        match line(Some(give_up)).as_deref().map(str::trim) {
            Some("y" | "Y" | "yes" | "YES" | "Yes") => return true,
            Some("n" | "N" | "no" | "NO" | "No") => return false,
            Some(_) => show("Y or N please\n(N/y): "),
            None => {
                show("\n");
                return false;
            }
        }
    }
}

fn show(text: &str) {
    // Without a place for the question there is no answer either; the input decides.
    let _ = crate::out::print(text.as_bytes());
}

/// One line, or None at the end of the input or of the patience. Read byte by byte: what follows is for others.
pub fn line(give_up: Option<Instant>) -> Option<String> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let stdin = std::io::stdin();
    let mut bytes = Vec::new();
    loop {
        let left = give_up.map(|t| t.saturating_duration_since(Instant::now()));
        let timeout = left.map_or(PollTimeout::NONE, |left| PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        match poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return None,
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        let mut byte = [0u8];
        match unbuffered(&mut byte) {
            0 if bytes.is_empty() => return None,
            0 => break,
            _ if byte[0] == b'\n' => break,
            _ => bytes.push(byte[0]),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Past the buffer of the standard library, which would swallow what the poll looks for.
fn unbuffered(byte: &mut [u8; 1]) -> usize {
    let Ok(copy) = std::io::stdin().as_fd().try_clone_to_owned() else { return 0 };
    std::fs::File::from(copy).read(byte).unwrap_or(0)
}
