//! Parses /proc/stat and /proc/loadavg.

use super::text::{lines, parse_decimal, split_at_byte, value_or_malformed, words};
use crate::{Reading, Reason};

/// Clock ticks (1/100 s) since boot, of one core or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// In programs of normal priority.
    pub user: u64,
    /// In programs of lower priority.
    pub nice: u64,
    /// In the kernel.
    pub system: u64,
    /// Without anything to do.
    pub idle: u64,
    /// Idle while a process waited for a disk.
    pub iowait: u64,
    /// In hard and soft interrupts.
    pub irq: u64,
    /// Given to others by the host of a virtual machine.
    pub steal: u64,
}

impl CpuTicks {
    /// The ticks in which the core worked.
    pub fn busy(&self) -> u64 {
        [self.user, self.nice, self.system, self.irq, self.steal]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// All ticks.
    pub fn total(&self) -> u64 {
        self.busy()
            .saturating_add(self.idle)
            .saturating_add(self.iowait)
    }
}

/// Which cores a line of /proc/stat is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuLine {
    /// All cores together.
    AllCores,
    /// One core, by the kernel's number. Cores that are switched off are not listed.
    Core(usize),
}

/// Parses the cpu lines of /proc/stat, which stand first. Malformed lines are skipped.
pub fn cpu_lines(bytes: &[u8]) -> impl Iterator<Item = (CpuLine, CpuTicks)> {
    lines(bytes)
        .map_while(|line| line.strip_prefix(b"cpu"))
        .filter_map(|line| {
            let (core, times) = split_at_byte(line, b' ')?;
            let whose = match core {
                b"" => CpuLine::AllCores,
                digits => CpuLine::Core(parse_decimal(digits)?.try_into().ok()?),
            };
            Some((whose, parse_ticks(times)?))
        })
}

fn parse_ticks(times: &[u8]) -> Option<CpuTicks> {
    let mut words = words(times);
    let mut next = || words.next().and_then(parse_decimal);
    Some(CpuTicks {
        user: next()?,
        nice: next()?,
        system: next()?,
        idle: next()?,
        iowait: next()?,
        irq: next()?.checked_add(next()?)?,
        steal: next()?,
    })
}

/// /proc/loadavg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadAverage {
    /// Averages over 1, 5 and 15 minutes, in hundredths.
    pub average: [Reading<u64>; 3],
    /// How many processes and threads can run now.
    pub runnable: Reading<u64>,
    /// The newest process or thread number.
    pub newest: Reading<u64>,
}

impl LoadAverage {
    /// All values missing, for this reason.
    pub fn unavailable(reason: Reason) -> LoadAverage {
        let none = Reading::Unavailable(reason);
        LoadAverage {
            average: [none; 3],
            runnable: none,
            newest: none,
        }
    }
}

/// Parses /proc/loadavg.
pub fn load_average(bytes: &[u8]) -> LoadAverage {
    let Some(line) = lines(bytes).next() else {
        return LoadAverage::unavailable(Reason::Malformed);
    };
    let mut words = words(line);
    let mut average = || value_or_malformed(words.next().and_then(parse_hundredths));
    LoadAverage {
        average: [average(), average(), average()],
        runnable: value_or_malformed(
            words
                .next()
                .and_then(|word| split_at_byte(word, b'/'))
                .and_then(|(runnable, _)| parse_decimal(runnable)),
        ),
        newest: value_or_malformed(words.next().and_then(parse_decimal)),
    }
}

/// Parses a number with two decimals.
fn parse_hundredths(word: &[u8]) -> Option<u64> {
    let (whole, part) = split_at_byte(word, b'.')?;
    if part.len() != 2 {
        return None;
    }
    parse_decimal(whole)?
        .checked_mul(100)?
        .checked_add(parse_decimal(part)?)
}
