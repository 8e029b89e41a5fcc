//! Encodes a sample: its stamp, nine groups of readings, the cores, and the processes. What a writer did not know yet is
//! missing at the end.

use super::groups::for_each_group;
use super::processes::{put_processes, take_processes};
use super::reading::{pack, take_readings, unpack};
use super::wire::{Reader, Writer};
use super::{put_stamp, take_stamp};
use antifreeze_sense::{Cpu, Sample};

/// The longest encoded sample.
pub const SAMPLE_BYTES: usize = 6 * 1024;

/// Encodes a sample and returns how many bytes of `out` were used; 0 when it is too small. [`SAMPLE_BYTES`] are always
/// enough.
pub fn encode_sample(sample: &Sample, out: &mut [u8]) -> usize {
    let mut writer = Writer::new(out);
    put_stamp(&mut writer, sample.at);
    // One list of fields serves both directions, so it takes a sample that can be changed.
    let mut copy = *sample;
    for_each_group(&mut copy, |fields| {
        writer.number(fields.len() as u64);
        for (unit, reading) in fields {
            writer.tagged(pack(*unit, **reading, 0));
        }
        Some(())
    });
    put_cores(&mut writer, &sample.cpu);
    put_processes(&mut writer, sample.processes.as_slice());
    writer.finish()
}

/// Decodes a sample; `None` when the bytes are not a sample or end within a field.
pub fn decode_sample(bytes: &[u8]) -> Option<Sample> {
    let mut reader = Reader::new(bytes);
    let mut sample = Sample {
        at: take_stamp(&mut reader)?,
        ..Sample::default()
    };
    for_each_group(&mut sample, |fields| {
        let stored = if reader.is_empty() {
            0
        } else {
            reader.number()?
        };
        take_readings(&mut reader, stored, fields, |unit, packed, _| {
            unpack(unit, packed, 0)
        })
    })?;
    take_cores(&mut reader, &mut sample.cpu)?;
    take_processes(&mut reader, &mut sample.processes)?;
    Some(sample)
}

fn put_cores(writer: &mut Writer, cpu: &Cpu) {
    let listed = cpu
        .core_percents
        .get(..cpu.core_count.into())
        .unwrap_or(&cpu.core_percents);
    writer.number(cpu.core_count.into());
    writer.text(listed);
}

fn take_cores(reader: &mut Reader, cpu: &mut Cpu) -> Option<()> {
    if reader.is_empty() {
        return Some(());
    }
    cpu.core_count = reader.number()?.try_into().ok()?;
    let listed = reader.text()?;
    for (core, &busy) in cpu.core_percents.iter_mut().zip(listed) {
        *core = busy;
    }
    Some(())
}

#[cfg(test)]
mod tests;
