//! Defines the charts of the report: their titles, their lines, and the field of a sample behind each line.

use super::scale::Unit;
use antifreeze_sense::{Reading, Sample};

pub(crate) struct Chart {
    pub title: &'static str,
    /// What the chart shows, also for screen readers.
    pub tells: &'static str,
    pub unit: Unit,
    pub lines: &'static [Line],
    /// The chart that replaces this one if it has no data.
    pub instead: Option<&'static Chart>,
}

pub(crate) struct Line {
    pub name: &'static str,
    pub measure: Measure,
}

/// How the value of a line is read from a sample.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// The value itself; a bucket is drawn at its largest value.
    High(fn(&Sample) -> Reading<f64>),
    /// The value itself; a bucket is drawn at its smallest value.
    Low(fn(&Sample) -> Reading<f64>),
    /// The increase of a counter per unit of another one, mostly time; a bucket is drawn at its mean.
    Rate(Rate),
}

#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub amount: fn(&Sample) -> Reading<f64>,
    /// The counter to divide by; None means seconds.
    pub per: Option<fn(&Sample) -> Reading<f64>>,
    /// The largest possible rate.
    pub most: f64,
    /// A rate is computed once the counter has grown by this much, or after a timeout.
    pub enough: f64,
}

impl Measure {
    pub fn reading(&self, sample: &Sample) -> Reading<f64> {
        match self {
            Measure::High(read) | Measure::Low(read) => read(sample),
            Measure::Rate(rate) => (rate.amount)(sample),
        }
    }
}

pub(crate) const MEMORY: usize = 0;

pub(crate) static CHARTS: [Chart; 10] = [
    Chart {
        title: "Memory",
        tells: "Memory held by this run.",
        unit: Unit::Bytes,
        lines: &[Line {
            name: "this run",
            measure: Measure::High(|sample| number(sample.tree.footprint, 1.0)),
        }],
        instead: None,
    },
    Chart {
        title: "Machine memory",
        tells: "Available memory, and swap in use.",
        unit: Unit::Bytes,
        lines: &[
            Line {
                name: "still free",
                measure: Measure::Low(|sample| number(sample.memory.available, 1.0)),
            },
            Line {
                name: "swap in use",
                measure: Measure::High(|sample| {
                    match (sample.memory.swap_total, sample.memory.swap_free) {
                        (Reading::Value(total), Reading::Value(free)) => {
                            Reading::Value(total.saturating_sub(free) as f64)
                        }
                        (Reading::Unavailable(why), _) | (_, Reading::Unavailable(why)) => {
                            Reading::Unavailable(why)
                        }
                    }
                }),
            },
            Line {
                name: "free in the container",
                measure: Measure::Low(|sample| number(sample.cgroup.limit_available, 1.0)),
            },
        ],
        instead: None,
    },
    Chart {
        title: "Waiting",
        tells: "Share of the time in which a process of the machine waited for memory, a core or the disk.",
        unit: Unit::Share,
        lines: &[
            Line {
                name: "for memory",
                measure: stalled(|sample| number(sample.pressure.memory_some_us, 1e-6)),
            },
            Line {
                name: "for a core",
                measure: stalled(|sample| number(sample.pressure.cpu_some_us, 1e-6)),
            },
            Line {
                name: "for the disk",
                measure: stalled(|sample| number(sample.pressure.io_some_us, 1e-6)),
            },
            Line {
                name: "all processes, for memory",
                measure: stalled(|sample| number(sample.pressure.memory_full_us, 1e-6)),
            },
        ],
        instead: None,
    },
    Chart {
        title: "CPU",
        tells: "Share of all cores that were busy.",
        unit: Unit::Share,
        lines: &[
            Line {
                name: "this run",
                measure: Measure::Rate(Rate {
                    amount: |sample| {
                        let ticks = 100.0 * f64::from(sample.cpu.core_count.max(1));
                        number(sample.tree.cpu, 1.0 / ticks)
                    },
                    per: None,
                    most: 1.0,
                    // It is read more seldom than it is written down.
                    enough: 0.001,
                }),
            },
            Line {
                name: "whole machine",
                measure: Measure::Rate(Rate {
                    amount: |sample| sum(&busy(sample)),
                    per: Some(|sample| {
                        let [user, nice, system, irq, steal] = busy(sample);
                        let idle = [sample.cpu.idle, sample.cpu.iowait];
                        sum(&[user, nice, system, irq, steal, idle[0], idle[1]])
                    }),
                    most: 1.0,
                    enough: 0.0,
                }),
            },
        ],
        instead: None,
    },
    Chart {
        title: "Disk",
        tells: "Bytes read from and written to the disk of the run's folder.",
        unit: Unit::BytesPerSecond,
        lines: &[
            Line {
                name: "read",
                measure: every_second(|sample| number(sample.disk.read_bytes, 1.0)),
            },
            Line {
                name: "written",
                measure: every_second(|sample| number(sample.disk.written_bytes, 1.0)),
            },
        ],
        instead: Some(&Chart {
            title: "Disk",
            tells: "Bytes that this run read and wrote. The I/O of others could not be seen.",
            unit: Unit::BytesPerSecond,
            lines: &[
                Line {
                    name: "read by this run",
                    measure: every_second(|sample| number(sample.tree.read_bytes, 1.0)),
                },
                Line {
                    name: "written by this run",
                    measure: every_second(|sample| number(sample.tree.written_bytes, 1.0)),
                },
            ],
            instead: None,
        }),
    },
    Chart {
        title: "GPU memory",
        tells: "Memory in use, and its total.",
        unit: Unit::Bytes,
        lines: &[
            Line {
                name: "in use",
                measure: Measure::High(|sample| number(sample.gpus.memory_used, 1.0)),
            },
            Line {
                name: "all",
                measure: Measure::High(|sample| number(sample.gpus.memory_total, 1.0)),
            },
        ],
        instead: None,
    },
    Chart {
        title: "GPU",
        tells: "Utilization of the busiest GPU.",
        unit: Unit::Share,
        lines: &[Line {
            name: "busy",
            measure: Measure::High(|sample| number(sample.gpus.busy_percent, 0.01)),
        }],
        instead: None,
    },
    Chart {
        title: "GPU power",
        tells: "Power draw, and its limit.",
        unit: Unit::Watts,
        lines: &[
            Line {
                name: "drawn",
                measure: Measure::High(|sample| number(sample.gpus.power_microwatts, 1e-6)),
            },
            Line {
                name: "allowed",
                measure: Measure::High(|sample| number(sample.gpus.power_limit_microwatts, 1e-6)),
            },
        ],
        instead: None,
    },
    Chart {
        title: "Temperature",
        tells: "The hottest sensor of the machine, and the hottest GPU.",
        unit: Unit::Celsius,
        lines: &[
            Line {
                name: "hottest sensor",
                measure: Measure::High(|sample| number(sample.thermal.hottest_millidegrees, 1e-3)),
            },
            Line {
                name: "GPU",
                measure: Measure::High(|sample| number(sample.gpus.hottest_millidegrees, 1e-3)),
            },
        ],
        instead: None,
    },
    Chart {
        title: "Steps",
        tells: "Training steps per second.",
        unit: Unit::PerSecond,
        lines: &[Line {
            name: "steps",
            measure: Measure::Rate(Rate {
                amount: |sample| number(sample.tree.steps, 1.0),
                per: None,
                most: f64::INFINITY,
                // Slow steps would otherwise be drawn as a comb.
                enough: 5.0,
            }),
        }],
        instead: None,
    },
];

const fn stalled(amount: fn(&Sample) -> Reading<f64>) -> Measure {
    Measure::Rate(Rate {
        amount,
        per: None,
        most: 1.0,
        enough: 0.0,
    })
}

const fn every_second(amount: fn(&Sample) -> Reading<f64>) -> Measure {
    Measure::Rate(Rate {
        amount,
        per: None,
        most: f64::INFINITY,
        enough: 0.0,
    })
}

fn number(reading: Reading<u64>, factor: f64) -> Reading<f64> {
    reading.map(|value| value as f64 * factor)
}

fn busy(sample: &Sample) -> [Reading<u64>; 5] {
    let cpu = &sample.cpu;
    [cpu.user, cpu.nice, cpu.system, cpu.irq, cpu.steal]
}

/// Old kernels lack some of the parts; without any of them there is no sum.
fn sum(parts: &[Reading<u64>]) -> Reading<f64> {
    let known = parts
        .iter()
        .filter_map(|part| part.value())
        .map(|value| value as f64);
    match parts.first() {
        Some(Reading::Unavailable(why)) => Reading::Unavailable(*why),
        _ => Reading::Value(known.sum()),
    }
}
