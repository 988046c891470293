//! Usage, priorities and limits in the life of a cluster: what is charged to whom, who goes first, who has to wait.

use super::accounting::{add_qos, limit, modify_account, modify_user};
use super::world::*;
use crate::command::{Command, JobTarget};
use crate::query::{Board, scheduler_input, usage_at};
use crate::reject::Reject;
use crate::usage::UsageOwner;
use sluice_model::accounting::{
    AssocChange, CountLimit, Enforce, Factor, QosChange, Shares, TresKind, TresLimit, parse_change,
};
use sluice_model::config::{AccountingConfig, ClusterConfig, PriorityConfig, PriorityFlags, PriorityKind, UsageReset};
use sluice_model::tres_weights::TresWeights;
use sluice_model::{JobId, JobSpec};
use std::sync::Arc;

fn multifactor() -> PriorityConfig {
    PriorityConfig {
        kind: PriorityKind::Multifactor,
        weight_fairshare: 10_000,
        weight_age: 1000,
        ..PriorityConfig::default()
    }
}

fn fair() -> ClusterConfig {
    ClusterConfig { priority: multifactor(), ..config() }
}

fn of(uid: u32, account: &str, cpus: u32) -> JobSpec {
    JobSpec { uid, user: format!("user{uid}").into(), account: Some(account.to_owned()), ..cores(cpus) }
}

fn cpu_secs(w: &World, owner: &UsageOwner) -> f64 {
    usage_at(&w.state, w.now).get(owner).map_or(0.0, |s| s.of(&TresKind::Cpu))
}

fn account(w: &World, name: &str) -> UsageOwner {
    UsageOwner::Association(w.state.accounting.of_account(name).unwrap().id)
}

fn order(w: &World) -> Vec<JobId> {
    let mut jobs: Vec<(u32, JobId)> =
        scheduler_input(&w.state, w.now).pending.iter().map(|p| (p.priority, p.job)).collect();
    jobs.sort_by_key(|(p, job)| (std::cmp::Reverse(*p), *job));
    jobs.into_iter().map(|(_, job)| job).collect()
}

#[test]
fn a_run_is_charged_once_to_its_user_account_all_above_and_its_qos() {
    let mut w = World::with_accounts(config());
    let job = w.submit(of(1500, "chem", 2));
    w.schedule();
    w.pass(100);
    let near = |a: f64, b: f64| (a - b).abs() < 0.5;
    assert!(near(cpu_secs(&w, &account(&w, "chem")), 200.0), "running jobs count");
    w.run(job, OK);
    w.pass(1000);
    for name in ["chem", "science", "root"] {
        assert!(near(cpu_secs(&w, &account(&w, name)), 200.0), "{name}: {}", cpu_secs(&w, &account(&w, name)));
    }
    assert!(near(cpu_secs(&w, &UsageOwner::Qos(1)), 200.0));
    assert_eq!(cpu_secs(&w, &account(&w, "phys")), 0.0);
    w.assert_replays();
}

#[test]
fn who_has_no_association_is_charged_by_name() {
    let mut w = World::new();
    let job = w.submit(job());
    w.schedule();
    w.pass(60);
    w.run(job, OK);
    assert!((cpu_secs(&w, &UsageOwner::User("user1500".to_owned())) - 60.0).abs() < 0.1);
}

#[test]
fn time_suspended_is_not_charged_and_a_requeued_run_is() {
    let mut w = World::new();
    let id = w.submit(job());
    let target = JobTarget::Job(id);
    w.schedule();
    w.confirm(id);
    w.pass(30);
    w.ok(Command::Suspend { caller: operator(), target: target.clone() });
    w.pass(500);
    w.ok(Command::Resume { caller: operator(), target: target.clone() });
    w.pass(30);
    let owner = UsageOwner::User("user1500".to_owned());
    assert!((cpu_secs(&w, &owner) - 60.0).abs() < 0.1, "{}", cpu_secs(&w, &owner));
    w.ok(Command::Requeue { caller: operator(), target, hold: false });
    w.batch_ends(id, killed(15));
    w.clean(id);
    assert!((cpu_secs(&w, &owner) - 60.0).abs() < 0.1);
    w.assert_replays();
}

#[test]
fn usage_halves_with_each_half_life_also_when_the_half_life_changes() {
    let hour = |h: u32| PriorityConfig { decay_half_life_secs: h * 3600, ..multifactor() };
    let mut w = World::with(ClusterConfig { priority: hour(1), ..config() });
    let id = w.submit(cores(4));
    w.schedule();
    w.pass(100);
    w.run(id, OK);
    let owner = UsageOwner::User("user1500".to_owned());
    let at_end = cpu_secs(&w, &owner);
    w.pass(3600);
    assert!((cpu_secs(&w, &owner) - at_end / 2.0).abs() < 1e-6);
    w.ok(Command::Configure { config: Arc::new(ClusterConfig { priority: hour(2), ..config() }) });
    assert!((cpu_secs(&w, &owner) - at_end / 2.0).abs() < 1e-6, "the past keeps its half-life");
    w.pass(7200);
    assert!((cpu_secs(&w, &owner) - at_end / 4.0).abs() < 1e-6);
    let now = PriorityConfig { usage_reset: UsageReset::Now, ..hour(2) };
    w.ok(Command::Configure { config: Arc::new(ClusterConfig { priority: now, ..config() }) });
    assert_eq!(cpu_secs(&w, &owner), 0.0);
    w.assert_replays();
}

#[test]
fn a_qos_uses_faster_and_may_never_forget() {
    let mut w = World::with_accounts(config());
    let qos = QosChange {
        usage_factor: Some(Factor(2_000_000)),
        flags: vec![sluice_model::accounting::ListEdit::Set(["NoDecay".to_owned()].into())],
        ..QosChange::default()
    };
    w.account(add_qos("dear", qos));
    let id = w.submit(JobSpec { qos: Some("dear".to_owned()), ..of(1500, "chem", 1) });
    w.schedule();
    w.pass(100);
    w.run(id, OK);
    let dear = UsageOwner::Qos(w.state.accounting.qos["dear"].id);
    assert_eq!(cpu_secs(&w, &dear), 200.0);
    w.pass(7 * 86_400);
    assert_eq!(cpu_secs(&w, &dear), 200.0);
    assert!((cpu_secs(&w, &account(&w, "chem")) - 100.0).abs() < 0.1);
}

#[test]
fn the_account_that_used_less_goes_first_and_shares_decide_how_much_is_less() {
    let mut w = World::with_accounts(fair());
    let hog = w.submit(of(1500, "chem", 4));
    w.schedule();
    w.pass(300);
    w.run(hog, OK);
    // Both nodes busy, so that the rest waits.
    let blockers = [w.submit(of(1600, "phys", 4)), w.submit(of(1600, "phys", 4))];
    w.schedule();
    let first = w.submit(of(1500, "chem", 1));
    let second = w.submit(of(1600, "phys", 1));
    assert_eq!(order(&w), [second, first], "chem has used more than phys so far");
    let parts = Board::new(&w.state, w.now, None).parts(&w.state, w.job(second));
    assert_eq!((parts.len(), parts[0].partition.as_str()), (1, "main"));
    assert!(parts[0].factors.fairshare > 0.3, "{:?}", parts[0].factors);
    w.account(modify_account(
        "chem",
        AssocChange { shares: Some(Some(Shares::Number(1000))), ..AssocChange::default() },
    ));
    w.pass(600);
    assert_eq!(order(&w), [first, second], "with a thousand shares chem has used little of its own");
    w.pass(1);
    blockers.iter().for_each(|b| w.run(*b, OK));
    w.assert_replays();
}

#[test]
fn a_given_priority_and_a_hold_stay_and_a_started_job_keeps_what_it_had() {
    let mut w = World::with(fair());
    let given = w.submit(job());
    let change = crate::command::JobChange { priority: Some(77), ..Default::default() };
    let target = JobTarget::Job(given);
    w.ok(Command::UpdateJob { caller: operator(), target, change: Box::new(change) });
    let computed = w.submit(job());
    let board = Board::new(&w.state, w.now, None);
    assert_eq!(board.priority(&w.state, w.job(given)), 77);
    let total = board.priority(&w.state, w.job(computed));
    assert_eq!(total, 10_000, "a user without history stands first in the tree");
    w.schedule();
    assert_eq!((w.job(computed).priority, w.job(given).priority), (total, 77));
    w.pass(600);
    let later = Board::new(&w.state, w.now, None);
    assert_eq!(later.priority(&w.state, w.job(computed)), total);
}

#[test]
fn with_incr_only_a_new_board_lowers_nobody() {
    let only = PriorityConfig { flags: PriorityFlags::INCR_ONLY, weight_age: 0, ..multifactor() };
    let mut w = World::with(ClusterConfig { priority: only, ..config() });
    w.submit(cores(4));
    w.submit(cores(4));
    let waiting = w.submit(job());
    let first = Board::new(&w.state, w.now, None);
    w.schedule();
    w.pass(600);
    let second = Board::new(&w.state, w.now, Some(&first));
    assert_eq!(second.priority(&w.state, w.job(waiting)), first.priority(&w.state, w.job(waiting)));
    assert!(!second.is_stale(&w.state, w.now) && first.is_stale(&w.state, w.now));
}

fn limited(words: &[&str]) -> ClusterConfig {
    let enforce = Enforce::parse(words.iter().copied()).unwrap();
    ClusterConfig { accounting: AccountingConfig { enforce }, ..config() }
}

fn tres(limit: TresLimit, text: &str) -> AssocChange {
    let mut change = AssocChange::default();
    change.limits.tres.insert(limit, parse_change(text).unwrap());
    change
}

#[test]
fn a_group_limit_holds_jobs_back_until_others_end() {
    let mut w = World::with_accounts(limited(&["limits"]));
    w.account(modify_account("science", tres(TresLimit::Grp, "cpu=3")));
    let first = w.submit(of(1500, "chem", 2));
    let second = w.submit(of(1600, "phys", 2));
    let third = w.submit(of(1600, "phys", 1));
    assert_eq!(w.schedule(), [first, third]);
    let plan = sluice_sched::plan(&scheduler_input(&w.state, w.now));
    assert_eq!(plan.reasons, [(second, sluice_model::Reason::AssocGrpCpuLimit)]);
    w.run(first, OK);
    assert_eq!(w.schedule(), [second]);
}

#[test]
fn a_plan_made_before_a_limit_was_set_does_not_break_it() {
    let mut w = World::with_accounts(limited(&["limits"]));
    let jobs = [w.submit(of(1500, "chem", 1)), w.submit(of(1500, "chem", 1))];
    let plan = sluice_sched::plan(&scheduler_input(&w.state, w.now));
    assert_eq!(plan.starts.len(), 2);
    w.account(modify_user("user1500", limit(CountLimit::MaxJobs, 1)));
    let reply = w.ok(Command::ApplyPlan { starts: plan.starts, preemptions: plan.preemptions, lapsed: plan.lapsed });
    assert_eq!(reply, crate::command::Reply::Affected { jobs: vec![jobs[0]] });
}

#[test]
fn without_enforcement_limits_are_only_kept() {
    let mut w = World::with_accounts(config());
    w.account(modify_account("science", tres(TresLimit::Grp, "cpu=0")));
    let id = w.submit(of(1500, "chem", 2));
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn minutes_used_up_hold_an_account_back_until_they_have_faded() {
    let mut config = limited(&["limits"]);
    config.priority.decay_half_life_secs = 3600;
    let mut w = World::with_accounts(config);
    w.account(modify_account("chem", tres(TresLimit::GrpMins, "cpu=10")));
    let id = w.submit(of(1500, "chem", 4));
    w.schedule();
    w.pass(200);
    w.run(id, OK);
    let next = w.submit(of(1500, "chem", 1));
    assert!(w.schedule().is_empty());
    w.pass(2 * 3600);
    assert_eq!(w.schedule(), [next]);
}

#[test]
fn jobs_that_run_when_their_groups_minutes_are_used_up_end_and_others_go_on() {
    let mut w = World::with_accounts(limited(&["limits"]));
    w.account(modify_account("chem", tres(TresLimit::GrpMins, "cpu=10,gres/gpu=1")));
    let (chem, phys) = (w.submit(of(1500, "chem", 4)), w.submit(of(1600, "phys", 2)));
    assert_eq!(w.schedule(), [chem, phys]);
    w.confirm(chem);
    w.pass(140);
    assert_eq!(w.ok(Command::EndUsedUp), crate::command::Reply::Affected { jobs: Vec::new() });
    w.pass(20);
    assert_eq!(w.ok(Command::EndUsedUp), crate::command::Reply::Affected { jobs: vec![chem] });
    assert_eq!(w.ok(Command::EndUsedUp), crate::command::Reply::Affected { jobs: Vec::new() }, "its end has begun");
    w.batch_ends(chem, killed(15));
    w.clean(chem);
    let end = w.outcome(chem);
    assert_eq!(end.state, sluice_model::JobState::Timeout);
    assert_eq!(end.reason, sluice_model::Reason::AssocGrpCPUMinutesLimit);
    assert_eq!(end.detail.as_deref(), Some("GrpTRESMins of account chem is cpu=10: 10 in use"));
    assert_eq!(w.state_of(phys), sluice_model::JobState::Running);
    w.assert_replays();
}

#[test]
fn a_partitions_qos_limits_its_jobs_and_one_that_denies_refuses_at_once() {
    let mut config = limited(&["limits"]);
    config.partitions[0].qos = Some("part".to_owned());
    config.partitions[0].billing_weights = TresWeights::parse("cpu=2,mem=0.01").unwrap();
    let mut w = World::with_accounts(config);
    let mut per_user = QosChange::default();
    per_user.limits.tres.insert(TresLimit::MaxPerUser, parse_change("billing=5").unwrap());
    w.account(add_qos("part", per_user.clone()));
    let first = w.submit(of(1500, "chem", 2));
    let second = w.submit(of(1500, "chem", 1));
    let other = w.submit(of(1600, "phys", 1));
    assert_eq!(w.schedule(), [first, other], "5 billing units are 2 CPUs and 100 MiB");
    let plan = sluice_sched::plan(&scheduler_input(&w.state, w.now));
    assert_eq!(plan.reasons, [(second, sluice_model::Reason::QOSMaxBillingPerUser)]);
    per_user.flags = vec![sluice_model::accounting::ListEdit::Set(["DenyOnLimit".to_owned()].into())];
    w.account(sluice_model::accounting::AccountingRequest::ModifyQos { names: vec!["part".to_owned()], qos: per_user });
    let refusal = w.refused(of(1600, "phys", 3));
    let Reject::AccountingPolicy { detail } = &refusal else { panic!("{refusal:?}") };
    assert_eq!(detail, "MaxTRESPU of user 1600 in QOS part is billing=5: 0 in use, 7 asked");
    w.submit(of(1600, "phys", 2));
}

#[test]
fn a_reset_forgets_what_all_have_used_and_remembers_when() {
    let mut w = World::with_accounts(config());
    let id = w.submit(of(1500, "chem", 2));
    w.schedule();
    w.pass(100);
    w.run(id, OK);
    w.ok(Command::ResetUsage);
    assert_eq!(cpu_secs(&w, &account(&w, "root")), 0.0);
    assert_eq!(w.state.usage.reset, Some(w.now));
    w.assert_replays();
}
