//! Job specifications.

use super::error::ConvertError;
use super::{limits, scalar};
use crate::v1;
use prost::bytes::Bytes;
use sluice_model::job::{ArraySpec, JobIo, JobKind, JobSpec, OpenMode, PropagatedLimit, SignalRequest};
use sluice_model::sharing::LIMIT_NAMES;
use sluice_model::{OsBytes, Shared, Time};

impl From<&ArraySpec> for v1::ArraySpec {
    fn from(array: &ArraySpec) -> Self {
        v1::ArraySpec { indices: Some((&array.indices).into()), throttle: array.throttle, step: array.step }
    }
}

impl TryFrom<v1::ArraySpec> for ArraySpec {
    type Error = ConvertError;
    fn try_from(message: v1::ArraySpec) -> Result<Self, ConvertError> {
        let array = ArraySpec {
            indices: scalar::required(message.indices, "indices")?,
            throttle: message.throttle,
            step: message.step,
        };
        if array.indices.is_empty() {
            return Err(ConvertError::new("indices", "is empty"));
        }
        if array.step == 0 {
            return Err(ConvertError::new("step", "is 0"));
        }
        if array.throttle == Some(0) {
            return Err(ConvertError::new("throttle", "is 0; leave it out for no limit"));
        }
        Ok(array)
    }
}

impl From<&SignalRequest> for v1::SignalRequest {
    fn from(request: &SignalRequest) -> Self {
        v1::SignalRequest {
            signal: u32::from(request.signal),
            before_secs: request.before_secs,
            batch_shell: request.batch_shell,
            reservation: request.reservation,
        }
    }
}

impl TryFrom<v1::SignalRequest> for SignalRequest {
    type Error = ConvertError;
    fn try_from(message: v1::SignalRequest) -> Result<Self, ConvertError> {
        let signal = u8::try_from(message.signal).ok().filter(|s| (1..=64).contains(s));
        Ok(SignalRequest {
            signal: signal.ok_or_else(|| ConvertError::new("signal", format!("is {}, not 1-64", message.signal)))?,
            before_secs: message.before_secs,
            batch_shell: message.batch_shell,
            reservation: message.reservation,
        })
    }
}

impl From<&PropagatedLimit> for v1::PropagatedLimit {
    fn from(limit: &PropagatedLimit) -> Self {
        v1::PropagatedLimit { name: limit.name.to_owned(), soft: limit.soft }
    }
}

impl TryFrom<v1::PropagatedLimit> for PropagatedLimit {
    type Error = ConvertError;
    fn try_from(message: v1::PropagatedLimit) -> Result<Self, ConvertError> {
        let name = LIMIT_NAMES.into_iter().find(|n| *n == message.name);
        let name =
            name.ok_or_else(|| ConvertError::new("name", format!("is not one of {}", LIMIT_NAMES.join(", "))))?;
        Ok(PropagatedLimit { name, soft: message.soft })
    }
}

impl From<&JobIo> for v1::JobIo {
    fn from(io: &JobIo) -> Self {
        v1::JobIo {
            stdin: io.stdin.as_ref().map(scalar::to_bytes),
            stdout: io.stdout.as_ref().map(scalar::to_bytes),
            stderr: io.stderr.as_ref().map(scalar::to_bytes),
            append: io.open_mode.map(|mode| mode == OpenMode::Append),
        }
    }
}

impl TryFrom<v1::JobIo> for JobIo {
    type Error = ConvertError;
    fn try_from(message: v1::JobIo) -> Result<Self, ConvertError> {
        Ok(JobIo {
            stdin: optional_bytes(message.stdin, "stdin", limits::PATH)?,
            stdout: optional_bytes(message.stdout, "stdout", limits::PATH)?,
            stderr: optional_bytes(message.stderr, "stderr", limits::PATH)?,
            open_mode: message.append.map(|append| if append { OpenMode::Append } else { OpenMode::Truncate }),
        })
    }
}

impl From<&JobSpec> for v1::JobSpec {
    fn from(spec: &JobSpec) -> Self {
        let (batch, script_blob, args) = match &spec.kind {
            JobKind::Batch { script, args } => {
                (true, Bytes::copy_from_slice(&script.0), args.iter().map(scalar::to_bytes).collect())
            }
            JobKind::Allocation => (false, Bytes::new(), Vec::new()),
        };
        v1::JobSpec {
            name: scalar::to_bytes(&spec.name),
            batch,
            script_blob,
            args,
            uid: spec.uid,
            gid: spec.gid,
            user: spec.user.to_string(),
            group: spec.group.to_string(),
            account: spec.account.clone(),
            qos: spec.qos.clone(),
            wckey: spec.wckey.clone(),
            partitions: spec.partitions.to_vec(),
            request: Some((&*spec.request).into()),
            time_limit: spec.time_limit.as_ref().map(Into::into),
            time_min: spec.time_min.as_ref().map(Into::into),
            begin: spec.begin.map(|t| t.0),
            deadline: spec.deadline.map(|t| t.0),
            dependency: spec.dependency.as_deref().map(Into::into),
            array: spec.array.as_deref().map(Into::into),
            hold: spec.hold,
            priority: spec.priority,
            nice: spec.nice,
            site_factor: spec.site_factor,
            requeue: spec.requeue,
            kill_on_invalid_dep: spec.kill_on_invalid_dep,
            signal: spec.signal.as_ref().map(Into::into),
            comment: spec.comment.as_ref().map(scalar::to_bytes),
            mail_type: spec.mail_type,
            mail_user: spec.mail_user.clone(),
            reservation: spec.reservation.clone(),
            licenses: spec.licenses.iter().map(|(name, count)| (name.clone(), *count)).collect(),
            io: Some((&*spec.io).into()),
            work_dir: scalar::to_bytes(&spec.work_dir),
            environment_blob: Bytes::copy_from_slice(&spec.environment.0),
            get_user_env: spec.get_user_env,
            limits: spec.limits.iter().map(Into::into).collect(),
            umask: spec.umask,
            submit_host: spec.submit_host.to_string(),
            submit_sid: spec.submit_sid,
            submit_line: scalar::to_bytes(&spec.submit_line),
            command: spec.command.as_ref().map(scalar::to_bytes),
            immediate_secs: spec.immediate_secs,
            ends_with_step: spec.ends_with_step,
            stored: spec.stored.iter().map(|(option, value)| (option.clone(), value.clone())).collect(),
        }
    }
}

impl TryFrom<v1::JobSpec> for JobSpec {
    type Error = ConvertError;
    /// The controller sets the user fields and the blob ids in the message before it converts it.
    fn try_from(message: v1::JobSpec) -> Result<Self, ConvertError> {
        let kind = kind(message.batch, &message.script_blob, message.args)?;
        scalar::check_len(message.partitions.len(), "partitions", limits::LIST, "items")?;
        scalar::check_len(message.licenses.len(), "licenses", limits::LIST, "items")?;
        scalar::check_len(message.stored.len(), "stored", limits::LIST, "items")?;
        if message.umask > 0o777 {
            return Err(ConvertError::new("umask", format!("is {:o}; at most 777 is allowed", message.umask)));
        }
        Ok(JobSpec {
            name: scalar::os_bytes(message.name, "name", limits::TEXT)?,
            kind,
            uid: message.uid,
            gid: message.gid,
            user: scalar::word(message.user, "user")?.into(),
            group: scalar::word(message.group, "group")?.into(),
            account: optional_word(message.account, "account")?,
            qos: optional_word(message.qos, "qos")?,
            wckey: optional_word(message.wckey, "wckey")?,
            partitions: message
                .partitions
                .into_iter()
                .map(|p| scalar::name(p, "partitions"))
                .collect::<Result<_, _>>()?,
            request: Shared::new(scalar::required(message.request, "request")?),
            time_limit: scalar::optional(message.time_limit, "time_limit")?,
            time_min: scalar::optional(message.time_min, "time_min")?,
            begin: optional_time(message.begin, "begin")?,
            deadline: optional_time(message.deadline, "deadline")?,
            dependency: scalar::optional(message.dependency, "dependency")?.map(Box::new),
            array: scalar::optional(message.array, "array")?.map(Box::new),
            hold: message.hold,
            priority: message.priority,
            nice: message.nice,
            site_factor: message.site_factor,
            requeue: message.requeue,
            kill_on_invalid_dep: message.kill_on_invalid_dep,
            signal: scalar::optional(message.signal, "signal")?,
            comment: optional_bytes(message.comment, "comment", limits::TEXT)?,
            mail_type: message.mail_type,
            mail_user: optional_word(message.mail_user, "mail_user")?,
            reservation: optional_word(message.reservation, "reservation")?,
            licenses: message
                .licenses
                .into_iter()
                .map(|(name, count)| Ok((scalar::name(name, "licenses")?, count)))
                .collect::<Result<_, ConvertError>>()?,
            io: Shared::new(scalar::optional(message.io, "io")?.unwrap_or_default()),
            work_dir: scalar::os_bytes(message.work_dir, "work_dir", limits::PATH)?,
            environment: scalar::blob_id(&message.environment_blob, "environment_blob")?,
            get_user_env: message.get_user_env,
            limits: Shared::new(scalar::list(message.limits, "limits", limits::LIST)?),
            umask: message.umask,
            submit_host: scalar::word(message.submit_host, "submit_host")?.into(),
            submit_sid: message.submit_sid,
            submit_line: scalar::os_bytes(message.submit_line, "submit_line", limits::ARGUMENT)?,
            command: optional_bytes(message.command, "command", limits::ARGUMENT)?,
            immediate_secs: message.immediate_secs,
            ends_with_step: message.ends_with_step,
            stored: message
                .stored
                .into_iter()
                .map(|(option, value)| {
                    Ok((scalar::name(option, "stored")?, scalar::text(value, "stored", limits::TEXT)?))
                })
                .collect::<Result<_, ConvertError>>()?,
        })
    }
}

fn kind(batch: bool, script: &[u8], args: Vec<Bytes>) -> Result<JobKind, ConvertError> {
    scalar::check_len(args.len(), "args", limits::ARGS, "items")?;
    if batch {
        let args = args.into_iter().map(|a| scalar::os_bytes(a, "args", limits::ARGUMENT)).collect::<Result<_, _>>()?;
        return Ok(JobKind::Batch { script: scalar::blob_id(script, "script_blob")?, args });
    }
    if !script.is_empty() || !args.is_empty() {
        return Err(ConvertError::new("batch", "only a batch job has a script and arguments"));
    }
    Ok(JobKind::Allocation)
}

fn optional_word(value: Option<String>, field: &str) -> Result<Option<String>, ConvertError> {
    value.map(|v| scalar::word(v, field)).transpose()
}

fn optional_bytes(value: Option<Bytes>, field: &str, max: usize) -> Result<Option<OsBytes>, ConvertError> {
    value.map(|v| scalar::os_bytes(v, field, max)).transpose()
}

fn optional_time(value: Option<i64>, field: &str) -> Result<Option<Time>, ConvertError> {
    value.map(|v| scalar::time(v, field)).transpose()
}
