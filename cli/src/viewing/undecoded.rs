//! Long lists of jobs, read record by record out of the bytes that came over the wire.
//!
//! A hundred thousand decoded records are a quarter of a gigabyte and most of the time that `squeue` takes. Here one
//! record is decoded over and over into the same memory, so that only what is printed is kept. Promises the same records
//! as the generated client; a test compares them.

use crate::client::{Client, Retry, answer};
use crate::error::CallError;
use prost::bytes::{Buf as _, BufMut, Bytes};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{DecodeError, Message};
use sluice_proto::v1;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

const LIST_JOBS: &str = "/sluice.v1.Controller/ListJobs";

/// An answer as it came: `JobList` messages.
pub struct Undecoded {
    parts: Vec<Bytes>,
    /// The controller's time, milliseconds.
    pub now: i64,
    /// Some id asked for is not known.
    pub unknown_id: bool,
}

pub async fn list_jobs(client: &mut Client, request: v1::ListJobsRequest) -> Result<Undecoded, CallError> {
    let parts = client
        .call_service(Retry::Read, async |service| {
            let mut grpc = tonic::client::Grpc::new(service).max_decoding_message_size(sluice_identity::MAX_MESSAGE);
            grpc.ready().await.map_err(|e| Status::unavailable(format!("Service was not ready: {e}")))?;
            let path = http::uri::PathAndQuery::from_static(LIST_JOBS);
            let request = tonic::Request::new(request.clone());
            let mut stream = grpc.server_streaming(request, path, Raw).await?.into_inner();
            let mut parts = Vec::new();
            while let Some(part) = stream.message().await? {
                answer::heard();
                parts.push(part);
            }
            Ok(tonic::Response::new(parts))
        })
        .await?;
    Undecoded::new(parts)
        .map_err(|e| CallError::Failed { problem: format!("the controller's answer is unreadable: {e}") })
}

impl Undecoded {
    fn new(parts: Vec<Bytes>) -> Result<Undecoded, DecodeError> {
        let mut all = Undecoded { parts: Vec::new(), now: 0, unknown_id: false };
        for part in &parts {
            let (mut now, mut unknown_id) = (0, false);
            fields(part, |field| {
                match field {
                    Field::Now(ms) => now = ms,
                    Field::UnknownId(unknown) => unknown_id = unknown,
                    Field::Job(_) => {}
                }
                Ok(())
            })?;
            all.now = now;
            all.unknown_id |= unknown_id;
        }
        all.parts = parts;
        Ok(all)
    }

    /// Bytes received, as a measure of how much there will be to print.
    pub fn size(&self) -> usize {
        self.parts.iter().map(Bytes::len).sum()
    }

    /// Calls `each` for every record, in the order sent. The record is only good until the next one.
    pub fn for_each(&self, mut each: impl FnMut(&v1::JobRecord)) -> Result<(), DecodeError> {
        let mut record = v1::JobRecord::default();
        for part in &self.parts {
            fields(part, |field| {
                if let Field::Job(bytes) = field {
                    record.clear();
                    record.merge(bytes)?;
                    each(&record);
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// The fields of `v1::JobList`.
enum Field {
    Job(Bytes),
    Now(i64),
    UnknownId(bool),
}

fn fields(part: &Bytes, mut each: impl FnMut(Field) -> Result<(), DecodeError>) -> Result<(), DecodeError> {
    let mut rest = part.clone();
    while rest.has_remaining() {
        let (tag, wire_type) = decode_key(&mut rest)?;
        match (tag, wire_type) {
            (1, WireType::LengthDelimited) => {
                let length = usize::try_from(decode_varint(&mut rest)?).unwrap_or(usize::MAX);
                if length > rest.remaining() {
                    // As the generated decoder says it.
                    return v1::JobList::decode(part.clone()).map(|_| ());
                }
                each(Field::Job(rest.split_to(length)))?;
            }
            (2, WireType::Varint) => each(Field::Now(decode_varint(&mut rest)? as i64))?,
            (3, WireType::Varint) => each(Field::UnknownId(decode_varint(&mut rest)? != 0))?,
            // A newer controller's field.
            (tag, wire_type) => skip_field(wire_type, tag, &mut rest, DecodeContext::default())?,
        }
    }
    Ok(())
}

/// Encodes requests, leaves answers as they are.
struct Raw;

impl Codec for Raw {
    type Encode = v1::ListJobsRequest;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;
    fn encoder(&mut self) -> Raw {
        Raw
    }
    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = v1::ListJobsRequest;
    type Error = Status;
    fn encode(&mut self, item: Self::Item, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(item.encoded_len());
        // A request of a few ids can't be larger than its buffer, which grows.
        debug_assert!(out.has_remaining_mut());
        item.encode(out).map_err(|e| Status::internal(e.to_string()))
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    fn part(jobs: Vec<v1::JobRecord>, unknown_id: bool) -> Bytes {
        v1::JobList { jobs, now: fixture::NOW, unknown_id }.encode_to_vec().into()
    }

    #[test]
    fn the_same_records_come_out_as_with_the_generated_decoder() {
        let mut jobs = fixture::jobs();
        let (first, second) = (jobs.clone(), jobs.split_off(4));
        let answer = Undecoded::new(vec![part(first.clone(), false), part(second.clone(), true)]).unwrap();
        assert_eq!((answer.now, answer.unknown_id), (fixture::NOW, true));
        let mut seen = Vec::new();
        answer.for_each(|job| seen.push(job.clone())).unwrap();
        assert_eq!(seen, [first, second].concat());
    }

    #[test]
    fn cut_and_strange_bytes_are_errors_or_skipped() {
        let whole = part(fixture::jobs(), false);
        assert!(Undecoded::new(vec![whole.slice(..whole.len() / 2)]).is_err());
        // Field 15, a varint: from a newer controller.
        let newer = [&whole[..], &[15 << 3, 7]].concat();
        assert_eq!(Undecoded::new(vec![newer.into()]).unwrap().now, fixture::NOW);
        assert!(Undecoded::new(vec![Bytes::from_static(&[0xff; 4])]).is_err());
    }
}
