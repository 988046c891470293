//! What a job asks for.

use super::error::{ConvertError, Within};
use super::{limits, scalar};
use crate::v1;
use sluice_model::request::{
    Constraint, Distribution, Exclusive, GresRequest, GresScope, MemoryRequest, NodeCount, ResourceRequest,
    SwitchRequest,
};

impl From<&NodeCount> for v1::NodeCount {
    fn from(count: &NodeCount) -> Self {
        v1::NodeCount { min: count.min, max: count.max }
    }
}

impl TryFrom<v1::NodeCount> for NodeCount {
    type Error = ConvertError;
    fn try_from(message: v1::NodeCount) -> Result<Self, ConvertError> {
        if message.min == 0 {
            return Err(ConvertError::new("min", "is 0; a job needs a node"));
        }
        if message.max.is_some_and(|max| max < message.min) {
            return Err(ConvertError::new("max", "is less than min"));
        }
        Ok(NodeCount { min: message.min, max: message.max })
    }
}

impl From<&MemoryRequest> for v1::MemoryRequest {
    fn from(memory: &MemoryRequest) -> Self {
        use v1::memory_request::Kind;
        let kind = match *memory {
            MemoryRequest::PerNode(mb) => Kind::PerNode(mb),
            MemoryRequest::PerCpu(mb) => Kind::PerCpu(mb),
            MemoryRequest::PerGpu(mb) => Kind::PerGpu(mb),
        };
        v1::MemoryRequest { kind: Some(kind) }
    }
}

impl TryFrom<v1::MemoryRequest> for MemoryRequest {
    type Error = ConvertError;
    fn try_from(message: v1::MemoryRequest) -> Result<Self, ConvertError> {
        use v1::memory_request::Kind;
        match message.kind {
            Some(Kind::PerNode(mb)) => scalar::quantity(mb, "per_node").map(MemoryRequest::PerNode),
            Some(Kind::PerCpu(mb)) => scalar::quantity(mb, "per_cpu").map(MemoryRequest::PerCpu),
            Some(Kind::PerGpu(mb)) => scalar::quantity(mb, "per_gpu").map(MemoryRequest::PerGpu),
            None => Err(ConvertError::new("", "holds no memory request")),
        }
    }
}

impl From<GresScope> for v1::GresScope {
    fn from(scope: GresScope) -> Self {
        match scope {
            GresScope::Node => v1::GresScope::Node,
            GresScope::Job => v1::GresScope::Job,
            GresScope::Task => v1::GresScope::Task,
            GresScope::Socket => v1::GresScope::Socket,
        }
    }
}

impl From<v1::GresScope> for GresScope {
    fn from(scope: v1::GresScope) -> Self {
        match scope {
            v1::GresScope::Node => GresScope::Node,
            v1::GresScope::Job => GresScope::Job,
            v1::GresScope::Task => GresScope::Task,
            v1::GresScope::Socket => GresScope::Socket,
        }
    }
}

impl From<&GresRequest> for v1::GresRequest {
    fn from(gres: &GresRequest) -> Self {
        v1::GresRequest {
            name: gres.name.clone(),
            kind: gres.kind.clone(),
            count: gres.count,
            scope: v1::GresScope::from(gres.scope).into(),
        }
    }
}

impl TryFrom<v1::GresRequest> for GresRequest {
    type Error = ConvertError;
    fn try_from(message: v1::GresRequest) -> Result<Self, ConvertError> {
        let scope = v1::GresScope::try_from(message.scope)
            .map_err(|_| ConvertError::new("scope", format!("is {}, which is no scope", message.scope)))?;
        Ok(GresRequest {
            name: scalar::name(message.name, "name")?,
            kind: message.kind.map(|k| scalar::name(k, "kind")).transpose()?,
            count: scalar::quantity(message.count, "count")?,
            scope: scope.into(),
        })
    }
}

impl From<&Constraint> for v1::Constraint {
    fn from(constraint: &Constraint) -> Self {
        use v1::constraint::{Count, Kind, List};
        let list = |items: &[Constraint]| List { items: items.iter().map(Into::into).collect() };
        let kind = match constraint {
            Constraint::Feature(name) => Kind::Feature(name.clone()),
            Constraint::All(items) => Kind::All(list(items)),
            Constraint::Any(items) => Kind::Any(list(items)),
            Constraint::Count(of, nodes) => {
                Kind::Count(Box::new(Count { of: Some(Box::new((&**of).into())), nodes: *nodes }))
            }
            Constraint::Bracket(inner) => Kind::Bracket(Box::new((&**inner).into())),
        };
        v1::Constraint { kind: Some(kind) }
    }
}

impl TryFrom<v1::Constraint> for Constraint {
    type Error = ConvertError;
    fn try_from(message: v1::Constraint) -> Result<Self, ConvertError> {
        let mut parts = limits::CONSTRAINT_PARTS;
        let parsed = constraint(message, limits::CONSTRAINT_DEPTH, &mut parts)?;
        sluice_model::constraint::check(&parsed)
            .map_err(|allowed| ConvertError::new("", format!("allowed: {allowed}")))?;
        Ok(parsed)
    }
}

/// Recursion is bounded by `depth` (and by prost's own limit on nesting), size by `parts`.
fn constraint(message: v1::Constraint, depth: usize, parts: &mut usize) -> Result<Constraint, ConvertError> {
    use v1::constraint::{Kind, List};
    if depth == 0 || *parts == 0 {
        return Err(ConvertError::new("", "the constraint is too large"));
    }
    *parts -= 1;
    let mut list = |list: List| match list.items.is_empty() {
        true => Err(ConvertError::missing("items")),
        false => list.items.into_iter().map(|c| constraint(c, depth - 1, parts)).collect::<Result<Vec<_>, _>>(),
    };
    match message.kind {
        Some(Kind::Feature(name)) => scalar::name(name, "feature").map(Constraint::Feature),
        Some(Kind::All(items)) => list(items).within("all").map(Constraint::All),
        Some(Kind::Any(items)) => list(items).within("any").map(Constraint::Any),
        Some(Kind::Count(count)) => {
            let of = count.of.ok_or_else(|| ConvertError::missing("of"))?;
            if count.nodes == 0 {
                return Err(ConvertError::new("nodes", "is 0; a count is from 1 up"));
            }
            Ok(Constraint::Count(Box::new(constraint(*of, depth - 1, parts)?), count.nodes))
        }
        Some(Kind::Bracket(inner)) => Ok(Constraint::Bracket(Box::new(constraint(*inner, depth - 1, parts)?))),
        None => Err(ConvertError::new("", "holds no constraint")),
    }
}

impl From<&Distribution> for v1::Distribution {
    fn from(distribution: &Distribution) -> Self {
        use v1::distribution::Kind;
        let kind = match *distribution {
            Distribution::Block => Kind::Block(true),
            Distribution::Cyclic => Kind::Cyclic(true),
            Distribution::Plane(size) => Kind::Plane(size),
            Distribution::Arbitrary => Kind::Arbitrary(true),
        };
        v1::Distribution { kind: Some(kind) }
    }
}

impl TryFrom<v1::Distribution> for Distribution {
    type Error = ConvertError;
    fn try_from(message: v1::Distribution) -> Result<Self, ConvertError> {
        use v1::distribution::Kind;
        match message.kind {
            Some(Kind::Block(true)) => Ok(Distribution::Block),
            Some(Kind::Cyclic(true)) => Ok(Distribution::Cyclic),
            Some(Kind::Plane(0)) => Err(ConvertError::new("plane", "is 0; a plane holds at least one task")),
            Some(Kind::Plane(size)) => Ok(Distribution::Plane(size)),
            Some(Kind::Arbitrary(true)) => Ok(Distribution::Arbitrary),
            _ => Err(ConvertError::new("", "holds no distribution")),
        }
    }
}

/// 0 no, 1 node, 2 user.
pub fn exclusive_to_wire(exclusive: Exclusive) -> u32 {
    match exclusive {
        Exclusive::No => 0,
        Exclusive::Node => 1,
        Exclusive::User => 2,
    }
}

pub fn exclusive_from_wire(value: u32) -> Result<Exclusive, ConvertError> {
    match value {
        0 => Ok(Exclusive::No),
        1 => Ok(Exclusive::Node),
        2 => Ok(Exclusive::User),
        other => Err(ConvertError::new("exclusive", format!("is {other}; 0, 1 or 2 are allowed"))),
    }
}

impl From<&ResourceRequest> for v1::ResourceRequest {
    fn from(request: &ResourceRequest) -> Self {
        v1::ResourceRequest {
            nodes: request.nodes.as_ref().map(Into::into),
            ntasks: request.ntasks,
            ntasks_per_node: request.ntasks_per_node,
            cpus_per_task: request.cpus_per_task,
            min_cpus_per_node: request.min_cpus_per_node,
            memory: request.memory.as_ref().map(Into::into),
            gres: request.gres.iter().map(Into::into).collect(),
            constraint: request.constraint.as_ref().map(Into::into),
            constraint_text: request.constraint_text.clone(),
            node_list: request.node_list.iter().map(ToString::to_string).collect(),
            exclude: request.exclude.iter().map(ToString::to_string).collect(),
            exclusive: exclusive_to_wire(request.exclusive),
            oversubscribe: request.oversubscribe,
            overcommit: request.overcommit,
            contiguous: request.contiguous,
            tmp_disk_mb: request.tmp_disk_mb,
            distribution: request.distribution.as_ref().map(Into::into),
            prefer: request.prefer.as_ref().map(Into::into),
            batch: request.batch.as_ref().map(Into::into),
            pack: request.pack,
            spread: request.spread,
            fewest_nodes: request.fewest_nodes,
            gpu_memory_mb: request.gpu_memory_mb,
            switches: request.switches.map(|s| v1::SwitchRequest { count: s.count, max_wait_secs: s.max_wait_secs }),
            segment: request.segment,
            sockets_per_node: request.sockets_per_node,
            cores_per_socket: request.cores_per_socket,
            threads_per_core: request.threads_per_core,
            ntasks_per_socket: request.ntasks_per_socket,
            ntasks_per_core: request.ntasks_per_core,
            enforce_binding: request.enforce_binding,
            disable_binding: request.disable_binding,
        }
    }
}

impl TryFrom<v1::ResourceRequest> for ResourceRequest {
    type Error = ConvertError;
    fn try_from(message: v1::ResourceRequest) -> Result<Self, ConvertError> {
        Ok(ResourceRequest {
            nodes: scalar::optional(message.nodes, "nodes")?,
            ntasks: message.ntasks,
            ntasks_per_node: message.ntasks_per_node,
            cpus_per_task: message.cpus_per_task,
            min_cpus_per_node: message.min_cpus_per_node,
            memory: scalar::optional(message.memory, "memory")?,
            gres: scalar::list(message.gres, "gres", limits::GRES)?,
            constraint: scalar::optional(message.constraint, "constraint")?,
            constraint_text: message
                .constraint_text
                .map(|t| scalar::text(t, "constraint_text", limits::TEXT))
                .transpose()?,
            node_list: scalar::node_names(message.node_list, "node_list")?,
            exclude: scalar::node_names(message.exclude, "exclude")?,
            exclusive: exclusive_from_wire(message.exclusive)?,
            oversubscribe: message.oversubscribe,
            overcommit: message.overcommit,
            contiguous: message.contiguous,
            tmp_disk_mb: scalar::quantity(message.tmp_disk_mb, "tmp_disk_mb")?,
            distribution: scalar::optional(message.distribution, "distribution")?,
            prefer: scalar::optional(message.prefer, "prefer")?,
            batch: scalar::optional(message.batch, "batch")?,
            pack: message.pack,
            spread: message.spread,
            fewest_nodes: message.fewest_nodes,
            gpu_memory_mb: scalar::quantity(message.gpu_memory_mb, "gpu_memory_mb")?,
            switches: message.switches.map(|s| SwitchRequest { count: s.count, max_wait_secs: s.max_wait_secs }),
            segment: message.segment,
            sockets_per_node: message.sockets_per_node,
            cores_per_socket: message.cores_per_socket,
            threads_per_core: message.threads_per_core,
            ntasks_per_socket: message.ntasks_per_socket,
            ntasks_per_core: message.ntasks_per_core,
            enforce_binding: message.enforce_binding,
            disable_binding: message.disable_binding,
        })
    }
}
