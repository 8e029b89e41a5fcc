//! Parses the memory of the whole machine: /proc/meminfo, vmstat, pressure, swaps, and the counters of zram and ZFS.

use super::text::{
    ABSENT, lines, padded_kibibytes, padded_number, parse_decimal, split_at_byte,
    value_or_malformed, words,
};
use crate::{Memory, Paging, Reading, Reason};

/// Parses /proc/meminfo. `compressed` is what zswap holds; zram is not listed there.
pub fn meminfo(bytes: &[u8]) -> Memory {
    let mut memory = Memory::unavailable(Reason::Absent);
    for line in lines(bytes) {
        let Some((key, rest)) = split_at_byte(line, b':') else {
            continue;
        };
        let place = match key {
            b"MemTotal" => &mut memory.total,
            b"MemAvailable" => &mut memory.available,
            b"MemFree" => &mut memory.free,
            b"AnonPages" => &mut memory.anon,
            b"Shmem" => &mut memory.shmem,
            b"Cached" => &mut memory.cached,
            // Kernels before 4.20 have only the second. Where both exist, they come in this
            // order, and the first includes the second.
            b"KReclaimable" => &mut memory.reclaimable,
            b"SReclaimable" if memory.reclaimable == ABSENT => &mut memory.reclaimable,
            b"Dirty" => &mut memory.dirty,
            b"Writeback" => &mut memory.writeback,
            b"Committed_AS" => &mut memory.committed,
            b"SwapTotal" => &mut memory.swap_total,
            b"SwapFree" => &mut memory.swap_free,
            b"SwapCached" => &mut memory.swap_cached,
            b"Zswap" => &mut memory.compressed,
            _ => continue,
        };
        *place = padded_kibibytes(rest);
    }
    memory
}

/// Parses /proc/vmstat.
pub fn vmstat(bytes: &[u8]) -> Paging {
    let mut paging = Paging::unavailable(Reason::Absent);
    for (key, value) in key_values(bytes) {
        match key {
            b"pswpin" => paging.swapped_in = value,
            b"pswpout" => paging.swapped_out = value,
            b"pgmajfault" => paging.major_faults = value,
            b"pgscan_direct" => paging.scanned_direct = value,
            b"pgscan_kswapd" => paging.scanned_kswapd = value,
            // One counter before Linux 5.9, two since: both kinds of page came back.
            b"workingset_refault" | b"workingset_refault_anon" | b"workingset_refault_file" => {
                paging.refaults = sum_readings(paging.refaults, value);
            }
            b"oom_kill" => paging.oom_kills = value,
            _ => {}
        }
    }
    paging
}

/// Parses the lines of a `key value` file.
pub fn key_values(bytes: &[u8]) -> impl Iterator<Item = (&[u8], Reading<u64>)> {
    lines(bytes).filter_map(|line| {
        let (key, rest) = split_at_byte(line, b' ')?;
        Some((key, padded_number(rest)))
    })
}

/// Parses one value of a `key value` file.
pub fn key_value(bytes: &[u8], wanted: &[u8]) -> Reading<u64> {
    key_values(bytes)
        .find(|(key, _)| *key == wanted)
        .map_or(ABSENT, |(_, value)| value)
}

/// Adds two parts of one quantity. A part that this machine does not offer counts as nothing.
pub fn sum_readings(a: Reading<u64>, b: Reading<u64>) -> Reading<u64> {
    match (a, b) {
        (Reading::Value(a), Reading::Value(b)) => value_or_malformed(a.checked_add(b)),
        (Reading::Unavailable(Reason::Absent), other) => other,
        (other, Reading::Unavailable(Reason::Absent)) => other,
        (Reading::Unavailable(reason), _) | (_, Reading::Unavailable(reason)) => {
            Reading::Unavailable(reason)
        }
    }
}

/// One file of /proc/pressure: microseconds since boot in which processes waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallTimes {
    /// At least one process waited.
    pub some: Reading<u64>,
    /// All processes waited.
    pub full: Reading<u64>,
}

/// Parses one file of /proc/pressure.
pub fn stall_times(bytes: &[u8]) -> StallTimes {
    let mut stall = StallTimes {
        some: ABSENT,
        full: ABSENT,
    };
    for line in lines(bytes) {
        let mut words = words(line);
        let place = match words.next() {
            Some(b"some") => &mut stall.some,
            Some(b"full") => &mut stall.full,
            _ => continue,
        };
        *place = value_or_malformed(
            words
                .find_map(|word| word.strip_prefix(b"total="))
                .and_then(parse_decimal),
        );
    }
    stall
}

/// Whether /proc/swaps lists swap, and all of it is compressed memory (zram).
pub fn swap_is_memory(bytes: &[u8]) -> bool {
    let mut areas = bytes.split(|byte| *byte == b'\n').skip(1);
    let first = areas
        .next()
        .is_some_and(|area| area.starts_with(b"/dev/zram"));
    first && areas.all(|area| area.is_empty() || area.starts_with(b"/dev/zram"))
}

/// Whether /proc/swaps lists any swap.
pub fn has_swap(bytes: &[u8]) -> bool {
    let mut areas = bytes.split(|byte| *byte == b'\n').skip(1);
    areas.any(|area| !area.is_empty())
}

/// Parses mm_stat of a zram device: the memory that it takes, which is its third number.
pub fn zram_used(bytes: &[u8]) -> Reading<u64> {
    match lines(bytes).next() {
        Some(line) => value_or_malformed(words(line).nth(2).and_then(parse_decimal)),
        None => ABSENT,
    }
}

/// Parses arcstats of ZFS: how many bytes its cache would give back, down to its smallest size.
pub fn arc_reclaimable(bytes: &[u8]) -> Reading<u64> {
    let (mut size, mut smallest) = (ABSENT, ABSENT);
    for line in lines(bytes) {
        let mut words = words(line);
        let place = match words.next() {
            Some(b"size") => &mut size,
            Some(b"c_min") => &mut smallest,
            _ => continue,
        };
        *place = value_or_malformed(words.nth(1).and_then(parse_decimal));
    }
    match (size, smallest) {
        (Reading::Value(size), Reading::Value(smallest)) => {
            Reading::Value(size.saturating_sub(smallest))
        }
        (Reading::Unavailable(reason), _) | (_, Reading::Unavailable(reason)) => {
            Reading::Unavailable(reason)
        }
    }
}
