//! Encodes the processes of a sample, each as the difference from the one before it. The workers of a tree resemble each
//! other, so this halves their size.

use super::reading::Unit::{Bytes, Count};
use super::reading::{Field, pack, take_readings, unpack};
use super::wire::{Reader, Writer};
use antifreeze_sense::{Pid, Process, ProcessName, Processes};

/// The fields of a process that are not readings: number, parent, start, state.
const IDENTITY_FIELDS: u64 = 4;
const READINGS: usize = 11;

pub(super) fn readings(process: &mut Process) -> [Field<'_>; READINGS] {
    let Process {
        pid: _,
        parent: _,
        started: _,
        name: _,
        state: _,
        vm_data,
        rss_anon,
        rss_shmem,
        rss_file,
        swap,
        threads,
        cpu,
        major_faults,
        read_bytes,
        written_bytes,
        wall,
    } = process;
    [
        (Bytes, vm_data),
        (Bytes, rss_anon),
        (Bytes, rss_shmem),
        (Bytes, rss_file),
        (Bytes, swap),
        (Count, threads),
        (Count, cpu),
        (Count, major_faults),
        (Bytes, read_bytes),
        (Bytes, written_bytes),
        (Bytes, wall),
    ]
}

/// The process that the next one is compared with.
#[derive(Default)]
struct Before {
    process: Process,
    /// The last known value of each reading.
    values: [u64; READINGS],
}

impl Before {
    fn near(&self, place: usize) -> u64 {
        self.values.get(place).copied().unwrap_or(0)
    }

    fn follow(&mut self, process: Process) {
        self.process = process;
        for (value, (_, reading)) in self.values.iter_mut().zip(readings(&mut self.process)) {
            *value = reading.value().unwrap_or(*value);
        }
    }
}

pub(super) fn put_processes(writer: &mut Writer, processes: &[Process]) {
    writer.number(processes.len() as u64);
    writer.number(IDENTITY_FIELDS + READINGS as u64);
    let mut before = Before::default();
    for &process in processes {
        put_process(writer, process, &before);
        before.follow(process);
    }
}

/// Writes a process. A name that equals the one before is 0, and any other is its length plus one and its bytes.
fn put_process(writer: &mut Writer, mut process: Process, before: &Before) {
    if process.name == before.process.name {
        writer.number(0);
    } else {
        writer.number(process.name.as_bytes().len() as u64 + 1);
        writer.bytes(process.name.as_bytes());
    }
    writer.signed(i64::from(process.pid.0) - i64::from(before.process.pid.0));
    writer.signed(i64::from(process.parent.0) - i64::from(before.process.parent.0));
    writer.signed(process.started.wrapping_sub(before.process.started) as i64);
    writer.number(process.state.into());
    for (place, (unit, reading)) in readings(&mut process).into_iter().enumerate() {
        writer.tagged(pack(unit, *reading, before.near(place)));
    }
}

pub(super) fn take_processes(reader: &mut Reader, processes: &mut Processes) -> Option<()> {
    if reader.is_empty() {
        return Some(());
    }
    let count = reader.number()?;
    let stored = reader.number()?.checked_sub(IDENTITY_FIELDS)?;
    let mut before = Before::default();
    for _ in 0..count {
        let process = take_process(reader, stored, &before)?;
        // A longer list comes from a newer writer. The largest processes are first, and the
        // rest is skipped.
        processes.push(process);
        before.follow(process);
    }
    Some(())
}

fn take_process(reader: &mut Reader, stored: u64, before: &Before) -> Option<Process> {
    let name = match reader.number()? {
        0 => before.process.name,
        len => ProcessName::new(reader.bytes(len - 1)?),
    };
    let mut process = Process {
        name,
        pid: near_pid(before.process.pid, reader.signed()?)?,
        parent: near_pid(before.process.parent, reader.signed()?)?,
        started: before.process.started.wrapping_add_signed(reader.signed()?),
        state: reader.number()?.try_into().ok()?,
        ..Process::default()
    };
    take_readings(
        reader,
        stored,
        &mut readings(&mut process),
        |unit, packed, place| unpack(unit, packed, before.near(place)),
    )?;
    Some(process)
}

fn near_pid(near: Pid, distance: i64) -> Option<Pid> {
    let number = i64::from(near.0).checked_add(distance)?;
    number.try_into().ok().map(Pid)
}
