//! Writes a paused tree to swap, one process at a time, where no cgroup does it.
//!
//! The cushion inside a process does the work, in a signal handler (crates/cushion/src/preload/pageout.rs). This module
//! asks for it: the process is stopped; the slow worker finds threads that may be interrupted; they get the signal
//! while they are stopped, so that they handle it first when the process is continued; and the process is stopped again
//! when it is done or no longer wanted. A process without a handler stays stopped.

use crate::interruptible::Interruptible;
use crate::policy::{PageoutCandidate, choose_for_pageout};
use crate::process_state::ProcessState;
use antifreeze_ipc::page::{PAGEOUT_SIGNAL, PAGER_BUSY, PAGER_FINISHED, PAGER_READY};
use antifreeze_ipc::shared::Shared;
use antifreeze_sense::Pid;
use antifreeze_sense::tree::{ProcessTree, TrackedProcess};
use rustix::process::Signal;
use std::sync::atomic::Ordering::{Acquire, Release};

const MILLISECOND_NS: u64 = 1_000_000;
/// A process whose threads were not found, or have not begun, after this long is skipped.
const TIMEOUT_NS: u64 = 2_000 * MILLISECOND_NS;
/// How often a process may run briefly because no thread can be interrupted where it was stopped.
const MAX_MOVES: u32 = 8;

/// How far paging out a process has come during one pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageoutState {
    #[default]
    NotAsked,
    /// It runs to page itself out.
    Running,
    /// It was stopped again before it had finished.
    Held,
    /// It has finished, or cannot be asked.
    Over,
}

impl PageoutState {
    pub fn is_running(self) -> bool {
        self == PageoutState::Running
    }
}

/// A process whose threads the slow worker should inspect. The number identifies the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inquiry {
    pub number: u32,
    pub pid: Pid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Inspecting {
        since: u64,
    },
    /// It runs until the next tick: all of its threads were in calls that a handler would end.
    Moving,
    Running {
        since: u64,
    },
}

pub struct Pageout {
    /// There is swap on a disk, and no cgroup that pages out from outside.
    possible: bool,
    inquiry: Inquiry,
    stage: Stage,
    moves: u32,
}

impl Pageout {
    pub fn new(possible: bool) -> Pageout {
        Pageout {
            possible,
            inquiry: Inquiry::default(),
            stage: Stage::Idle,
            moves: 0,
        }
    }

    /// What the slow worker should inspect.
    pub fn inquiry(&self) -> Option<Inquiry> {
        matches!(self.stage, Stage::Inspecting { .. }).then_some(self.inquiry)
    }

    /// Forgets the present process: the tree runs again.
    pub fn reset(&mut self) {
        self.stage = Stage::Idle;
    }

    /// Takes the next step; called at each tick while the tree is paused.
    pub fn advance(
        &mut self,
        now: u64,
        wanted: bool,
        found: Option<(Inquiry, Interruptible)>,
        tree: &mut ProcessTree<ProcessState>,
        shared: Shared,
    ) {
        if !self.possible {
            return;
        }
        match self.stage {
            Stage::Idle if wanted => self.begin(now, tree, shared),
            Stage::Idle => {}
            Stage::Inspecting { .. } if !wanted => self.stage = Stage::Idle,
            Stage::Inspecting { since } => {
                let found = found.filter(|(inquiry, _)| *inquiry == self.inquiry);
                let is_late = now.saturating_sub(since) > TIMEOUT_NS;
                match found.map(|(_, found)| found) {
                    Some(found) if !found.threads().is_empty() => {
                        self.ask(now, &found, tree, shared)
                    }
                    _ if is_late => self.end(PageoutState::Over, tree),
                    // The slow worker inspects it again: a thread had not stopped yet.
                    Some(found) if found.not_yet => self.inspect(since),
                    Some(found) if found.can_move && self.moves < MAX_MOVES => self.let_move(tree),
                    Some(_) => self.end(PageoutState::Over, tree),
                    None => {}
                }
            }
            Stage::Moving => {
                self.end(PageoutState::NotAsked, tree);
                if wanted {
                    self.inspect(now);
                }
            }
            Stage::Running { since } => {
                let is_late = now.saturating_sub(since) > TIMEOUT_NS;
                match pager(shared, self.inquiry.pid) {
                    PAGER_BUSY if wanted => {}
                    PAGER_READY if wanted && !is_late => {}
                    PAGER_BUSY | PAGER_READY if !wanted => self.end(PageoutState::Held, tree),
                    _ => self.end(PageoutState::Over, tree),
                }
            }
        }
    }

    /// Continues a process that was held, or else has the slow worker inspect the next.
    fn begin(&mut self, now: u64, tree: &mut ProcessTree<ProcessState>, shared: Shared) {
        let held = tree
            .processes()
            .find(|tracked| tracked.state.pageout == PageoutState::Held)
            .map(|tracked| tracked.process.pid);
        if let Some(pid) = held {
            self.inquiry.pid = pid;
            self.run(now, tree);
            return;
        }
        let candidate = |tracked: &TrackedProcess<ProcessState>| PageoutCandidate {
            pid: tracked.process.pid,
            resident: tracked.process.rss_anon.value().unwrap_or(0),
            can_be_asked: tracked.state.paused
                && tracked.state.pageout == PageoutState::NotAsked
                && pager(shared, tracked.process.pid) == PAGER_READY,
        };
        if let Some(next) = choose_for_pageout(tree.processes().map(candidate)) {
            self.inquiry.pid = next.pid;
            self.moves = 0;
            self.inspect(now);
        }
    }

    /// Has the slow worker inspect the threads of the present process.
    fn inspect(&mut self, since: u64) {
        self.inquiry.number = self.inquiry.number.wrapping_add(1);
        self.stage = Stage::Inspecting { since };
    }

    fn let_move(&mut self, tree: &mut ProcessTree<ProcessState>) {
        self.moves += 1;
        self.mark(PageoutState::Running, tree);
        let _ = tree.send_signal(self.inquiry.pid, Signal::CONT);
        self.stage = Stage::Moving;
    }

    fn ask(
        &mut self,
        now: u64,
        found: &Interruptible,
        tree: &mut ProcessTree<ProcessState>,
        shared: Shared,
    ) {
        let pid = self.inquiry.pid;
        // It is stopped already; this makes sure that the number still means our process.
        let is_ours = tree.send_signal(pid, Signal::STOP).is_ok();
        let Some((_, slot)) = shared.slot(pid.0).filter(|_| is_ours) else {
            self.end(PageoutState::Over, tree);
            return;
        };
        slot.pageout.store(1, Release);
        for thread in found.threads() {
            // SAFETY: a signal to a thread of a process of ours, which has a handler for it.
            unsafe { libc::syscall(libc::SYS_tgkill, pid.0, *thread, PAGEOUT_SIGNAL) };
        }
        self.run(now, tree);
    }

    fn run(&mut self, now: u64, tree: &mut ProcessTree<ProcessState>) {
        self.mark(PageoutState::Running, tree);
        let _ = tree.send_signal(self.inquiry.pid, Signal::CONT);
        self.stage = Stage::Running { since: now };
    }

    /// Stops it again, if it runs.
    fn end(&mut self, state: PageoutState, tree: &mut ProcessTree<ProcessState>) {
        self.mark(state, tree);
        let _ = tree.send_signal(self.inquiry.pid, Signal::STOP);
        self.stage = Stage::Idle;
    }

    fn mark(&self, state: PageoutState, tree: &mut ProcessTree<ProcessState>) {
        let pid = self.inquiry.pid;
        let mut processes = tree.processes_mut();
        if let Some(tracked) = processes.find(|tracked| tracked.process.pid == pid) {
            tracked.state.pageout = state;
        }
    }
}

fn pager(shared: Shared, pid: Pid) -> u32 {
    shared
        .slot(pid.0)
        .map_or(PAGER_FINISHED, |(_, slot)| slot.pager.load(Acquire))
}
