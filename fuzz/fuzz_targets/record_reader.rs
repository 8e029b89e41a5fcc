//! Any bytes are a record: reading them never panics and gives frames in order.
//!
//! `RUSTC_BOOTSTRAP=1 cargo fuzz run record_reader`
#![no_main]

use antifreeze_record::codec::{decode_event, decode_sample};
use antifreeze_record::{LEVEL_COUNT, Record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // What lies within a frame is only reached with its checksum right, so it is tried alone.
    let _ = decode_sample(bytes);
    let _ = decode_event(bytes);

    // A level a quarter.
    let mut quarters = bytes.chunks(bytes.len().div_ceil(LEVEL_COUNT).max(1));
    let levels = [(); LEVEL_COUNT].map(|()| quarters.next().unwrap_or_default().to_vec());
    let record = Record::from_bytes(levels);
    record.head();
    record.events().for_each(drop);
    assert!(record.samples().count() <= record.sample_count());
    assert!(record.damaged_bytes() <= bytes.len() as u64);
});
