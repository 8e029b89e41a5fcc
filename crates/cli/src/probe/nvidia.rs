//! Reads NVIDIA GPUs through the driver's own library (NVML).

use antifreeze_sense::gpu::memory_permille;
use antifreeze_sense::{Gpus, Reading, Reason};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// The variable that names another library, for tests.
const LIBRARY_VARIABLE: &str = "ANTIFREEZE_NVML";

/// Each of these files shows that there is a driver: in the kernel, in a container, or under WSL.
const DRIVER_FILES: [&str; 3] = [
    "/proc/driver/nvidia/version",
    "/dev/nvidiactl",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
];

/// Whether an NVIDIA driver is installed.
pub fn has_driver() -> bool {
    std::env::var_os(LIBRARY_VARIABLE).is_some()
        || DRIVER_FILES.iter().any(|sign| Path::new(sign).exists())
}

/// Why the driver cannot be used.
pub enum Unusable {
    /// It cannot be used for as long as this process runs.
    ForEver(Reason),
    Now(Reason),
}

pub struct Driver {
    nvml: Nvml,
    /// GPUs that fell off the bus. The driver still counts them.
    lost: BTreeSet<u32>,
}

/// The readings of one GPU.
#[derive(Clone, Copy, Debug)]
struct Gpu {
    /// All memory that is not free, including what the driver reserves for itself.
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
        let library = std::env::var_os(LIBRARY_VARIABLE)
            .unwrap_or_else(|| OsString::from("libnvidia-ml.so.1"));
        match Nvml::builder().lib_path(&library).init() {
            Ok(nvml) => Ok(Driver {
                nvml,
                lost: BTreeSet::new(),
            }),
            Err(NvmlError::LibloadingError(_) | NvmlError::FailedToLoadSymbol(_)) => {
                Err(Unusable::ForEver(Reason::Absent))
            }
            // The driver was updated under the running system: it needs a restart.
            Err(error @ NvmlError::LibRmVersionMismatch) => {
                Err(Unusable::ForEver(reason_of(&error)))
            }
            Err(error) => Err(Unusable::Now(reason_of(&error))),
        }
    }

    /// Reads every GPU.
    pub fn read(&mut self) -> Gpus {
        let count = match self.nvml.device_count() {
            Ok(count) => count,
            Err(error) => return Gpus::unavailable(reason_of(&error)),
        };
        let mut all = Vec::new();
        for index in 0..count {
            match self
                .nvml
                .device_by_index(index)
                .and_then(|device| Gpu::read(&device))
            {
                Ok(gpu) => {
                    self.lost.remove(&index);
                    all.push(gpu);
                }
                Err(NvmlError::GpuLost) => {
                    self.lost.insert(index);
                }
                // One that may not be used from here, or that is being reset.
                Err(_) => {}
            }
        }
        combine(&all, self.lost.len() as u64)
    }
}

impl Gpu {
    /// Reads one GPU. Fails only if the GPU is gone.
    fn read(device: &Device<'_>) -> Result<Gpu, NvmlError> {
        let memory = device.memory_info();
        let gpu = Gpu {
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
        Ok(gpu)
    }
}

fn known<T>(
    answer: &Result<T, NvmlError>,
    value: impl Fn(&T) -> u64,
) -> Result<Reading<u64>, NvmlError> {
    match answer {
        Ok(answer) => Ok(Reading::Value(value(answer))),
        Err(NvmlError::GpuLost) => Err(NvmlError::GpuLost),
        Err(error) => Ok(Reading::Unavailable(reason_of(error))),
    }
}

fn reason_of(error: &NvmlError) -> Reason {
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

/// Combines GPUs: the sum of memory and power, and the highest of the other values. A value that only some report is
/// taken from those.
fn combine(all: &[Gpu], lost: u64) -> Gpus {
    let join = |of: fn(&Gpu) -> Reading<u64>, with: fn(u64, u64) -> u64| {
        let without = all.first().map(of).filter(|first| first.value().is_none());
        let without = without.unwrap_or(Reading::Unavailable(match lost {
            0 => Reason::Absent,
            _ => Reason::Gone,
        }));
        let answer = all.iter().filter_map(|gpu| of(gpu).value()).reduce(with);
        answer.map_or(without, Reading::Value)
    };
    let full = |gpu: &Gpu| memory_permille(gpu.used.value()?, gpu.total.value()?);
    let used = join(|gpu| gpu.used, u64::saturating_add);
    Gpus {
        memory_used: used,
        memory_total: join(|gpu| gpu.total, u64::saturating_add),
        busy_percent: join(|gpu| gpu.busy, u64::max),
        hottest_millidegrees: join(|gpu| gpu.hottest, u64::max),
        power_microwatts: join(|gpu| gpu.draw, u64::saturating_add),
        power_limit_microwatts: join(|gpu| gpu.limit, u64::saturating_add),
        throttle_bits: join(|gpu| gpu.throttle, std::ops::BitOr::bitor),
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

    fn gpu(used: u64) -> Gpu {
        Gpu {
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
        let idle = Gpu {
            busy: Value(0),
            throttle: Value(0x1),
            ..gpu(600)
        };
        let gpus = combine(&[gpu(18_000), idle], 0);
        assert_eq!(
            (gpus.memory_used, gpus.memory_total),
            (Value(18_600), Value(48_000))
        );
        assert_eq!(
            (gpus.power_microwatts, gpus.power_limit_microwatts),
            (Value(880_000_000), Value(900_000_000))
        );
        assert_eq!(
            (gpus.busy_percent, gpus.throttle_bits),
            (Value(97), Value(0x5))
        );
        assert_eq!(
            (gpus.fullest_permille, gpus.count, gpus.lost),
            (Value(750), Value(2), Value(0))
        );
    }

    #[test]
    fn what_a_card_does_not_tell_is_unavailable_and_never_zero() {
        let unified = Gpu {
            used: Unavailable(Reason::Absent),
            total: Unavailable(Reason::Absent),
            limit: Unavailable(Reason::Denied),
            ..gpu(0)
        };
        let gpus = combine(&[unified], 0);
        assert_eq!(gpus.memory_used, Unavailable(Reason::Absent));
        assert_eq!(gpus.fullest_permille, Unavailable(Reason::Absent));
        assert_eq!(gpus.power_limit_microwatts, Unavailable(Reason::Denied));
        assert_eq!(gpus.busy_percent, Value(97));
    }

    #[test]
    fn a_lost_card_leaves_the_others_and_nothing_where_there_are_none() {
        let others = combine(&[gpu(6_000)], 1);
        assert_eq!((others.memory_used, others.lost), (Value(6_000), Value(1)));
        let alone = combine(&[], 1);
        assert_eq!(
            (alone.memory_used, alone.lost),
            (Unavailable(Reason::Gone), Value(1))
        );
        assert_eq!(alone.throttle_bits, Unavailable(Reason::Gone));
    }
}
