//! Samples, events and heads to bytes and back, without heap on the writing side.
//!
//! Fields are numbers at a place, and every group of readings says how many it has. So a
//! field may be appended to a group, and a group to a sample: an older reader passes over
//! what it does not know, and a newer reader of an older record finds
//! `Unavailable(NotRecorded)`. Places are never reused.

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

/// The stamp that samples and events both begin with.
pub(crate) fn decode_stamp(bytes: &[u8]) -> Option<Stamp> {
    take_stamp(&mut Reader::new(bytes))
}
