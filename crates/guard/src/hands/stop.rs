//! Pauses, continues and ends the tree, and no other process.

use super::pageout::PageoutState;
use crate::process_state::ProcessState;
use crate::undo::note_paused;
use antifreeze_ipc::shared::Shared;
use antifreeze_sense::Pid;
use antifreeze_sense::tree::ProcessTree;
use rustix::process::Signal;

/// A smaller process is a launcher (a shell, `env`, `time`): what it started has to be asked too. A larger one is the
/// trainer, which knows best how to end its own workers.
const LAUNCHER_BYTES: u64 = 32 << 20;

/// How deep a chain of launchers is followed.
const MAX_DEPTH: usize = 16;

/// Stops every running process of the tree and returns how many. A process that the user had stopped is not marked as
/// ours.
pub fn pause(tree: &mut ProcessTree<ProcessState>, shared: Shared) -> usize {
    for tracked in tree.processes_mut() {
        let running = !matches!(tracked.process.state, b'T' | b't' | b'Z' | b'X');
        tracked.state.paused |= running;
    }
    let ours = || tree.processes().filter(|tracked| tracked.state.paused);
    // Noted before it is done: if we died in between, a keeper would continue too many.
    note_paused(shared, tree);
    // A process that pages itself out has to run for it.
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
        // It was read while we had it stopped.
        tracked.process.state = b'R';
    }
    note_paused(shared, tree);
}

/// Asks the trainer to end: the root, and through launchers what they started.
pub fn ask(tree: &ProcessTree<ProcessState>, root: Pid) {
    let known = tree.get(root).is_some();
    if known {
        ask_from(tree, root, MAX_DEPTH);
    } else {
        // The root has ended; the remaining processes are all asked.
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
