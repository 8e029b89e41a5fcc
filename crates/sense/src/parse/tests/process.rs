use crate::parse::{
    MemoryMapping, ProcessIo, Pss, memory_mapping, open_for_writing, process_io, process_sizes,
    process_stat, process_status, smaps_rollup,
};
use crate::{Pid, Reading, Reason};
use Reading::{Unavailable, Value};

const TRAINER: &[u8] = b"Name:\tpython3\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t812\n\
Pid:\t812\nPPid:\t790\nVmPeak:\t 9000000 kB\nVmRSS:\t  900 kB\nRssAnon:\t     700 kB\n\
RssFile:\t     150 kB\nRssShmem:\t      50 kB\nVmData:\t 4096 kB\nVmSwap:\t       8 kB\n\
Threads:\t17\nSigQ:\t0/96343\n";

#[test]
fn status_gives_sizes_in_bytes() {
    let status = process_status(TRAINER);
    assert_eq!(status.name.as_bytes(), b"python3");
    assert_eq!((status.state, status.parent), (b'S', Pid(790)));
    assert_eq!(status.vm_data, Value(4096 * 1024));
    assert_eq!(status.rss_anon, Value(700 * 1024));
    assert_eq!(status.rss_file, Value(150 * 1024));
    assert_eq!(status.rss_shmem, Value(50 * 1024));
    assert_eq!(status.swap, Value(8 * 1024));
    assert_eq!(status.threads, Value(17));
}

#[test]
fn a_zombie_has_no_memory_rather_than_none() {
    let status = process_status(b"Name:\tpython3\nState:\tZ (zombie)\nPPid:\t1\nThreads:\t1\n");
    assert_eq!(status.state, b'Z');
    for reading in [
        status.vm_data,
        status.rss_anon,
        status.rss_shmem,
        status.rss_file,
        status.swap,
    ] {
        assert_eq!(reading, Unavailable(Reason::Absent));
    }
    assert_eq!(status.threads, Value(1));
}

#[test]
fn sizes_are_equal_only_when_all_of_them_are() {
    let sizes = process_sizes(b"9000 900 150 3 0 4096 0\n");
    assert!(sizes.is_some());
    assert_eq!(sizes, process_sizes(b"9000 900 150 3 0 4096 0\n"));
    assert_ne!(sizes, process_sizes(b"9000 900 150 3 0 4097 0\n"));
    assert_ne!(sizes, process_sizes(b"0 0 0 0 0 0 0\n"), "a zombie");
}

#[test]
fn sizes_that_are_not_complete_are_none() {
    for cut in [
        &b""[..],
        b"9000 900 150 3 0 4096 0",
        b"9000 900 150 3 0 40\n",
        b"9000 900 150 3 0 4096 0 1\n",
        b"9000 900 -1 3 0 4096 0\n",
    ] {
        assert_eq!(
            process_sizes(cut),
            None,
            "{:?}",
            String::from_utf8_lossy(cut)
        );
    }
}

#[test]
fn a_cut_line_says_nothing() {
    let cut = process_status(b"Name:\tx\nVmData:\t 4096 kB\nRssAnon:\t     70");
    assert_eq!(cut.vm_data, Value(4096 * 1024));
    assert_eq!(cut.rss_anon, Unavailable(Reason::Absent));
}

#[test]
fn a_size_without_its_unit_is_malformed() {
    let strange =
        process_status(b"VmData:\t 4096 MB\nRssAnon:\t-1 kB\nVmSwap:\t99999999999999999999 kB\n");
    for reading in [strange.vm_data, strange.rss_anon, strange.swap] {
        assert_eq!(reading, Unavailable(Reason::Malformed));
    }
}

#[test]
fn names_lose_the_kernels_escapes_and_nothing_else() {
    let name = |line: &[u8]| process_status(line).name.as_bytes().to_vec();
    assert_eq!(name(b"Name:\ta\\nVmData:\\\\b\n"), b"a\nVmData:\\b");
    assert_eq!(name(b"Name:\t  two words \n"), b"  two words ");
    assert_eq!(name(b"Name:\t\\x\\\n"), b"\\x\\");
    assert_eq!(name(b"Name:\t\\\\n\n"), b"\\n");
    assert_eq!(
        name(b"Name:\tkworker/u4:2-events_unbound\n"),
        b"kworker/u4:2-ev"
    );
    assert_eq!(name(b"Name:\t\n"), b"");
}

#[test]
fn a_name_cannot_forge_the_fields_of_stat() {
    let line = b"812 (evil) R 1 (x) ) S 790 812 812 0 -1 4194304 98 0 33 0 1200 34 0 0 20 0 17 0 \
105172 3133440 362 18446744073709551615\n";
    let stat = process_stat(line).unwrap();
    assert_eq!((stat.state, stat.parent), (b'S', Pid(790)));
    assert_eq!(stat.major_faults, Value(33));
    assert_eq!(stat.cpu, Value(1234));
    assert_eq!(stat.threads, Value(17));
    assert_eq!(stat.started, 105172);
}

#[test]
fn a_start_time_that_may_be_cut_is_no_start_time() {
    let upto_start = b"8 (a) S 7 8 8 0 -1 4194304 98 0 33 0 1200 34 0 0 20 0 17 0 105172";
    assert_eq!(process_stat(upto_start), None);
    let whole = [&upto_start[..], b" "].concat();
    assert_eq!(process_stat(&whole).unwrap().started, 105172);
}

#[test]
fn io_keeps_what_was_asked_apart_from_what_was_fetched() {
    let text = b"rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 8192\n\
cancelled_write_bytes: 3\n";
    let expected = ProcessIo {
        rchar: Value(6976),
        wchar: Value(1),
        read_bytes: Value(4096),
        write_bytes: Value(8192),
    };
    assert_eq!(process_io(text), expected);
    assert_eq!(process_io(b"").read_bytes, Unavailable(Reason::Absent));
}

#[test]
fn a_share_is_told_whole_or_not_at_all() {
    let text = b"55-7f ---p 00000000 00:00 0    [rollup]\nRss:   1628 kB\nPss:   353 kB\n\
Pss_Anon:   112 kB\nPss_File:   241 kB\nPss_Shmem:   3 kB\nSwap:  9 kB\nSwapPss:   2 kB\n";
    assert_eq!(
        smaps_rollup(text),
        Value(Pss {
            anon: 112 * 1024,
            shmem: 3 * 1024,
            swap: 2 * 1024
        })
    );
    let before_5_9 = b"Rss:   1628 kB\nPss:   353 kB\nSwap:  9 kB\nSwapPss:   2 kB\n";
    assert_eq!(smaps_rollup(before_5_9), Unavailable(Reason::Absent));
}

#[test]
fn the_access_mode_tells_who_writes() {
    let open = |flags: &str| open_for_writing(format!("pos:\t0\nflags:\t{flags}\n").as_bytes());
    assert!(open("0100001"));
    assert!(open("02100002"));
    assert!(!open("0100000"));
    assert!(!open("nonsense"));
    assert!(!open_for_writing(b""));
}

#[test]
fn a_mapping_has_its_size_its_path_and_whether_it_is_data() {
    let line = b"7f1c2a000000-7f1c2a400000 rw-p 0001f000 fe:01 1234567          /opt/my env/libcufft.so.12";
    let expected = MemoryMapping {
        bytes: 0x400000,
        is_data: true,
        path: b"/opt/my env/libcufft.so.12",
    };
    assert_eq!(memory_mapping(line), Some(expected));
    let of = |line: &'static str| memory_mapping(line.as_bytes());
    let heap = of("7f00-8f00 rw-p 00000000 00:00 0 ").unwrap();
    assert_eq!(
        (heap.bytes, heap.is_data, heap.path),
        (0x1000, true, &b""[..])
    );
    assert!(of("7f00-8f00 rw-p 00000000 00:00 0").unwrap().is_data);
    assert!(
        !of("7f00-8f00 rw-s 00000000 00:00 7 /dev/shm/x")
            .unwrap()
            .is_data
    );
    assert!(
        !of("7f00-8f00 r-xp 00000000 00:00 7 /lib/libc.so.6")
            .unwrap()
            .is_data
    );
    for strange in [
        "",
        "7f00 rw-p",
        "8f00-7f00 rw-p 0 0:0 0 ",
        "x-y rw-p 0 0:0 0 ",
        "+7f-8f rw-p 0 0:0 0 ",
    ] {
        assert_eq!(of(strange), None, "{strange}");
    }
}
