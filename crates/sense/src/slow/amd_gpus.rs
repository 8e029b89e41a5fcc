//! Reads the GPUs whose driver shows readings in files (amdgpu). NVIDIA's are read by the probe in crates/cli, because
//! that takes a library.

use crate::file::OptionalFile;
use crate::gpu::memory_permille;
use crate::parse;
use crate::{Gpus, Reading, Reason};
use std::path::{Path, PathBuf};

/// More GPUs than a workstation has.
const MAX_GPUS: usize = 16;

pub struct AmdGpus(Box<[AmdGpu]>);

struct AmdGpu {
    /// Whether it is awake: reading a GPU that sleeps would wake it.
    power: OptionalFile,
    used: OptionalFile,
    total: OptionalFile,
    busy: OptionalFile,
    temperature: OptionalFile,
    draw: OptionalFile,
    limit: OptionalFile,
}

impl AmdGpus {
    pub fn open(sys: &Path) -> AmdGpus {
        let mut devices: Vec<PathBuf> = std::fs::read_dir(sys.join("class/drm"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| is_drm_card(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path().join("device"))
            .filter(|device| device.join("mem_info_vram_total").exists())
            .collect();
        devices.sort();
        AmdGpus(
            devices
                .iter()
                .take(MAX_GPUS)
                .map(|device| AmdGpu::open(device))
                .collect(),
        )
    }

    /// Reads memory and power of all GPUs together, and the highest of the other values.
    pub fn read(&self) -> Gpus {
        let all = |of: fn(&AmdGpu) -> &OptionalFile| {
            self.awake().filter_map(move |gpu| read_number(of(gpu)))
        };
        let sum = |of| value_or_absent(all(of).reduce(u64::saturating_add));
        let highest = |of| value_or_absent(all(of).max());
        let fullest = self.awake().filter_map(AmdGpu::memory_permille).max();
        Gpus {
            memory_used: sum(|gpu| &gpu.used),
            memory_total: sum(|gpu| &gpu.total),
            busy_percent: highest(|gpu| &gpu.busy),
            hottest_millidegrees: highest(|gpu| &gpu.temperature),
            power_microwatts: sum(|gpu| &gpu.draw),
            power_limit_microwatts: sum(|gpu| &gpu.limit),
            throttle_bits: Reading::Unavailable(Reason::Absent),
            fullest_permille: value_or_absent(fullest),
            count: value_or_absent(Some(self.awake().count() as u64).filter(|count| *count > 0)),
            lost: Reading::Unavailable(Reason::Absent),
        }
    }

    fn awake(&self) -> impl Iterator<Item = &AmdGpu> {
        self.0.iter().filter(|gpu| gpu.is_awake())
    }
}

/// `card0`, and not one of its connectors, `card0-DP-1`.
fn is_drm_card(name: &str) -> bool {
    let number = name.strip_prefix("card").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

impl AmdGpu {
    fn open(device: &Path) -> AmdGpu {
        let monitor = std::fs::read_dir(device.join("hwmon"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .next()
            .unwrap_or_default();
        AmdGpu {
            power: OptionalFile::open(device.join("power/runtime_status")),
            used: OptionalFile::open(device.join("mem_info_vram_used")),
            total: OptionalFile::open(device.join("mem_info_vram_total")),
            busy: OptionalFile::open(device.join("gpu_busy_percent")),
            temperature: OptionalFile::open(monitor.join("temp1_input")),
            draw: OptionalFile::open(monitor.join("power1_average")),
            limit: OptionalFile::open(monitor.join("power1_cap")),
        }
    }

    fn memory_permille(&self) -> Option<u64> {
        memory_permille(read_number(&self.used)?, read_number(&self.total)?)
    }

    fn is_awake(&self) -> bool {
        self.power.read(&mut [0; 32]) != Ok(b"suspended\n")
    }
}

fn read_number(source: &OptionalFile) -> Option<u64> {
    let mut buffer = [0; 32];
    parse::single_number(source.read(&mut buffer).ok()?).value()
}

fn value_or_absent(value: Option<u64>) -> Reading<u64> {
    value.map_or(Reading::Unavailable(Reason::Absent), Reading::Value)
}
