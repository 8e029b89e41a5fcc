//! NVIDIA's cards, read through the driver's own library (NVML).

use antifreeze_sense::gpu::memory_permille;
use antifreeze_sense::{Gpus, Reading, Reason};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// Another library in its place, for tests.
const LIBRARY: &str = "ANTIFREEZE_NVML";

/// Where there is one of these, there is a driver: of the kernel, in a container, under WSL.
const SIGNS: [&str; 3] = [
    "/proc/driver/nvidia/version",
    "/dev/nvidiactl",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
];

/// Whether there is a driver that could be asked.
pub fn is_there() -> bool {
    std::env::var_os(LIBRARY).is_some() || SIGNS.iter().any(|sign| Path::new(sign).exists())
}

/// Why the driver cannot be asked.
pub enum Unusable {
    /// And never will be while we run.
    ForEver(Reason),
    Now(Reason),
}

pub struct Driver {
    nvml: Nvml,
    /// Cards that fell off the bus. The driver goes on counting them.
    lost: BTreeSet<u32>,
}

/// One card.
#[derive(Clone, Copy, Debug)]
struct Card {
    /// All that is not free: the driver keeps some for itself, which is as good as used.
    used: Reading<u64>,
    total: Reading<u64>,
    busy: Reading<u64>,
    hottest: Reading<u64>,
    draw: Reading<u64>,
    limit: Reading<u64>,
    throttle: Reading<u64>,
}

impl Driver {
    pub fn load() -> Result<Driver, Unusable> {
        let library =
            std::env::var_os(LIBRARY).unwrap_or_else(|| OsString::from("libnvidia-ml.so.1"));
        match Nvml::builder().lib_path(&library).init() {
            Ok(nvml) => Ok(Driver {
                nvml,
                lost: BTreeSet::new(),
            }),
            Err(NvmlError::LibloadingError(_) | NvmlError::FailedToLoadSymbol(_)) => {
                Err(Unusable::ForEver(Reason::Absent))
            }
            // The driver was updated under the running system: it needs a restart.
            Err(error @ NvmlError::LibRmVersionMismatch) => Err(Unusable::ForEver(why(&error))),
            Err(error) => Err(Unusable::Now(why(&error))),
        }
    }

    /// One look at every card.
    pub fn look(&mut self) -> Gpus {
        let count = match self.nvml.device_count() {
            Ok(count) => count,
            Err(error) => return Gpus::unavailable(why(&error)),
        };
        let mut all = Vec::new();
        for index in 0..count {
            match self
                .nvml
                .device_by_index(index)
                .and_then(|device| Card::read(&device))
            {
                Ok(card) => {
                    self.lost.remove(&index);
                    all.push(card);
                }
                Err(NvmlError::GpuLost) => {
                    self.lost.insert(index);
                }
                // One that may not be used from here, or that is being reset.
                Err(_) => {}
            }
        }
        together(&all, self.lost.len() as u64)
    }
}

impl Card {
    /// What it tells; an error only where it is not there any more.
    fn read(device: &Device<'_>) -> Result<Card, NvmlError> {
        let memory = device.memory_info();
        let card = Card {
            used: known(&memory, |memory| memory.total.saturating_sub(memory.free))?,
            total: known(&memory, |memory| memory.total)?,
            busy: known(&device.utilization_rates(), |rates| rates.gpu.into())?,
            hottest: known(&device.temperature(TemperatureSensor::Gpu), |degrees| {
                u64::from(*degrees) * 1000
            })?,
            draw: known(&device.power_usage(), |milliwatts| {
                u64::from(*milliwatts) * 1000
            })?,
            limit: known(&device.enforced_power_limit(), |milliwatts| {
                u64::from(*milliwatts) * 1000
            })?,
            throttle: known(&device.current_throttle_reasons(), |reasons| reasons.bits())?,
        };
        Ok(card)
    }
}

fn known<T>(
    told: &Result<T, NvmlError>,
    value: impl Fn(&T) -> u64,
) -> Result<Reading<u64>, NvmlError> {
    match told {
        Ok(told) => Ok(Reading::Value(value(told))),
        Err(NvmlError::GpuLost) => Err(NvmlError::GpuLost),
        Err(error) => Ok(Reading::Unavailable(why(error))),
    }
}

fn why(error: &NvmlError) -> Reason {
    match error {
        NvmlError::NotSupported
        | NvmlError::NotFound
        | NvmlError::FunctionNotFound
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::DriverNotLoaded
        | NvmlError::LibraryNotFound => Reason::Absent,
        NvmlError::NoPermission | NvmlError::OperatingSystem => Reason::Denied,
        NvmlError::GpuLost => Reason::Gone,
        _ => Reason::Failed,
    }
}

/// Memory and power of all together; of the rest the highest. What some tell and others do not is that of those
/// that do.
fn together(all: &[Card], lost: u64) -> Gpus {
    let join = |of: fn(&Card) -> Reading<u64>, with: fn(u64, u64) -> u64| {
        let without = all.first().map(of).filter(|first| first.value().is_none());
        let without = without.unwrap_or(Reading::Unavailable(match lost {
            0 => Reason::Absent,
            _ => Reason::Gone,
        }));
        let told = all.iter().filter_map(|card| of(card).value()).reduce(with);
        told.map_or(without, Reading::Value)
    };
    let full = |card: &Card| memory_permille(card.used.value()?, card.total.value()?);
    let used = join(|card| card.used, u64::saturating_add);
    Gpus {
        memory_used: used,
        memory_total: join(|card| card.total, u64::saturating_add),
        busy_percent: join(|card| card.busy, u64::max),
        hottest_millidegrees: join(|card| card.hottest, u64::max),
        power_microwatts: join(|card| card.draw, u64::saturating_add),
        power_limit_microwatts: join(|card| card.limit, u64::saturating_add),
        throttle_bits: join(|card| card.throttle, std::ops::BitOr::bitor),
        fullest_permille: match (all.iter().filter_map(full).max(), used) {
            (Some(fullest), _) => Reading::Value(fullest),
            (None, Reading::Unavailable(reason)) => Reading::Unavailable(reason),
            (None, Reading::Value(_)) => Reading::Unavailable(Reason::Absent),
        },
        count: Reading::Value(all.len() as u64),
        lost: Reading::Value(lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Unavailable, Value};

    fn card(used: u64) -> Card {
        Card {
            used: Value(used),
            total: Value(24_000),
            busy: Value(97),
            hottest: Value(71_000),
            draw: Value(440_000_000),
            limit: Value(450_000_000),
            throttle: Value(0x4),
        }
    }

    #[test]
    fn several_cards_are_told_together() {
        let idle = Card {
            busy: Value(0),
            throttle: Value(0x1),
            ..card(600)
        };
        let cards = together(&[card(18_000), idle], 0);
        assert_eq!(
            (cards.memory_used, cards.memory_total),
            (Value(18_600), Value(48_000))
        );
        assert_eq!(
            (cards.power_microwatts, cards.power_limit_microwatts),
            (Value(880_000_000), Value(900_000_000))
        );
        assert_eq!(
            (cards.busy_percent, cards.throttle_bits),
            (Value(97), Value(0x5))
        );
        assert_eq!(
            (cards.fullest_permille, cards.count, cards.lost),
            (Value(750), Value(2), Value(0))
        );
    }

    #[test]
    fn what_a_card_does_not_tell_is_unavailable_and_never_zero() {
        let unified = Card {
            used: Unavailable(Reason::Absent),
            total: Unavailable(Reason::Absent),
            limit: Unavailable(Reason::Denied),
            ..card(0)
        };
        let cards = together(&[unified], 0);
        assert_eq!(cards.memory_used, Unavailable(Reason::Absent));
        assert_eq!(cards.fullest_permille, Unavailable(Reason::Absent));
        assert_eq!(cards.power_limit_microwatts, Unavailable(Reason::Denied));
        assert_eq!(cards.busy_percent, Value(97));
    }

    #[test]
    fn a_lost_card_leaves_the_others_and_nothing_where_there_are_none() {
        let others = together(&[card(6_000)], 1);
        assert_eq!((others.memory_used, others.lost), (Value(6_000), Value(1)));
        let alone = together(&[], 1);
        assert_eq!(
            (alone.memory_used, alone.lost),
            (Unavailable(Reason::Gone), Value(1))
        );
        assert_eq!(alone.throttle_bits, Unavailable(Reason::Gone));
    }
}
