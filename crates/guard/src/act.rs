//! Carries out decisions: brakes, asks for a save, pauses and resumes, stops and kills.

use crate::event_sink::EventSink;
use crate::hands::brake::Brake;
use crate::hands::cgroup::Home;
use crate::hands::pageout::Pageout;
use crate::hands::{save, stop};
use crate::policy::{Bound, Config, Decision, History, Save};
use crate::process_state::ProcessState;
use crate::room::Room;
use crate::slow_worker::{Findings, Request};
use crate::standstill::Standstill;
use crate::trainers::{self, Answer};
use antifreeze_ipc::shared::Shared;
use antifreeze_record::event::{EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::tree::ProcessTree;
use antifreeze_sense::{Pid, ProcessName, Sample};
use rustix::process::Signal;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const MILLISECOND_NS: u64 = 1_000_000;
/// A stop waits this long for the end of a step.
const LONG_STEP_NS: u64 = 4_000 * MILLISECOND_NS;
/// A trainer that makes more steps than this after a stop request ignores it.
const MAX_STEPS_AFTER_STOP: u64 = 3;
/// The interval between two requests to report what holds the memory, which limit their own cost as well, and between
/// two interruptions.
const REQUEST_INTERVAL_NS: u64 = 500 * MILLISECOND_NS;

pub struct Executor {
    pub config: Config,
    pub root: Pid,
    /// The signal that the user named; 0 for none.
    pub checkpoint_signal: u32,
    pub home: Option<Home>,
    pub brake: Brake,
    /// The keeper finds paused processes here, and trainers read requests.
    pub shared: Shared,
    /// How often the user has run `antifreeze resume` so far.
    pub resume_requests: u32,
    /// When trainers were last asked to report what holds the memory.
    pub reports_asked_at: u64,
    /// When trainers were last interrupted.
    pub interrupted_at: u64,
    /// An attached process has received an interruption since the last stop was decided.
    pub was_interrupted: bool,
    /// Steps made when the stop was requested.
    pub steps_at_stop: u64,
    /// Notices that the training makes no progress.
    pub standstill: Standstill,
    /// Writes a paused tree to swap.
    pub pageout: Pageout,
}

/// What one call of [`Executor::act`] may read and change.
pub struct ActContext<'a, 'b> {
    pub now: u64,
    /// CPU time of the tree, in clock ticks.
    pub ticks: u64,
    pub room: &'a Room,
    pub history: &'a mut History,
    pub tree: &'a mut ProcessTree<ProcessState>,
    pub findings: &'a Findings,
    pub request: &'a mut Request,
    pub events: &'a mut EventSink<'b>,
}

impl Executor {
    /// Whether the trainer can be asked to save: by the signal that the user named, or through the page at the end of a
    /// step.
    pub fn can_ask_to_save(&self, sample: &Sample) -> bool {
        self.checkpoint_signal != 0 || sample.tree.steps.value().is_some_and(|steps| steps > 0)
    }

    pub fn act(&mut self, decision: &Decision, context: &mut ActContext<'_, '_>) {
        // A save that was under way when the decision was made is the one that was decided on.
        let saving = matches!(context.history.acts.save, Save::Asked { .. });
        self.follow_save(context);
        self.change_rung(decision, context);
        let rung = decision.rung;
        if rung >= Rung::Watch
            && context.now.saturating_sub(self.reports_asked_at) >= REQUEST_INTERVAL_NS
        {
            self.reports_asked_at = context.now;
            trainers::ask_for_memory_report(self.shared, context.tree);
        }
        let steps = trainers::steps(self.shared);
        let stands = self
            .standstill
            .should_ask(context.now, steps, context.ticks);
        if stands && rung < Rung::Pause && !self.job_stopped() {
            trainers::ask_for_stacks(self.shared, context.tree);
            let missed = if trainers::makes_no_steps(self.shared) {
                0
            } else {
                steps
            };
            context.events.emit(EventKind::NoProgress { steps: missed });
        }
        if rung < Rung::Pause && is_paused(context) && !self.job_stopped() {
            self.resume(decision.trigger, context);
        }
        match rung {
            Rung::Calm | Rung::Watch => self.release(context),
            Rung::Warn => {}
            Rung::Brake => self.put_brake_on(context),
            Rung::Checkpoint => {
                self.put_brake_on(context);
                if !saving {
                    self.ask_to_save(context);
                }
            }
            Rung::Pause => self.pause(decision, context),
            Rung::Stop => self.stop(decision.trigger, context),
            Rung::Kill => self.kill(decision.trigger, context),
        }
    }

    fn change_rung(&mut self, decision: &Decision, context: &mut ActContext<'_, '_>) {
        let acts = &mut context.history.acts;
        if decision.rung == acts.rung {
            return;
        }
        let forecast = decision.forecast;
        context.events.emit(EventKind::Rung {
            from: acts.rung,
            to: decision.rung,
            trigger: decision.trigger,
            room: context.room.bytes,
            growth: forecast.map_or(0, |forecast| forecast.growth as i64),
            forecast_ms: forecast.map(|forecast| forecast.time.as_millis() as u64),
            confidence: forecast.map_or(0, |forecast| (forecast.confidence * 100.0) as u8),
        });
        if acts.rung >= Rung::Stop && decision.rung < Rung::Stop {
            acts.stop_sent_at = None;
            acts.kill_sent_at = None;
            trainers::withdraw_stop_requests(self.shared);
        }
        acts.rung = decision.rung;
        acts.since = context.now;
    }

    fn put_brake_on(&mut self, context: &mut ActContext<'_, '_>) {
        // A budget does not protect the machine, so a slower run helps nobody.
        let can_brake = self.home.as_ref().is_some_and(|home| home.high.is_some());
        if context.room.bound == Bound::Budget || !can_brake {
            return;
        }
        let Some(input) = context.history.last() else {
            return;
        };
        // The memory in use plus half of the room: this slows the growth, not the present work. Swap that was allowed
        // is room but not memory: what takes it has to be pushed there.
        let swapped = context
            .tree
            .processes()
            .filter_map(|tracked| tracked.process.swap.value())
            .sum::<u64>()
            .max(input.swap_beyond);
        let resident = input.footprint.saturating_sub(swapped);
        let memory = input.available.saturating_sub(input.reserve);
        let room = u64::try_from(context.room.bytes).unwrap_or(0).min(memory);
        let high = resident + (room / 2).max(16 << 20);
        let first = !self.brake.is_on();
        // The trainer must still make progress under the brake: a limit that it fills is raised with it while there is
        // room.
        let crowded = self.brake.high != 0 && resident + (8 << 20) > self.brake.high && room > 0;
        if first || crowded {
            self.brake.put_on(self.home.as_ref(), high);
        }
        if first {
            context.history.acts.braked_at = Some(context.now);
            context.events.emit(EventKind::Braked {
                high: self.brake.high,
            });
        }
    }

    fn release(&mut self, context: &mut ActContext<'_, '_>) {
        if self.brake.is_on() {
            self.brake.release(self.home.as_ref());
            context.history.acts.braked_at = None;
            context.events.emit(EventKind::Released { high: 0 });
        }
    }

    fn ask_to_save(&mut self, context: &mut ActContext<'_, '_>) {
        let acts = &mut context.history.acts;
        let asked = match self.checkpoint_signal {
            0 => trainers::ask_to_save(self.shared),
            signal => save::ask(context.tree, self.root, signal),
        };
        context.events.emit(EventKind::CheckpointAsked {
            pid: asked.unwrap_or(Pid(0)),
            signal: self.checkpoint_signal,
        });
        if asked.is_some() {
            acts.save = Save::Asked { at: context.now };
            // The shim reports its saves. For other trainers files are watched.
            context.request.save_asked = (self.checkpoint_signal != 0).then_some(context.now);
        } else {
            acts.save = Save::Missed { at: context.now };
            context
                .events
                .emit(EventKind::CheckpointMissed { millis: 0 });
        }
    }

    /// Checks whether a requested save is complete, or has taken too long.
    fn follow_save(&mut self, context: &mut ActContext<'_, '_>) {
        let acts = &mut context.history.acts;
        let Save::Asked { at } = acts.save else {
            return;
        };
        let waited = Duration::from_nanos(context.now.saturating_sub(at));
        if self.checkpoint_signal == 0
            && let Some(answer) = trainers::save_answer(self.shared)
        {
            match answer {
                Answer::Saved(millis) => {
                    acts.save = Save::Done { at: context.now };
                    acts.save_time = Duration::from_millis(millis.max(100));
                    context.events.emit(EventKind::CheckpointSaved {
                        millis,
                        bytes: 0,
                        file: ShortText::new(b""),
                    });
                }
                Answer::Failed => {
                    acts.save = Save::Missed { at: context.now };
                    context
                        .events
                        .emit(EventKind::CheckpointMissed { millis: 0 });
                }
            }
        } else if let Some(saved) = context.findings.saved.filter(|saved| saved.at >= at) {
            let took = Duration::from_nanos(saved.at - at);
            acts.save = Save::Done { at: context.now };
            acts.save_time = took.max(Duration::from_millis(100));
            let (bytes, file) = (saved.bytes, saved.file);
            context.events.emit(EventKind::CheckpointSaved {
                millis: took.as_millis() as u64,
                bytes,
                file,
            });
            context.request.save_asked = None;
        } else if waited > Duration::from_secs(10).max(acts.save_time * 3) {
            acts.save = Save::Missed { at: context.now };
            context.events.emit(EventKind::CheckpointMissed {
                millis: waited.as_millis() as u64,
            });
            context.request.save_asked = None;
        }
    }

    /// Whether the user has stopped the whole job, the front included (Ctrl-Z). A process that the user stopped is
    /// never continued by us.
    pub fn job_stopped(&self) -> bool {
        let front = Pid(self.shared.head().front_pid.load(Relaxed));
        crate::others::state(front) == Some(b'T')
    }

    fn pause(&mut self, decision: &Decision, context: &mut ActContext<'_, '_>) {
        // Repeated at each tick: the tree may have been about to fork, or `fg` may have continued it. Statuses are read
        // first, because a process that the user stopped must not be continued by us.
        context.tree.read_skipped_statuses(context.now);
        let stopped = stop::pause(context.tree, self.shared);
        let wanted = decision.page_out && !self.job_stopped();
        let found = context.findings.interruptible;
        self.pageout
            .advance(context.now, wanted, found, context.tree, self.shared);
        context.request.inspect = self.pageout.inquiry();
        if context.history.acts.paused_at.is_some() || stopped == 0 {
            return;
        }
        context.history.acts.paused_at = Some(context.now);
        let grower = context.findings.grower;
        context.events.emit(EventKind::Paused {
            who: grower.map_or(ProcessName::default(), |grower| grower.name),
            pid: grower.map_or(Pid(0), |grower| grower.pid),
            grew: grower.map_or(0, |grower| grower.grew),
        });
    }

    fn resume(&mut self, trigger: Trigger, context: &mut ActContext<'_, '_>) {
        self.pageout.reset();
        context.request.inspect = None;
        stop::resume(context.tree, self.shared);
        let acts = &mut context.history.acts;
        let paused_at = acts.paused_at.take().unwrap_or(context.now);
        acts.resumed_at = Some(context.now);
        let millis = context.now.saturating_sub(paused_at) / MILLISECOND_NS;
        context.events.emit(EventKind::Resumed { trigger, millis });
    }

    /// Interrupts the work of the process without ending it. Repeated, because it may not be working right now.
    fn interrupt(&mut self, trigger: Trigger, context: &mut ActContext<'_, '_>) {
        let acts = &mut context.history.acts;
        if acts.stop_sent_at.is_none() {
            acts.stop_sent_at = Some(context.now);
            acts.available_at_stop = context.room.available;
            self.was_interrupted = false;
        } else if context.room.bytes >= 0
            || context.now.saturating_sub(self.interrupted_at) < REQUEST_INTERVAL_NS
        {
            // It has helped, or will.
            return;
        }
        self.interrupted_at = context.now;
        // A process without the Python package cannot be interrupted; then only the wall protects the machine.
        let is_heard = trainers::interrupt(self.shared, context.tree);
        if is_heard && !self.was_interrupted {
            self.was_interrupted = true;
            context.events.emit(EventKind::StopSent {
                pid: Pid(0),
                trigger,
            });
        }
    }

    fn stop(&mut self, trigger: Trigger, context: &mut ActContext<'_, '_>) {
        if is_paused(context) {
            self.resume(trigger, context);
        }
        if self.config.attached {
            self.interrupt(trigger, context);
            return;
        }
        let footprint = context.history.last().map_or(0, |input| input.footprint);
        let acts = &mut context.history.acts;
        match acts.stop_sent_at {
            None => {
                acts.stop_sent_at = Some(context.now);
                acts.available_at_stop = context.room.available;
                acts.footprint_at_stop = Some(footprint);
                // A trainer ends at the end of its step, where nothing is half done.
                let at_step = trainers::ask_to_stop(self.shared);
                self.steps_at_stop = trainers::steps(self.shared);
                let pid = if at_step { Pid(0) } else { self.root };
                context.events.emit(EventKind::StopSent { pid, trigger });
                if !at_step {
                    stop::ask(context.tree, self.root);
                }
            }
            Some(_) if trainers::is_saving(self.shared) => {}
            Some(sent) => {
                let waited = context.now.saturating_sub(sent);
                let goes_on =
                    trainers::steps(self.shared) > self.steps_at_stop + MAX_STEPS_AFTER_STOP;
                if goes_on || 2 * waited > self.config.stop_deadline.as_nanos() as u64 {
                    // The request was ignored, or half of the time is over: every remaining process gets SIGTERM.
                    stop::signal_all(context.tree, Signal::TERM);
                } else if waited > LONG_STEP_NS {
                    trainers::interrupt_steps(self.shared, context.tree);
                }
            }
        }
    }

    fn kill(&mut self, trigger: Trigger, context: &mut ActContext<'_, '_>) {
        let acts = &mut context.history.acts;
        acts.stop_sent_at.get_or_insert(context.now);
        if acts.kill_sent_at.is_none() {
            acts.kill_sent_at = Some(context.now);
            context.events.emit(EventKind::KillSent {
                pid: self.root,
                trigger,
            });
        }
        // Repeated at each tick: a process may have been about to fork.
        stop::signal_all(context.tree, Signal::KILL);
    }
}

fn is_paused(context: &ActContext<'_, '_>) -> bool {
    context.tree.processes().any(|tracked| tracked.state.paused)
}
