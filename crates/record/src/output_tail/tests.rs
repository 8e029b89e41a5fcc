use super::*;
use proptest::prelude::*;

/// The byte of an output at an offset; neighbours and laps differ.
fn byte(offset: u64) -> u8 {
    (offset % 251) as u8 ^ (offset / 4099) as u8
}

fn copy(offset: u64, out: &mut [u8]) {
    for (place, to) in (offset..).zip(out) {
        *to = byte(place);
    }
}

fn expected(filled: u64) -> Vec<u8> {
    (filled.saturating_sub(KEPT_BYTES)..filled)
        .map(byte)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_last_of_any_output_is_there_after_every_update(
        steps in prop::collection::vec(prop_oneof![0..300u64, 0..20_000u64, 0..900_000u64], 1..12),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        let mut tail = OutputTail::create(&path).unwrap();
        let mut filled = 0;
        for step in steps {
            filled += step;
            let oldest = filled.saturating_sub(KEPT_BYTES);
            tail.update(filled, |offset, out| {
                assert!(offset >= oldest && offset + out.len() as u64 <= filled);
                copy(offset, out);
            }).unwrap();
            prop_assert!(read(&path).unwrap() == expected(filled));
        }
    }

    #[test]
    fn any_damage_is_read_without_an_error(
        at: prop::sample::Index,
        damage: Vec<u8>,
        cut: prop::sample::Index,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        OutputTail::create(&path).unwrap().update(300_000, copy).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        for (to, from) in bytes[at..].iter_mut().zip(&damage) {
            *to = *from;
        }
        bytes.truncate(cut.index(bytes.len()));
        std::fs::write(&path, bytes).unwrap();
        prop_assert!(read(&path).unwrap().len() as u64 <= RING_BYTES);
    }
}

#[test]
fn a_cut_between_the_bytes_and_the_header_costs_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let mut tail = OutputTail::create(&path).unwrap();
    for filled in [
        1,
        5000,
        KEPT_BYTES,
        KEPT_BYTES + 777,
        KEPT_BYTES + 2 * MAX_AHEAD_BYTES,
        2 * KEPT_BYTES + 5,
    ] {
        let before = expected(tail.stated_end);
        tail.write_ahead(filled, &mut copy).unwrap();
        assert!(read(&path).unwrap() == before);
        tail.update(filled, copy).unwrap();
        assert!(read(&path).unwrap() == expected(filled));
    }
}

#[test]
fn a_damaged_header_leaves_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let mut tail = OutputTail::create(&path).unwrap();
    tail.update(1000, copy).unwrap();
    tail.update(1500, copy).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[BLOCK_BYTES + 16] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path).unwrap(), expected(1000));
    bytes[..2 * BLOCK_BYTES].fill(0xee);
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path).unwrap(), without_zeros_around(&expected(1500)));
}

#[test]
fn a_replaced_guard_takes_the_file_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    OutputTail::create(&path)
        .unwrap()
        .update(400_000, copy)
        .unwrap();
    let mut again = OutputTail::create(&path).unwrap();
    assert_eq!(read(&path).unwrap(), expected(400_000));
    again.update(400_100, copy).unwrap();
    assert_eq!(read(&path).unwrap(), expected(400_100));
}

#[test]
fn an_output_that_never_came_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    OutputTail::create(&path).unwrap();
    assert!(read(&path).unwrap().is_empty());
    assert!(read(&folder.path().join("none")).is_err());
}
