//! The fields of a trace: the values of a sample that a [`PolicyInput`] is made of.
//!
//! A trace is text. Its first line is a comment; the second has the terms of the run, in
//! bytes; each line after that is a sample or a refusal at the wall, and begins with
//! milliseconds since the first sample:
//!
//! ```text
//! # what it is, and the names of the fields
//! terms 53687091 - 0                 (reserve, budget, allowed swap)
//! 0 running 0 346112 1024 …          (motion, stride in kB, then FIELDS)
//! 203 . 8192 338176
//! 410 walled
//! ```
//!
//! `.` is what the line before had, fields missing at the end are too, and `-` is no value.
//! What changes most often stands first.
//!
//! [`PolicyInput`]: antifreeze_guard::policy::PolicyInput

use antifreeze_sense::{Reading, Sample};

pub struct Field {
    pub name: &'static str,
    /// What one of the trace is in the sample: finer than this decides nothing.
    pub unit: u64,
    pub place: fn(&mut Sample) -> &mut Reading<u64>,
}

const ONE: u64 = 1;
const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
/// Of microseconds.
const MILLI: u64 = 1000;

pub const FIELDS: [Field; 15] = [
    field("available_kb", KB, |sample| &mut sample.memory.available),
    field("footprint_kb", KB, |sample| &mut sample.tree.footprint),
    field("cpu_ticks", ONE, |sample| &mut sample.tree.cpu),
    field("stalled_ms", MILLI, |sample| {
        &mut sample.pressure.memory_full_us
    }),
    field("swapped_in", ONE, |sample| &mut sample.paging.swapped_in),
    field("swapped_out", ONE, |sample| &mut sample.paging.swapped_out),
    field("scanned_kswapd", ONE, |sample| {
        &mut sample.paging.scanned_kswapd
    }),
    field("scanned_direct", ONE, |sample| {
        &mut sample.paging.scanned_direct
    }),
    field("swap_free_kb", KB, |sample| &mut sample.memory.swap_free),
    field("tree_swap_kb", KB, |sample| &mut sample.tree.swap),
    field("shm_free_kb", KB, |sample| &mut sample.shm.free),
    field("disk_free_mb", MB, |sample| &mut sample.disk.space.free),
    field("total_kb", KB, |sample| &mut sample.memory.total),
    field("limit_available_kb", KB, |sample| {
        &mut sample.cgroup.limit_available
    }),
    field("limit_kb", KB, |sample| &mut sample.cgroup.limit),
];

const fn field(
    name: &'static str,
    unit: u64,
    place: fn(&mut Sample) -> &mut Reading<u64>,
) -> Field {
    Field { name, unit, place }
}
