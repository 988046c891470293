//! Which task runs on which node of an allocation.
//!
//! Slurm was seen to do it so. A *job* gets CPUs for one task on each node, then for as many as fit on the first, the
//! second and so on (`packed`: `-N2 -n4` on nodes of 4 CPUs holds 3 and 1). A *step* spreads its tasks over what the job
//! holds as evenly as it can (`counts`: 5 tasks on three whole nodes are 2, 2, 1), or packs them with `-m block,pack`.
//! Block gives consecutive ranks to a node, cyclic deals them out one by one, plane in blocks (srun's manual page,
//! `--distribution`).

use crate::error::{ParseError, digits};
use crate::request::Distribution;

/// How many tasks each node gets: one after the other gets one more while it has room. None when `room` is too small
/// for `tasks` and `overcommit` is off; with it, what does not fit is dealt out evenly on top.
pub fn counts(tasks: u32, room: &[u32], overcommit: bool) -> Option<Vec<u32>> {
    let mut got = vec![0u32; room.len()];
    let mut left = deal(tasks, &mut got, |i| room[i]);
    if left > 0 && overcommit && !room.is_empty() {
        left = deal(left, &mut got, |_| u32::MAX);
    }
    (left == 0).then_some(got)
}

/// One task for each node, then the first node filled, then the second …: how a job's tasks lie on its nodes, and a
/// step's with `pack`. With fewer tasks than nodes the last ones get none. None when `room` is too small.
pub fn packed(tasks: u32, room: &[u32]) -> Option<Vec<u32>> {
    let mut left = tasks;
    let mut got = vec![0u32; room.len()];
    for most in [1, u32::MAX] {
        for (g, r) in got.iter_mut().zip(room) {
            let n = r.min(&most).saturating_sub(*g).min(left);
            *g += n;
            left -= n;
        }
    }
    (left == 0).then_some(got)
}

/// Deals tasks to the nodes in rounds, many rounds at once; gives back what is left over.
fn deal(mut left: u32, got: &mut [u32], room: impl Fn(usize) -> u32) -> u32 {
    loop {
        let open: Vec<usize> = (0..got.len()).filter(|i| got[*i] < room(*i)).collect();
        let Some(tightest) = open.iter().map(|i| room(*i) - got[*i]).min() else { return left };
        let rounds = (left / open.len() as u32).min(tightest);
        open.iter().for_each(|i| got[*i] += rounds);
        left -= rounds * open.len() as u32;
        if rounds == 0 {
            open.iter().take(left as usize).for_each(|i| got[*i] += 1);
            return 0;
        }
        if left == 0 {
            return 0;
        }
    }
}

/// Global ranks on each node, ascending. `room`: how many tasks each node can take (its CPUs by CPUs per task).
/// `Arbitrary` has no rule of its own: see `arbitrary`; here it counts as block. None as for `counts`.
pub fn tasks_per_node(tasks: u32, room: &[u32], distribution: Distribution, overcommit: bool) -> Option<Vec<Vec<u32>>> {
    let unit = match distribution {
        Distribution::Plane(size) => size.max(1),
        Distribution::Block | Distribution::Cyclic | Distribution::Arbitrary => 1,
    };
    let counts = match distribution {
        Distribution::Plane(_) => plane_counts(tasks, room, unit, overcommit)?,
        _ => counts(tasks, room, overcommit)?,
    };
    let mut out: Vec<Vec<u32>> = counts.iter().map(|n| Vec::with_capacity(*n as usize)).collect();
    let mut next = 0;
    if matches!(distribution, Distribution::Block | Distribution::Arbitrary) {
        for (ranks, n) in out.iter_mut().zip(&counts) {
            ranks.extend(next..next + n);
            next += n;
        }
        return Some(out);
    }
    while next < tasks {
        for (ranks, n) in out.iter_mut().zip(&counts) {
            let take = unit.min(n - ranks.len() as u32);
            ranks.extend(next..next + take);
            next += take;
        }
    }
    Some(out)
}

/// Blocks of `size` to one node after the other; a node without room for a whole block takes what it can.
fn plane_counts(tasks: u32, room: &[u32], size: u32, overcommit: bool) -> Option<Vec<u32>> {
    let mut got = vec![0u32; room.len()];
    let mut left = tasks;
    while left > 0 {
        let before = left;
        for (g, r) in got.iter_mut().zip(room) {
            let n = size.min(left).min(r - *g);
            *g += n;
            left -= n;
        }
        if left == before {
            return if overcommit && !room.is_empty() {
                deal(left, &mut got, |_| u32::MAX);
                Some(got)
            } else {
                None
            };
        }
    }
    Some(got)
}

/// `--distribution=arbitrary`: rank i runs on the node `hosts[i]` (an index below `nodes`). None when an index is not.
pub fn arbitrary(hosts: &[usize], nodes: usize) -> Option<Vec<Vec<u32>>> {
    let mut out = vec![Vec::new(); nodes];
    for (rank, host) in hosts.iter().enumerate() {
        out.get_mut(*host)?.push(rank as u32);
    }
    Some(out)
}

/// `2(x2),1`: SLURM_TASKS_PER_NODE and SLURM_JOB_CPUS_PER_NODE.
pub fn compress(counts: &[u32]) -> String {
    let mut parts = Vec::new();
    for run in counts.chunk_by(|a, b| a == b) {
        parts.push(if run.len() > 1 { format!("{}(x{})", run[0], run.len()) } else { run[0].to_string() });
    }
    parts.join(",")
}

/// The inverse of `compress`.
pub fn decompress(text: &str) -> Result<Vec<u32>, ParseError> {
    let fail = || ParseError::new("counts per node", text, "counts such as 2(x2),1");
    let mut out = Vec::new();
    if text.is_empty() {
        return Ok(out);
    }
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((c, t)) => (c, t.strip_suffix(')').and_then(|t| digits(t, 1 << 20)).ok_or_else(fail)?),
            None => (part, 1),
        };
        let count = digits(count, u64::from(u32::MAX)).ok_or_else(fail)? as u32;
        if out.len() as u64 + times > 1 << 20 {
            return Err(fail());
        }
        out.extend(std::iter::repeat_n(count, times as usize));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Distribution::*;

    #[test]
    fn block_puts_consecutive_ranks_together_as_evenly_as_room_allows() {
        assert_eq!(tasks_per_node(3, &[4, 4], Block, false).unwrap(), [vec![0, 1], vec![2]]);
        assert_eq!(tasks_per_node(4, &[2, 2, 2], Block, false).unwrap(), [vec![0, 1], vec![2], vec![3]]);
        assert_eq!(tasks_per_node(5, &[1, 4], Block, false).unwrap(), [vec![0], vec![1, 2, 3, 4]]);
        assert_eq!(tasks_per_node(1, &[4, 4], Block, false).unwrap(), [vec![0], vec![]]);
    }

    #[test]
    fn a_job_packs_its_first_nodes_after_one_task_for_each() {
        for (tasks, nodes, text) in
            [(5, 2, "4,1"), (4, 2, "3,1"), (4, 3, "2,1(x2)"), (10, 3, "4(x2),2"), (2, 3, "1(x2),0")]
        {
            assert_eq!(compress(&packed(tasks, &vec![4; nodes]).unwrap()), text);
        }
        assert_eq!(packed(9, &[4, 4]), None);
        assert_eq!(packed(u32::MAX, &[u32::MAX, 5]).unwrap(), [u32::MAX - 1, 1]);
    }

    #[test]
    fn steps_lie_as_slurms_were_seen_to_lie_on_three_whole_nodes() {
        let ranks = |n, d| tasks_per_node(n, &[4, 4, 4], d, false).unwrap();
        assert_eq!(ranks(5, Block), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(ranks(5, Cyclic), [vec![0, 3], vec![1, 4], vec![2]]);
        assert_eq!(ranks(10, Plane(2)), [vec![0, 1, 6, 7], vec![2, 3, 8, 9], vec![4, 5]]);
        assert_eq!(ranks(10, Plane(3)), [vec![0, 1, 2, 9], vec![3, 4, 5], vec![6, 7, 8]]);
        assert_eq!(ranks(12, Plane(8)), [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9, 10, 11]]);
        assert_eq!(compress(&counts(14, &[4, 4, 4], true).unwrap()), "5(x2),4");
        // Of a job that holds 4 CPUs and 1: `srun -N2 -n5 -m cyclic`.
        assert_eq!(tasks_per_node(5, &[4, 1], Cyclic, false).unwrap(), [vec![0, 2, 3, 4], vec![1]]);
    }

    #[test]
    fn cyclic_and_plane_deal_out_ranks() {
        assert_eq!(tasks_per_node(5, &[4, 4], Cyclic, false).unwrap(), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(tasks_per_node(5, &[1, 4], Cyclic, false).unwrap(), [vec![0], vec![1, 2, 3, 4]]);
        assert_eq!(tasks_per_node(10, &[8, 8], Plane(4), false).unwrap(), [vec![0, 1, 2, 3, 8, 9], vec![4, 5, 6, 7]]);
        assert_eq!(arbitrary(&[1, 0, 1], 2).unwrap(), [vec![1], vec![0, 2]]);
        assert_eq!(arbitrary(&[2], 2), None);
    }

    #[test]
    fn too_many_tasks_need_overcommit() {
        assert_eq!(tasks_per_node(5, &[2, 2], Block, false), None);
        assert_eq!(counts(5, &[2, 2], true).unwrap(), [3, 2]);
        assert_eq!(tasks_per_node(9, &[2, 2], Plane(2), true).unwrap().concat().len(), 9);
        assert_eq!(counts(1, &[], true), None);
        assert_eq!(counts(u32::MAX, &[1, u32::MAX], false).unwrap(), [1, u32::MAX - 1]);
    }

    #[test]
    fn counts_are_compressed_as_in_slurms_variables() {
        assert_eq!(compress(&[2, 2, 1]), "2(x2),1");
        assert_eq!(compress(&[72, 72, 36]), "72(x2),36");
        assert_eq!(compress(&[]), "");
        assert_eq!(decompress("2(x2),1").unwrap(), [2, 2, 1]);
        for bad in ["x", "2(x", "2(x0x)", "2(x99999999999)", "-1", "1,,2", "2(x1048576),1"] {
            assert!(decompress(bad).is_err(), "{bad}");
        }
    }
}
