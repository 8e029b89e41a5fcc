//! Graphics cards whose driver tells of them in files (amdgpu). Those of NVIDIA are read by the probe of
//! crates/cli, for that takes a library.

use crate::cards::fullness;
use crate::file::Source;
use crate::parse;
use crate::{Cards, Reading, Reason};
use std::path::{Path, PathBuf};

/// More than a workstation has.
const MOST: usize = 16;

pub struct Slots(Box<[Card]>);

struct Card {
    /// Whether it is awake: reading a card that sleeps would wake it.
    power: Source,
    used: Source,
    total: Source,
    busy: Source,
    temperature: Source,
    draw: Source,
    limit: Source,
}

impl Slots {
    pub fn open(sys: &Path) -> Slots {
        let mut devices: Vec<PathBuf> = std::fs::read_dir(sys.join("class/drm"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| is_card(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path().join("device"))
            .filter(|device| device.join("mem_info_vram_total").exists())
            .collect();
        devices.sort();
        Slots(
            devices
                .iter()
                .take(MOST)
                .map(|device| Card::open(device))
                .collect(),
        )
    }

    /// Memory and power of all cards together; of the rest the highest.
    pub fn read(&self) -> Cards {
        let all = |of: fn(&Card) -> &Source| self.awake().filter_map(move |card| read(of(card)));
        let sum = |of| known(all(of).reduce(u64::saturating_add));
        let highest = |of| known(all(of).max());
        let fullest = self.awake().filter_map(Card::fullness).max();
        Cards {
            used: sum(|card| &card.used),
            total: sum(|card| &card.total),
            busy: highest(|card| &card.busy),
            hottest: highest(|card| &card.temperature),
            draw: sum(|card| &card.draw),
            limit: sum(|card| &card.limit),
            throttle: Reading::Unavailable(Reason::Absent),
            fullest: known(fullest),
            count: known(Some(self.awake().count() as u64).filter(|count| *count > 0)),
            lost: Reading::Unavailable(Reason::Absent),
        }
    }

    fn awake(&self) -> impl Iterator<Item = &Card> {
        self.0.iter().filter(|card| card.is_awake())
    }
}

/// `card0`, and not one of its connectors, `card0-DP-1`.
fn is_card(name: &str) -> bool {
    let number = name.strip_prefix("card").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

impl Card {
    fn open(device: &Path) -> Card {
        let monitor = std::fs::read_dir(device.join("hwmon"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .next()
            .unwrap_or_default();
        Card {
            power: Source::open(device.join("power/runtime_status")),
            used: Source::open(device.join("mem_info_vram_used")),
            total: Source::open(device.join("mem_info_vram_total")),
            busy: Source::open(device.join("gpu_busy_percent")),
            temperature: Source::open(monitor.join("temp1_input")),
            draw: Source::open(monitor.join("power1_average")),
            limit: Source::open(monitor.join("power1_cap")),
        }
    }

    fn fullness(&self) -> Option<u64> {
        fullness(read(&self.used)?, read(&self.total)?)
    }

    fn is_awake(&self) -> bool {
        self.power.read(&mut [0; 32]) != Ok(b"suspended\n")
    }
}

fn read(source: &Source) -> Option<u64> {
    let mut buffer = [0; 32];
    parse::single(source.read(&mut buffer).ok()?).value()
}

fn known(value: Option<u64>) -> Reading<u64> {
    value.map_or(Reading::Unavailable(Reason::Absent), Reading::Value)
}
