//! The wire: generated protobuf messages and services, and the only conversions between them and model types.

pub mod convert;

/// Generated from `proto/*.proto`.
#[allow(clippy::all, missing_docs, rustdoc::all)]
pub mod v1 {
    tonic::include_proto!("sluice.v1");
}
