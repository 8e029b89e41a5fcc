//! A small make-believe machine: memory, a trainer and a neighbour as functions of time.

use crate::executor::{Executor, seconds};
use crate::given::{BOOT, MB, SECOND, config};
use crate::story::{End, Story};
use antifreeze_guard::policy::{
    Bound, Candidate, Config, History, Motion, PolicyInput, WallRoom, WallState, decide, plan,
};
use antifreeze_record::event::{Rung, Trigger};
use std::time::Duration;

/// What the trainer wants at a time of its own, in bytes.
#[derive(Clone, Copy, Default)]
pub struct Wish {
    /// Mapped and touched.
    pub data: u64,
    /// Mapped only.
    pub untouched: u64,
    /// Shared memory: not seen by the wall.
    pub shared: u64,
}

pub struct World {
    pub total: u64,
    pub reserve: u64,
    pub budget: Option<u64>,
    pub config: Config,
    /// Seconds of the trainer's own time → what it wants.
    pub trainer: fn(f64) -> Wish,
    /// Seconds → what the others use.
    pub others: fn(f64) -> u64,
    pub save_takes: f64,
    /// Seconds from SIGTERM to the end; None ignores it.
    pub ends_after: Option<f64>,
    /// PSI full, as a share of the time, whatever else happens.
    pub shouting: f64,
}

impl Default for World {
    fn default() -> Self {
        World {
            total: 512 * MB,
            reserve: 60 * MB,
            budget: None,
            config: config(),
            trainer: |_| Wish::default(),
            others: |_| 100 * MB,
            save_takes: 2.0,
            ends_after: Some(0.5),
            shouting: 0.0,
        }
    }
}

struct Play<'a> {
    world: &'a World,
    history: History,
    wall: WallState,
    executor: Executor,
    at: u64,
    own_time: f64,
    have: Wish,
    peak: u64,
    stride: u64,
    stride_at: u64,
    swapped: f64,
    stalled: f64,
}

pub fn play(world: &World, seconds: f64) -> Story {
    let mut history = History::new();
    history.acts.save_time = Duration::from_secs_f64(world.save_takes);
    let mut play = Play {
        world,
        history,
        wall: WallState::default(),
        executor: Executor::default(),
        at: BOOT,
        own_time: 0.0,
        have: (world.trainer)(0.0),
        peak: 0,
        stride: 0,
        stride_at: BOOT,
        swapped: 0.0,
        stalled: 0.0,
    };
    while play.seconds() < seconds && play.executor.story.ended.is_none() {
        let pace = play.tick();
        play.pass(pace);
    }
    play.executor.story
}

impl Play<'_> {
    fn seconds(&self) -> f64 {
        seconds(self.at)
    }

    fn footprint(&self) -> u64 {
        self.have.data + self.have.shared
    }

    fn used(&self) -> u64 {
        self.footprint() + (self.world.others)(self.seconds())
    }

    fn input(&self) -> PolicyInput {
        let world = self.world;
        let available = world.total.saturating_sub(self.used());
        let machine = available as i64 - world.reserve as i64;
        let budget = world
            .budget
            .map(|budget| budget as i64 - self.footprint() as i64);
        let bound = match budget {
            Some(room) if room <= machine => Bound::Budget,
            _ => Bound::Machine,
        };
        let paused = self.history.acts.rung == Rung::Pause;
        PolicyInput {
            steps: None,
            kept_back: 0,
            swap_beyond: 0,
            swap_cached: 0,
            at: self.at,
            room: budget.map_or(machine, |room| room.min(machine)),
            bound,
            total: match bound {
                Bound::Budget => world.budget.unwrap_or(world.total),
                Bound::Machine | Bound::Cgroup => world.total,
            },
            available,
            reserve: world.reserve,
            footprint: self.footprint(),
            others: (world.others)(self.seconds()),
            stride: self.stride,
            swapped_in: Some(self.swapped as u64),
            swapped_out: Some(self.swapped as u64),
            swap_free: Some(1024 * MB),
            scanned: Some((self.swapped + self.stalled / 100.0) as u64),
            stalled_us: Some(self.stalled as u64),
            shm_free: Some(1024 * MB),
            disk_free: Some(100 * 1024 * MB),
            motion: if paused {
                Motion::Paused
            } else {
                Motion::Running
            },
        }
    }

    /// One tick of the guard: look, decide, act. Returns the time to the next.
    fn tick(&mut self) -> f64 {
        let input = self.input();
        self.peak = self.peak.max(input.footprint);
        self.history.push(input);

        let vm_data = self.have.data + self.have.untouched;
        self.wall.observe(self.at, vm_data, self.have.data, 0, 1);
        if self.wall.growth() >= self.stride || self.at - self.stride_at > 5 * SECOND {
            self.stride = self.wall.growth();
            self.stride_at = self.at;
        }
        let decision = decide(&self.history, &self.world.config);
        let others_grew = decision.trigger == Trigger::OthersGrew;
        let room = WallRoom {
            resumed: false,
            leaving: false,
            swap_beyond: 0,
            handed_out: 0,
            total: 16 << 30,
            wall: self.world.config.wall,
            room: input.room,
            bound: input.bound,
            reserve: input.reserve,
            footprint: input.footprint,
            peak: self.peak,
            tree_grows: decision.forecast.is_some_and(|told| told.growth > 0.0) && !others_grew,
        };
        let mut limits = [None];
        plan(
            &room,
            &[Candidate {
                state: self.wall,
                wants: 0,
                asks: false,
                open: 0,
                files: 0,
            }],
            &mut limits,
        );
        if let [Some(limit)] = limits {
            self.wall.placed(limit);
        }
        self.executor.act(&decision, &mut self.history);
        if decision.rung == Rung::Kill {
            self.executor.story.ended = Some((self.seconds(), End::Killed));
        }
        decision.pace.as_secs_f64()
    }

    /// The machine runs for a while, in steps of 10 ms.
    fn pass(&mut self, pace: f64) {
        let steps = (pace * 100.0).round().max(1.0) as u32;
        for _ in 0..steps {
            self.at += SECOND / 100;
            self.stalled += 10_000.0 * self.world.shouting;
            let running = self.history.acts.rung != Rung::Pause;
            if self.used() > self.world.total {
                // Everybody's pages go to swap; who runs brings them back.
                self.stalled += 5_000.0;
                self.swapped += if running { 50.0 } else { 2.0 };
            }
            if running {
                self.train();
            }
            if self.executor.story.ended.is_some() {
                return;
            }
        }
    }

    fn train(&mut self) {
        self.own_time += 0.01;
        let seconds = self.seconds();
        let acts = &mut self.history.acts;
        let save_takes = Duration::from_secs_f64(self.world.save_takes);
        self.executor.land_save(self.at, save_takes, acts);
        if let (Some(at), Some(after)) = (acts.stop_sent_at, self.world.ends_after)
            && (self.at - at) as f64 / 1e9 >= after
        {
            self.executor.story.ended = Some((seconds, End::Stopped));
            return;
        }
        let wish = (self.world.trainer)(self.own_time);
        let more = wish.data + wish.untouched > self.have.data + self.have.untouched;
        let beyond = self
            .wall
            .limit()
            .is_some_and(|limit| wish.data + wish.untouched > limit);
        if more && beyond {
            self.executor.wall(self.at, acts);
            if self.world.config.dies_at_wall {
                self.executor.story.ended = Some((seconds, End::AtWall));
            }
            return;
        }
        self.have = wish;
    }
}
