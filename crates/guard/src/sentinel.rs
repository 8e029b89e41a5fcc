//! The deciding thread: reads a sample, decides, acts, and sleeps until the next tick is due or a process asks for one.
//! It touches no file on a disk, no pipe and no terminal, and allocates nothing.

use crate::act::{ActContext, Executor};
use crate::event_sink::EventSink;
use crate::hands::limit;
use crate::identity;
use crate::keeper::Keeper;
use crate::others::{self, StatusFile};
use crate::policy::{BACK_OFF, Config, Decision, History, Motion, PolicyInput, Save, decide};
use crate::policy_input;
use crate::process_state::ProcessState;
use crate::room::{MemoryBounds, Room};
use crate::slow_worker::{Findings, MAX_NAMED_PROCESSES, Mailbox, Request};
use crate::takeover::RelayWakers;
use crate::trainers;
use crate::undo;
use crate::wall::{Wall, WallConditions, WallInput};
use antifreeze_ipc::gpu_readings;
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::state::{attached, stop_signal};
use antifreeze_record::event::{Degradation, EventKind};
use antifreeze_sense::cgroup::{AncestorLimits, OwnCgroup};
use antifreeze_sense::clock::{monotonic_ns, realtime_ns};
use antifreeze_sense::footprint::Footprint;
use antifreeze_sense::tree::{ProcessTree, TrackedProcess};
use antifreeze_sense::{MachineSensors, Pid, Reading, Reason, Sample};
use rustix::process::{
    Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, kill_process, test_kill_process,
    wait, waitid,
};
use rustix::thread::futex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

const MILLISECOND_NS: u64 = 1_000_000;
/// What a process younger than this will use is not known yet.
const YOUNG_NS: u64 = 5_000 * MILLISECOND_NS;
/// The tick interval while a process is young.
const YOUNG_PACE: Duration = Duration::from_millis(100);
/// Two ticks are at least this far apart, however many processes ask.
const MIN_TICK_NS: u64 = 2 * MILLISECOND_NS;
/// The ladder decides no more often than this.
const DECISION_INTERVAL_NS: u64 = 40 * MILLISECOND_NS;
/// Samples go into the record at most this often.
const RECORD_INTERVAL_NS: u64 = 190 * MILLISECOND_NS;
/// Growth of mapped data after which the slow worker reads the memory maps.
const MAPPED_MORE_BYTES: u64 = 64 << 20;
/// How long the front has to report the status of a root that is not our child.
const STATUS_TIMEOUT_NS: u64 = 1_000 * MILLISECOND_NS;
/// How often the front is checked for having been stopped alone, once the run is old enough.
const FRONT_CHECK_INTERVAL_NS: u64 = 4_900 * MILLISECOND_NS;
const FRONT_YOUNG_NS: u64 = 20_000 * MILLISECOND_NS;
/// The wait status of a process that exited with 1.
const FAILED_STATUS: u32 = 1 << 8;
/// Slow readings older than this are not trusted.
const SLOW_STALE_NS: u64 = 30_000 * MILLISECOND_NS;

pub struct Sentinel<'a> {
    pub args: &'a GuardArgs,
    pub shared: Shared,
    pub bounds: MemoryBounds,
    pub machine: MachineSensors,
    pub above: AncestorLimits,
    pub own: Option<OwnCgroup>,
    pub tree: ProcessTree<ProcessState>,
    pub footprint: Footprint,
    pub history: History,
    pub wall: Wall,
    pub executor: Executor,
    pub events: EventSink<'a>,
    pub mailbox: &'a Mailbox,
    pub root: Pid,
    /// None if we are attached to a process, or the front is gone.
    pub front_status: Option<StatusFile>,
    pub sample: Sample,
    pub findings: Findings,
    /// The version of `findings`.
    pub findings_issue: u32,
    pub request: Request,
    /// When the exact counts that were applied last were taken.
    pub corrected_at: u64,
    /// When the memory maps were read last, and the most data that the tree had mapped by then.
    pub mapped: (u64, u64),
    pub keeper: Option<Keeper>,
    pub wakers: &'static RelayWakers,
    pub decision: Decision,
    pub state: LoopState,
}

/// What the loop remembers from one tick to the next.
#[derive(Default)]
pub struct LoopState {
    end: RunEnd,
    reported: Reported,
    front: FrontWatch,
    peaks: Peaks,
    recorded_at: u64,
    decided_at: u64,
    /// The page's count of births at the last tick.
    births: u32,
}

/// How far the run has come to its end.
#[derive(Default)]
struct RunEnd {
    root_status: Option<u32>,
    front_gone: bool,
    is_announced: bool,
    /// When the root was first found missing.
    root_missed_at: Option<u64>,
    /// The root has ended, and its status will not be reported.
    is_unreported: bool,
}

/// What was reported last, so that each change is reported once.
#[derive(Default)]
struct Reported {
    overflow: bool,
    trouble: bool,
    user_stopped: bool,
    broken: [u32; 2],
}

/// Whether the front is stopped, and the root with it.
#[derive(Default)]
struct FrontWatch {
    checked_at: u64,
    root_stopped_with_it: bool,
}

/// The largest values of the run.
#[derive(Default)]
struct Peaks {
    footprint: u64,
    delay_ns: u64,
}

impl Sentinel<'_> {
    /// Guards until the tree has ended.
    pub fn guard(&mut self) {
        loop {
            let kick = self.shared.page().kick.load(Acquire);
            let began = monotonic_ns();
            let pace = self.tick(began);
            if self.is_over() {
                return;
            }
            self.sleep(began, pace, kick);
        }
    }

    /// Reads a sample, decides and acts. Returns the time until the next tick.
    pub fn tick(&mut self, now: u64) -> Duration {
        let head = self.shared.head();
        head.heartbeat.store(now, Release);
        self.shared.page().heartbeat.store(now, Release);
        let offset = realtime_ns().wrapping_sub(monotonic_ns());
        self.shared.page().realtime_offset.store(offset, Release);
        self.reap();
        self.notice_stops(now);
        self.wall.read_wants(self.shared);
        self.read_sample(now);
        let mut room = self.bounds.room(&self.sample);
        self.state.peaks.footprint = self.state.peaks.footprint.max(self.footprint_bytes());
        // Many processes may ask at the wall in a row. All are answered, but the ladder decides at its own pace, from
        // samples that are far enough apart to compare.
        let decides = now.saturating_sub(self.state.decided_at) >= DECISION_INTERVAL_NS;
        if decides {
            self.state.decided_at = now;
            let stride = self.wall.stride(now);
            let input = policy_input::from_sample(
                &self.sample,
                &room,
                &self.bounds,
                now,
                stride,
                self.motion(),
            );
            self.history.push(input);
            self.decision = decide(&self.history, &self.policy_config());
        }
        if !self.update_wall(now, &room, false) {
            // A process that is born meanwhile takes no head-room: it would be counted twice, and a process that asks
            // would be refused memory that is there.
            self.shared.page().headroom.store(0, Release);
            self.read_sample(now);
            room = self.bounds.room(&self.sample);
            self.update_wall(now, &room, true);
        }
        if decides {
            self.act(now, &room);
        }
        self.notice_changes(now);
        self.record(now);
        self.notice_missing_root(now);
        self.announce_end();
        self.publish(now);
        let young = |since: u64| now.saturating_sub(since) < YOUNG_NS;
        let is_missed =
            self.state.end.root_missed_at.is_some() && self.state.end.root_status.is_none();
        if is_missed || self.tree.processes().any(|p| young(p.first_seen)) {
            return self.decision.pace.min(YOUNG_PACE);
        }
        self.decision.pace
    }

    fn act(&mut self, now: u64, room: &Room) {
        let mut context = ActContext {
            now,
            ticks: self.sample.tree.cpu.value().unwrap_or(0),
            room,
            history: &mut self.history,
            tree: &mut self.tree,
            findings: &self.findings,
            request: &mut self.request,
            events: &mut self.events,
        };
        self.executor.act(&self.decision, &mut context);
        self.post_request();
    }

    /// Reads everything if the sample goes into the record. Otherwise, also for processes that ask at the wall, reads
    /// only what decisions need.
    fn read_sample(&mut self, now: u64) {
        if self.is_recorded(now) {
            self.machine.read(&mut self.sample);
            self.follow(now);
            self.tree.read_processes(now, &mut self.sample);
        } else {
            self.machine.read_essentials(&mut self.sample);
            self.follow(now);
            self.tree.read_memory(now, &mut self.sample);
        }
        self.above.read(&mut self.sample.cgroup);
        if let Some(own) = &mut self.own {
            own.read(&mut self.sample.cgroup);
        }
        self.mailbox
            .collect(&mut self.findings, &mut self.findings_issue);
        self.take_slow(now);
        if self.findings.shares_at != self.corrected_at {
            self.corrected_at = self.findings.shares_at;
            self.footprint.apply_exact_shares(self.findings.shares());
        }
        let processes = self.tree.processes().map(|tracked| &tracked.process);
        self.footprint.update(processes, &mut self.sample);
        trainers::read(self.shared, &mut self.sample);
    }

    /// Finds new processes of the tree. A keeper whose parent died is reparented like an orphan of the tree, and so are
    /// its children; they are excluded.
    fn follow(&mut self, now: u64) {
        self.tree.update_members(self.sample.cpu.newest_pid, now);
        // The root runs our program too, until it is released.
        let may_be = |tracked: &&TrackedProcess<ProcessState>| {
            tracked.first_seen == now && tracked.process.pid != self.root
        };
        let is_helper = |pid: &Pid| identity::is_helper(*pid);
        while let Some(helper) = {
            let mut new = self.tree.processes().filter(may_be);
            new.find_map(|tracked| Some(tracked.process.pid).filter(is_helper))
        } {
            if self.tree.exclude(helper).is_err() {
                // It has ended.
                break;
            }
        }
    }

    fn take_slow(&mut self, now: u64) {
        let slow = &self.findings.slow;
        let sample = &mut self.sample;
        sample.disk.space = slow.disk_space;
        sample.disk.inodes_free = slow.inodes_free;
        sample.disk.network = slow.network;
        sample.shm = slow.shm;
        sample.thermal = slow.thermal;
        sample.gpus = slow.gpus;
        sample.tree.files = self.findings.files;
        if self.findings.slow_at != 0 && now.saturating_sub(self.findings.slow_at) > SLOW_STALE_NS {
            let stale = Reading::Unavailable(Reason::Stale);
            sample.disk.space.free = stale;
            sample.disk.inodes_free = stale;
            sample.shm.free = stale;
            sample.thermal.hottest_millidegrees = stale;
            sample.gpus = sample.gpus.into_stale();
        }
        if let Some(probed) = gpu_readings::read(self.shared, now) {
            sample.gpus = sample.gpus.or_larger(probed);
        }
    }

    /// Undoes what would outlive the run. Drops the event sink, which lets the writer end.
    pub fn finish(mut self) -> Option<Keeper> {
        // Processes that are born from now on inherit the restored limit.
        self.shared.page().wall.store(0, Release);
        if self.wall.on {
            self.wall.put_back(&mut self.tree);
        }
        undo::put_back_oom_scores(self.shared, &mut self.tree);
        if let Some(home) = &self.executor.home {
            home.remove();
        }
        self.keeper
    }

    fn footprint_bytes(&self) -> u64 {
        self.sample.tree.footprint.value().unwrap_or(0)
    }

    /// The configuration of the run, with what the last sample and findings say of the trainer.
    fn policy_config(&self) -> Config {
        Config {
            can_save: self.executor.can_ask_to_save(&self.sample),
            dies_at_wall: self.findings.fragile,
            ..self.executor.config
        }
    }

    fn motion(&self) -> Motion {
        let root = self
            .tree
            .get(self.root)
            .or_else(|| self.tree.processes().next());
        match root {
            Some(root) if root.state.paused && self.executor.job_stopped() => Motion::StoppedByUser,
            Some(root) if root.state.paused => Motion::Paused,
            Some(root) if root.process.state == b'T' => Motion::StoppedByUser,
            _ => Motion::Running,
        }
    }

    /// False if another sample is needed to answer the processes that ask.
    fn update_wall(&mut self, now: u64, room: &Room, again: bool) -> bool {
        let believed = self
            .decision
            .forecast
            .filter(|forecast| forecast.confidence >= 0.5);
        let lately = |at: u64| now.saturating_sub(at) < BACK_OFF.as_nanos() as u64;
        let acts = &self.history.acts;
        let conditions = WallConditions {
            tree_grows: believed.is_some_and(|forecast| forecast.growth > 0.0),
            resumed: acts.resumed_at.is_some_and(lately),
            leaving: acts.stop_sent_at.is_some() || matches!(acts.save, Save::Asked { .. }),
            swap_beyond: self.history.last().map_or(0, |input| input.swap_beyond),
            again,
        };
        let input = WallInput {
            now,
            room,
            bounds: &self.bounds,
            footprint: self.footprint_bytes(),
            peak: self.state.peaks.footprint,
            conditions,
            findings: &self.findings,
            shared: self.shared,
        };
        let answered = self.wall.update(&input, &mut self.tree);
        while let Some(kind) = self.wall.next_event() {
            if let EventKind::RequestRefused { .. } = kind {
                let acts = &mut self.history.acts;
                acts.walled = acts.walled.saturating_add(1);
                acts.walled_at = Some(now);
            }
            self.events.emit(kind);
        }
        answered
    }

    fn post_request(&mut self) {
        self.request.count = 0;
        for tracked in self.tree.processes().take(MAX_NAMED_PROCESSES) {
            self.request.named[self.request.count] = (tracked.process.pid, tracked.process.started);
            self.request.count += 1;
        }
        let data =
            |tracked: &TrackedProcess<ProcessState>| tracked.process.vm_data.value().unwrap_or(0);
        let data = self.tree.processes().map(data).sum::<u64>();
        if self.mapped.0 != self.findings.mapped_at {
            self.mapped = (self.findings.mapped_at, data.max(self.mapped.1));
        }
        self.request.mapped_more = data > self.mapped.1.saturating_add(MAPPED_MORE_BYTES);
        self.request.urgent = self.history.acts.rung > antifreeze_record::event::Rung::Calm;
        self.request.counted = self.sample.cgroup.own_anon.value().is_some();
        let is_short = |input: &PolicyInput| {
            input.motion == Motion::Paused && input.available < input.reserve / 2 * 3
        };
        self.request.make_room =
            self.decision.page_out || self.history.last().is_some_and(is_short);
        self.mailbox.post(&self.request);
    }

    /// Reaps ended processes: the root, whose status the front waits for, and orphans that were reparented to us.
    fn reap(&mut self) {
        let head = self.shared.head();
        // The status of the root is noted before it is reaped: if we died in between, it would be lost.
        let root = rustix::process::Pid::from_raw(self.root.0 as i32);
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.state.end.root_status.is_none()
            && let Some(root) = root
            && let Ok(Some(ended)) = waitid(WaitId::Pid(root), peek)
        {
            head.root_seen.store(wait_status(&ended) + 1, Release);
        }
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if Some(pid) == root {
                head.root_seen.store(status.as_raw() as u32 + 1, Release);
            }
        }
        // A guard that took over is not the root's parent; the front reports the status.
        let seen = [&head.root_seen, &head.root_status].map(|status| status.load(Acquire));
        let seen = seen.into_iter().find(|status| *status != 0);
        self.state.end.root_status = self.state.end.root_status.or(seen.map(|status| status - 1));
        // An attached process without a front reports itself that it is to be left alone, and whether it failed.
        let leave = self.shared.page().leave.load(Acquire);
        if self.args.attach != 0 && leave != 0 && self.state.end.root_status.is_none() {
            self.state.end.root_status = Some((leave - 1) & FAILED_STATUS);
        }
    }

    /// Keeps the front and the root stopped or running together: the shell sees only the front.
    fn notice_stops(&mut self, now: u64) {
        let head = self.shared.head();
        let options = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        let root = rustix::process::Pid::from_raw(self.root.0 as i32);
        let follows = self.args.attach == 0 && !self.state.end.front_gone;
        let Some(root) = root.filter(|_| follows && self.state.end.root_status.is_none()) else {
            return;
        };
        let is_paused = self
            .tree
            .get(self.root)
            .is_some_and(|root| root.state.paused);
        // The root is not our child if an earlier guard has died; the front reports its stops then.
        while let Ok(Some(status)) = waitid(WaitId::Pid(root), options) {
            if let Some(signal) = status.stopping_signal()
                && !is_paused
                && !self.state.front.root_stopped_with_it
            {
                stop_signal::report(&head.root_stops, signal as u32);
                self.events.wake_front();
            }
        }
        self.follow_front(now, root);
    }

    /// Stops and continues the whole job if it is continued, or if only the front is stopped or continued.
    fn follow_front(&mut self, now: u64, root: rustix::process::Pid) {
        let stops_with_root = self.shared.head().front_stops.load(Acquire) == 1;
        let root_age = |root: &TrackedProcess<ProcessState>| now.saturating_sub(root.first_seen);
        let is_young = self
            .tree
            .get(self.root)
            .is_some_and(|root| root_age(root) < FRONT_YOUNG_NS);
        let pace = if is_young {
            RECORD_INTERVAL_NS
        } else {
            FRONT_CHECK_INTERVAL_NS
        };
        let is_due = now.saturating_sub(self.state.front.checked_at) >= pace;
        if !stops_with_root && !self.state.front.root_stopped_with_it && !is_due {
            return;
        }
        self.state.front.checked_at = now;
        let is_front_stopped = self.front_status.as_ref().and_then(StatusFile::state) == Some(b'T');
        if !is_front_stopped && !self.state.front.root_stopped_with_it {
            return;
        }
        // The parent comes from the kernel and not from the page, because signals are sent to it.
        let Some(front) = rustix::process::getppid() else {
            return;
        };
        match (is_front_stopped, others::state(self.root) == Some(b'T')) {
            (true, false) if stops_with_root || self.state.front.root_stopped_with_it => {
                self.state.front.root_stopped_with_it = false;
                let _ = kill_process(front, Signal::CONT);
            }
            (true, false) => {
                self.state.front.root_stopped_with_it = true;
                let _ = kill_process(root, Signal::STOP);
            }
            (false, true) if self.state.front.root_stopped_with_it => {
                self.state.front.root_stopped_with_it = false;
                let _ = kill_process(root, Signal::CONT);
            }
            (false, _) => self.state.front.root_stopped_with_it = false,
            (true, true) => {}
        }
    }

    /// Reports the end of the root, once, and after all events that led to it.
    fn announce_end(&mut self) {
        let Some(status) = self
            .state
            .end
            .root_status
            .filter(|_| !self.state.end.is_announced)
        else {
            return;
        };
        self.state.end.is_announced = true;
        let peak = self.state.peaks.footprint;
        let worst_delay_ms = self.state.peaks.delay_ns / MILLISECOND_NS;
        let acts = &self.history.acts;
        let was_asked = self.args.attach == 0 || self.executor.was_interrupted;
        let ended_by_guard =
            acts.stop_sent_at.is_some() && was_asked || acts.kill_sent_at.is_some();
        self.events.emit(match status {
            attached::LEFT_ALIVE | attached::ENDED_UNSEEN => EventKind::Detached {
                process_ended: status == attached::ENDED_UNSEEN,
                peak,
                worst_delay_ms,
                ended_by_guard,
            },
            _ => EventKind::Ended {
                status: status & !attached::ENDED_SEEN,
                peak,
                worst_delay_ms,
                ended_by_guard,
            },
        });
        self.shared.head().root_status.store(status + 1, Release);
        self.events.wake_front();
    }

    /// The run is over when nothing of the tree is left.
    fn is_over(&mut self) -> bool {
        if self.args.attach != 0 {
            return match self.state.end.root_status {
                None => false,
                Some(status) if has_ended(status) => self.tree.is_empty(),
                // It is no longer guarded, and lives on.
                Some(_) => true,
            };
        }
        let is_settled = self.state.end.root_status.is_some() || self.state.end.is_unreported;
        is_settled && self.tree.is_empty()
    }

    /// A guard that took over, or that is attached, is not the parent of the root and notices its end by its absence.
    /// The front may report the status for some time.
    fn notice_missing_root(&mut self, now: u64) {
        let is_attached = self.args.attach != 0;
        let is_there =
            |tracked: &TrackedProcess<ProcessState>| !is_attached || !tracked.process.has_ended();
        if self.state.end.root_status.is_some() || self.tree.get(self.root).is_some_and(is_there) {
            return;
        }
        let missed_at = *self.state.end.root_missed_at.get_or_insert(now);
        if self.state.end.front_gone || now.saturating_sub(missed_at) > STATUS_TIMEOUT_NS {
            self.state.end.is_unreported = true;
            if is_attached {
                self.state.end.root_status = Some(attached::ENDED_UNSEEN);
            }
        }
    }

    /// Reports changes once: the end of the front, a full process table, a disk that refuses writes.
    fn notice_changes(&mut self, now: u64) {
        let head = self.shared.head();
        let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
        if !self.state.end.front_gone && parent != head.front_pid.load(Relaxed) {
            self.state.end.front_gone = true;
            self.events.emit(EventKind::FrontLost);
        }
        let broken = [0, 1].map(|stream: usize| head.broken[stream].load(Acquire));
        if broken != self.state.reported.broken {
            self.state.reported.broken = broken;
            self.wakers.wake_all();
            if let Some(keeper) = &self.keeper {
                keeper.close_broken();
            }
        }
        let requests = head.resume_requests.load(Relaxed);
        if requests != self.executor.resume_requests {
            self.executor.resume_requests = requests;
            self.history.acts.resume_asked_at = Some(now);
        }
        let overflow = self.tree.overflow();
        if overflow > 0 && !self.state.reported.overflow {
            self.state.reported.overflow = true;
            self.events
                .emit_degraded(Degradation::TooManyProcesses, overflow as u32);
        }
        let trouble = self.events.trouble.errno();
        if (trouble != 0) != self.state.reported.trouble {
            self.state.reported.trouble = trouble != 0;
            match trouble {
                0 => self.events.emit(EventKind::Recovered {
                    degradation: Degradation::RecordFailed,
                }),
                errno => self.events.emit_degraded(Degradation::RecordFailed, errno),
            }
        }
        let stopped = self.motion() == Motion::StoppedByUser;
        if stopped != self.state.reported.user_stopped {
            self.state.reported.user_stopped = stopped;
            self.events.emit(if stopped {
                EventKind::UserStopped
            } else {
                EventKind::UserContinued
            });
        }
        // A process that lost its place in the table is no longer limited.
        for lost in self.tree.evicted() {
            limit::lift(lost.process.pid, self.wall.limit_before(lost));
        }
        let tree = &self.tree;
        // A process that was born since the sample is not in the tree yet.
        let lives = |pid| {
            rustix::process::Pid::from_raw(pid as i32)
                .is_some_and(|pid| test_kill_process(pid).is_ok())
        };
        self.shared
            .free_slots(|pid| tree.get(Pid(pid)).is_some() || lives(pid));
    }

    fn is_recorded(&self, now: u64) -> bool {
        now.saturating_sub(self.state.recorded_at) >= RECORD_INTERVAL_NS
    }

    fn record(&mut self, now: u64) {
        if self.is_recorded(now) {
            self.state.recorded_at = now;
            self.events.record(&self.sample);
        }
    }

    fn publish(&mut self, now: u64) {
        let (head, page) = (self.shared.head(), self.shared.page());
        page.headroom.store(self.wall.left, Relaxed);
        head.footprint.store(self.footprint_bytes(), Relaxed);
        head.rung.store(self.history.acts.rung as u32, Relaxed);
        trainers::publish_rung(self.shared, self.history.acts.rung as u32);
        // While processes are born in a row, each next one takes less, because the last may not be in the sample yet.
        let births = page.births.load(Relaxed);
        if births == self.state.births {
            page.births.store(0, Relaxed);
        }
        self.state.births = births;
        head.heartbeat.store(now, Release);
        page.heartbeat.store(now, Release);
        head.tick.fetch_add(1, Release);
        page.tick.fetch_add(1, Release);
        let _ = futex::wake(&page.tick, futex::Flags::empty(), u32::MAX >> 1);
    }

    fn sleep(&mut self, began: u64, pace: Duration, kick: u32) {
        let wanted = pace.as_nanos() as u64;
        let word = &self.shared.page().kick;
        let left = wanted.saturating_sub(monotonic_ns() - began);
        let _ = futex::wait(word, futex::Flags::empty(), kick, Some(&timespec(left)));
        let spent = monotonic_ns() - began;
        if spent < MIN_TICK_NS {
            let _ = rustix::thread::nanosleep(&timespec(MIN_TICK_NS - spent));
        }
        let late = (monotonic_ns() - began).saturating_sub(wanted.max(MIN_TICK_NS));
        self.state.peaks.delay_ns = self.state.peaks.delay_ns.max(late);
    }
}

/// Builds a wait status from the parts that `waitid` returns.
fn wait_status(ended: &WaitIdStatus) -> u32 {
    let exited = ended.exit_status().map(|code| (code as u32 & 0xff) << 8);
    let killed = ended.terminating_signal().map(|signal| signal as u32);
    let core = if ended.dumped() { 0x80 } else { 0 };
    exited.or(killed).unwrap_or(0) | core
}

/// Whether this status of an attached process means that it has ended.
fn has_ended(status: u32) -> bool {
    status & (attached::ENDED_SEEN | attached::ENDED_UNSEEN) != 0
}

fn timespec(nanoseconds: u64) -> rustix::time::Timespec {
    rustix::time::Timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as i64,
        tv_nsec: (nanoseconds % 1_000_000_000) as i64,
    }
}
