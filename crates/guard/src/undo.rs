//! Notes what the guard has done to a tree, and undoes it: by the guard at its end, or by a keeper or the front if it
//! died.
//!
//! The guard notes each process in the state of the run, with its start time, before it changes it. So nothing is ever
//! done to another process with the same PID.

use crate::hands::limit::Limits;
use crate::identity;
use crate::process_state::ProcessState;
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::state::GuardedProcess;
use antifreeze_sense::clock::monotonic_ns;
use antifreeze_sense::tree::{ProcessTree, TREE_CAPACITY, TrackedProcess};
use antifreeze_sense::{Pid, Reading, Reason};
use rustix::process::Signal;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// How often a tree that keeps forking is walked.
const MAX_PASSES: usize = 50;
/// Whether the process that was noted is alive, and not another one with the same PID.
pub fn is_alive(noted: &GuardedProcess) -> bool {
    identity::is_same(noted.pid, noted.started)
}

/// Notes all processes of the tree. Must come before anything is done to them. `limit_before` is the soft limit of a
/// process without the guard.
pub fn note_guarded(
    shared: Shared,
    tree: &ProcessTree<ProcessState>,
    limit_before: impl Fn(&TrackedProcess<ProcessState>) -> Option<u64>,
) {
    shared.note_guarded(tree.processes().map(|tracked| GuardedProcess {
        pid: tracked.process.pid,
        started: tracked.process.started,
        paused: tracked.state.paused,
        limit_before: limit_before(tracked),
    }));
}

/// Notes again which of the noted processes are paused.
pub fn note_paused(shared: Shared, tree: &ProcessTree<ProcessState>) {
    shared.note_paused(|noted| {
        let tracked = tree.get(noted.pid);
        let tracked = tracked.filter(|tracked| tracked.process.started == noted.started);
        tracked.is_some_and(|tracked| tracked.state.paused)
    });
}

/// Continues what an earlier guard has stopped.
pub fn continue_paused(shared: Shared) {
    shared.withdraw_pageouts();
    for noted in shared.guarded().filter(|noted| noted.paused) {
        let _ = identity::signal(noted.pid, noted.started, Signal::CONT);
    }
}

/// Undoes everything if there is no guard any more. `ours` are processes that do not belong to the tree.
pub fn undo_all(shared: Shared, ours: &[Pid]) {
    let head = shared.head();
    shared.page().wall.store(0, Release);
    continue_paused(shared);
    let Ok(mut tree) = known_tree(shared, ours) else {
        return;
    };
    if head.limits.load(Acquire) == 1 {
        put_back_limits(&mut tree, |tracked| tracked.state);
    }
    put_back_oom_scores(shared, &mut tree);
}

/// An earlier soft limit. None if the process was not noted.
type Before = Option<Option<u64>>;

/// The noted processes and their descendants.
fn known_tree(shared: Shared, ours: &[Pid]) -> rustix::io::Result<ProcessTree<Before>> {
    let mut tree = ProcessTree::new(TREE_CAPACITY)?;
    for pid in ours.iter().filter(|pid| pid.0 != 0) {
        let _ = tree.exclude(*pid);
    }
    // Orphans of the tree are reparented to the front while it lives.
    let front = Pid(shared.head().front_pid.load(Relaxed));
    if ours.contains(&front) {
        let _ = tree.add_reaper(front);
    }
    for noted in shared.guarded().filter(is_alive) {
        if tree.add_root(noted.pid, monotonic_ns()).is_ok()
            && let Some(tracked) = find(&mut tree, noted.pid)
        {
            tracked.state = Some(noted.limit_before);
        }
    }
    Ok(tree)
}

fn find<S: Copy + Default>(tree: &mut ProcessTree<S>, pid: Pid) -> Option<&mut TrackedProcess<S>> {
    let mut processes = tree.processes_mut();
    processes.find(|tracked| tracked.process.pid == pid)
}

/// Restores the soft limit of every process of the tree. Processes that are born meanwhile get that of their parents.
pub fn put_back_limits<S: Copy + Default>(
    tree: &mut ProcessTree<S>,
    before: impl Fn(&TrackedProcess<S>) -> Before,
) {
    for _ in 0..MAX_PASSES {
        tree.update_members(Reading::Unavailable(Reason::NotYet), monotonic_ns());
        let mut has_changed = false;
        for tracked in tree.processes() {
            let pid = tracked.process.pid;
            let before = before_of(tree, tracked, &before);
            if let Ok(limits) = Limits::read(pid)
                && limits.soft != limits.reachable(before)
            {
                has_changed |= limits.move_to(pid, before).is_ok();
            }
        }
        if !has_changed {
            return;
        }
    }
}

/// Its own earlier limit, or that of its nearest ancestor that has one, or the one that we were started with.
fn before_of<S: Copy + Default>(
    tree: &ProcessTree<S>,
    tracked: &TrackedProcess<S>,
    before: &impl Fn(&TrackedProcess<S>) -> Before,
) -> Option<u64> {
    let mut tracked = tracked;
    for _ in 0..TREE_CAPACITY {
        if let Some(before) = before(tracked) {
            return before;
        }
        match tree.get(tracked.process.parent) {
            Some(parent) => tracked = parent,
            None => break,
        }
    }
    let ours = Pid(std::process::id());
    Limits::read(ours).ok().and_then(|limits| limits.soft)
}

/// Makes the kernel kill an attached process first, while it is guarded. Its children inherit that.
pub fn raise_oom_score(shared: Shared, pid: Pid) {
    let head = shared.head();
    if head.oom_is_raised.load(Acquire) == 1 {
        return;
    }
    if let Some(before) = oom_score(pid) {
        let raised = (before + OOM_SCORE_RAISE).min(MAX_OOM_SCORE);
        head.oom_before.store(before, Relaxed);
        head.oom_raised.store(raised, Relaxed);
        head.oom_is_raised.store(1, Release);
        set_oom_score(pid, raised);
    }
}

const OOM_SCORE_RAISE: i32 = 500;
const MAX_OOM_SCORE: i32 = 1000;

/// Restores the score of all processes of the tree that still have the raised one.
pub fn put_back_oom_scores<S: Copy + Default>(shared: Shared, tree: &mut ProcessTree<S>) {
    let head = shared.head();
    if head.oom_is_raised.load(Acquire) != 1 {
        return;
    }
    let (before, raised) = (head.oom_before.load(Relaxed), head.oom_raised.load(Relaxed));
    for _ in 0..MAX_PASSES {
        tree.update_members(Reading::Unavailable(Reason::NotYet), monotonic_ns());
        let mut has_changed = false;
        for tracked in tree.processes() {
            let pid = tracked.process.pid;
            if before != raised && oom_score(pid) == Some(raised) {
                has_changed |= set_oom_score(pid, before);
            }
        }
        if !has_changed {
            return;
        }
    }
}

fn oom_score(pid: Pid) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", pid.0)).ok()?;
    text.trim().parse().ok()
}

/// False if it was refused, or if the process has ended.
fn set_oom_score(pid: Pid, score: i32) -> bool {
    std::fs::write(format!("/proc/{}/oom_score_adj", pid.0), score.to_string()).is_ok()
}
