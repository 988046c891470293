//! File-name patterns of `--output`, `--error` and `--input`: `%j`, `%A_%a`, `%4t` … (sbatch's and srun's manual
//! pages, "filename pattern").
//!
//! A backslash anywhere turns all replacement off (the manual pages' `\\` entry); each keeps the character after it and
//! goes, as sbatch was seen to do: `x\%j` and `x\\%j` name `x%j` and `x\%j`. Bytes in, bytes out. Unknown letters stay.

use crate::ids::StepId;

/// The value Slurm prints for %a outside arrays (its "no value").
const NO_TASK: u32 = u32::MAX - 1;
/// Zero-padding is not taken beyond this width, as in Slurm.
const MAX_WIDTH: usize = 10;

/// What the letters stand for. Leave out what does not exist where the file is opened: the letter then prints as `0`
/// for numbers and as nothing for names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FilenameContext<'a> {
    /// `%j`: of the job or array task itself.
    pub job_id: u32,
    /// `%A` and `%a`: the array's id and the task's index; None outside arrays (%A is then the job's id).
    pub array: Option<(u32, u32)>,
    /// `%s`, `%J`: None where there is no step yet (sbatch's own files: `%J` is the job's id alone).
    pub step: Option<StepId>,
    /// `%t`: rank in the step.
    pub task: u32,
    /// `%n`: index of the node in the job.
    pub node_index: u32,
    /// `%N`: short host name.
    pub node: &'a str,
    /// `%u`
    pub user: &'a str,
    /// `%x`
    pub job_name: &'a [u8],
}

/// The file's name. Relative names stay relative.
pub fn expand(pattern: &[u8], c: &FilenameContext<'_>) -> Vec<u8> {
    if pattern.contains(&b'\\') {
        let mut bytes = pattern.iter().copied();
        return std::iter::from_fn(|| bytes.next().and_then(|b| if b == b'\\' { bytes.next() } else { Some(b) }))
            .collect();
    }
    let mut out = Vec::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    while let Some(at) = rest.iter().position(|b| *b == b'%') {
        out.extend_from_slice(&rest[..at]);
        let directive = &rest[at..];
        let used = replace(directive, c, &mut out);
        rest = &directive[used..];
    }
    out.extend_from_slice(rest);
    out
}

/// Handles one `%[width]letter` and says how many bytes it took.
fn replace(text: &[u8], c: &FilenameContext<'_>, out: &mut Vec<u8>) -> usize {
    let digits = text[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    let used = digits + 2;
    let Some(letter) = text.get(digits + 1) else {
        out.extend_from_slice(text);
        return text.len();
    };
    let width = text[1..=digits].iter().fold(0, |w, d| (w * 10 + usize::from(d - b'0')).min(MAX_WIDTH));
    let number = |n: u32| format!("{n:0width$}").into_bytes();
    let value = match letter {
        b'%' => b"%".to_vec(),
        b'j' => number(c.job_id),
        b'A' => number(c.array.map_or(c.job_id, |(id, _)| id)),
        b'a' => number(c.array.map_or(NO_TASK, |(_, task)| task)),
        b'b' => number(c.array.map_or(NO_TASK, |(_, task)| task) % 10),
        b'J' => match c.step {
            Some(step) => format!("{}.{step}", c.job_id).into_bytes(),
            None => number(c.job_id),
        },
        b's' => match c.step {
            Some(StepId::Numbered(n)) => number(n),
            Some(other) => other.to_string().into_bytes(),
            None => StepId::Batch.to_string().into_bytes(),
        },
        b't' => number(c.task),
        b'n' => number(c.node_index),
        b'N' => c.node.as_bytes().to_vec(),
        b'u' => c.user.as_bytes().to_vec(),
        b'x' => c.job_name.to_vec(),
        _ => text[..used].to_vec(),
    };
    out.extend_from_slice(&value);
    used
}

/// Whether the pattern opens one file for each task or node (`%t`, `%n`, `%N`) instead of one for the step.
pub fn is_per_task_or_node(pattern: &[u8]) -> (bool, bool) {
    let (mut task, mut node) = (false, false);
    if !pattern.contains(&b'\\') {
        let mut i = 0;
        while i < pattern.len() {
            if pattern[i] == b'%' {
                i += 1;
                while pattern.get(i).is_some_and(u8::is_ascii_digit) {
                    i += 1;
                }
                task |= pattern.get(i) == Some(&b't');
                node |= matches!(pattern.get(i), Some(b'n' | b'N'));
            }
            i += 1;
        }
    }
    (task, node)
}

/// `--output=none`: no file at all.
pub fn is_none(pattern: &[u8]) -> bool {
    pattern == b"none"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pattern: &str, c: &FilenameContext<'_>) -> String {
        String::from_utf8(expand(pattern.as_bytes(), c)).unwrap()
    }

    fn step() -> FilenameContext<'static> {
        FilenameContext {
            job_id: 128,
            array: None,
            step: Some(StepId::Numbered(0)),
            task: 3,
            node_index: 1,
            node: "node7",
            user: "ada",
            job_name: b"my job",
        }
    }

    #[test]
    fn the_manual_pages_examples_hold() {
        assert_eq!(text("job%J.out", &step()), "job128.0.out");
        assert_eq!(text("job%4j.out", &step()), "job0128.out");
        assert_eq!(text("job%j-%2t.out", &step()), "job128-03.out");
    }

    #[test]
    fn every_letter_stands_for_its_value() {
        let array = FilenameContext { job_id: 131, array: Some((128, 17)), ..step() };
        assert_eq!(text("%A_%a %b %j %u %x %n %N %s %%", &array), "128_17 7 131 ada my job 1 node7 0 %");
        assert_eq!(text("%A_%a", &step()), "128_4294967294");
        assert_eq!(text("%J %s", &FilenameContext { step: None, ..step() }), "128 batch");
        assert_eq!(text("%3N%04j%99j", &step()), "node701280000000128");
    }

    #[test]
    fn backslashes_turn_replacement_off_and_unknown_letters_stay() {
        assert_eq!(text("a\\%j", &step()), "a%j");
        assert_eq!(text("x\\%j\\\\%x", &step()), "x%j\\%x");
        assert_eq!(text("b%j\\", &step()), "b%j");
        assert_eq!(text("%q %", &step()), "%q %");
        assert_eq!(text("%5", &step()), "%5");
        assert_eq!(text("100%é", &step()), "100%é");
        assert_eq!(expand(b"\xff%j", &step()), b"\xff128");
    }

    #[test]
    fn patterns_say_whether_they_part_tasks_or_nodes() {
        assert_eq!(is_per_task_or_node(b"o-%t"), (true, false));
        assert_eq!(is_per_task_or_node(b"o-%2N-%03t"), (true, true));
        assert_eq!(is_per_task_or_node(b"o-%%t-%j"), (false, false));
        assert_eq!(is_per_task_or_node(b"\\o-%t"), (false, false));
        assert!(is_none(b"none") && !is_none(b"nonesuch"));
    }
}
