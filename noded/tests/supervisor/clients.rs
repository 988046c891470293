//! What passes between a step and its client: output, input, broken connections, and who is told of the end.

use crate::bench::*;
use sluice_noded::spool;
use sluice_proto::v1::*;
use std::time::{Duration, Instant};
use step_output::Kind;

#[test]
fn ten_megabytes_reach_a_slow_client_unharmed_and_in_order() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("head -c 10485760 /dev/zero | tr '\\0' '\\377'; printf end; printf bad >&2")]);
    spec.client = true;
    let supervisor = bench.start(&spec);
    let all = supervisor.attach(0).collect();
    let out = &all.output[&(0, 0)];
    assert_eq!(out.len(), 10_485_760 + 3);
    assert!(out.ends_with(b"\xffend") && out[..10_485_760].iter().all(|b| *b == 0xff));
    assert_eq!(all.output[&(0, 1)], b"bad");
    assert!(all.sequences.windows(2).all(|w| w[1] == w[0] + 1) && all.sequences[0] == 1);
    assert_eq!(all.exits.len(), 1);
    assert_eq!(supervisor.last_word().worst, Some(ExitStatus::default()));
}

#[test]
fn a_broken_connection_loses_and_doubles_nothing() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done")]);
    spec.client = true;
    let supervisor = bench.start(&spec);
    let mut text = Vec::new();
    let mut received = 0;
    let mut rounds = 0;
    'all: loop {
        let mut wire = supervisor.attach(received);
        rounds += 1;
        let until = received + 5 * rounds;
        while let Some(message) = wire.hear() {
            if message.sequence > 0 {
                assert_eq!(message.sequence, received + 1);
                received = message.sequence;
            }
            match message.kind {
                Some(Kind::Output(o)) => text.extend_from_slice(&o.data),
                Some(Kind::Ended(_)) => {
                    wire.ack(received);
                    break 'all;
                }
                _ => {}
            }
            // Some of it acknowledged, some only received, then gone.
            if received == until - 2 {
                wire.ack(received);
            }
            if received >= until {
                break;
            }
        }
    }
    let want: String = (1..=3000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8(text).unwrap(), want);
    supervisor.last_word();
}

#[test]
fn stdin_reaches_every_reading_task_once() {
    let bench = Bench::new();
    let task = |rank: u32| TaskSpec { rank, stdin_from_client: rank != 2, ..sh("cat") };
    let mut spec = bench.spec(vec![task(0), task(1), task(2)]);
    spec.client = true;
    let supervisor = bench.start(&spec);
    let data: Vec<u8> = (0..600_000u32).flat_map(|i| i.to_be_bytes()).collect();
    let mut wire = supervisor.attach(0);
    let (mut sent, mut room, mut eof) = (0usize, 0u64, false);
    let mut outputs: std::collections::BTreeMap<u32, Vec<u8>> = Default::default();
    loop {
        while sent < data.len() && (sent as u64) < room {
            let end = data.len().min(sent + 50_000).min(room as usize);
            // Each piece repeats a bit of the one before it, as after a reconnect.
            let from = sent.saturating_sub(100);
            let piece = StdinData { data: data[from..end].to_vec().into(), eof: false, offset: from as u64 };
            wire.say(supervisor_command::Kind::Stdin(piece));
            sent = end;
        }
        if sent == data.len() && !eof {
            eof = true;
            let end = StdinData { data: Default::default(), eof: true, offset: sent as u64 };
            wire.say(supervisor_command::Kind::Stdin(end));
        }
        let message = wire.hear().unwrap();
        if message.sequence > 0 {
            wire.ack(message.sequence);
        }
        match message.kind {
            Some(Kind::StdinRoom(r)) => room = r.offset,
            Some(Kind::Output(o)) => outputs.entry(o.task).or_default().extend_from_slice(&o.data),
            Some(Kind::Ended(e)) => {
                assert_eq!(e.worst, Some(ExitStatus::default()));
                break;
            }
            _ => {}
        }
    }
    assert!(outputs[&0] == data && outputs[&1] == data);
    assert!(outputs[&2].is_empty());
    supervisor.last_word();
}

#[test]
fn a_step_whose_client_stays_away_is_cancelled() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("sleep 1000")]);
    spec.client = true;
    spec.client_grace_secs = 1;
    let supervisor = bench.start(&spec);
    let _watcher = supervisor.watch();
    let mut wire = supervisor.attach(0);
    assert!(matches!(wire.hear().unwrap().kind, Some(Kind::Started(s)) if s.pids.len() == 1));
    drop(wire);
    assert!(supervisor.last_word().cancelled);
}

#[test]
fn a_step_is_not_given_up_while_no_daemon_could_let_its_client_in() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("while ! [ -e go ]; do read x < fifo; done; echo late; exit 3")]);
    nix::unistd::mkfifo(&bench.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    spec.client = true;
    spec.client_grace_secs = 1;
    let supervisor = bench.start(&spec);
    let begun = Instant::now();
    wait_for("more than the grace", || begun.elapsed() > Duration::from_millis(1500));
    std::fs::write(bench.path().join("go"), "").unwrap();
    std::fs::write(bench.path().join("fifo"), "x\n").unwrap();
    wait_for("the record", || bench.spool().join(spool::EXIT).exists());
    let begun = Instant::now();
    wait_for("more than the grace", || begun.elapsed() > Duration::from_millis(1500));
    let all = supervisor.attach(0).collect();
    assert_eq!(all.output[&(0, 0)], b"late\n");
    let exit = supervisor.last_word();
    assert_eq!((exit.cancelled, exit.worst), (false, Some(ExitStatus { code: 3, signal: 0 })));
}

#[test]
fn a_watcher_hears_the_beginning_and_the_end() {
    let bench = Bench::new();
    let supervisor = bench.start(&bench.spec(vec![sh("exit 4")]));
    let mut wire = supervisor.watch();
    assert!(matches!(wire.hear().unwrap().kind, Some(Kind::Started(_))));
    let ended = wire.hear().unwrap();
    assert!(matches!(ended.kind, Some(Kind::Ended(e)) if e.worst == Some(ExitStatus { code: 4, signal: 0 })));
    assert!(
        spool::read::<SupervisorExit>(&supervisor.dir, spool::EXIT).unwrap().is_some(),
        "recorded before it was told"
    );
    supervisor.last_word();
}
