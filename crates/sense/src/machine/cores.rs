//! How busy each core was since the sample before.

use crate::parse::{self, CpuLine, CpuTicks};
use crate::{Cpu, MAX_CORES, Reading, Reason};
use rustix::io;

/// The ticks of each core in the last sample, by the kernel's number of the core. The first sample is compared with
/// boot.
pub struct CoreUsage {
    seen: [LastCoreTicks; MAX_CORES],
}

#[derive(Clone, Copy, Default)]
struct LastCoreTicks {
    busy: u64,
    total: u64,
    percent: u8,
}

impl Default for CoreUsage {
    fn default() -> Self {
        CoreUsage {
            seen: [LastCoreTicks::default(); MAX_CORES],
        }
    }
}

impl CoreUsage {
    /// Parses /proc/stat into `out`.
    pub fn update(&mut self, stat: io::Result<&[u8]>, out: &mut Cpu) {
        out.core_count = 0;
        match stat {
            Ok(bytes) => {
                set_cpu_times(out, Err(Reason::Malformed));
                for (whose, ticks) in parse::cpu_lines(bytes) {
                    match whose {
                        CpuLine::AllCores => set_cpu_times(out, Ok(ticks)),
                        CpuLine::Core(number) => self.record_core(number, &ticks, out),
                    }
                }
            }
            Err(errno) => set_cpu_times(out, Err(errno.into())),
        }
    }

    fn record_core(&mut self, number: usize, ticks: &CpuTicks, out: &mut Cpu) {
        let Some(seen) = self.seen.get_mut(number) else {
            return;
        };
        let Some(place) = out.core_percents.get_mut(usize::from(out.core_count)) else {
            return;
        };
        *place = seen.percent_now(ticks);
        out.core_count += 1;
    }
}

impl LastCoreTicks {
    fn percent_now(&mut self, ticks: &CpuTicks) -> u8 {
        let busy = ticks.busy().saturating_sub(self.busy);
        let total = ticks.total().saturating_sub(self.total);
        // Counters can fall a little (iowait does). Then no time is known to have passed, and the
        // next sample starts from the lower number.
        self.busy = ticks.busy();
        self.total = ticks.total();
        if total > 0 {
            // At most 100, as busy is no more than total.
            self.percent = (u128::from(busy.min(total)) * 100 / u128::from(total)) as u8;
        }
        // Between two samples within one clock tick, the last value is kept.
        self.percent
    }
}

fn set_cpu_times(out: &mut Cpu, ticks: Result<CpuTicks, Reason>) {
    let reading_of = |field: fn(&CpuTicks) -> u64| match &ticks {
        Ok(ticks) => Reading::Value(field(ticks)),
        Err(reason) => Reading::Unavailable(*reason),
    };
    out.user = reading_of(|t| t.user);
    out.nice = reading_of(|t| t.nice);
    out.system = reading_of(|t| t.system);
    out.idle = reading_of(|t| t.idle);
    out.iowait = reading_of(|t| t.iowait);
    out.irq = reading_of(|t| t.irq);
    out.steal = reading_of(|t| t.steal);
}
