//! Whatever comes in, nothing panics; whatever a kernel could write is read right.

use crate::parse::*;
use crate::{Pid, Reading};
use proptest::prelude::*;

/// All parsers on the same bytes.
fn read_all(bytes: &[u8]) {
    let _ = (
        process_status(bytes),
        process_stat(bytes),
        process_io(bytes),
        smaps_rollup(bytes),
    );
    let _ = memory_mapping(bytes);
    let _ = (
        meminfo(bytes),
        vmstat(bytes),
        stall_times(bytes),
        load_average(bytes),
    );
    let _ = (
        zram_used(bytes),
        arc_reclaimable(bytes),
        cgroup_memory_stat(bytes),
    );
    let _ = swap_is_memory(bytes);
    let _ = (
        cgroup_limit(bytes),
        single_number(bytes),
        key_value(bytes, b"high"),
    );
    let _ = (open_for_writing(bytes), mount_holding(bytes, b"/home/ann"));
    let _ = diskstats(bytes, BlockDevice { major: 8, minor: 0 });
    cpu_lines(bytes).for_each(|(_, ticks)| assert!(ticks.busy() <= ticks.total()));
    cgroup_memberships(bytes).for_each(drop);
    unescape_mount_path(bytes).for_each(drop);
}

/// Bytes that get further into the parsers than noise does.
fn kernel_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "Name:\t",
        "VmData:",
        "State:",
        "PPid:",
        " kB",
        "\n",
        " ",
        "\t",
        ":",
        ")",
        "(",
        "cpu",
        "cpu0 ",
        "some ",
        "full ",
        "total=",
        "8 0 sda ",
        "18446744073709551615",
        "-1",
        "99999999999999999999999",
        "0",
        "1",
        "3.14",
        "1/2",
        "size 4 ",
        "c_min 4 ",
        "max",
        "\\n",
        "\\\\",
        "\\040",
        " - ",
        "total_rss ",
        "flags:\t",
        "MemTotal:",
        "workingset_refault ",
        "0::/",
        "high ",
        "/",
        "\0",
        "\u{e9}",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn no_bytes_make_a_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_all(&bytes);
    }

    #[test]
    fn no_broken_kernel_text_makes_a_parser_panic(bytes in kernel_like()) {
        read_all(&bytes);
    }

    #[test]
    fn any_name_and_counts_come_back_from_stat(
        name in prop::collection::vec(any::<u8>(), 0..16),
        state in prop::sample::select(b"RSDTtZXI".to_vec()),
        parent: u32, faults: u64, user in 0u64..1 << 62, system in 0u64..1 << 62, threads: u64, started: u64,
    ) {
        let mut line = b"77 (".to_vec();
        line.extend(&name);
        line.extend(format!(
            ") {} {parent} 1 1 34816 -1 4194304 9 9 {faults} 9 {user} {system} 9 9 20 0 {threads} 0 {started} 1 2\n",
            state as char
        ).bytes());
        let read = process_stat(&line).unwrap();
        prop_assert_eq!((read.state, read.parent), (state, Pid(parent)));
        prop_assert_eq!(read.major_faults, Reading::Value(faults));
        prop_assert_eq!(read.cpu, Reading::Value(user + system));
        prop_assert_eq!(read.threads, Reading::Value(threads));
        prop_assert_eq!(read.started, started);
    }

    #[test]
    fn any_name_comes_back_from_status(name in prop::collection::vec(1u8.., 0..16), kib in 0u64..1 << 50) {
        let mut text = b"Name:\t".to_vec();
        for byte in &name {
            match byte {
                b'\n' => text.extend(b"\\n"),
                b'\\' => text.extend(b"\\\\"),
                _ => text.push(*byte),
            }
        }
        text.extend(format!("\nState:\tR (running)\nPPid:\t5\nVmData:\t{kib:8} kB\n").bytes());
        let read = process_status(&text);
        prop_assert_eq!(read.name.as_bytes(), &name[..name.len().min(15)]);
        prop_assert_eq!(read.parent, Pid(5));
        prop_assert_eq!(read.vm_data, Reading::Value(kib * 1024));
    }

    /// However much of the file the buffer held, no value is wrong: it is right or missing.
    #[test]
    fn a_cut_file_gives_right_values_or_none(
        total in 0u64..1 << 50, free in 0u64..1 << 50, anon in 0u64..1 << 50, cut in 0usize..120,
    ) {
        let text = format!("MemTotal: {total:12} kB\nMemFree: {free:12} kB\nAnonPages: {anon:12} kB\n");
        let read = meminfo(&text.as_bytes()[..cut.min(text.len())]);
        for (reading, kib) in [(read.total, total), (read.free, free), (read.anon, anon)] {
            prop_assert!(reading.value().is_none_or(|bytes| bytes == kib * 1024));
        }
    }

    #[test]
    fn every_listed_core_comes_back(times in prop::collection::vec(prop::array::uniform10(0u64..1 << 40), 1..40)) {
        let mut text = String::from("cpu  0 0 0 0 0 0 0 0 0 0\n");
        for (core, t) in times.iter().enumerate() {
            let joined: Vec<_> = t.iter().map(u64::to_string).collect();
            text += &format!("cpu{core} {}\n", joined.join(" "));
        }
        text += "intr 1 2 3\n";
        let read: Vec<_> = cpu_lines(text.as_bytes()).skip(1).collect();
        prop_assert_eq!(read.len(), times.len());
        for (core, (t, (whose, ticks))) in times.iter().zip(&read).enumerate() {
            prop_assert_eq!(*whose, CpuLine::Core(core));
            prop_assert_eq!(ticks.total(), t[..8].iter().sum::<u64>());
            prop_assert_eq!(ticks.busy(), ticks.total() - t[3] - t[4]);
        }
    }
}
