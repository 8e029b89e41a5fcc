//! Any bytes as what a process of the tree writes to the page, eight for a place and eight for a value, and a tick of the
//! guard after each hundred and at the end. The page is that of a live tree of one process.

#![no_main]

#[path = "../../crates/guard/testing/page_reader.rs"]
mod page_reader;

use antifreeze_ipc::shared::{Memory, Shared};
use libfuzzer_sys::fuzz_target;
use page_reader::Reader;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Writes between two ticks.
const WRITES: usize = 100;

static LIVE: OnceLock<(Shared, Memory, Mutex<Reader>)> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let (shared, _, reader) = LIVE.get_or_init(|| {
        let (shared, memory) = Shared::create().expect("memory");
        (
            shared,
            memory,
            Mutex::new(Reader::new(shared, Duration::ZERO)),
        )
    });
    let mut reader = reader.lock().expect("one thread");
    for writes in bytes.chunks(16 * WRITES) {
        for pair in writes.chunks_exact(16) {
            let (place, value) = pair.split_at(8);
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
            };
            page_reader::write(*shared, number(place), number(value));
        }
        reader.tick();
    }
});
