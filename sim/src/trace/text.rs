//! From a file to a trace: unpacks it, sees which form it has, and hands it to that form's reader.

use super::{Trace, swf, table};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longer traces, unpacked, are refused: nothing real is near it, and a small file may unpack to any size.
const MAX_TEXT: u64 = 4 << 30;

/// Why a trace can't be used at all.
#[derive(Debug)]
pub enum TraceError {
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    TooLong {
        path: PathBuf,
    },
    /// The file as a whole: no header, unknown column …
    Form {
        path: PathBuf,
        line: u32,
        what: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Io { path, source } => write!(f, "{}: {source}", path.display()),
            TraceError::TooLong { path } => {
                write!(f, "{}: longer than {MAX_TEXT} bytes when unpacked", path.display())
            }
            TraceError::Form { path, line, what } => write!(f, "{}: line {line}: {what}", path.display()),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Reads a trace, gzip or plain. A table (TSV or CSV) begins with a header that names columns; all else is Standard
/// Workload Format. `ignored` are columns of a table that are not to be used.
pub fn read(path: &Path, ignored: &[String]) -> Result<Trace, TraceError> {
    let text = unpacked(path)?;
    let form = |(line, what): (u32, String)| TraceError::Form { path: path.to_owned(), line, what };
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#'));
    let is_table = first.is_some_and(|l| {
        !l.starts_with(';')
            && l.chars().any(|c| c.is_ascii_alphabetic())
            && !l.starts_with(|c: char| c.is_ascii_digit())
    });
    let mut trace = if is_table { table::parse(&text, ignored).map_err(form)? } else { swf::parse(&text) };
    trace.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    trace.sort();
    if trace.jobs.is_empty() {
        let what = match trace.skipped.lines() {
            none if none.is_empty() => {
                "no job in it: expected Standard Workload Format (18 fields a line), or a table \
                whose first line names the columns"
                    .to_owned()
            }
            why => format!("no usable job in it: {}", why.join("; ")),
        };
        return Err(form((1, what)));
    }
    Ok(trace)
}

fn unpacked(path: &Path) -> Result<String, TraceError> {
    let io = |source| TraceError::Io { path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    if file.metadata().map_err(io)?.len() > MAX_TEXT {
        return Err(TraceError::TooLong { path: path.to_owned() });
    }
    file.read_to_end(&mut bytes).map_err(io)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(&bytes[..]).take(MAX_TEXT + 1).read_to_end(&mut text).map_err(io)?;
        bytes = text;
    }
    if bytes.len() as u64 > MAX_TEXT {
        return Err(TraceError::TooLong { path: path.to_owned() });
    }
    // Comments of old logs are in many encodings; numbers are ASCII.
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
