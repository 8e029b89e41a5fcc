//! The ring buffer between the thread that decides and the thread that writes.
//!
//! It has one producer and one consumer, and its memory is allocated at the start. The producer never waits: when the
//! writer hangs on a slow disk and the ring is full, new samples are dropped and counted. A part of it is reserved for
//! events, which are few and matter more.

use crate::codec::{EVENT_BYTES, SAMPLE_BYTES, encode_event, encode_sample};
use crate::event::Event;
use crate::frame::FrameKind;
use antifreeze_sense::Sample;
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::Duration;

/// The size of the ring in words of eight bytes, 256 KiB in all: samples of some minutes in calm times, and of half a
/// minute while memory is short.
const RING_WORDS: u64 = 32 * 1024;
/// The words that only events may use: room for about 200 of the largest.
const EVENT_WORDS: u64 = RING_WORDS / 4;
/// The longest payload, in words.
const MAX_PAYLOAD_WORDS: usize = SAMPLE_BYTES / 8;

struct Shared {
    /// The entries: a word with kind and length, then the payload. Each word is atomic, so that
    /// the two threads share them without unsafe code; `written` orders them.
    words: Box<[AtomicU64]>,
    /// Words written and read since the start.
    written: AtomicU64,
    read: AtomicU64,
    dropped: AtomicU64,
    /// The futex on which the consumer sleeps. It rises with every entry, and when the producer is dropped.
    bell: AtomicU32,
    closed: AtomicBool,
}

impl Shared {
    fn word(&self, place: u64) -> Option<&AtomicU64> {
        self.words.get((place % RING_WORDS) as usize)
    }

    fn ring_bell(&self) {
        self.bell.fetch_add(1, Release);
        // Waking never blocks, and cannot fail for an address of this process.
        let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, 1);
    }
}

/// Makes a ring and returns both of its ends.
pub fn frame_ring() -> (Producer, Consumer) {
    let shared = Arc::new(Shared {
        words: (0..RING_WORDS).map(|_| AtomicU64::new(0)).collect(),
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

/// The end of the deciding thread. The consumer finishes after it was dropped.
pub struct Producer {
    shared: Arc<Shared>,
    scratch: Box<[u8; SAMPLE_BYTES]>,
}

impl Producer {
    /// Adds a sample. Returns false when there was no room: the sample is then dropped and counted.
    pub fn push_sample(&mut self, sample: &Sample) -> bool {
        let len = encode_sample(sample, &mut *self.scratch);
        self.push(FrameKind::Sample, len)
    }

    /// Adds an event. Returns false when there was no room, not even in the part that is reserved for events.
    pub fn push_event(&mut self, event: &Event) -> bool {
        let mut room = [0; EVENT_BYTES];
        let len = encode_event(event, &mut room);
        if let Some(start) = self.scratch.first_chunk_mut() {
            *start = room;
        }
        self.push(FrameKind::Event, len)
    }

    /// Adds the first `len` bytes of the scratch buffer as an entry.
    fn push(&mut self, kind: FrameKind, len: usize) -> bool {
        let shared = &*self.shared;
        let needed = 1 + len.div_ceil(8) as u64;
        let written = shared.written.load(Relaxed);
        let used = written - shared.read.load(Acquire);
        let limit = match kind {
            FrameKind::Sample => RING_WORDS - EVENT_WORDS,
            FrameKind::Event => RING_WORDS,
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

/// The end of the writing thread.
pub struct Consumer {
    shared: Arc<Shared>,
    /// The bell at the start of the last drain.
    heard: u32,
    scratch: Box<[u8; SAMPLE_BYTES]>,
}

impl Consumer {
    /// Calls `each` with every entry that is in the ring now, oldest first: its kind and its
    /// encoded bytes, ready for [`RecordWriter::append`](crate::Log::append).
    pub fn drain(&mut self, mut each: impl FnMut(FrameKind, &[u8])) {
        // Read first, so that an entry that is added meanwhile ends the next wait.
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
        let words = len.div_ceil(8).min(MAX_PAYLOAD_WORDS);
        let (chunks, _) = self.scratch.as_chunks_mut::<8>();
        for (place, chunk) in (*read + 1..).zip(chunks.iter_mut().take(words)) {
            *chunk = value_at(place).to_le_bytes();
        }
        *read += 1 + words as u64;
        (kind, len)
    }

    /// Sleeps until an entry was added since the last [`drain`](Consumer::drain), or for `at_most`.
    pub fn wait(&self, at_most: Duration) {
        let timeout = rustix::time::Timespec {
            tv_sec: at_most.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        // The caller drains the ring whatever the result is.
        let _ = futex::wait(
            &self.shared.bell,
            futex::Flags::PRIVATE,
            self.heard,
            Some(&timeout),
        );
    }

    /// Whether the producer was dropped and no entry is left.
    pub fn is_finished(&self) -> bool {
        // In this order, because the producer wrote its last entry before it closed.
        self.shared.closed.load(Acquire)
            && self.shared.read.load(Relaxed) == self.shared.written.load(Acquire)
    }

    /// How many samples and events were dropped because there was no room.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Relaxed)
    }
}

#[cfg(test)]
mod tests;
