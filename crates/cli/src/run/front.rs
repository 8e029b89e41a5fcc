//! The main loop of the front: it waits for signals, for events of the guard and for the guard's death.

mod job;

use self::job::Early;
use super::attach::{Tether, Word};
use super::group_signals::GroupListener;
use super::guard_process::{Equipment, GuardProcess};
use super::hang_snapshot;
use super::inherited;
use super::notify;
use super::outcome;
use super::probe_process::ProbeProcess;
use super::relays::Relays;
use super::screen::Screen;
use super::settle::Settling;
use super::signals::Signals;
use super::streams::Streams;
use super::target::Target;
use crate::report::Report;
use crate::store::Run;
use crate::usage;
use antifreeze_diagnose::{Facts, RestartDecision, ShimReport, lacks_brake};
use antifreeze_guard::hands::cgroup;
use antifreeze_guard::undo;
use antifreeze_guard::writer::complete_tails;
use antifreeze_ipc::gpu_readings;
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_ipc::shared::{Memory, Shared};
use antifreeze_ipc::state::STREAM_OVER;
use antifreeze_ipc::state::{EVENT_BYTES, EVENTS, attached};
use antifreeze_record::codec::decode_event;
use antifreeze_record::event::{Degradation, Event, EventKind, Rung};
use antifreeze_sense::Stamp;
use antifreeze_sense::clock::monotonic_ns;
use antifreeze_sense::{MachineSensors, Reading, Sample};
use antifreeze_text::TermStyle;
use antifreeze_view::{Brake, Detail, Means, Speaker, Wall, opening, status};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, WaitOptions, set_child_subreaper, wait};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// A guard that dies more often is not replaced.
const MAX_GUARD_RESTARTS: u32 = 5;
/// The rest of the process tree gets this long to end after its root.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_millis(500);
/// The guard gets this long to close the record, on a disk that may be slow.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(15);
/// A reader that has read nothing for this long is not waited for, where a signal has ended the command.
const READER_TIMEOUT: Duration = Duration::from_secs(1);
/// Signals are polled this often while the last lines are written.
const FINISH_WAIT: Duration = Duration::from_millis(20);
/// Events kept for the verdict of a run that could not be recorded.
const MAX_REMEMBERED_EVENTS: usize = 1000;
const AT_ONCE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
/// How often the status line is drawn.
const STATUS_INTERVAL: Duration = Duration::from_millis(500);

pub struct Front {
    guard_args: GuardArgs,
    facts: Facts,
    style: TermStyle,
    shared: Shared,
    memory: Memory,
    /// The program of all guards of this run.
    program: OwnedFd,
    wake: OwnedFd,
    /// A pipe whose writing end only the front holds, so that it closes when the front ends.
    lives: (OwnedFd, OwnedFd),
    signals: Signals,
    /// None also when it has ended.
    listener: Option<GroupListener>,
    /// Signals that came before the command was there.
    undelivered: Vec<Early>,
    /// The last value of the page's `root_stops` that was acted on.
    stops_seen: u32,
    settling: Settling,
    streams: Streams,
    screen: Arc<Screen>,
    relays: Relays,
    guard: GuardProcess,
    /// None also when it has ended.
    probe: Option<ProbeProcess>,
    restarts: u32,
    /// The guard is dead and was not replaced.
    unguarded: bool,
    speaker: Speaker,
    detail: Detail,
    lacks: Vec<Degradation>,
    heard: u64,
    /// Events that are not printed yet, and those that were.
    events: Vec<Event>,
    told: Vec<Event>,
    ended_by_guard: bool,
    tree_ended: bool,
    live: Option<Live>,
    /// The process that was attached to, until it has ended.
    target: Option<Rc<Target>>,
    /// The connection to the guarded process, if it started this front itself.
    tether: Option<Tether>,
    /// The guarded process reports its own exceptions.
    tersely: bool,
    /// The last signal for the command that ends a program by default.
    ending_signal: Option<i32>,
    /// The signal that ended the wait for readers after the command's end.
    abandoned: Option<i32>,
}

/// The state of the status line.
struct Live {
    machine: MachineSensors,
    before: Sample,
    drawn: Instant,
}

/// How a run ended.
pub struct Closed {
    /// The exit status of the front.
    pub status: u8,
    /// The signal that has ended the command.
    pub signal: Option<i32>,
    pub again: RestartDecision,
    /// The script asked for a checkpoint to continue from.
    pub can_resume: bool,
    /// The signal mask from before the front was started.
    pub signal_mask: libc::sigset_t,
    /// Why the guard could not start the command.
    pub not_started: Option<String>,
}

impl Front {
    /// Starts the guard, which starts the command.
    pub fn start(
        guard_args: GuardArgs,
        facts: Facts,
        detail: Detail,
        style: TermStyle,
        live: bool,
        shim: Option<PathBuf>,
    ) -> Result<Front, String> {
        let tried = |what: &'static str| move |error| format!("{what}: {error}");
        let signals = Signals::watch().map_err(|error| format!("watching signals: {error}"))?;
        set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(tried("becoming a subreaper"))?;
        let (shared, memory) = Shared::create().map_err(tried("making the shared page"))?;
        let listener = match guard_args.attach {
            0 => GroupListener::start(shared),
            _ => None,
        };
        let mut streams = match guard_args.attach {
            0 => Streams::open().map_err(tried("opening the output"))?,
            // What it prints is not ours to pass on.
            _ => Streams::default(),
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(tried("making an eventfd"))?;
        let lives = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(tried("making a pipe"))?;
        streams.announce(shared.page());
        let settling = Settling::open(&streams, shared)
            .and_then(|settling| Settling::open(&streams, shared)?.serve().map(|()| settling))
            .map_err(|error| format!("opening the output: {error}"))?;
        shared.head().front_pid.store(std::process::id(), Release);
        if let Some(listener) = &listener {
            let pid = listener.pid.as_raw_nonzero().get() as u32;
            shared.head().listener_pid.store(pid, Release);
        }
        shared.page().front_pid.store(std::process::id(), Release);
        let program =
            crate::embed::guard().map_err(|error| format!("starting the guard: {error}"))?;
        if !facts.record.as_os_str().is_empty() {
            // Where the disk is full it is so for the record as well, and that is said.
            let _ = facts.terms().write(&facts.record);
        }
        // Before the guard, which has to know that it is none of the command's.
        let probe = crate::probe::has_driver()
            .then(|| ProbeProcess::start(&memory, signals.before()).ok())
            .flatten();
        if let Some(probe) = probe {
            let pid = probe.pid.as_raw_nonzero().get() as u32;
            shared.head().probe_pid.store(pid, Release);
            gpu_readings::expect(shared, monotonic_ns());
        }
        // Before the guard too: without room for these threads the command is started alone.
        let a_thread = |error| format!("starting a thread: {error}");
        let screen = Screen::start().map_err(a_thread)?;
        let relays = Relays::start(&streams, shared, &screen, &wake).map_err(a_thread)?;
        let equipment = Equipment {
            guard_args: &guard_args,
            program: program.as_fd(),
            memory: &memory,
            wake: wake.as_fd(),
            front_lives: lives.0.as_fd(),
            streams: &streams,
            folder: &facts.record,
            command: &facts.command,
            signal_mask: signals.before(),
            shim: shim.as_deref(),
        };
        let guard = GuardProcess::start(&equipment, None)
            .map_err(|error| format!("starting the guard: {error}"))?;
        streams.close_given();
        let live = live.then(|| Live {
            machine: MachineSensors::open(&facts.folder),
            before: Sample::default(),
            drawn: Instant::now(),
        });
        let mut facts = facts;
        facts.started = Stamp::now();
        Ok(Front {
            speaker: Speaker::new(detail, style.glyphs),
            guard_args,
            facts,
            style,
            shared,
            memory,
            program,
            wake,
            lives,
            signals,
            listener,
            undelivered: Vec::new(),
            stops_seen: 0,
            settling,
            streams,
            screen,
            relays,
            guard,
            probe,
            restarts: 0,
            unguarded: false,
            detail,
            lacks: Vec::new(),
            heard: 0,
            events: Vec::new(),
            told: Vec::new(),
            ended_by_guard: false,
            tree_ended: false,
            live,
            target: None,
            tether: None,
            tersely: false,
            ending_signal: None,
            abandoned: None,
        })
    }

    /// Watches the attached process, so that its end is noticed, with its status if the kernel reports it.
    pub fn watch_target(&mut self, target: Rc<Target>) {
        self.target = Some(target);
    }

    /// Connects to the process that asked to be guarded: it is sent what it needs, and its messages are obeyed.
    pub fn hold(&mut self, tether: Tether, tersely: bool) {
        self.tether = Some(tether);
        self.tersely = tersely;
    }

    pub fn say(&self, text: &str) {
        self.screen.say(text);
    }

    /// Runs until the command has ended, and returns how it ended. `lets_go`: what the command inherited is not needed
    /// here any more.
    pub fn watch(mut self, json: Option<&Path>, lets_go: bool) -> Closed {
        if let Err(message) = self.wait_for_start() {
            return self.could_not_start(message);
        }
        // What was said until now stands before what the command prints.
        self.screen.open();
        self.streams.kept_for_restart = !lets_go;
        if lets_go {
            inherited::let_go();
        }
        while self.root_status().is_none() && !self.all_gone() {
            self.turn(None);
        }
        self.pass_on_the_rest();
        self.screen.output_is_over();
        self.close(json)
    }

    fn could_not_start(mut self, message: String) -> Closed {
        if let Some(probe) = self.probe.take() {
            probe.end();
        }
        self.keep_undelivered();
        Closed {
            not_started: Some(message),
            ..self.closed(super::OWN_FAILURE, RestartDecision::NotApplicable)
        }
    }

    /// Waits until the command's output is delivered. A reader that does not read is waited for until a signal
    /// comes that would have ended the command, which would wait here without us. Where such a signal has ended the
    /// command, it would have ended in the middle of a write without us, so the reader is waited for only while it reads.
    fn pass_on_the_rest(&mut self) {
        self.relays.finish();
        let signal = self.signal_that_ended_command();
        let mut read_at = (self.shared.bytes_passed(), Instant::now());
        while !self.relays.have_finished() && self.abandoned.is_none() {
            self.turn(signal.map(|_| READER_TIMEOUT));
            let passed = self.shared.bytes_passed();
            if passed != read_at.0 {
                read_at = (passed, Instant::now());
            } else if read_at.1.elapsed() >= READER_TIMEOUT {
                self.abandoned = self.abandoned.or(signal);
            }
        }
        self.relays.leave(self.shared, self.abandoned.is_some());
    }

    /// None also if the signal was not sent to the front, or if the command has handled it.
    fn signal_that_ended_command(&self) -> Option<i32> {
        let status = self.root_status()? as i32;
        self.ending_signal
            .filter(|signal| libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == *signal)
    }

    /// The same for the lines of antifreeze itself.
    fn let_screen_finish(&mut self) {
        while !self.screen.finish(FINISH_WAIT) && self.abandoned.is_none() {
            self.signals_arrived();
        }
    }

    /// Waits for the guard's first event, so that the opening line comes before the command's output.
    fn wait_for_start(&mut self) -> Result<(), String> {
        let started = |front: &Front| {
            front
                .events
                .iter()
                .any(|event| matches!(event.kind, EventKind::Started { .. }))
        };
        while !started(self) && self.root_status().is_none() && !self.unguarded {
            self.wait(None);
            self.signals_arrived();
            self.heed_target();
            self.receive_events();
        }
        if self.unguarded && self.shared.head().root_pid.load(Acquire) == 0 {
            return Err("the guard could not start".to_owned());
        }
        if self.detail > Detail::Quiet && self.shared.head().exec_errno.load(Acquire) == 0 {
            self.say(&opening(&self.facts, self.means(), self.style.glyphs));
        }
        self.print_events();
        self.deliver_earlier();
        if let Some(tether) = &self.tether {
            let guard = self.shared.head().guard_pid.load(Acquire);
            let strip = self.shared.page().strip.load(Acquire);
            tether.say(guard, self.memory.page.as_fd(), strip, &self.facts);
        }
        Ok(())
    }

    fn means(&self) -> Means {
        let lacks = |degradation| self.lacks.contains(&degradation);
        Means {
            wall: match (
                self.guard_args.wall,
                lacks(Degradation::WallIgnored),
                self.guard_args.preload.is_empty(),
            ) {
                (false, ..) | (_, true, _) => Wall::Off,
                (_, _, true) => Wall::WithoutCushion,
                _ => Wall::On,
            },
            brake: if self.facts.has_no_brake {
                Brake::Off
            } else {
                Brake::OwnCgroup
            },
        }
    }

    fn turn(&mut self, at_most: Option<Duration>) {
        let timeout = self.live.as_ref().map(|_| STATUS_INTERVAL);
        self.wait(timeout.into_iter().chain(at_most).min());
        self.signals_arrived();
        self.heed();
        self.heed_target();
        self.receive_events();
        self.print_events();
        for (index, broken) in self.shared.head().broken.iter().enumerate() {
            if broken.load(Relaxed) == STREAM_OVER {
                self.streams.give_up(index);
            }
        }
        if let Some(line) = self.speaker.due_refusals(Stamp::now()) {
            self.say(&line);
        }
        self.draw_status();
    }

    fn wait(&self, timeout: Option<Duration>) {
        let timeout = timeout.map(|time| rustix::time::Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: i64::from(time.subsec_nanos()),
        });
        let waker = self.tether.as_ref().map(Tether::as_fd);
        let target = self.target.as_ref().and_then(|target| target.ends());
        let mut all = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.wake, PollFlags::IN),
            PollFd::from_borrowed_fd(waker.unwrap_or(self.wake.as_fd()), PollFlags::IN),
            PollFd::from_borrowed_fd(target.unwrap_or(self.wake.as_fd()), PollFlags::IN),
        ];
        let _ = poll(&mut all, timeout.as_ref());
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
    }

    /// Handles messages of the process that asked to be guarded.
    fn heed(&mut self) {
        match self.tether.as_ref().map(Tether::receive) {
            None | Some(Word::Nothing) => {}
            // It has ended, or has become another program; the guard sees which.
            Some(Word::Gone) => self.tether = None,
            Some(Word::Leave(status)) => self.report_status(u32::from(status) << 8),
        }
    }

    /// Reports the end of the process that was attached to.
    fn heed_target(&mut self) {
        let has_ended = |target: &Rc<Target>| {
            target.ends().is_some_and(|ends| {
                let mut ready = [PollFd::from_borrowed_fd(ends, PollFlags::IN)];
                matches!(poll(&mut ready, Some(&AT_ONCE)), Ok(1..))
            })
        };
        if let Some(target) = self.target.take_if(|target| has_ended(target)) {
            self.report_status(match target.status() {
                Some(status) => attached::ENDED_SEEN | status,
                None => attached::ENDED_UNSEEN,
            });
        }
    }

    /// Reports the end of an attached process to the guard; the first report counts.
    fn report_status(&self, status: u32) {
        let head = self.shared.head();
        let first = head
            .root_status
            .compare_exchange(0, status + 1, Release, Relaxed);
        if first.is_ok() {
            self.shared.kick();
        }
    }

    /// Reads the guard's new events from the page.
    fn receive_events(&mut self) {
        let written = self.shared.head().events.load(Acquire);
        let mut bytes = [0; EVENT_BYTES];
        // Older ones were overwritten.
        self.heard = self.heard.max(written.saturating_sub(EVENTS as u64));
        while self.heard < written {
            if let Some(len) = self.shared.event(self.heard, &mut bytes)
                && let Some(event) = decode_event(&bytes[..len])
            {
                self.facts.has_no_brake |= lacks_brake(&event.kind);
                match event.kind {
                    EventKind::Degraded { degradation, .. } => self.lacks.push(degradation),
                    EventKind::Started { reserve, .. } => self.facts.reserve = reserve,
                    EventKind::Ended { ended_by_guard, .. } => self.ended_by_guard = ended_by_guard,
                    EventKind::TreeEnded => self.tree_ended = true,
                    _ => {}
                }
                self.events.push(event);
            }
            self.heard += 1;
        }
    }

    fn print_events(&mut self) {
        for event in std::mem::take(&mut self.events) {
            if self.told.len() < MAX_REMEMBERED_EVENTS {
                self.told.push(event);
            }
            if let EventKind::Rung { .. }
            | EventKind::CheckpointSaved { .. }
            | EventKind::CheckpointMissed { .. } = event.kind
            {
                self.facts.shim = ShimReport::read(&self.facts.record);
            }
            if let EventKind::NoProgress { .. } = event.kind {
                self.record_hang_snapshot();
            }
            if self.is_told_there(&event.kind) {
                continue;
            }
            let Some(sentence) = self.speaker.line_for(&event, &self.facts) else {
                continue;
            };
            self.say(&sentence);
            if notify::deserves_notification(&event.kind) {
                notify::notify(&sentence);
            }
        }
    }

    /// Whether an exception in the process itself reports this event.
    fn is_told_there(&self, kind: &EventKind) -> bool {
        let is_it = match kind {
            EventKind::RequestRefused { .. } | EventKind::StopSent { .. } => true,
            EventKind::Rung { to, .. } => *to >= Rung::Stop,
            _ => false,
        };
        self.tersely && is_it
    }

    fn record_hang_snapshot(&self) {
        let root = self.shared.head().root_pid.load(Acquire);
        if root > 0 && !self.facts.record.as_os_str().is_empty() {
            hang_snapshot::record_in_background(root, self.facts.record.clone());
        }
    }

    /// Reaps children: the guard, or processes that were reparented to the front when the guard died.
    fn reap_children(&mut self) {
        let root = self.shared.head().root_pid.load(Acquire);
        let mut guard_ended = false;
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.guard.pid {
                guard_ended = true;
            } else if pid.as_raw_nonzero().get() as u32 == root {
                self.shared
                    .head()
                    .root_status
                    .store(status.as_raw() as u32 + 1, Release);
                self.shared.kick();
            } else if self.probe.is_some_and(|probe| probe.pid == pid) {
                self.probe = None;
            } else if let Some(listener) = self.listener.take_if(|listener| listener.pid == pid) {
                // Its number may be another's soon.
                std::mem::forget(listener);
            }
        }
        self.command_may_have_stopped();
        let head = self.shared.head();
        if guard_ended && head.closed.load(Acquire) == 0 && self.root_status().is_none() {
            self.replace_guard(root);
        }
    }

    fn replace_guard(&mut self, root: u32) {
        self.restarts += 1;
        let equipment = Equipment {
            guard_args: &self.guard_args,
            program: self.program.as_fd(),
            memory: &self.memory,
            wake: self.wake.as_fd(),
            front_lives: self.lives.0.as_fd(),
            streams: &self.streams,
            folder: &self.facts.record,
            command: &self.facts.command,
            signal_mask: self.signals.before(),
            shim: None,
        };
        let replaced = Pid::from_raw(root as i32)
            .filter(|_| self.restarts <= MAX_GUARD_RESTARTS)
            .and_then(|root| GuardProcess::start(&equipment, Some(root)).ok());
        self.unguarded = replaced.is_none();
        match replaced {
            Some(guard) => self.guard = guard,
            // It died before the command was there.
            None if root == 0 => {}
            None => {
                self.undo();
                self.say(
                    "the guard died and could not be replaced; the command continues without it",
                );
            }
        }
    }

    /// Undoes what the guard did to the process tree.
    fn undo(&self) {
        let head = self.shared.head();
        let ours = [&head.front_pid, &head.keeper_pid, &head.probe_pid];
        let ours = ours.map(|pid| antifreeze_sense::Pid(pid.load(Acquire)));
        undo::undo_all(self.shared, &ours);
        let root = antifreeze_sense::Pid(head.root_pid.load(Acquire));
        cgroup::let_go(root, &self.guard_args.run_id);
    }

    fn root_status(&self) -> Option<u32> {
        self.shared.head().root_status.load(Acquire).checked_sub(1)
    }

    /// Whether nothing is left to wait for, although the end of the root was not seen.
    fn all_gone(&self) -> bool {
        self.shared.head().closed.load(Acquire) == 1
    }

    fn draw_status(&mut self) {
        let Some(live) = &mut self.live else {
            return;
        };
        if live.drawn.elapsed() < STATUS_INTERVAL {
            return;
        }
        let head = self.shared.head();
        let mut sample = Sample::default();
        live.machine.read(&mut sample);
        sample.tree.footprint = Reading::Value(head.footprint.load(Relaxed));
        let rung = Rung::from_code(u64::from(head.rung.load(Relaxed))).unwrap_or_default();
        let line = status(Some(&live.before), &sample, rung, &self.facts, &self.style);
        self.screen.show_status(&line);
        live.before = sample;
        live.drawn = Instant::now();
    }

    /// Ends the run: waits for the record, prints the verdict, and returns the exit status.
    fn close(mut self, json: Option<&Path>) -> Closed {
        let cut_off = self.abandoned;
        self.wait_for_closing();
        let recorded = &self.facts.record;
        if self.all_gone() && !recorded.as_os_str().is_empty() {
            // Where the disk is full it was so for the guard as well, and that was said.
            let _ = complete_tails(recorded, self.shared);
        }
        if let Some(probe) = self.probe.take().filter(|_| self.all_gone()) {
            probe.collect();
        }
        self.receive_events();
        self.print_events();
        if let Some(line) = self.speaker.remaining_refusals() {
            self.say(&line);
        }
        self.let_screen_finish();
        if self.unguarded {
            // Where a process is left in it, the keeper stays.
            let root = antifreeze_sense::Pid(self.shared.head().root_pid.load(Acquire));
            cgroup::is_left(root, &self.guard_args.run_id);
        }
        self.shared.head().front_done.store(1, Release);
        let errno = self.shared.head().exec_errno.load(Acquire);
        if errno != 0 {
            let status = self.not_started(errno);
            return self.closed(status, RestartDecision::NotApplicable);
        }
        let again = self.closing_words(json);
        let (status, signal) = match self.root_status() {
            _ if self.guard_args.attach != 0 => (0, None),
            _ if self.ended_by_guard => (75, None),
            Some(status) => outcome::exit_status(status as i32, cut_off, self.relays.loss()),
            None => (super::OWN_FAILURE, None),
        };
        Closed {
            signal,
            ..self.closed(status, again)
        }
    }

    fn closed(mut self, status: u8, again: RestartDecision) -> Closed {
        self.let_screen_finish();
        let abandoned = self.abandoned.is_some();
        Closed {
            status,
            signal: None,
            again: if abandoned {
                RestartDecision::NotApplicable
            } else {
                again
            },
            can_resume: abandoned || ShimReport::read(&self.facts.record).resumes.is_some(),
            signal_mask: self.signals.before(),
            not_started: None,
        }
    }

    fn wait_for_closing(&mut self) {
        let head = self.shared.head();
        let began = Instant::now();
        let mut asked_at = None;
        while head.closed.load(Acquire) == 0 && began.elapsed() < CLOSING_TIMEOUT {
            let tick = head.tick.load(Acquire);
            self.receive_events();
            if !self.tree_ended && began.elapsed() > LEFTOVERS_TIMEOUT {
                // The guard may only be late. One look of its own that began after this, and it knows.
                let asked_at = *asked_at.get_or_insert(tick);
                if tick.wrapping_sub(asked_at) >= 2 {
                    if self.detail > Detail::Quiet {
                        self.say(
                            "some processes of the command are still running; the guard stays with them",
                        );
                    }
                    return;
                }
                self.shared.kick();
            }
            self.wait(Some(Duration::from_millis(50)));
            self.signals_arrived();
            if self.abandoned.is_some() {
                return;
            }
            if self.guard.has_ended() {
                return;
            }
        }
        self.guard.wait_for_end();
    }

    fn not_started(&self, errno: i32) -> u8 {
        let command =
            antifreeze_text::sanitize::escape(self.facts.command.first().map_or(b"", |word| {
                std::os::unix::ffi::OsStrExt::as_bytes(word.as_os_str())
            }));
        let hint = usage::command_hint(&self.facts.command, &self.facts.folder, &usage::is_program);
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        if errno == libc::ENOENT {
            self.say(&format!("{command}: command not found{hint}"));
            127
        } else {
            let reason = std::io::Error::from_raw_os_error(errno);
            self.say(&format!("{command}: cannot be run: {reason}{hint}"));
            126
        }
    }

    fn closing_words(&mut self, json: Option<&Path>) -> RestartDecision {
        let run = Run {
            is_here: true,
            id: self.facts.run.clone(),
            folder: self.facts.record.clone(),
        };
        let report = Report::read(&run)
            .ok()
            .filter(Report::has_end)
            .unwrap_or_else(|| Report::from_front(self.facts.clone(), self.told.clone()))
            .linked();
        let closing = report.closing(&self.style, self.detail);
        if let Some(text) = closing.filter(|_| !self.tersely) {
            self.screen.write(&text);
        }
        if !self.facts.record.as_os_str().is_empty() {
            let _ = std::fs::write(self.facts.record.join("verdict.json"), report.json());
        }
        if let Some(path) = json
            && let Err(error) = std::fs::write(path, report.json())
        {
            self.say(&format!("writing {}: {error}", path.display()));
        }
        report.again()
    }
}
