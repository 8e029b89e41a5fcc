//! The arithmetic of the library, compiled into the test.

use proptest::prelude::*;

#[path = "../../src/preload/pageout_pace.rs"]
mod pageout_pace;
#[path = "../../src/preload/regions.rs"]
mod regions;
#[path = "../../src/preload/share.rs"]
mod share;
#[path = "../../src/preload/statm.rs"]
mod statm;

use antifreeze_cushion::sanitizer::{is_preloaded, is_sanitized};
use pageout_pace::{Pace, writeback_bytes};
use regions::{Region, Regions};
use share::share;
use statm::{all_pages, data_pages};

use crate::MB;

#[test]
fn a_runtime_is_known_by_its_name_among_preloaded_libraries() {
    for (preload, expected) in [
        ("", false),
        ("/run/antifreeze/cushion-1.so:libjemalloc.so.2", false),
        ("/opt/libasan.so/libfoo.so", false),
        ("/x/cushion.so:/usr/lib/gcc/libasan.so.8", true),
        ("libtsan.so.2 /x.so", true),
        ("/usr/lib/clang/14/libclang_rt.asan-x86_64.so", true),
    ] {
        assert_eq!(is_preloaded(preload.as_bytes()), expected, "{preload}");
    }
}

#[test]
fn shares_halve_down_to_the_floor() {
    let shares: Vec<_> = (1..=5).map(|birth| share(400 * MB, birth) / MB).collect();
    assert_eq!(shares, [200, 100, 50, 32, 32]);
    assert_eq!(share(40 * MB, 9), 10 * MB);
    assert_eq!(share(0, 1), 0);
}

fn regions_of(maps: &[u8]) -> Vec<Region> {
    let mut regions = Regions::default();
    maps.iter().filter_map(|byte| regions.feed(*byte)).collect()
}

#[test]
fn large_anonymous_private_memory_is_paged_out_and_nothing_else() {
    let maps = b"555555554000-555555754000 rw-p 00000000 fe:00 1234       /usr/bin/python3.11\n\
        555555a00000-555556000000 rw-p 00000000 00:00 0                          [heap]\n\
        7fff00000000-7fff00001000 rw-p 00000000 00:00 0 \n\
        7fff10000000-7fff20000000 rw-p 00000000 00:00 0 \n\
        7fff20000000-7fff30000000 r--p 00000000 00:00 0 \n\
        7fff30000000-7fff40000000 rw-s 00000000 00:01 77  /memfd:page (deleted)\n\
        7fff40000000-7fff50000000 ---p 00000000 00:00 0 \n\
        7fff50000000-7fff60000000 rwxp 00000000 00:00 0                          [anon:arena]\n\
        7ffff0000000-7ffff8000000 rw-p 00000000 00:00 0                          [stack]\n";
    let region = |start, end| Region { start, end };
    let expected = [
        region(0x5555_55a0_0000, 0x5555_5600_0000),
        region(0x7fff_1000_0000, 0x7fff_2000_0000),
        region(0x7fff_5000_0000, 0x7fff_6000_0000),
    ];
    assert_eq!(regions_of(maps), expected);
}

/// How long a disk of so many bytes a second takes for the pieces it is given.
fn longest_piece_ns(bytes_a_second: u64, pieces: usize) -> u64 {
    let mut pace = Pace::new();
    let mut longest = 0;
    for number in 0..pieces {
        let bytes = pace.piece();
        let took = bytes * 1_000_000_000 / bytes_a_second;
        pace.learn(bytes, took);
        // The first pieces find out how fast the disk is.
        if number > 8 {
            longest = longest.max(took);
        }
    }
    longest
}

#[test]
fn pieces_keep_a_disk_busy_for_less_than_a_tenth_of_a_second() {
    for bytes_a_second in [5 * MB, 16 * MB, 100 * MB, 500 * MB, 5000 * MB] {
        let longest = longest_piece_ns(bytes_a_second, 100);
        assert!(longest < 100_000_000, "{bytes_a_second}: {longest}");
    }
}

#[test]
fn the_bytes_under_writeback_are_read_from_meminfo() {
    let meminfo = b"MemTotal:  100 kB\nDirty:  7 kB\nWriteback:  12 kB\nWritebackTmp:  3 kB\n";
    assert_eq!(writeback_bytes(meminfo), Some(12 * 1024));
    assert_eq!(writeback_bytes(b"MemTotal:  100 kB\n"), None);
    assert_eq!(writeback_bytes(b"Writeback:  kB\n"), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_as_regions(maps: Vec<u8>) {
        for region in regions_of(&maps) {
            prop_assert!(region.start < region.end);
        }
    }

    #[test]
    fn births_together_overdraw_by_no_more_than_their_floors(headroom: u64, births in 1..300_u32) {
        let sum: u128 = (1..=births).map(|birth| u128::from(share(headroom, birth))).sum();
        let floors = u128::from(births) * u128::from((32 * MB).min(headroom / 4));
        prop_assert!(sum <= u128::from(headroom) + floors);
    }

    #[test]
    fn a_share_is_part_of_the_headroom_and_later_ones_are_not_larger(
        headroom: u64,
        birth in 0..u32::MAX,
    ) {
        prop_assert!(share(headroom, birth) <= headroom);
        prop_assert!(share(headroom, birth + 1) <= share(headroom, birth));
    }

    #[test]
    fn the_sixth_number_is_the_data(fields in prop::array::uniform7(any::<u64>())) {
        let line = fields.map(|field| field.to_string()).join(" ") + "\n";
        prop_assert_eq!(data_pages(line.as_bytes()), Some(fields[5]));
        prop_assert_eq!(all_pages(line.as_bytes()), Some(fields[0]));
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes: Vec<u8>) {
        let _ = data_pages(&bytes);
    }

    #[test]
    fn any_file_is_looked_through_for_a_sanitizer(mut bytes: Vec<u8>, is_elf: bool) {
        if is_elf {
            bytes.splice(0..0, *b"\x7fELF\x02\x01");
        }
        is_sanitized(|buffer, offset| {
            let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..));
            let rest = rest.unwrap_or(&[]);
            let read = rest.len().min(buffer.len());
            buffer[..read].copy_from_slice(&rest[..read]);
            read
        });
        is_preloaded(&bytes);
    }
}

#[test]
fn a_short_or_strange_line_has_no_data() {
    for line in [
        "",
        "1 2 3 4 5",
        "1 2 3 4 5 ",
        "1 2 3 4 5 x 7",
        "1 2 3 4 5 99999999999999999999 7",
    ] {
        assert_eq!(data_pages(line.as_bytes()), None, "{line:?}");
    }
}
