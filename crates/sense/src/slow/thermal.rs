//! Reads temperatures, and how often the kernel slowed a core because of them.

use crate::file::{OptionalFile, ProcFile, ShortPath};
use crate::parse;
use crate::{MAX_CORES, Reading, Reason, Thermal};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::path::{Path, PathBuf};

/// More sensors than a workstation has. Each takes two descriptors, and servers have hundreds.
const MAX_TEMPERATURE_SENSORS: usize = 64;

/// Plausible temperatures, in thousandths of a degree. Sensors that are not connected show 0, −128, 255 and the like.
const PLAUSIBLE_MILLIDEGREES: core::ops::RangeInclusive<u64> = 1_000..=150_000;

pub struct ThermalSensors {
    sensors: Box<[TemperatureSensor]>,
    cpus: Option<OwnedFd>,
    throttles: Box<[ThrottleCounter]>,
}

struct TemperatureSensor {
    temperature: OptionalFile,
    /// Whether the device is awake. Some GPUs wake up to be read, which costs the battery of a laptop.
    power: OptionalFile,
}

impl TemperatureSensor {
    fn open(temperature: &Path) -> TemperatureSensor {
        TemperatureSensor {
            temperature: OptionalFile::open(temperature),
            power: OptionalFile::open(temperature.with_file_name("device/power/runtime_status")),
        }
    }

    fn read(&self) -> Option<u64> {
        let mut buffer = [0; 32];
        if self.power.read(&mut buffer) == Ok(b"suspended\n") {
            return None;
        }
        let degrees = parse::single_number(self.temperature.read(&mut buffer).ok()?).value()?;
        PLAUSIBLE_MILLIDEGREES.contains(&degrees).then_some(degrees)
    }
}

/// A counter of slow-downs, by the number of the core that it is read from.
#[derive(Clone, Copy)]
enum ThrottleCounter {
    Core(u16),
    /// The counter of a package, which each of its cores shows; it is read from one of them.
    Package(u16),
}

impl ThermalSensors {
    pub fn open(sys: &Path) -> ThermalSensors {
        let cpus = sys.join("devices/system/cpu");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        ThermalSensors {
            sensors: find_temperature_files(sys)
                .iter()
                .map(|path| TemperatureSensor::open(path))
                .collect(),
            throttles: find_throttle_counters(&cpus),
            cpus: openat(CWD, &cpus, flags, Mode::empty()).ok(),
        }
    }

    pub fn read(&self) -> Thermal {
        Thermal {
            hottest_millidegrees: self.read_hottest(),
            throttle_count: self.sum_throttle_counts(),
        }
    }

    fn read_hottest(&self) -> Reading<u64> {
        self.sensors
            .iter()
            .filter_map(TemperatureSensor::read)
            .max()
            .map_or(Reading::Unavailable(Reason::Absent), Reading::Value)
    }

    fn sum_throttle_counts(&self) -> Reading<u64> {
        let mut sum: Option<u64> = None;
        for throttle in &self.throttles {
            if let Some(count) = self.read_throttle_count(*throttle) {
                sum = Some(sum.unwrap_or(0).saturating_add(count));
            }
        }
        sum.map_or(Reading::Unavailable(Reason::Absent), Reading::Value)
    }

    /// Reads a counter from a file that is opened each time, because hundreds of cores would take a descriptor each.
    fn read_throttle_count(&self, throttle: ThrottleCounter) -> Option<u64> {
        let path = match throttle {
            ThrottleCounter::Core(cpu) => ShortPath::new(format_args!(
                "cpu{cpu}/thermal_throttle/core_throttle_count"
            )),
            ThrottleCounter::Package(cpu) => ShortPath::new(format_args!(
                "cpu{cpu}/thermal_throttle/package_throttle_count"
            )),
        }
        .ok()?;
        let file = ProcFile::open_at(self.cpus.as_ref()?, path.as_c_str().ok()?).ok()?;
        let mut buffer = [0; 32];
        parse::single_number(file.read(&mut buffer).ok()?).value()
    }
}

fn find_temperature_files(sys: &Path) -> Vec<PathBuf> {
    let zones = entries_named(&sys.join("class/thermal"), "thermal_zone", "")
        .into_iter()
        .map(|zone| zone.join("temp"));
    let monitors = entries_named(&sys.join("class/hwmon"), "hwmon", "")
        .into_iter()
        .flat_map(|monitor| entries_named(&monitor, "temp", "_input"));
    zones
        .chain(monitors)
        .filter(|path| path.exists())
        .take(MAX_TEMPERATURE_SENSORS)
        .collect()
}

fn find_throttle_counters(cpus: &Path) -> Box<[ThrottleCounter]> {
    let mut packages = Vec::new();
    let mut throttles = Vec::new();
    for cpu in 0..MAX_CORES as u16 {
        let folder = cpus.join(format!("cpu{cpu}"));
        if !folder.join("thermal_throttle").is_dir() {
            continue;
        }
        throttles.push(ThrottleCounter::Core(cpu));
        let package = std::fs::read(folder.join("topology/physical_package_id")).ok();
        if !packages.contains(&package) {
            packages.push(package);
            throttles.push(ThrottleCounter::Package(cpu));
        }
    }
    throttles.into_boxed_slice()
}

/// Lists the entries of a folder whose names begin and end so.
fn entries_named(folder: &Path, begin: &str, end: &str) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(begin) && name.ends_with(end)
        })
        .map(|entry| entry.path())
        .collect()
}
