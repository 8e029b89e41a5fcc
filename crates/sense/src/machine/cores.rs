//! How busy the cores are.

use crate::parse::{self, Ticks, Whose};
use crate::{CORES, Cpu, Reading, Reason};
use rustix::io;

/// What was seen of each core before, by the kernel's number of it. Boot is the look before
/// the first.
pub struct Cores {
    seen: [Seen; CORES],
}

#[derive(Clone, Copy, Default)]
struct Seen {
    busy: u64,
    total: u64,
    percent: u8,
}

impl Default for Cores {
    fn default() -> Self {
        Cores {
            seen: [Seen::default(); CORES],
        }
    }
}

impl Cores {
    pub fn read(&mut self, stat: io::Result<&[u8]>, out: &mut Cpu) {
        out.core_count = 0;
        match stat {
            Ok(bytes) => {
                set_times(out, Err(Reason::Malformed));
                for (whose, ticks) in parse::cpus(bytes) {
                    match whose {
                        Whose::AllCores => set_times(out, Ok(ticks)),
                        Whose::Core(number) => self.core(number, &ticks, out),
                    }
                }
            }
            Err(errno) => set_times(out, Err(errno.into())),
        }
    }

    fn core(&mut self, number: usize, ticks: &Ticks, out: &mut Cpu) {
        let Some(seen) = self.seen.get_mut(number) else {
            return;
        };
        let Some(place) = out.cores.get_mut(usize::from(out.core_count)) else {
            return;
        };
        *place = seen.percent_now(ticks);
        out.core_count += 1;
    }
}

impl Seen {
    fn percent_now(&mut self, ticks: &Ticks) -> u8 {
        let busy = ticks.busy().saturating_sub(self.busy);
        let total = ticks.total().saturating_sub(self.total);
        // Counters fall a little at times (iowait does): then nothing is known to have
        // passed, and the next look starts from the lower number.
        self.busy = ticks.busy();
        self.total = ticks.total();
        if total > 0 {
            // At most 100, as busy is no more than total.
            self.percent = (u128::from(busy.min(total)) * 100 / u128::from(total)) as u8;
        }
        // Two looks within one clock tick cannot tell: what was known still holds.
        self.percent
    }
}

fn set_times(out: &mut Cpu, ticks: Result<Ticks, Reason>) {
    let of = |field: fn(&Ticks) -> u64| match &ticks {
        Ok(ticks) => Reading::Value(field(ticks)),
        Err(reason) => Reading::Unavailable(*reason),
    };
    out.user = of(|t| t.user);
    out.nice = of(|t| t.nice);
    out.system = of(|t| t.system);
    out.idle = of(|t| t.idle);
    out.iowait = of(|t| t.iowait);
    out.irq = of(|t| t.irq);
    out.steal = of(|t| t.steal);
}
