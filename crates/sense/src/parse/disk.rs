//! Parses the counters of one device in /proc/diskstats.

use super::text::{lines, parse_decimal, words};
use crate::{Disk, Reading, Reason};

/// A block device, as the kernel numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// The number of its driver.
    pub major: u32,
    /// The number that the driver gave it.
    pub minor: u32,
}

/// The kernel counts sectors of this size here, whatever size those of the device have.
const SECTOR_BYTES: u64 = 512;

/// Parses the counters of one device. Space and mount are not in this file, and stay not yet read.
pub fn diskstats(bytes: &[u8], device: BlockDevice) -> Disk {
    let line = lines(bytes).find_map(|line| {
        let mut words = words(line);
        let major = parse_decimal(words.next()?)?;
        let minor = parse_decimal(words.next()?)?;
        (major == device.major.into() && minor == device.minor.into()).then_some(words)
    });
    let Some(mut words) = line else {
        return Disk::without_counters(Reason::Absent);
    };
    // Skipped: the name.
    words.next();
    disk_counters(words).unwrap_or(Disk::without_counters(Reason::Malformed))
}

fn disk_counters<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<Disk> {
    let mut next = || words.next().and_then(parse_decimal);
    let reads = next()?;
    let _reads_merged = next()?;
    let read_bytes = next()?.checked_mul(SECTOR_BYTES)?;
    let read_ms = next()?;
    let writes = next()?;
    let _writes_merged = next()?;
    let written_bytes = next()?.checked_mul(SECTOR_BYTES)?;
    let write_ms = next()?;
    let in_flight = next()?;
    let busy_ms = next()?;
    Some(Disk {
        reads: Reading::Value(reads),
        read_bytes: Reading::Value(read_bytes),
        read_ms: Reading::Value(read_ms),
        writes: Reading::Value(writes),
        written_bytes: Reading::Value(written_bytes),
        write_ms: Reading::Value(write_ms),
        busy_ms: Reading::Value(busy_ms),
        in_flight: Reading::Value(in_flight),
        ..Disk::default()
    })
}
