//! Encodes samples, events and heads to bytes and decodes them. Encoding does not allocate.
//!
//! A field is a number at a fixed place in its group, and every group of readings begins with the number of its fields.
//! So a field may be appended to a group: an older reader skips it, and a newer reader of an older record finds
//! `Unavailable(NotRecorded)`. The number of groups is fixed, because the cores and the processes follow them; a new
//! group could only be appended behind the processes, where older readers ignore it. Places are never reused.

mod event;
mod groups;
mod head;
mod processes;
mod reading;
mod sample;
#[cfg(test)]
pub(crate) mod testing;
mod wire;

pub use event::{EVENT_BYTES, decode_event, encode_event};
pub(crate) use head::{decode_head, encode_head};
pub use sample::{SAMPLE_BYTES, decode_sample, encode_sample};

use antifreeze_sense::Stamp;
use wire::{Reader, Writer};

fn put_stamp(writer: &mut Writer, at: Stamp) {
    writer.number(at.monotonic_ns);
    writer.number(at.realtime_ns);
}

fn take_stamp(reader: &mut Reader) -> Option<Stamp> {
    Some(Stamp {
        monotonic_ns: reader.number()?,
        realtime_ns: reader.number()?,
    })
}

/// Decodes the stamp at the start of a sample or event.
pub(crate) fn decode_stamp(bytes: &[u8]) -> Option<Stamp> {
    take_stamp(&mut Reader::new(bytes))
}
