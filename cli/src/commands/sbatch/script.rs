//! Where the batch script comes from: a file, standard input, or `--wrap`.

use crate::getopt::Parsed;
use crate::settings::BadValue;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// More than any controller takes; what is longer is refused there in Slurm's words, so only this much is read.
const MOST_BYTES: u64 = 32 << 20;

pub struct Script {
    pub text: Vec<u8>,
    /// As `Command=` shows it; None for stdin and --wrap.
    pub path: Option<PathBuf>,
    pub default_name: OsString,
    pub args: Vec<OsString>,
}

/// Reads it and checks that it is a script.
pub fn load(parsed: &Parsed) -> Result<Script, BadValue> {
    let script = if let Some(wrap) = parsed.last("wrap") {
        if !parsed.operands.is_empty() {
            return Err(BadValue::line(1, "Script arguments not permitted with --wrap option".to_owned()));
        }
        let mut text = b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n".to_vec();
        text.extend_from_slice(wrap.value.as_deref().unwrap_or_default().as_bytes());
        text.push(b'\n');
        Script { text, path: None, default_name: "wrap".into(), args: Vec::new() }
    } else if let Some((name, args)) = parsed.operands.split_first() {
        let path = find(name);
        let text = read_file(&path)?;
        let default_name = path.file_name().unwrap_or(name).to_owned();
        Script { text, path: Some(path), default_name, args: args.to_vec() }
    } else {
        let mut text = Vec::new();
        let read = std::io::stdin().lock().take(MOST_BYTES).read_to_end(&mut text);
        read.map_err(|e| BadValue::line(1, format!("reading the script from standard input: {e}")))?;
        Script { text, path: None, default_name: "sbatch".into(), args: Vec::new() }
    };
    check(&script.text)?;
    Ok(script)
}

/// The file as given, or for a bare name that is not here the first readable one on PATH.
fn find(name: &OsStr) -> PathBuf {
    let given = Path::new(name);
    let cwd = std::env::current_dir().unwrap_or_default();
    let here = cwd.join(given);
    if name.as_bytes().contains(&b'/') || here.exists() {
        return here;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(given)).find(|p| p.is_file()).unwrap_or_else(|| given.to_owned())
}

fn read_file(path: &Path) -> Result<Vec<u8>, BadValue> {
    let shown = path.display();
    let file = std::fs::File::open(path).map_err(|_| BadValue::line(1, format!("Unable to open file {shown}")))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        return Err(BadValue {
            lines: vec![format!("{shown} is a directory"), "Batch script is empty!".to_owned()],
            code: 1,
        });
    }
    let mut text = Vec::new();
    let read = file.take(MOST_BYTES).read_to_end(&mut text);
    read.map_err(|e| BadValue::line(1, format!("Unable to read file {shown}: {e}")))?;
    Ok(text)
}

fn check(text: &[u8]) -> Result<(), BadValue> {
    sluice_model::directive::check_script(text)
        .map_err(|problem| BadValue { lines: problem.to_string().lines().map(str::to_owned).collect(), code: 1 })
}
