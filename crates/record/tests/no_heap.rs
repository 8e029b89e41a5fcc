//! The guard must not allocate after its start: neither side of the ring, nor the log, nor
//! the tail takes or gives back memory once it is open.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic, in its own functions too"
)]

use antifreeze_record::event::{Event, EventKind};
use antifreeze_record::{
    LEVEL_COUNT, LevelSizes, OutputTail, Record, RecordHead, RecordWriter, SCHEMA, frame_ring,
};
use antifreeze_sense::Stamp;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[path = "../testing/calm.rs"]
mod calm;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting what this thread takes and gives back.
struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; the counter is a plain cell of
// the thread and allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.set(TAKEN.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        TAKEN.set(TAKEN.get() + 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn nothing_allocates_once_everything_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let head = RecordHead {
        schema: SCHEMA,
        run: "calm-otter".into(),
        boot: [3; 16],
        start: Stamp::default(),
        total: 1,
        reserve: 1,
        budget: None,
        folder: "/".into(),
        command: vec!["python".into()],
        truncated: false,
    };
    let mut log =
        RecordWriter::create(folder.path(), LevelSizes([64 * 1024; LEVEL_COUNT]), &head).unwrap();
    let mut tail = OutputTail::create(&folder.path().join("output")).unwrap();
    let (mut producer, mut consumer) = frame_ring();

    let before = TAKEN.get();
    // Enough for growth and for several laps.
    for second in 0..400 {
        producer.push_sample(&calm::calm_sample(10, second));
        let at = Stamp {
            monotonic_ns: second,
            realtime_ns: second,
        };
        producer.push_event(&Event {
            at,
            kind: EventKind::Braked { high: second },
        });
        consumer.drain(|kind, bytes| log.append(kind, bytes));
        log.sync().unwrap();
        tail.update(second * 3000, |_, out| out.fill(b'x')).unwrap();
    }
    assert_eq!(TAKEN.get() - before, 0);

    let record = Record::open(folder.path()).unwrap();
    assert_eq!(
        record.samples().next_back(),
        Some(calm::calm_sample(10, 399))
    );
}
