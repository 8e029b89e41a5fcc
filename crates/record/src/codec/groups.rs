//! Lists the readings that a sample stores, group by group.
//!
//! The structures are destructured without `..`, so the compiler rejects a new field that is not stored. A field's place
//! identifies it in the record, so fields are only ever appended to a group.

use super::reading::Field;
use super::reading::Unit::{Bytes, Count};
use antifreeze_sense::{
    Cgroup, Cpu, Disk, FsSpace, Gpus, Memory, Paging, Pressure, Sample, Thermal, TreeTotals,
};

/// Calls `visit` with every group of readings, in the order in which they are stored.
pub(super) fn for_each_group(
    sample: &mut Sample,
    mut visit: impl FnMut(&mut [Field]) -> Option<()>,
) -> Option<()> {
    visit(&mut memory(&mut sample.memory))?;
    visit(&mut paging(&mut sample.paging))?;
    visit(&mut pressure(&mut sample.pressure))?;
    visit(&mut cpu(&mut sample.cpu))?;
    visit(&mut disk(&mut sample.disk))?;
    visit(&mut shm(&mut sample.shm))?;
    visit(&mut thermal(&mut sample.thermal, &mut sample.gpus))?;
    visit(&mut cgroup(&mut sample.cgroup))?;
    visit(&mut tree(&mut sample.tree))
}

fn memory(group: &mut Memory) -> [Field<'_>; 14] {
    let Memory {
        total,
        available,
        free,
        anon,
        shmem,
        cached,
        reclaimable,
        dirty,
        writeback,
        committed,
        swap_total,
        swap_free,
        compressed,
        swap_cached,
    } = group;
    [
        (Bytes, total),
        (Bytes, available),
        (Bytes, free),
        (Bytes, anon),
        (Bytes, shmem),
        (Bytes, cached),
        (Bytes, reclaimable),
        (Bytes, dirty),
        (Bytes, writeback),
        (Bytes, committed),
        (Bytes, swap_total),
        (Bytes, swap_free),
        (Bytes, compressed),
        (Bytes, swap_cached),
    ]
}

fn paging(group: &mut Paging) -> [Field<'_>; 7] {
    let Paging {
        swapped_in,
        swapped_out,
        major_faults,
        scanned_direct,
        scanned_kswapd,
        refaults,
        oom_kills,
    } = group;
    [
        (Count, swapped_in),
        (Count, swapped_out),
        (Count, major_faults),
        (Count, scanned_direct),
        (Count, scanned_kswapd),
        (Count, refaults),
        (Count, oom_kills),
    ]
}

fn pressure(group: &mut Pressure) -> [Field<'_>; 5] {
    let Pressure {
        cpu_some_us,
        memory_some_us,
        memory_full_us,
        io_some_us,
        io_full_us,
    } = group;
    [
        (Count, cpu_some_us),
        (Count, memory_some_us),
        (Count, memory_full_us),
        (Count, io_some_us),
        (Count, io_full_us),
    ]
}

fn cpu(group: &mut Cpu) -> [Field<'_>; 12] {
    let Cpu {
        user,
        nice,
        system,
        idle,
        iowait,
        irq,
        steal,
        load_hundredths: [load_1, load_5, load_15],
        runnable,
        newest_pid,
        core_count: _,
        core_percents: _,
    } = group;
    [
        (Count, user),
        (Count, nice),
        (Count, system),
        (Count, idle),
        (Count, iowait),
        (Count, irq),
        (Count, steal),
        (Count, load_1),
        (Count, load_5),
        (Count, load_15),
        (Count, runnable),
        (Count, newest_pid),
    ]
}

fn disk(group: &mut Disk) -> [Field<'_>; 12] {
    let Disk {
        space: FsSpace { total, free },
        inodes_free,
        network,
        reads,
        read_bytes,
        read_ms,
        writes,
        written_bytes,
        write_ms,
        busy_ms,
        in_flight,
    } = group;
    [
        (Bytes, total),
        (Bytes, free),
        (Count, inodes_free),
        (Count, network),
        (Count, reads),
        (Bytes, read_bytes),
        (Count, read_ms),
        (Count, writes),
        (Bytes, written_bytes),
        (Count, write_ms),
        (Count, busy_ms),
        (Count, in_flight),
    ]
}

fn shm(group: &mut FsSpace) -> [Field<'_>; 2] {
    let FsSpace { total, free } = group;
    [(Bytes, total), (Bytes, free)]
}

/// The GPUs share the group of the temperatures: they were added later, when the number of groups was fixed.
fn thermal<'a>(group: &'a mut Thermal, gpus: &'a mut Gpus) -> [Field<'a>; 12] {
    let Thermal {
        hottest_millidegrees,
        throttle_count,
    } = group;
    let Gpus {
        memory_used,
        memory_total,
        busy_percent,
        hottest_millidegrees: hottest_gpu_millidegrees,
        power_microwatts,
        power_limit_microwatts,
        throttle_bits,
        fullest_permille,
        count,
        lost,
    } = gpus;
    [
        (Count, hottest_millidegrees),
        (Count, throttle_count),
        (Bytes, memory_used),
        (Bytes, memory_total),
        (Count, busy_percent),
        (Count, hottest_gpu_millidegrees),
        (Count, power_microwatts),
        (Count, power_limit_microwatts),
        (Count, throttle_bits),
        (Count, fullest_permille),
        (Count, count),
        (Count, lost),
    ]
}

fn cgroup(group: &mut Cgroup) -> [Field<'_>; 7] {
    let Cgroup {
        own_current,
        own_anon,
        own_shmem,
        own_swap,
        own_high_events,
        limit,
        limit_available,
    } = group;
    [
        (Bytes, own_current),
        (Bytes, own_anon),
        (Bytes, own_shmem),
        (Bytes, own_swap),
        (Count, own_high_events),
        (Bytes, limit),
        (Bytes, limit_available),
    ]
}

fn tree(group: &mut TreeTotals) -> [Field<'_>; 14] {
    let TreeTotals {
        count,
        threads,
        files,
        footprint,
        shmem,
        swap,
        cpu,
        major_faults,
        read_bytes,
        written_bytes,
        steps,
        phase,
        batch,
        read_asked,
    } = group;
    [
        (Count, count),
        (Count, threads),
        (Count, files),
        (Bytes, footprint),
        (Bytes, shmem),
        (Bytes, swap),
        (Count, cpu),
        (Count, major_faults),
        (Bytes, read_bytes),
        (Bytes, written_bytes),
        (Count, steps),
        (Count, phase),
        (Count, batch),
        (Bytes, read_asked),
    ]
}
