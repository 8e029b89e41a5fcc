//! Runs made up for the tests, second by second, with fixed clocks.

use antifreeze_diagnose::{Facts, RunSummary, ShimReport, Verdict};
use antifreeze_record::event::{Event, EventKind};
use antifreeze_sense::{Gpus, Phase, Pid, Process, ProcessName, Reading, Sample, Stamp};

pub const GB: u64 = 1_000_000_000;
pub const MB: u64 = 1_000_000;
pub const EXIT_1: u32 = 1 << 8;

/// 2026-11-15 02:09:00 UTC.
const START_SECONDS: u64 = 1_794_708_540;

pub struct Scene {
    pub facts: Facts,
    pub samples: Vec<Sample>,
    pub events: Vec<Event>,
}

pub fn at(seconds: u64) -> Stamp {
    Stamp {
        monotonic_ns: (1_000 + seconds) * 1_000_000_000,
        realtime_ns: (START_SECONDS + seconds) * 1_000_000_000,
    }
}

impl Scene {
    pub fn new() -> Scene {
        let facts = Facts {
            run: "7f3a".into(),
            record: "/home/ada/.local/state/antifreeze/runs/7f3a".into(),
            folder: "/home/ada/net".into(),
            command: vec!["python".into(), "train.py".into()],
            started: at(0),
            total: 15_400 * MB,
            reserve: 1_500 * MB,
            ..Facts::default()
        };
        Scene {
            facts,
            samples: Vec::new(),
            events: Vec::new(),
        }
    }

    /// One sample a second: what the tree holds, and what everybody else does.
    pub fn memory(
        mut self,
        seconds: u64,
        footprint: impl Fn(u64) -> u64,
        others: impl Fn(u64) -> u64,
    ) -> Scene {
        for second in 0..seconds {
            let mut sample = Sample {
                at: at(second),
                ..Sample::default()
            };
            let (held, others) = (footprint(second), others(second));
            sample.memory.total = Reading::Value(self.facts.total);
            sample.memory.available =
                Reading::Value(self.facts.total.saturating_sub(held + others));
            sample.tree.footprint = Reading::Value(held);
            sample.tree.swap = Reading::Value(0);
            sample.paging.oom_kills = Reading::Value(3);
            sample.disk.space.total = Reading::Value(500 * GB);
            sample.disk.space.free = Reading::Value(120 * GB);
            sample.shm.total = Reading::Value(7 * GB);
            sample.shm.free = Reading::Value(7 * GB);
            sample.thermal.hottest_millidegrees = Reading::Value(61_000);
            sample.thermal.throttle_count = Reading::Value(0);
            for (pid, name, share) in [(1234, &b"python"[..], 9), (1240, b"pt_data_worker", 1)] {
                let rss_anon = Reading::Value(held / 10 * share);
                sample.processes.push(Process {
                    pid: Pid(pid),
                    name: ProcessName::new(name),
                    rss_anon,
                    ..Process::default()
                });
            }
            self.samples.push(sample);
        }
        self
    }

    /// A run that grows to a plateau and stays there.
    pub fn steady(self, seconds: u64, plateau: u64) -> Scene {
        self.memory(
            seconds,
            |second| ((second + 1) * 400 * MB).min(plateau),
            |_| 500 * MB,
        )
    }

    /// Changes the last look.
    pub fn last(mut self, change: impl Fn(&mut Sample)) -> Scene {
        self.samples.last_mut().into_iter().for_each(change);
        self
    }

    pub fn event(mut self, seconds: u64, kind: EventKind) -> Scene {
        self.events.push(Event {
            at: at(seconds),
            kind,
        });
        self
    }

    pub fn refused(self, seconds: u64, bytes: u64, footprint: u64) -> Scene {
        self.event(
            seconds,
            EventKind::RequestRefused {
                pid: Pid(1234),
                name: ProcessName::new(b"python"),
                bytes,
                footprint,
            },
        )
    }

    pub fn ended(self, seconds: u64, status: u32) -> Scene {
        let peak = self
            .samples
            .iter()
            .filter_map(|sample| sample.tree.footprint.value())
            .max();
        let peak = peak.unwrap_or(0);
        self.event(
            seconds,
            EventKind::Ended {
                status,
                peak,
                worst_delay_ms: 110,
                ended_by_guard: false,
            },
        )
    }

    pub fn ended_by_guard(self, seconds: u64, status: u32) -> Scene {
        self.event(
            seconds,
            EventKind::Ended {
                status,
                peak: 0,
                worst_delay_ms: 740,
                ended_by_guard: true,
            },
        )
    }

    pub fn printed(mut self, output: &str) -> Scene {
        self.facts.last_output = output.into();
        self
    }

    /// What the trainer said of itself, one JSON object a line.
    pub fn said(mut self, lines: &str) -> Scene {
        self.facts.shim = ShimReport::parse(lines.as_bytes());
        self
    }

    /// Steps that were counted, and what it was at, second by second.
    pub fn trained(mut self, steps: impl Fn(u64) -> u64, phase: impl Fn(u64) -> Phase) -> Scene {
        for (second, sample) in (0..).zip(&mut self.samples) {
            sample.tree.steps = Reading::Value(steps(second));
            sample.tree.phase = Reading::Value(phase(second) as u64);
        }
        self
    }

    /// One card that is at work, cool, with room; and what is different about it, second by second.
    pub fn card(mut self, shape: impl Fn(u64, &mut Gpus)) -> Scene {
        for (second, sample) in (0..).zip(&mut self.samples) {
            sample.gpus = Gpus {
                memory_used: Reading::Value(12 * GB),
                memory_total: Reading::Value(24 * GB),
                busy_percent: Reading::Value(97),
                hottest_millidegrees: Reading::Value(61_000),
                power_microwatts: Reading::Value(300_000_000),
                power_limit_microwatts: Reading::Value(450_000_000),
                throttle_bits: Reading::Value(0),
                fullest_permille: Reading::Value(500),
                count: Reading::Value(1),
                lost: Reading::Value(0),
            };
            shape(second, &mut sample.gpus);
        }
        self
    }

    pub fn summary(&self) -> RunSummary {
        RunSummary::build(
            &self.facts,
            self.samples.iter().copied(),
            self.events.iter().copied(),
        )
    }

    pub fn verdict(&self) -> Verdict {
        Verdict::reach(&self.facts, &self.summary())
    }
}
