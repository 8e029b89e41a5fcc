//! Which readings a sample stores, group by group.
//!
//! Taking the structures apart without `..` makes the compiler refuse a field that was added
//! and is not stored. Append only: a field's place is its name in the record.

use super::reading::Field;
use super::reading::Unit::{Bytes, Count};
use antifreeze_sense::{
    Cards, Cgroup, Cpu, Disk, Heat, Memory, Paging, Pressure, Sample, Space, Tree,
};

/// Every group of readings in the order in which they are stored.
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
    visit(&mut heat(&mut sample.heat, &mut sample.cards))?;
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
        cpu_some,
        memory_some,
        memory_full,
        io_some,
        io_full,
    } = group;
    [
        (Count, cpu_some),
        (Count, memory_some),
        (Count, memory_full),
        (Count, io_some),
        (Count, io_full),
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
        load: [load_1, load_5, load_15],
        runnable,
        newest,
        core_count: _,
        cores: _,
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
        (Count, newest),
    ]
}

fn disk(group: &mut Disk) -> [Field<'_>; 12] {
    let Disk {
        space: Space { total, free },
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

fn shm(group: &mut Space) -> [Field<'_>; 2] {
    let Space { total, free } = group;
    [(Bytes, total), (Bytes, free)]
}

/// Cards came later, and are no group of their own: what follows the groups is told from them by their number.
fn heat<'a>(group: &'a mut Heat, cards: &'a mut Cards) -> [Field<'a>; 12] {
    let Heat { hottest, throttled } = group;
    let Cards {
        used,
        total,
        busy,
        hottest: hottest_card,
        draw,
        limit,
        throttle,
        fullest,
        count,
        lost,
    } = cards;
    [
        (Count, hottest),
        (Count, throttled),
        (Bytes, used),
        (Bytes, total),
        (Count, busy),
        (Count, hottest_card),
        (Count, draw),
        (Count, limit),
        (Count, throttle),
        (Count, fullest),
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

fn tree(group: &mut Tree) -> [Field<'_>; 14] {
    let Tree {
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
