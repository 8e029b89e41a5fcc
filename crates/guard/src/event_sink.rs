//! Passes events to the record and to the front, and samples to the record. Nothing here waits.

use crate::writer::Trouble;
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::state::EVENT_BYTES;
use antifreeze_record::Producer;
use antifreeze_record::codec::encode_event;
use antifreeze_record::event::{Degradation, Event, EventKind};
use antifreeze_sense::{Sample, Stamp};
use rustix::fd::OwnedFd;

pub struct EventSink<'a> {
    pub shared: Shared,
    pub frames: Producer,
    /// The eventfd that wakes the front; it never blocks.
    pub wake: OwnedFd,
    pub trouble: &'a Trouble,
}

impl EventSink<'_> {
    pub fn emit(&mut self, kind: EventKind) {
        let event = Event {
            at: Stamp::now(),
            kind,
        };
        self.frames.push_event(&event);
        let mut bytes = [0; EVENT_BYTES];
        let len = encode_event(&event, &mut bytes);
        self.shared.publish(&bytes[..len]);
        self.wake_front();
    }

    pub fn emit_degraded(&mut self, degradation: Degradation, detail: u32) {
        self.emit(EventKind::Degraded {
            degradation,
            detail,
        });
    }

    pub fn record(&mut self, sample: &Sample) {
        self.frames.push_sample(sample);
    }

    pub fn wake_front(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}
