//! Keeps the wall: sets the soft limit of every process of the tree, at each tick, to what it has mapped plus what the
//! machine can still spare.

use crate::hands::limit::Limits;
use crate::policy::{Candidate, OwnLimit, WallRoom, WallSign, WallState, closed, plan};
use crate::process_state::{Loading, ProcessState};
use crate::room::{MemoryBounds, Room};
use crate::slow_worker::{FileData, Findings};
use crate::stride::Stride;
use crate::undo::{note_guarded, put_back_limits};
use antifreeze_ipc::page::{LIMIT_UNIT, LOADING_NS, SLOTS, Slot};
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::state::GuardedProcess;
use antifreeze_record::event::{Degradation, EventKind};
use antifreeze_sense::tree::{ProcessTree, TREE_CAPACITY, TrackedProcess};
use antifreeze_sense::{Pid, Process, ProcessName, Reading};
use rustix::io::Errno;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

/// Events of one update; further refusals are only counted.
const MAX_EVENTS_PER_UPDATE: usize = 16;

/// What the wall is computed from, besides the processes.
pub struct WallInput<'a> {
    pub now: u64,
    pub room: &'a Room,
    pub bounds: &'a MemoryBounds,
    pub footprint: u64,
    /// The largest footprint of the run.
    pub peak: u64,
    pub conditions: WallConditions,
    pub findings: &'a Findings,
    pub shared: Shared,
}

/// What the tree and the guard are doing, as far as it changes where the wall belongs.
#[derive(Clone, Copy)]
pub struct WallConditions {
    pub tree_grows: bool,
    /// The tree was paused recently and may not be paused again yet.
    pub resumed: bool,
    /// The tree was asked to save or to end, and is doing so.
    pub leaving: bool,
    /// Swap used by the tree beyond what it was allowed, in bytes.
    pub swap_beyond: u64,
    /// This is the second update of the tick: the first took head-room back from processes that do not ask, so that the
    /// others can be answered.
    pub again: bool,
}

pub struct Wall {
    /// False with --no-wall, or if the kernel ignores limits on data.
    pub on: bool,
    /// The limit that the command was started with, which is never exceeded.
    pub ceiling: Option<u64>,
    /// The tree was running before the guard: it has no cushion.
    attached: bool,
    candidates: Vec<Candidate>,
    limits: Vec<Option<u64>>,
    events: [Option<EventKind>; MAX_EVENTS_PER_UPDATE],
    stride: Stride,
    reported_refused_limit: bool,
    /// The processes that an earlier guard noted.
    inherited: Vec<GuardedProcess>,
    /// Refusals reported so far, for each slot of the page.
    reported_refusals: [u32; SLOTS],
    /// The request of each slot when this tick began, in bytes.
    wants: [u64; SLOTS],
    /// Head-room that was not granted, less what new processes may be about to take. The next process that is born
    /// takes a share of it.
    pub left: u64,
}

impl Wall {
    pub fn new(
        on: bool,
        ceiling: Option<u64>,
        attached: bool,
        inherited: Vec<GuardedProcess>,
    ) -> Wall {
        Wall {
            on,
            ceiling,
            attached,
            candidates: Vec::with_capacity(TREE_CAPACITY),
            limits: Vec::with_capacity(TREE_CAPACITY),
            events: [None; MAX_EVENTS_PER_UPDATE],
            stride: Stride::default(),
            reported_refused_limit: false,
            inherited,
            reported_refusals: [0; SLOTS],
            wants: [0; SLOTS],
            left: 0,
        }
    }

    /// Reads which processes ask. Must come before the processes are read: a process that no longer asks has taken what
    /// it was granted, and its reading shows that. In the other order a grant could be missing from both, and be
    /// promised twice.
    pub fn read_wants(&mut self, shared: Shared) {
        for (slot, wants) in shared.page().slots.iter().zip(&mut self.wants) {
            *wants = slot.wanted.load(Acquire);
        }
    }

    /// Reads the limits of all processes and sets them anew. False if a process asks for head-room that others may have
    /// taken since they were read: they no longer can, and the answer needs another sample.
    pub fn update(&mut self, input: &WallInput, tree: &mut ProcessTree<ProcessState>) -> bool {
        let &WallInput {
            now,
            room,
            bounds,
            footprint,
            peak,
            conditions,
            findings,
            shared,
        } = input;
        let (strip, small) = bounds.cushion();
        self.collect_refusals(footprint, tree, shared);
        self.candidates.clear();
        greet_forks(tree, shared);
        for tracked in tree.processes_mut() {
            let process = &tracked.process;
            let counted = findings.file_data(process.pid, process.started);
            self.observe(now, tracked, counted, (strip, small), footprint, shared);
            let slot = shared.slot(tracked.process.pid.0);
            let state = tracked.state.wall;
            let wants = slot.map_or(0, |(place, _)| self.wants[place]);
            // A process that loads libraries has no open head-room: its limit is raised only for them.
            let stands = tracked.state.limits.and_then(|limits| limits.soft);
            let open = stands.filter(|_| wants == 0);
            self.candidates.push(Candidate {
                state,
                wants,
                asks: slot.is_some_and(|(_, slot)| !lacks_cushion(slot)),
                open: open.map_or(0, |stands| stands.saturating_sub(closed(&state))),
                files: match state.is_forgiven() {
                    true => tracked.state.files.bytes(),
                    false => tracked.state.files.of_its_own(),
                },
            });
        }
        // This comes before any limit is set.
        note_guarded(shared, tree, |tracked| self.limit_before(tracked));
        let wall_room = WallRoom {
            wall: self.on,
            room: room.bytes,
            bound: room.bound,
            total: room.total,
            reserve: bounds.reserve,
            footprint,
            peak,
            tree_grows: conditions.tree_grows,
            resumed: conditions.resumed,
            leaving: conditions.leaving,
            swap_beyond: conditions.swap_beyond,
            handed_out: if self.attached { small } else { 0 },
        };
        self.limits.clear();
        self.limits.resize(self.candidates.len(), None);
        let planned = plan(&wall_room, &self.candidates, &mut self.limits);
        self.left = planned.left;
        let places = tree.processes_mut().zip(&self.limits);
        for ((tracked, limit), candidate) in places.zip(&self.candidates) {
            if let Some(limit) = limit.filter(|_| candidate.wants == 0 || !planned.contested) {
                let slot = shared.slot(tracked.process.pid.0).map(|(_, slot)| slot);
                let ceiling = self.limit_before(tracked);
                place(now, tracked, limit, ceiling, slot);
            }
            if candidate.asks && candidate.state.is_new_born() {
                let stands = tracked.state.wall.limit().unwrap_or(0);
                let open = stands.saturating_sub(closed(&candidate.state));
                self.left = self.left.saturating_sub(open);
            }
        }
        self.report_refused_limits(tree);
        !planned.contested || conditions.again
    }

    /// Reports once that the limit of a process could not be set, such as that of another user.
    fn report_refused_limits(&mut self, tree: &ProcessTree<ProcessState>) {
        let refused = tree.processes().find(|tracked| tracked.state.refused);
        if let Some(refused) = refused.filter(|_| !self.reported_refused_limit) {
            self.reported_refused_limit = true;
            let kind = EventKind::Degraded {
                degradation: Degradation::WallRefused,
                detail: refused.process.pid.0,
            };
            add(&mut self.events, kind);
        }
    }

    /// Reports what the cushions have refused since the last tick. A process may have ended meanwhile; its slot is
    /// still there.
    fn collect_refusals(
        &mut self,
        footprint: u64,
        tree: &ProcessTree<ProcessState>,
        shared: Shared,
    ) {
        for (slot, reported_refusals) in shared.page().slots.iter().zip(&mut self.reported_refusals)
        {
            let refused = slot.refused.load(Acquire);
            if refused != *reported_refusals && refused != 0 {
                let pid = Pid(slot.pid.load(Acquire));
                let name = tree
                    .get(pid)
                    .map_or(ProcessName::default(), |p| p.process.name);
                let bytes = slot.refused_bytes.load(Relaxed);
                // A refusal at a limit that the program chose itself is not reported.
                let beyond = tree
                    .get(pid)
                    .and_then(|p| p.state.wall.beyond_chosen(bytes));
                if beyond == Some(true) {
                    *reported_refusals = refused;
                    continue;
                }
                add(
                    &mut self.events,
                    EventKind::RequestRefused {
                        pid,
                        name,
                        bytes,
                        footprint,
                    },
                );
            }
            *reported_refusals = refused;
        }
    }

    fn observe(
        &mut self,
        now: u64,
        tracked: &mut TrackedProcess<ProcessState>,
        counted: FileData,
        (strip, small): (u64, u64),
        footprint: u64,
        shared: Shared,
    ) {
        let process = &tracked.process;
        let value = |reading: Reading<u64>| reading.value().unwrap_or(0);
        let mark = &mut tracked.state;
        let slot = shared.slot(process.pid.0);
        mark.limits = None;
        if let Some((_, slot)) = slot {
            mark.aside = is_aside(slot);
        }
        if mark.aside {
            // It reserves terabytes that it never touches, and cannot ask.
            mark.wall = WallState::default();
            return;
        }
        if let Some((_, slot)) = slot {
            let state = process.state;
            mark.loading.observe(slot.loading.load(SeqCst), state, now);
            if loads_libraries(slot, &mark.loading, now) {
                // What it maps now belongs to libraries. It reports how much that was when it is done.
                return;
            }
        }
        let word = |of: fn(&Slot) -> &AtomicU64| slot.map_or(0, |(_, slot)| of(slot).load(Acquire));
        let (files, libraries) = (word(|slot| &slot.files), word(|slot| &slot.libraries));
        let reserved = word(|slot| &slot.reserved);
        mark.files.observe(counted, files, libraries);
        let no_growth = files.saturating_add(libraries).saturating_add(reserved);
        mark.wall.exclude_file_growth(no_growth);
        mark.wall
            .exclude_untouched(reserved, word(|slot| &slot.zeroed));
        mark.wall.observe(
            now,
            value(process.vm_data),
            value(process.rss_anon),
            value(process.swap),
            value(process.threads),
        );
        self.stride.observe(now, mark.wall.growth());
        if self.on && !mark.refused {
            match Limits::read(process.pid) {
                Ok(limits) => {
                    if mark.wall.limit().is_none() && !mark.is_child {
                        mark.limit_before = match inherited_limit(&self.inherited, process) {
                            Some(before) => before,
                            None => limits.soft,
                        };
                    }
                    mark.limits = Some(limits);
                }
                Err(errno) => mark.refused = errno != Errno::SRCH,
            }
        }
        let Some(limits) = mark.limits else {
            return;
        };
        let Some(found) = limits.soft else {
            // The limit was raised for libraries, and nothing has lowered it since.
            mark.wall.was_lifted();
            return;
        };
        if slot.is_some_and(|(_, slot)| lacks_cushion(slot)) {
            // The program that ran before raised it, so that this one can start.
            mark.wall.placed(found);
            return;
        }
        // Read after the limit, because the cushion announces a change before it makes it.
        let own = match slot {
            Some((_, slot)) => OwnLimit {
                limit: slot.own_limit.load(Acquire),
                landed: slot.landed.load(Acquire) == 1,
            },
            None if self.attached => mark.wall.own_opening(found, strip),
            None => OwnLimit::default(),
        };
        let sign = mark.wall.notice(found, own, strip, small);
        if sign == WallSign::Landed && self.attached {
            let refused = EventKind::RequestRefused {
                pid: process.pid,
                name: process.name,
                bytes: 0,
                footprint,
            };
            add(&mut self.events, refused);
        }
    }

    /// The largest growth of one process between two samples in the last seconds, in bytes.
    pub fn stride(&self, now: u64) -> u64 {
        self.stride.bytes(now)
    }

    /// Takes the next event of this update.
    pub fn next_event(&mut self) -> Option<EventKind> {
        self.events.iter_mut().find_map(Option::take)
    }

    /// The soft limit that a process would have without the guard. It is never exceeded.
    pub fn limit_before(&self, tracked: &TrackedProcess<ProcessState>) -> Option<u64> {
        match self.attached {
            true => tracked.state.limit_before,
            false => self.ceiling,
        }
    }

    /// Gives every process the limit that it would have without the guard.
    pub fn put_back(&self, tree: &mut ProcessTree<ProcessState>) {
        // A process that was born since the last sample has the limit of its parent.
        put_back_limits(tree, |tracked| {
            (tracked.state.met || !self.attached).then(|| self.limit_before(tracked))
        });
    }
}

/// The soft limit that a process had before the earlier guard. A process that was born since then has that of its
/// parent. None for the first guard.
fn inherited_limit(inherited: &[GuardedProcess], process: &Process) -> Option<Option<u64>> {
    let noted = |pid: Pid| inherited.iter().find(move |noted| noted.pid == pid);
    let own = noted(process.pid).filter(|noted| noted.started == process.started);
    let noted = own.or(noted(process.parent)).or(inherited.first());
    noted.map(|noted| noted.limit_before)
}

/// Copies the parent's wall state to a new process that looks like a fork of it.
fn greet_forks(tree: &mut ProcessTree<ProcessState>, shared: Shared) {
    let stranger = |tree: &ProcessTree<ProcessState>| {
        let mut all = tree.processes();
        all.find(|p| !p.state.met).map(|p| p.process.pid)
    };
    while let Some(pid) = stranger(tree) {
        let wall = inherited(tree, pid).unwrap_or_default();
        let parent = tree
            .get(pid)
            .and_then(|child| tree.get(child.process.parent));
        let aside = is_started_aside(tree, pid, shared);
        // A process that is first seen together with its parent has a limit of its own.
        let parent = parent
            .map(|parent| parent.state)
            .filter(|state| state.wall.limit().is_some());
        if let Some(child) = tree.processes_mut().find(|p| p.process.pid == pid) {
            child.state.wall = wall;
            child.state.met = true;
            child.state.aside = aside;
            child.state.is_child = parent.is_some();
            child.state.limit_before = parent.and_then(|state| state.limit_before);
        }
    }
}

fn inherited(tree: &ProcessTree<ProcessState>, pid: Pid) -> Option<WallState> {
    let child = tree.get(pid)?;
    let parent = tree.get(child.process.parent)?;
    let (bytes, of_parent) = (
        child.process.vm_data.value()?,
        parent.process.vm_data.value()?,
    );
    let forked = child.process.name == parent.process.name && bytes >= of_parent / 5 * 4;
    forked.then(|| WallState::child_of(&parent.state.wall))
}

/// Whether the dynamic loader maps libraries in this process. A loader that has not begun another library for long is
/// done: had the program asked for memory since, it would have reported that.
fn loads_libraries(slot: &Slot, seen: &Loading, now: u64) -> bool {
    match slot.loading.load(SeqCst) {
        0 => false,
        since => now.saturating_sub(seen.last_delayed(since)) < LOADING_NS,
    }
}

/// Whether the process has started a program without a cushion, or with one that cannot reach us: a cushion clears this
/// field when it starts. Valid only for a process that no longer loads libraries.
fn lacks_cushion(slot: &Slot) -> bool {
    slot.before_exec.load(Acquire) != 0
}

/// Whether the process and those that it starts have no wall.
fn is_aside(slot: &Slot) -> bool {
    slot.aside.load(Acquire) == 1
}

/// Whether a new process was started by one without a wall, or by another new one that was.
fn is_started_aside(tree: &ProcessTree<ProcessState>, pid: Pid, shared: Shared) -> bool {
    let parent = |pid| tree.get(pid).map(|child| child.process.parent);
    let mut next = parent(pid);
    for _ in 0..TREE_CAPACITY {
        let Some(tracked) = next.and_then(|pid| tree.get(pid)) else {
            return false;
        };
        let pid = tracked.process.pid;
        let slot = shared.slot(pid.0).map(|(_, slot)| is_aside(slot));
        if slot.unwrap_or(tracked.state.aside) {
            return true;
        }
        if tracked.state.met || slot.is_some() {
            return false;
        }
        next = parent(pid);
    }
    false
}

/// Sets the limit of one process, unless it has begun to load libraries since it was read.
fn place(
    now: u64,
    tracked: &mut TrackedProcess<ProcessState>,
    bytes: u64,
    ceiling: Option<u64>,
    slot: Option<&Slot>,
) {
    let Some(limits) = tracked.state.limits else {
        return;
    };
    let bytes = (bytes - bytes % LIMIT_UNIT).min(ceiling.unwrap_or(u64::MAX));
    if let Some(slot) = slot {
        slot.moving.store(1, SeqCst);
    }
    let moved = match slot {
        Some(slot) if loads_libraries(slot, &tracked.state.loading, now) => None,
        _ => Some(limits.move_to(tracked.process.pid, Some(bytes))),
    };
    if let Some(slot) = slot {
        slot.moving.store(0, Release);
    }
    let Some(moved) = moved else { return };
    match moved {
        Ok(()) => {
            tracked.state.wall.placed(bytes);
            tracked.process.wall = Reading::Value(bytes);
        }
        Err(errno) => {
            tracked.process.wall = errno.into();
            tracked.state.refused = errno != Errno::SRCH;
        }
    }
}

fn add(events: &mut [Option<EventKind>; MAX_EVENTS_PER_UPDATE], kind: EventKind) {
    if let Some(place) = events.iter_mut().find(|place| place.is_none()) {
        *place = Some(kind);
    }
}
