//! Concrete resources: allocations and what they hold on each node.

use super::error::ConvertError;
use super::{limits, scalar};
use crate::v1;
use sluice_model::{Allocation, GresAlloc, NodeAlloc};
use std::collections::BTreeSet;

impl From<&GresAlloc> for v1::GresAlloc {
    fn from(gres: &GresAlloc) -> Self {
        v1::GresAlloc { name: gres.name.clone(), kind: gres.kind.clone(), indices: Some((&gres.indices).into()) }
    }
}

impl TryFrom<v1::GresAlloc> for GresAlloc {
    type Error = ConvertError;
    fn try_from(message: v1::GresAlloc) -> Result<Self, ConvertError> {
        Ok(GresAlloc {
            name: scalar::name(message.name, "name")?,
            kind: message.kind.map(|k| scalar::name(k, "kind")).transpose()?,
            indices: scalar::required(message.indices, "indices")?,
        })
    }
}

impl From<&NodeAlloc> for v1::NodeAlloc {
    fn from(on: &NodeAlloc) -> Self {
        v1::NodeAlloc {
            node: on.node.to_string(),
            cpus: Some((&on.cpus).into()),
            memory_mb: on.memory_mb,
            gres: on.gres.iter().map(Into::into).collect(),
            tasks: on.tasks,
        }
    }
}

impl TryFrom<v1::NodeAlloc> for NodeAlloc {
    type Error = ConvertError;
    fn try_from(message: v1::NodeAlloc) -> Result<Self, ConvertError> {
        Ok(NodeAlloc {
            node: scalar::node_name(&message.node, "node")?,
            cpus: scalar::required(message.cpus, "cpus")?,
            memory_mb: scalar::quantity(message.memory_mb, "memory_mb")?,
            gres: scalar::list(message.gres, "gres", limits::GRES)?,
            tasks: message.tasks,
        })
    }
}

impl From<&Allocation> for v1::Allocation {
    fn from(allocation: &Allocation) -> Self {
        v1::Allocation { nodes: allocation.nodes.iter().map(Into::into).collect() }
    }
}

impl TryFrom<v1::Allocation> for Allocation {
    type Error = ConvertError;
    fn try_from(message: v1::Allocation) -> Result<Self, ConvertError> {
        if message.nodes.is_empty() {
            return Err(ConvertError::missing("nodes"));
        }
        let nodes: Vec<NodeAlloc> = scalar::list(message.nodes, "nodes", limits::NODES)?;
        let mut seen = BTreeSet::new();
        if let Some(twice) = nodes.iter().find(|n| !seen.insert(n.node.as_str())) {
            return Err(ConvertError::new("nodes", format!("node {} appears twice", twice.node)));
        }
        Ok(Allocation { nodes })
    }
}
