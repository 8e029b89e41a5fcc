//! Pausing, continuing and ending the tree, and nothing but the tree.

use super::pageout::PageoutState;
use crate::process_state::ProcessState;
use crate::undo::note_paused;
use antifreeze_ipc::shared::Shared;
use antifreeze_sense::Pid;
use antifreeze_sense::tree::ProcessTree;
use rustix::process::Signal;

/// A process below this is a launcher (a shell, `env`, `time`): what it started has to be
/// asked too. Above it, it is the trainer, which knows best how to end its own workers.
const LAUNCHER_BYTES: u64 = 32 << 20;

/// How deep a chain of launchers is followed.
const DEPTH: usize = 16;

/// Stops every process of the tree that runs; returns how many it stopped. What the user
/// had stopped is not ours.
pub fn pause(tree: &mut ProcessTree<ProcessState>, shared: Shared) -> usize {
    for tracked in tree.processes_mut() {
        let running = !matches!(tracked.process.state, b'T' | b't' | b'Z' | b'X');
        tracked.state.paused |= running;
    }
    let ours = || tree.processes().filter(|tracked| tracked.state.paused);
    // Noted before it is done: should we die in between, a keeper continues too many.
    note_paused(shared, tree);
    // One that pages itself out has to run for it.
    let to_stop = || ours().filter(|tracked| !tracked.state.pageout.is_running());
    to_stop()
        .filter(|p| tree.send_signal(p.process.pid, Signal::STOP).is_ok())
        .count()
}

/// Continues what [`pause`] stopped.
pub fn resume(tree: &mut ProcessTree<ProcessState>, shared: Shared) {
    shared.withdraw_pageouts();
    for tracked in tree.processes().filter(|tracked| tracked.state.paused) {
        let _ = tree.send_signal(tracked.process.pid, Signal::CONT);
    }
    for tracked in tree.processes_mut().filter(|tracked| tracked.state.paused) {
        tracked.state.paused = false;
        tracked.state.pageout = PageoutState::default();
        // It was read while it stood still, and that was our doing.
        tracked.process.state = b'R';
    }
    note_paused(shared, tree);
}

/// Asks the trainer to end: the root, and through launchers what they started.
pub fn ask(tree: &ProcessTree<ProcessState>, root: Pid) {
    let known = tree.get(root).is_some();
    if known {
        ask_from(tree, root, DEPTH);
    } else {
        // The root has ended; what is left is asked one by one.
        signal_all(tree, Signal::TERM);
    }
}

fn ask_from(tree: &ProcessTree<ProcessState>, pid: Pid, depth: usize) {
    let _ = tree.send_signal(pid, Signal::TERM);
    let launcher = tree
        .get(pid)
        .is_some_and(|p| p.process.resident() < LAUNCHER_BYTES);
    if !launcher || depth == 0 {
        return;
    }
    for child in tree.processes().filter(|p| p.process.parent == pid) {
        ask_from(tree, child.process.pid, depth - 1);
    }
}

pub fn signal_all(tree: &ProcessTree<ProcessState>, signal: Signal) {
    for tracked in tree.processes() {
        let _ = tree.send_signal(tracked.process.pid, signal);
    }
}
