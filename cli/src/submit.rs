//! Turning settings into a submission.
//!
//! Owns what all three submitting commands tell the controller besides their options: where, by whom and with which
//! limits. Nothing here waits for a job.

use crate::settings::{BadValue, Settings};
use nix::sys::resource::{Resource, getrlimit};
use sluice_model::OsBytes;
use sluice_model::job::PropagatedLimit;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Facts of this process that go with a job.
pub struct Here {
    pub cwd: OsString,
    pub host: String,
    pub umask: u32,
}

impl Here {
    pub fn look() -> Result<Here, BadValue> {
        let cwd = std::env::current_dir()
            .map_err(|e| BadValue::line(1, format!("cannot find the working directory: {e}")))?
            .into_os_string();
        let host = nix::unistd::gethostname().map(|h| h.to_string_lossy().into_owned()).unwrap_or_default();
        // The short name, as Slurm has it.
        let host = host.split('.').next().unwrap_or("").to_owned();
        Ok(Here { cwd, host, umask: umask() })
    }
}

/// `SLURM_UMASK`, else this process's mask.
fn umask() -> u32 {
    if let Some(mask) = std::env::var("SLURM_UMASK").ok().and_then(|m| u32::from_str_radix(&m, 8).ok()) {
        return mask & 0o777;
    }
    let mask = nix::sys::stat::umask(nix::sys::stat::Mode::empty());
    nix::sys::stat::umask(mask);
    mask.bits()
}

/// The soft limits that go with the job.
pub fn limits(names: &[&'static str]) -> Vec<PropagatedLimit> {
    let resource = |name: &str| match name {
        "AS" => Some(Resource::RLIMIT_AS),
        "CORE" => Some(Resource::RLIMIT_CORE),
        "CPU" => Some(Resource::RLIMIT_CPU),
        "DATA" => Some(Resource::RLIMIT_DATA),
        "FSIZE" => Some(Resource::RLIMIT_FSIZE),
        "MEMLOCK" => Some(Resource::RLIMIT_MEMLOCK),
        "NOFILE" => Some(Resource::RLIMIT_NOFILE),
        "NPROC" => Some(Resource::RLIMIT_NPROC),
        "RSS" => Some(Resource::RLIMIT_RSS),
        "STACK" => Some(Resource::RLIMIT_STACK),
        _ => None,
    };
    names
        .iter()
        .filter_map(|name| {
            let (soft, _) = getrlimit(resource(name)?).ok()?;
            let soft = if soft == nix::libc::RLIM_INFINITY { u64::MAX } else { soft };
            Some(PropagatedLimit { name, soft })
        })
        .collect()
}

/// Fills in everything that does not depend on options.
pub fn complete(settings: &mut Settings, here: &Here, words: &[OsString]) {
    settings.job.work_dir = settings.work_dir(&here.cwd);
    settings.job.umask = here.umask;
    settings.job.submit_host = here.host.clone().into();
    settings.job.ends_with_step = settings.command.name() == "srun";
    settings.job.submit_sid = nix::unistd::getsid(None).map(|sid| sid.as_raw().unsigned_abs()).unwrap_or(0);
    let propagated = settings.client.propagate.as_deref().unwrap_or(crate::settings::LIMITS);
    settings.job.limits = limits(propagated).into();
    let mut line = settings.command.name().as_bytes().to_vec();
    for word in words {
        line.push(b' ');
        line.extend_from_slice(word.as_bytes());
    }
    settings.job.submit_line = OsBytes::from(line);
}
