//! What nodes declare and report.

use super::error::ConvertError;
use super::{limits, scalar};
use crate::v1;
use sluice_model::node::{GresSpec, NodeReport};

impl From<&GresSpec> for v1::GresSpec {
    fn from(gres: &GresSpec) -> Self {
        v1::GresSpec {
            name: gres.name.clone(),
            kind: gres.kind.clone(),
            count: gres.count,
            memory_mb: gres.memory_mb,
            cores: gres.cores.iter().map(Into::into).collect(),
            links: gres.links.iter().map(|row| v1::gres_spec::Links { counts: row.clone() }).collect(),
        }
    }
}

impl TryFrom<v1::GresSpec> for GresSpec {
    type Error = ConvertError;
    fn try_from(message: v1::GresSpec) -> Result<Self, ConvertError> {
        Ok(GresSpec {
            name: scalar::name(message.name, "name")?,
            kind: message.kind.map(|k| scalar::name(k, "kind")).transpose()?,
            count: scalar::quantity(message.count, "count")?,
            memory_mb: scalar::quantity(message.memory_mb, "memory_mb")?,
            cores: scalar::list(message.cores, "cores", limits::LIST)?,
            links: {
                scalar::check_len(message.links.len(), "links", limits::LIST, "rows")?;
                message.links.into_iter().map(|row| row.counts).collect()
            },
        })
    }
}

impl From<&NodeReport> for v1::NodeReport {
    fn from(report: &NodeReport) -> Self {
        v1::NodeReport {
            boot_id: report.boot_id.clone(),
            address: report.address.clone(),
            hostname: report.hostname.clone(),
            version: report.version.clone(),
            arch: report.arch.clone(),
            os: report.os.clone(),
            cpus: report.cpus,
            memory_mb: report.memory_mb,
            gres: report.gres.iter().map(Into::into).collect(),
            boot_time: report.boot_time,
            daemon_start_time: report.daemon_start_time,
            missing_isolation: report.missing_isolation.clone(),
        }
    }
}

impl TryFrom<v1::NodeReport> for NodeReport {
    type Error = ConvertError;
    fn try_from(message: v1::NodeReport) -> Result<Self, ConvertError> {
        scalar::check_len(message.missing_isolation.len(), "missing_isolation", limits::LIST, "items")?;
        let secs = |value: i64, field: &str| scalar::time(value.saturating_mul(1000), field).map(|_| value);
        Ok(NodeReport {
            boot_id: scalar::word(message.boot_id, "boot_id")?,
            address: scalar::word(message.address, "address")?,
            hostname: scalar::word(message.hostname, "hostname")?,
            version: scalar::word(message.version, "version")?,
            arch: scalar::word(message.arch, "arch")?,
            os: scalar::word(message.os, "os")?,
            cpus: message.cpus,
            memory_mb: scalar::quantity(message.memory_mb, "memory_mb")?,
            gres: scalar::list(message.gres, "gres", limits::GRES)?,
            boot_time: secs(message.boot_time, "boot_time")?,
            daemon_start_time: secs(message.daemon_start_time, "daemon_start_time")?,
            missing_isolation: message
                .missing_isolation
                .into_iter()
                .map(|s| scalar::text(s, "missing_isolation", limits::TEXT))
                .collect::<Result<_, _>>()?,
        })
    }
}
