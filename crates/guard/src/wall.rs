//! Keeps the wall: the soft limit of every process of the tree, moved at each look to what
//! it has plus what the machine can still spare.

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

/// News of one look; beyond that, refusals are only counted.
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
    /// The tree was paused lately and may not be paused again yet.
    pub resumed: bool,
    /// The tree was asked to save or to end and is at it.
    pub leaving: bool,
    /// What the tree has in swap beyond what it was allowed.
    pub swap_beyond: u64,
    /// Others were bound a moment ago so that those who ask can be answered.
    pub again: bool,
}

pub struct Wall {
    /// Off with --no-wall, or where the kernel ignores limits on data.
    pub on: bool,
    /// The limit that the command was started with, which is never exceeded.
    pub ceiling: Option<u64>,
    /// The tree was there before us: no cushion is in it.
    attached: bool,
    candidates: Vec<Candidate>,
    limits: Vec<Option<u64>>,
    events: [Option<EventKind>; MAX_EVENTS_PER_UPDATE],
    stride: Stride,
    reported_refused_limit: bool,
    /// What a guard noted that this one replaces.
    inherited: Vec<GuardedProcess>,
    /// Refusals reported_refusals so far, for each slot of the page.
    reported_refusals: [u32; SLOTS],
    /// What each slot wanted when this look began.
    wants: [u64; SLOTS],
    /// What nobody was granted, less what the new-born may be about to take: of this, whoever is
    /// born next takes a share.
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

    /// Takes note of who asks. Must come before the processes are read: whoever asks no
    /// more has taken what it was granted, and the reading shows it. The other way round a
    /// grant could be seen in neither, and be promised a second time.
    pub fn read_wants(&mut self, shared: Shared) {
        for (slot, wants) in shared.page().slots.iter().zip(&mut self.wants) {
            *wants = slot.wanted.load(Acquire);
        }
    }

    /// Looks at what became of the limits, and moves them to where they belong now. False when
    /// somebody asks for what others may have taken since they were looked at: they may no
    /// more, and the answer is due after another look.
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
            // Not of a process that loads libraries: its limit is out of the way for that alone.
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
        // Before any limit is set.
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

    /// Says once that a process of another user has no wall.
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

    /// Tells what the cushions have refused since the last look. The process may have ended
    /// meanwhile; its slot is still there.
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
                // The limit that the program chose for itself is no wall of ours.
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
            // It maps terabytes that it never touches, and cannot ask.
            mark.wall = WallState::default();
            return;
        }
        if let Some((_, slot)) = slot {
            let state = process.state;
            mark.loading.observe(slot.loading.load(SeqCst), state, now);
            if loads_libraries(slot, &mark.loading, now) {
                // What it maps now is its libraries'. It says how much that was when it is done.
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
            // It was raised for libraries, and nothing has put it back since.
            mark.wall.was_lifted();
            return;
        };
        if slot.is_some_and(|(_, slot)| lacks_cushion(slot)) {
            // Its forerunner raised it, to let it start.
            mark.wall.placed(found);
            return;
        }
        // After the limit: it says what it does before it does it.
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

    /// The largest growth of one process between two looks in the last seconds.
    pub fn stride(&self, now: u64) -> u64 {
        self.stride.bytes(now)
    }

    /// What there is to tell, one after the other.
    pub fn next_event(&mut self) -> Option<EventKind> {
        self.events.iter_mut().find_map(Option::take)
    }

    /// The soft limit that a process would have without the guard, and that is never exceeded.
    pub fn limit_before(&self, tracked: &TrackedProcess<ProcessState>) -> Option<u64> {
        match self.attached {
            true => tracked.state.limit_before,
            false => self.ceiling,
        }
    }

    /// Gives every process the limit that it would have without the guard.
    pub fn put_back(&self, tree: &mut ProcessTree<ProcessState>) {
        // One that was born since the last sample has what its parent has.
        put_back_limits(tree, |tracked| {
            (tracked.state.met || !self.attached).then(|| self.limit_before(tracked))
        });
    }
}

/// The soft limit that a process had before the guard that this one replaces. One that was born since has that of its
/// parent. None where this is the first guard.
fn inherited_limit(inherited: &[GuardedProcess], process: &Process) -> Option<Option<u64>> {
    let noted = |pid: Pid| inherited.iter().find(move |noted| noted.pid == pid);
    let own = noted(process.pid).filter(|noted| noted.started == process.started);
    let noted = own.or(noted(process.parent)).or(inherited.first());
    noted.map(|noted| noted.limit_before)
}

/// Gives a process that is new and looks like a fork of its parent what the parent's wall
/// knows.
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
        // Those that are met together with their parent, at the first look, have limits of their own.
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

/// Whether the dynamic loader maps libraries in this process. A loader that has not begun another for long is
/// done: the program has asked for no memory since, or it would have said so.
fn loads_libraries(slot: &Slot, seen: &Loading, now: u64) -> bool {
    match slot.loading.load(SeqCst) {
        0 => false,
        since => now.saturating_sub(seen.last_delayed(since)) < LOADING_NS,
    }
}

/// Whether the process has started a program that has no cushion, or none that reaches us: the cushion takes this
/// note away when it starts. Asked of a process that does not load libraries any more.
fn lacks_cushion(slot: &Slot) -> bool {
    slot.before_exec.load(Acquire) != 0
}

/// Whether the process is left without a wall, as are those that it starts.
fn is_aside(slot: &Slot) -> bool {
    slot.aside.load(Acquire) == 1
}

/// Whether a process that is new was started by one that is left without a wall, or by a new one that was.
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

/// Sets the limit of one process, unless it has begun to load libraries since it was looked at.
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
