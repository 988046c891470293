//! Round trips of arbitrary values, and refusal of what breaks an invariant.

use super::*;
use crate::v1;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;
use prost::Message;
use sluice_model::dependency::*;
use sluice_model::index_set::IndexSet;
use sluice_model::job::*;
use sluice_model::node::*;
use sluice_model::request::*;
use sluice_model::state::ExitStatus;
use sluice_model::step::*;
use sluice_model::*;

/// Through the bytes of the wire and back.
fn round_trip<T, M>(value: &T) -> Result<T, ConvertError>
where
    M: Message + Default + for<'a> From<&'a T>,
    T: TryFrom<M, Error = ConvertError>,
{
    let bytes = M::from(value).encode_to_vec();
    T::try_from(M::decode(bytes.as_slice()).expect("what prost encodes it decodes"))
}

fn word() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9_.-]{0,11}"
}
fn bytes() -> impl Strategy<Value = OsBytes> {
    vec(any::<u8>(), 0..40).prop_map(OsBytes::from)
}
fn node() -> impl Strategy<Value = NodeName> {
    word().prop_map(NodeName::new)
}
fn nodes() -> impl Strategy<Value = Vec<NodeName>> {
    vec(node(), 0..5)
}
fn job() -> impl Strategy<Value = JobId> {
    (1u32..).prop_map(JobId)
}
fn when() -> impl Strategy<Value = Time> {
    (0..=limits::LAST_TIME).prop_map(Time)
}
fn amount() -> impl Strategy<Value = u64> {
    0..=limits::QUANTITY
}
fn indices() -> impl Strategy<Value = IndexSet> {
    prop_oneof![
        btree_set(0u32..200, 0..40).prop_map(IndexSet::from_iter),
        (0u32..1000, 1u32..9, 0u32..5000).prop_map(|(first, step, n)| IndexSet::range_step(
            first,
            first + step * n,
            step
        )),
        Just(IndexSet::range(0, u32::MAX)),
    ]
}
fn limit() -> impl Strategy<Value = TimeLimit> {
    prop_oneof![any::<u32>().prop_map(TimeLimit::Minutes), Just(TimeLimit::Unlimited)]
}
fn memory() -> impl Strategy<Value = MemoryRequest> {
    prop_oneof![
        amount().prop_map(MemoryRequest::PerNode),
        amount().prop_map(MemoryRequest::PerCpu),
        amount().prop_map(MemoryRequest::PerGpu)
    ]
}
fn distribution() -> impl Strategy<Value = Distribution> {
    prop_oneof![
        Just(Distribution::Block),
        Just(Distribution::Cyclic),
        Just(Distribution::Arbitrary),
        (1u32..).prop_map(Distribution::Plane)
    ]
}
/// Counts and brackets where they may stand.
fn constraint() -> impl Strategy<Value = Constraint> {
    let counted = || (plain_constraint(), 1u32..100).prop_map(|(c, n)| Constraint::Count(Box::new(c), n));
    let bracket = prop_oneof![
        vec(plain_constraint(), 1..4).prop_map(Constraint::Any),
        vec(counted(), 1..4).prop_map(Constraint::All)
    ];
    let bracket = bracket.prop_map(|c| Constraint::Bracket(Box::new(c)));
    prop_oneof![
        plain_constraint(),
        counted(),
        bracket.clone(),
        (plain_constraint(), counted(), bracket).prop_map(|(a, b, c)| Constraint::All(vec![a, b, c]))
    ]
}
fn plain_constraint() -> impl Strategy<Value = Constraint> {
    word().prop_map(Constraint::Feature).prop_recursive(4, 20, 4, |inner| {
        prop_oneof![vec(inner.clone(), 1..4).prop_map(Constraint::All), vec(inner, 1..4).prop_map(Constraint::Any)]
    })
}
fn gres_request() -> impl Strategy<Value = GresRequest> {
    let scope =
        prop_oneof![Just(GresScope::Node), Just(GresScope::Job), Just(GresScope::Task), Just(GresScope::Socket)];
    (word(), of(word()), amount(), scope).prop_map(|(name, kind, count, scope)| GresRequest {
        name,
        kind,
        count,
        scope,
    })
}
fn node_count() -> impl Strategy<Value = NodeCount> {
    (1u32..1000, of(0u32..1000)).prop_map(|(min, more)| NodeCount { min, max: more.map(|m| min + m) })
}
fn request() -> impl Strategy<Value = ResourceRequest> {
    let counts = (of(node_count()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()), of(any::<u32>()));
    let features = (of(constraint()), of(constraint()), of(plain_constraint()));
    let what = (of(memory()), vec(gres_request(), 0..3), features, of("[ -~]{0,30}"), amount());
    let exclusive = prop_oneof![Just(Exclusive::No), Just(Exclusive::Node), Just(Exclusive::User)];
    let how = (exclusive, any::<[bool; 3]>(), of(distribution()));
    let more = (
        any::<[bool; 4]>(),
        of(any::<bool>()),
        any::<[Option<u32>; 6]>(),
        amount(),
        of((any::<u32>(), of(any::<u32>()))),
    );
    (counts, what, (nodes(), nodes()), how, more).prop_map(|(counts, what, lists, how, more)| ResourceRequest {
        spread: more.0[0],
        fewest_nodes: more.0[1],
        enforce_binding: more.0[2],
        disable_binding: more.0[3],
        pack: more.1,
        segment: more.2[0],
        sockets_per_node: more.2[1],
        cores_per_socket: more.2[2],
        threads_per_core: more.2[3],
        ntasks_per_socket: more.2[4],
        ntasks_per_core: more.2[5],
        gpu_memory_mb: more.3,
        switches: more.4.map(|(count, max_wait_secs)| SwitchRequest { count, max_wait_secs }),
        nodes: counts.0,
        ntasks: counts.1,
        ntasks_per_node: counts.2,
        cpus_per_task: counts.3,
        min_cpus_per_node: counts.4,
        memory: what.0,
        gres: what.1,
        constraint: what.2.0,
        prefer: what.2.1,
        batch: what.2.2,
        constraint_text: what.3,
        node_list: lists.0,
        exclude: lists.1,
        exclusive: how.0,
        oversubscribe: how.1[0],
        overcommit: how.1[1],
        contiguous: how.1[2],
        tmp_disk_mb: what.4,
        distribution: how.2,
    })
}
fn dependency() -> impl Strategy<Value = Dependency> {
    let kind = prop_oneof![
        any::<u32>().prop_map(|minutes| DependencyKind::After { minutes }),
        Just(DependencyKind::AfterAny),
        Just(DependencyKind::AfterOk),
        Just(DependencyKind::AfterNotOk),
        Just(DependencyKind::AfterCorr),
    ];
    let on_job = (kind, job(), of(any::<u32>()))
        .prop_map(|(kind, job, task)| DependencyTerm { kind, target: Some(DependencyTarget { job, task }) });
    let singleton = Just(DependencyTerm { kind: DependencyKind::Singleton, target: None });
    (any::<bool>(), vec(prop_oneof![4 => on_job, 1 => singleton], 1..6))
        .prop_map(|(any, terms)| Dependency { any, terms })
}
fn array() -> impl Strategy<Value = ArraySpec> {
    (indices().prop_filter("arrays have tasks", |i| !i.is_empty()), of(1u32..), 1u32..9)
        .prop_map(|(indices, throttle, step)| ArraySpec { indices, throttle, step })
}
fn signal() -> impl Strategy<Value = SignalRequest> {
    (1u8..=64, any::<u32>(), any::<[bool; 2]>()).prop_map(|(signal, before_secs, f)| SignalRequest {
        signal,
        before_secs,
        batch_shell: f[0],
        reservation: f[1],
    })
}
fn io() -> impl Strategy<Value = JobIo> {
    let mode = prop_oneof![Just(OpenMode::Append), Just(OpenMode::Truncate)];
    (of(bytes()), of(bytes()), of(bytes()), of(mode)).prop_map(|(stdin, stdout, stderr, open_mode)| JobIo {
        stdin,
        stdout,
        stderr,
        open_mode,
    })
}
fn spec() -> impl Strategy<Value = JobSpec> {
    let batch = (any::<[u8; 32]>(), vec(bytes(), 0..4))
        .prop_map(|(script, args)| JobKind::Batch { script: BlobId(script), args });
    let kind = prop_oneof![batch, Just(JobKind::Allocation)];
    let who = (bytes(), kind, any::<[u32; 2]>(), word(), word());
    let words = (of(word()), of(word()), of(word()), vec(word(), 0..3), of(word()), of(word()));
    let times = (of(limit()), of(limit()), of(when()), of(when()));
    let needs = (request(), of(dependency()), of(array()), of(signal()), io());
    let flags = (any::<[bool; 2]>(), of(any::<u32>()), any::<i32>(), of(any::<bool>()), of(any::<bool>()));
    let rest = (of(bytes()), any::<u32>(), btree_map(word(), any::<u32>(), 0..3), bytes(), any::<[u8; 32]>());
    let limits = vec(any::<u64>().prop_map(|soft| PropagatedLimit { name: "NOFILE", soft }), 0..2);
    let origin = (limits, 0u32..=0o777, word(), any::<u32>(), bytes(), of(bytes()), of(any::<u32>()));
    let stored = btree_map(word(), "[ -~]{0,20}", 0..3);
    (who, words, times, needs, flags, rest, (origin, stored)).prop_map(
        |(who, words, times, needs, flags, rest, (origin, stored))| JobSpec {
            name: who.0,
            kind: who.1,
            uid: who.2[0],
            gid: who.2[1],
            user: who.3.into(),
            group: who.4.into(),
            account: words.0,
            qos: words.1,
            wckey: words.2,
            partitions: words.3.into(),
            request: needs.0.into(),
            time_limit: times.0,
            time_min: times.1,
            begin: times.2,
            deadline: times.3,
            dependency: needs.1.map(Box::new),
            array: needs.2.map(Box::new),
            hold: flags.0[0],
            priority: flags.1,
            nice: flags.2,
            site_factor: flags.2 / 3,
            requeue: flags.3,
            kill_on_invalid_dep: flags.4,
            signal: needs.3,
            comment: rest.0,
            mail_type: rest.1,
            mail_user: words.4,
            reservation: words.5,
            licenses: rest.2.into(),
            io: needs.4.into(),
            work_dir: rest.3,
            environment: BlobId(rest.4),
            get_user_env: flags.0[1],
            limits: origin.0.into(),
            umask: origin.1,
            submit_host: origin.2.into(),
            submit_sid: origin.3,
            submit_line: origin.4,
            command: origin.5,
            immediate_secs: origin.6,
            ends_with_step: origin.6.is_some(),
            stored: stored.into(),
        },
    )
}
fn allocation() -> impl Strategy<Value = Allocation> {
    let gres = (word(), of(word()), indices()).prop_map(|(name, kind, indices)| GresAlloc { name, kind, indices });
    let on = (indices(), amount(), vec(gres, 0..3), any::<u32>());
    btree_map(word(), on, 1..5).prop_map(|nodes| {
        let on = nodes.into_iter().map(|(name, (cpus, memory_mb, gres, tasks))| NodeAlloc {
            node: NodeName::new(name),
            cpus,
            memory_mb,
            gres,
            tasks,
        });
        Allocation { nodes: on.collect() }
    })
}
fn gres_spec() -> impl Strategy<Value = GresSpec> {
    (word(), of(word()), amount()).prop_map(|(name, kind, count)| GresSpec {
        links: vec![vec![0, 2], vec![2, 0]],
        memory_mb: count,
        ..GresSpec::new(name, kind, count)
    })
}
fn usage() -> impl Strategy<Value = Usage> {
    any::<[u64; 7]>().prop_map(|u| Usage {
        user_cpu_us: u[0],
        system_cpu_us: u[1],
        max_rss_bytes: u[2],
        max_vmsize_bytes: u[3],
        major_faults: u[4],
        read_bytes: u[5],
        written_bytes: u[6],
    })
}
fn key() -> impl Strategy<Value = StepKey> {
    (job(), any::<u32>(), any::<u32>()).prop_map(|(job, attempt, n)| StepKey {
        job,
        attempt,
        step: StepId::from_wire(n),
    })
}
fn record() -> impl Strategy<Value = StepRecord> {
    let state = (0..JobState::ALL.len()).prop_map(|i| JobState::ALL[i]);
    let exit = any::<[u8; 2]>().prop_map(|e| ExitStatus { code: e[0], signal: e[1] });
    let sizes = (any::<[u32; 3]>(), amount(), vec(gres_spec(), 0..3));
    let ends = (when(), of(when()), state, exit, usage());
    (key(), (bytes(), bytes()), nodes(), sizes, ends, (word(), word())).prop_map(
        |(key, texts, nodes, sizes, ends, words)| StepRecord {
            key,
            name: texts.0,
            nodes,
            tasks: sizes.0[0],
            cpus: sizes.0[1],
            memory_mb: sizes.1,
            gres: sizes.2,
            start: ends.0,
            end: ends.1,
            state: ends.2,
            exit: ends.3,
            spread: Spread::of_task(7, &ends.4),
            usage: ends.4,
            submit_line: texts.1,
            distribution: words.0,
            srun_host: words.1,
            srun_pid: sizes.0[2],
        },
    )
}
fn report() -> impl Strategy<Value = NodeReport> {
    let texts = [word(), word(), word(), word(), word(), word()];
    let seconds = 0..=limits::LAST_TIME / 1000;
    (texts, any::<u32>(), amount(), vec(gres_spec(), 0..3), [seconds.clone(), seconds], vec("[ -~]{0,30}", 0..3))
        .prop_map(|(t, cpus, memory_mb, gres, times, missing_isolation)| {
            let [boot_id, address, hostname, version, arch, os] = t;
            let [boot_time, daemon_start_time] = times;
            NodeReport {
                boot_id,
                address,
                hostname,
                version,
                arch,
                os,
                cpus,
                memory_mb,
                gres,
                boot_time,
                daemon_start_time,
                missing_isolation,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_job_specification_survives_the_wire(value in spec()) {
        prop_assert_eq!(round_trip::<_, v1::JobSpec>(&value), Ok(value));
    }
    #[test]
    fn an_allocation_survives_the_wire(value in allocation()) {
        prop_assert_eq!(round_trip::<_, v1::Allocation>(&value), Ok(value));
    }
    #[test]
    fn a_step_record_survives_the_wire(value in record()) {
        prop_assert_eq!(round_trip::<_, v1::StepRecord>(&value), Ok(value));
    }
    #[test]
    fn a_node_report_survives_the_wire(value in report()) {
        prop_assert_eq!(round_trip::<_, v1::NodeReport>(&value), Ok(value));
    }
    #[test]
    fn an_index_set_survives_the_wire(value in indices()) {
        prop_assert_eq!(round_trip::<_, v1::IndexSet>(&value), Ok(value));
    }
    #[test]
    fn arbitrary_bytes_never_panic_the_decoder(data in vec(any::<u8>(), 0..300)) {
        if let Ok(message) = v1::JobSpec::decode(data.as_slice()) {
            let _ = JobSpec::try_from(message);
        }
        if let Ok(message) = v1::Allocation::decode(data.as_slice()) {
            let _ = Allocation::try_from(message);
        }
    }
}

fn allocation_of(nodes: &[&str]) -> v1::Allocation {
    let on = |name: &&str| v1::NodeAlloc {
        node: (*name).to_owned(),
        cpus: Some(v1::IndexSet::default()),
        ..Default::default()
    };
    v1::Allocation { nodes: nodes.iter().map(on).collect() }
}

#[test]
fn an_error_names_the_field_by_its_path() {
    let mut message = allocation_of(&["a", "b"]);
    message.nodes[1].gres.push(v1::GresAlloc { name: String::new(), ..Default::default() });
    let error = Allocation::try_from(message).unwrap_err();
    assert_eq!(error.field, "nodes[1].gres[0].name");
    assert_eq!(error.to_string(), "message field 'nodes[1].gres[0].name': is empty");
}

#[test]
fn node_names_can_not_leave_their_place_in_a_path() {
    for bad in ["", "..", ".hidden", "a/b", "a b", "a\0", "n[1-3]", &"x".repeat(256)] {
        let error = Allocation::try_from(allocation_of(&[bad])).unwrap_err();
        assert_eq!(error.field, "nodes[0].node", "{bad:?}");
    }
}

#[test]
fn a_node_can_not_be_allocated_twice() {
    let error = Allocation::try_from(allocation_of(&["a", "b", "a"])).unwrap_err();
    assert_eq!((error.field.as_str(), error.problem.as_str()), ("nodes", "node a appears twice"));
}

#[test]
fn ranges_that_descend_overlap_or_have_no_step_are_refused() {
    for bad in [&[(3, 1, 1)][..], &[(0, 4, 0)], &[(0, 4, 3)], &[(0, 5, 1), (5, 9, 1)], &[(0, u32::MAX, 1), (0, 0, 1)]] {
        let ranges = bad.iter().map(|&(first, last, step)| v1::IndexRange { first, last, step }).collect();
        assert!(IndexSet::try_from(v1::IndexSet { ranges }).is_err(), "{bad:?}");
    }
}

#[test]
fn lists_longer_than_our_limits_are_refused() {
    let names = vec![String::from("n"); limits::NODES + 1];
    let message = v1::ResourceRequest { node_list: names, ..Default::default() };
    let error = ResourceRequest::try_from(message).unwrap_err();
    assert_eq!(error.field, "node_list");
    assert_eq!(error.problem, "has 65537 names; at most 65536 are allowed");
}

#[test]
fn a_constraint_nested_too_deep_is_refused() {
    let mut value = Constraint::Feature("a".into());
    for _ in 0..limits::CONSTRAINT_DEPTH {
        value = Constraint::All(vec![value]);
    }
    assert!(Constraint::try_from(v1::Constraint::from(&value)).is_err());
}

#[test]
fn a_dependency_needs_a_job_unless_it_is_a_singleton() {
    let term = |kind, job| v1::DependencyTerm { kind, job, ..Default::default() };
    assert!(DependencyTerm::try_from(term(3, None)).is_err());
    assert!(DependencyTerm::try_from(term(3, Some(0))).is_err());
    assert!(DependencyTerm::try_from(term(6, Some(4))).is_err());
    assert!(DependencyTerm::try_from(term(9, Some(4))).is_err());
    assert!(DependencyTerm::try_from(term(6, None)).is_ok());
}

#[test]
fn a_batch_job_without_its_blobs_is_refused() {
    let message = v1::JobSpec { batch: true, ..Default::default() };
    assert_eq!(JobSpec::try_from(message).unwrap_err().field, "script_blob");
}
