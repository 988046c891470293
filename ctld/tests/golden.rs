//! What lies on disk stays readable: the bytes that release 0.1 wrote for every kind of event decode to the same values.
//!
//! After adding an event or a field, write the samples of the release under way anew with
//! `SLUICE_WRITE_GOLDEN=1 cargo test -p sluice-ctld --test golden`; those of past releases are never touched.

mod samples;

use sluice_ctld::store::codec::{decode_record, encode_record};
use sluice_engine::Event;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn golden_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v0.1/events.hex")
}

/// Lines of NAME HEX.
fn golden() -> BTreeMap<String, Vec<u8>> {
    let text = std::fs::read_to_string(golden_file()).unwrap();
    let parse = |line: &str| {
        let (name, hex) = line.split_once(' ').unwrap();
        let bytes = (0..hex.len()).step_by(2).map(|n| u8::from_str_radix(&hex[n..n + 2], 16).unwrap());
        (name.to_owned(), bytes.collect())
    };
    text.lines().map(parse).collect()
}

fn encode(event: &Event) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_record(std::slice::from_ref(event), &mut bytes);
    bytes
}

#[test]
fn every_event_decodes_to_what_was_encoded() {
    for (name, event) in samples::events() {
        assert_eq!(decode_record(&encode(&event)).unwrap(), [event], "{name}");
    }
}

#[test]
fn every_kind_of_event_has_a_sample() {
    let mut kinds: Vec<u32> = samples::events().iter().map(|(_, event)| samples::kind(event)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, (0..samples::KINDS).collect::<Vec<_>>());
}

#[test]
fn what_release_0_1_wrote_is_read() {
    if std::env::var_os("SLUICE_WRITE_GOLDEN").is_some() {
        let line = |(name, event): (&str, Event)| {
            let hex: String = encode(&event).iter().map(|b| format!("{b:02x}")).collect();
            format!("{name} {hex}\n")
        };
        std::fs::create_dir_all(golden_file().parent().unwrap()).unwrap();
        std::fs::write(golden_file(), samples::events().into_iter().map(line).collect::<String>()).unwrap();
    }
    let golden = golden();
    for (name, event) in samples::events() {
        let bytes = golden.get(name).unwrap_or_else(|| panic!("no golden sample of {name}; see the head of this file"));
        assert_eq!(decode_record(bytes).unwrap(), [event], "{name}");
    }
}

#[test]
fn several_events_of_one_batch_keep_their_order() {
    let events: Vec<Event> = samples::events().into_iter().map(|(_, event)| event).collect();
    let mut bytes = Vec::new();
    encode_record(&events, &mut bytes);
    assert_eq!(decode_record(&bytes).unwrap(), events);
}

#[test]
fn a_record_of_a_newer_release_is_an_error_that_says_so() {
    // Field 1 (the events) with an event whose only field is number 1000.
    let event = [0xc2, 0x3e, 0x00];
    let mut record = vec![0x0a, event.len() as u8];
    record.extend_from_slice(&event);
    let error = decode_record(&record).unwrap_err();
    assert!(error.contains("newer release"), "{error}");
    assert!(decode_record(&[0xff; 9]).is_err());
}
