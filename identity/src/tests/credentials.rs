use super::*;
use crate::credential::{sign_grant, sign_job, verify_grant, verify_job};
use crate::error::Refused;
use prost::Message;
use sluice_model::IndexSet;
use sluice_proto::v1;

fn cores(first: u32, last: u32) -> Option<v1::IndexSet> {
    Some((&IndexSet::range(first, last)).into())
}

/// Job 7, attempt 1, cores 0-3 and GPUs 0-1 on each of node1 and node2.
fn job(f: &Fixture) -> v1::JobCredentialBody {
    let on = |node: &str| v1::NodeAlloc {
        node: node.into(),
        cpus: cores(0, 3),
        memory_mb: 1000,
        gres: vec![v1::GresAlloc { name: "gpu".into(), kind: None, indices: cores(0, 1) }],
        tasks: 1,
    };
    v1::JobCredentialBody {
        job: 7,
        attempt: 1,
        uid: 1000,
        cluster: f.keys.cluster().name.clone(),
        allocation: Some(v1::Allocation { nodes: vec![on("node1"), on("node2")] }),
        issued_at: crate::now_ms(),
        ..Default::default()
    }
}

fn step(node: &str) -> v1::StepGrantBody {
    let on = v1::StepNode { node: node.into(), cpus: cores(1, 2), memory_mb: 500, ..Default::default() };
    let key = v1::StepKey { job: 7, attempt: 1, step: 0 };
    v1::StepGrantBody { key: Some(key), nodes: vec![on], ntasks: 1, ..Default::default() }
}

#[test]
fn a_job_credential_is_believed_by_every_node_of_its_cluster_alone() {
    let (f, other) = (Fixture::new(), Fixture::new());
    let credential = sign_job(&f.keys, &job(&f));
    let verified = verify_job(&credential, f.keys.cluster(), crate::now_ms()).unwrap();
    assert_eq!((verified.body.job, verified.allocation.cpus()), (7, 8));
    assert_eq!(
        verify_job(&credential, other.keys.cluster(), crate::now_ms()),
        Err(Refused::BadSignature { what: "job credential" })
    );
}

#[test]
fn a_changed_job_credential_is_refused() {
    let f = Fixture::new();
    let mut credential = sign_job(&f.keys, &job(&f));
    let mut body = job(&f);
    body.uid = 0;
    credential.body = body.encode_to_vec().into();
    let refused = verify_job(&credential, f.keys.cluster(), crate::now_ms());
    assert_eq!(refused, Err(Refused::BadSignature { what: "job credential" }));
}

#[test]
fn an_expired_job_credential_is_refused() {
    let f = Fixture::new();
    let now = crate::now_ms();
    let credential = sign_job(&f.keys, &v1::JobCredentialBody { expires_at: now, ..job(&f) });
    assert!(verify_job(&credential, f.keys.cluster(), now).is_ok());
    let refused = verify_job(&credential, f.keys.cluster(), now + 60_001);
    assert_eq!(refused, Err(Refused::Expired { what: "job credential" }));
}

#[test]
fn the_first_node_grants_steps_and_no_other() {
    let f = Fixture::new();
    let credential = || sign_job(&f.keys, &job(&f));
    let judge = |host: &str, roles| {
        let grant = sign_grant(&f.host(host, roles), &step("node2"), credential());
        verify_grant(&grant, f.keys.cluster(), crate::now_ms())
    };
    assert_eq!(judge("node1", COMPUTE).unwrap().job.body.uid, 1000);
    for (host, roles) in [("node2", COMPUTE), ("node3", COMPUTE), ("node1", LOGIN)] {
        assert!(matches!(judge(host, roles), Err(Refused::Role { .. })), "{host}");
    }
}

#[test]
fn a_grant_can_not_go_beyond_its_job() {
    let f = Fixture::new();
    let manager = f.host("node1", COMPUTE);
    let gpus = |last| vec![v1::GresAlloc { name: "gpu".into(), kind: None, indices: cores(0, last) }];
    type Change<'a> = (&'a str, &'a dyn Fn(&mut v1::StepGrantBody));
    let changes: [Change; 8] = [
        ("another job", &|s| s.key.as_mut().unwrap().job = 8),
        ("another attempt", &|s| s.key.as_mut().unwrap().attempt = 0),
        ("a foreign node", &|s| s.nodes[0].node = "node3".into()),
        ("a node twice", &|s| s.nodes.push(s.nodes[0].clone())),
        ("more cores", &|s| s.nodes[0].cpus = cores(3, 4)),
        ("more memory", &|s| s.nodes[0].memory_mb = 1001),
        ("more GPUs", &|s| s.nodes[0].gres = gpus(2)),
        ("other devices", &|s| {
            s.nodes[0].gres = gpus(0);
            s.nodes[0].gres[0].name = "fpga".into();
        }),
    ];
    for (what, change) in changes {
        let mut body = step("node2");
        change(&mut body);
        let grant = sign_grant(&manager, &body, sign_job(&f.keys, &job(&f)));
        let refused = verify_grant(&grant, f.keys.cluster(), crate::now_ms());
        assert!(matches!(refused, Err(Refused::BeyondJob { .. })), "{what}: {refused:?}");
    }
    let mut body = step("node2");
    body.nodes[0].gres = gpus(1);
    let grant = sign_grant(&manager, &body, sign_job(&f.keys, &job(&f)));
    assert!(verify_grant(&grant, f.keys.cluster(), crate::now_ms()).is_ok());
}

#[test]
fn a_changed_grant_is_refused() {
    let f = Fixture::new();
    let mut grant = sign_grant(&f.host("node1", COMPUTE), &step("node2"), sign_job(&f.keys, &job(&f)));
    grant.body = step("node1").encode_to_vec().into();
    let refused = verify_grant(&grant, f.keys.cluster(), crate::now_ms());
    assert_eq!(refused, Err(Refused::BadSignature { what: "step grant" }));
}
