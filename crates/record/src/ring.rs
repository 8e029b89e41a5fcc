//! The ring between the thread that decides and the thread that writes.
//!
//! One producer, one consumer, one piece of memory taken at the start. The producer never
//! waits: when the writer hangs in a slow disk and the ring fills up, new samples are dropped
//! and counted, and the last part is kept for events, which are few and matter more.

use crate::codec::{EVENT_BYTES, SAMPLE_BYTES, encode_event, encode_sample};
use crate::event::Event;
use crate::frame::FrameKind;
use antifreeze_sense::Sample;
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;

/// Words of eight bytes, 256 KiB in all: some minutes of calm, half a minute of a storm.
const WORDS: u64 = 32 * 1024;
/// What samples may not use: room for about two hundred of the largest events.
const KEPT_FOR_EVENTS: u64 = WORDS / 4;
/// The longest payload, in words.
const LONGEST: usize = SAMPLE_BYTES / 8;

struct Shared {
    /// Entries: a word with kind and length, then the payload. Each word is an atomic, so
    /// that the two threads share them without unsafe code; `written` orders them.
    words: Box<[AtomicU64]>,
    /// Words written and read since the start.
    written: AtomicU64,
    read: AtomicU64,
    dropped: AtomicU64,
    /// Rises with every entry and at the end. The consumer sleeps on it.
    bell: AtomicU32,
    closed: AtomicBool,
}

impl Shared {
    fn word(&self, place: u64) -> Option<&AtomicU64> {
        self.words.get((place % WORDS) as usize)
    }

    fn ring_bell(&self) {
        self.bell.fetch_add(1, Release);
        // Waking never blocks, and fails only for an address that is not ours.
        let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, 1);
    }
}

/// Both ends of a new ring.
pub fn frame_ring() -> (Producer, Consumer) {
    let shared = Arc::new(Shared {
        words: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
        written: AtomicU64::new(0),
        read: AtomicU64::new(0),
        dropped: AtomicU64::new(0),
        bell: AtomicU32::new(0),
        closed: AtomicBool::new(false),
    });
    let producer = Producer {
        shared: Arc::clone(&shared),
        scratch: Box::new([0; SAMPLE_BYTES]),
    };
    let consumer = Consumer {
        shared,
        heard: 0,
        scratch: Box::new([0; SAMPLE_BYTES]),
    };
    (producer, consumer)
}

/// The deciding thread's end. Dropping it lets the consumer finish.
pub struct Producer {
    shared: Arc<Shared>,
    scratch: Box<[u8; SAMPLE_BYTES]>,
}

impl Producer {
    /// False when there was no room: the sample is dropped and counted.
    pub fn push_sample(&mut self, sample: &Sample) -> bool {
        let len = encode_sample(sample, &mut *self.scratch);
        self.push(FrameKind::Sample, len)
    }

    /// False when there was no room even in the part kept for events.
    pub fn push_event(&mut self, event: &Event) -> bool {
        let mut room = [0; EVENT_BYTES];
        let len = encode_event(event, &mut room);
        if let Some(start) = self.scratch.first_chunk_mut() {
            *start = room;
        }
        self.push(FrameKind::Event, len)
    }

    /// Sends the first `len` bytes of the scratch.
    fn push(&mut self, kind: FrameKind, len: usize) -> bool {
        let shared = &*self.shared;
        let needed = 1 + len.div_ceil(8) as u64;
        let written = shared.written.load(Relaxed);
        let used = written - shared.read.load(Acquire);
        let limit = match kind {
            FrameKind::Sample => WORDS - KEPT_FOR_EVENTS,
            FrameKind::Event => WORDS,
        };
        if used + needed > limit {
            shared.dropped.fetch_add(1, Relaxed);
            return false;
        }
        let title = (kind as u64) << 32 | len as u64;
        let (payload, _) = self.scratch.as_chunks::<8>();
        let words = payload.iter().map(|chunk| u64::from_le_bytes(*chunk));
        let entry = std::iter::once(title).chain(words).take(needed as usize);
        for (place, value) in (written..).zip(entry) {
            if let Some(word) = shared.word(place) {
                word.store(value, Relaxed);
            }
        }
        shared.written.store(written + needed, Release);
        shared.ring_bell();
        true
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Release);
        self.shared.ring_bell();
    }
}

/// The writing thread's end.
pub struct Consumer {
    shared: Arc<Shared>,
    /// The bell as it was when the ring was last looked into.
    heard: u32,
    scratch: Box<[u8; SAMPLE_BYTES]>,
}

impl Consumer {
    /// Gives everything that is in the ring now to `each`, oldest first: its kind and its
    /// encoded bytes, ready for [`RecordWriter::append`](crate::Log::append).
    pub fn drain(&mut self, mut each: impl FnMut(FrameKind, &[u8])) {
        // Before looking, so that what comes while looking is not slept through.
        self.heard = self.shared.bell.load(Acquire);
        let mut read = self.shared.read.load(Relaxed);
        let written = self.shared.written.load(Acquire);
        while read < written {
            let (kind, len) = self.take_entry(&mut read);
            self.shared.read.store(read, Release);
            if let (Some(kind), Some(payload)) = (kind, self.scratch.get(..len)) {
                each(kind, payload);
            }
        }
    }

    fn take_entry(&mut self, read: &mut u64) -> (Option<FrameKind>, usize) {
        let value_at = |place| self.shared.word(place).map_or(0, |word| word.load(Relaxed));
        let title = value_at(*read);
        let kind = FrameKind::from_code((title >> 32) as u8);
        let len = title as u32 as usize;
        let words = len.div_ceil(8).min(LONGEST);
        let (chunks, _) = self.scratch.as_chunks_mut::<8>();
        for (place, chunk) in (*read + 1..).zip(chunks.iter_mut().take(words)) {
            *chunk = value_at(place).to_le_bytes();
        }
        *read += 1 + words as u64;
        (kind, len)
    }

    /// Sleeps until something came since the last [`drain`](Consumer::drain), or until the
    /// time is over, whichever is first.
    pub fn wait(&self, at_most: Duration) {
        let timeout = rustix::time::Timespec {
            tv_sec: at_most.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        // However it returns, the caller looks into the ring again.
        let _ = futex::wait(
            &self.shared.bell,
            futex::Flags::PRIVATE,
            self.heard,
            Some(&timeout),
        );
    }

    /// True when the producer is gone and nothing is left to read.
    pub fn is_finished(&self) -> bool {
        // In this order: whatever the producer wrote was written before it closed.
        self.shared.closed.load(Acquire)
            && self.shared.read.load(Relaxed) == self.shared.written.load(Acquire)
    }

    /// How many samples and events found no room.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }
}

#[cfg(test)]
mod tests;
