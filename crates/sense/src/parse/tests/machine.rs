use crate::parse::{
    BlockDevice, CpuLine, CpuTicks, LoadAverage, arc_reclaimable, cgroup_limit, cgroup_memory_stat,
    cpu_lines, diskstats, has_swap, key_value, load_average, meminfo, single_number, stall_times,
    swap_is_memory, vmstat, zram_used,
};
use crate::{Reading, Reason};
use Reading::{Unavailable, Value};

const ABSENT: Reading<u64> = Unavailable(Reason::Absent);
const MALFORMED: Reading<u64> = Unavailable(Reason::Malformed);

#[test]
fn meminfo_without_swap_says_that_swap_is_zero() {
    let memory = meminfo(
        b"MemTotal:       24682416 kB\nMemFree:        21599452 kB\nMemAvailable:   24211180 kB\n\
Cached:          2646728 kB\nSwapCached:            0 kB\nSwapTotal:             0 kB\n\
SwapFree:              0 kB\nAnonPages:         15624 kB\nKReclaimable:     270732 kB\n\
SReclaimable:     270000 kB\nHugePages_Total:       0\n",
    );
    assert_eq!(memory.total, Value(24682416 * 1024));
    assert_eq!(memory.available, Value(24211180 * 1024));
    assert_eq!(memory.cached, Value(2646728 * 1024));
    assert_eq!(memory.reclaimable, Value(270732 * 1024));
    assert_eq!((memory.swap_total, memory.swap_free), (Value(0), Value(0)));
    assert_eq!(memory.compressed, ABSENT);
}

#[test]
fn older_kernels_tell_only_the_reclaimable_slab() {
    let memory = meminfo(b"SReclaimable:     100 kB\n");
    assert_eq!(memory.reclaimable, Value(100 * 1024));
}

#[test]
fn refaults_are_one_sum_on_every_kernel() {
    let newer = vmstat(b"workingset_refault_anon 3\nworkingset_refault_file 4\n");
    assert_eq!(newer.refaults, Value(7));
    let older = vmstat(b"workingset_refault 5\n");
    assert_eq!(older.refaults, Value(5));
    assert_eq!(vmstat(b"").refaults, ABSENT);
}

#[test]
fn vmstat_tells_names_that_begin_alike_apart() {
    let paging = vmstat(
        b"pswpin 1\npswpout 2\npgmajfault 3\npgscan_direct 4\npgscan_direct_throttle 99\n\
pgscan_kswapd 5\noom_kill 6\n",
    );
    assert_eq!(paging.swapped_in, Value(1));
    assert_eq!(paging.swapped_out, Value(2));
    assert_eq!(paging.major_faults, Value(3));
    assert_eq!(paging.scanned_direct, Value(4));
    assert_eq!(paging.scanned_kswapd, Value(5));
    assert_eq!(paging.oom_kills, Value(6));
}

#[test]
fn pressure_of_the_cpu_may_have_no_full_line() {
    let stall = stall_times(b"some avg10=2.58 avg60=1.06 avg300=1.01 total=15591445\n");
    assert_eq!((stall.some, stall.full), (Value(15591445), ABSENT));
    assert_eq!(stall_times(b"full avg10=0.00\n").full, MALFORMED);
}

#[test]
fn stat_lists_the_sum_then_the_cores_that_are_on() {
    let listed: Vec<_> = cpu_lines(
        b"cpu  10 1 5 100 7 2 3 4 9 9\ncpu0 5 1 2 50 4 1 1 2 9 9\ncpu2 5 0 3 50 3 1 2 2 0 0\n\
intr 318503 0 0\ncpu9 1 1 1 1 1 1 1 1\n",
    )
    .collect();
    let all = CpuTicks {
        user: 10,
        nice: 1,
        system: 5,
        idle: 100,
        iowait: 7,
        irq: 5,
        steal: 4,
    };
    assert_eq!(listed[0], (CpuLine::AllCores, all));
    // Guest time is part of user time: it is not counted twice.
    assert_eq!((all.busy(), all.total()), (25, 132));
    let cores: Vec<_> = listed[1..].iter().map(|(whose, _)| *whose).collect();
    assert_eq!(cores, [CpuLine::Core(0), CpuLine::Core(2)]);
}

#[test]
fn loadavg_keeps_two_decimals_without_floats() {
    let load = load_average(b"0.01 12.30 100.17 1/88 7064\n");
    assert_eq!(load.average, [Value(1), Value(1230), Value(10017)]);
    assert_eq!((load.runnable, load.newest), (Value(1), Value(7064)));
    assert_eq!(
        load_average(b"0.01 12"),
        LoadAverage::unavailable(Reason::Malformed)
    );
}

#[test]
fn diskstats_finds_the_device_by_number() {
    let text =
        b"   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n 254       0 vda 39939 6740 4191890 86352 \
27105 74473 24087944 129174 3 25212 217956 5945 41 7321144 2198 4007 230\n";
    let disk = diskstats(
        text,
        BlockDevice {
            major: 254,
            minor: 0,
        },
    );
    assert_eq!(disk.reads, Value(39939));
    assert_eq!(disk.read_bytes, Value(4191890 * 512));
    assert_eq!(disk.read_ms, Value(86352));
    assert_eq!(disk.writes, Value(27105));
    assert_eq!(disk.written_bytes, Value(24087944 * 512));
    assert_eq!(disk.write_ms, Value(129174));
    assert_eq!(disk.in_flight, Value(3));
    assert_eq!(disk.busy_ms, Value(25212));
    let missing = diskstats(
        text,
        BlockDevice {
            major: 254,
            minor: 1,
        },
    );
    assert_eq!(missing.reads, ABSENT);
    let short = diskstats(b"8 0 sda 1 2 3 4\n", BlockDevice { major: 8, minor: 0 });
    assert_eq!(short.reads, MALFORMED);
}

#[test]
fn zfs_gives_back_what_its_cache_has_above_its_smallest_size() {
    let text = b"13 1 0x01 147 39984 4 5\nname                            type data\n\
c                               4    900\nc_min                           4    100\n\
size                            4    700\n";
    assert_eq!(arc_reclaimable(text), Value(600));
    assert_eq!(arc_reclaimable(b"size 4 50\nc_min 4 100\n"), Value(0));
    assert_eq!(arc_reclaimable(b"size 4 50\n"), ABSENT);
}

#[test]
fn swap_is_memory_when_all_of_it_is_zram() {
    const HEAD: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
    const ZRAM: &str = "/dev/zram0                              partition\t8388604\t\t0\t\t100\n";
    const DISK: &str = "/dev/sda2                               partition\t999420\t\t0\t\t-2\n";
    for (areas, expected) in [
        (&[][..], false),
        (&[ZRAM], true),
        (&[ZRAM, ZRAM], true),
        (&[DISK], false),
        (&[ZRAM, DISK], false),
        (&[DISK, ZRAM], false),
    ] {
        let text = format!("{HEAD}{}", areas.concat());
        assert_eq!(swap_is_memory(text.as_bytes()), expected, "{text}");
        assert_eq!(has_swap(text.as_bytes()), !areas.is_empty(), "{text}");
    }
    assert!(!swap_is_memory(b"") && !has_swap(b""));
}

#[test]
fn zram_tells_the_memory_it_takes() {
    let text =
        b"  4096000  1000000  1048576        0  1048576       12        0        0        0\n";
    assert_eq!(zram_used(text), Value(1048576));
    assert_eq!(zram_used(b"1 2\n"), MALFORMED);
}

#[test]
fn a_version_1_cgroup_is_counted_with_its_children() {
    let stat = cgroup_memory_stat(
        b"cache 9\nrss 1\nshmem 2\nswap 3\ninactive_file 4\nactive_file 5\nhierarchical_memory_limit 7\n\
total_cache 90\ntotal_rss 10\ntotal_shmem 20\ntotal_swap 30\ntotal_inactive_file 40\ntotal_active_file 50\n",
    );
    assert_eq!(
        (stat.anon, stat.shmem, stat.swap),
        (Value(10), Value(20), Value(30))
    );
    assert_eq!(
        (stat.inactive_file, stat.active_file),
        (Value(40), Value(50))
    );
    assert_eq!(stat.slab_reclaimable, ABSENT);
}

#[test]
fn a_version_2_cgroup_has_its_swap_elsewhere() {
    let stat = cgroup_memory_stat(
        b"anon 10\nfile 90\nshmem 20\ninactive_file 40\nactive_file 50\nslab_reclaimable 60\n",
    );
    assert_eq!((stat.anon, stat.shmem), (Value(10), Value(20)));
    assert_eq!(stat.slab_reclaimable, Value(60));
    assert_eq!(stat.swap, ABSENT);
}

#[test]
fn no_limit_has_two_spellings() {
    assert_eq!(cgroup_limit(b"max\n"), Value(None));
    assert_eq!(cgroup_limit(b"9223372036854771712\n"), Value(None));
    assert_eq!(cgroup_limit(b"9223372036854710272\n"), Value(None));
    assert_eq!(cgroup_limit(b"1073741824\n"), Value(Some(1 << 30)));
    assert_eq!(cgroup_limit(b"0\n"), Value(Some(0)));
    assert_eq!(cgroup_limit(b"10"), Unavailable(Reason::Malformed));
}

#[test]
fn key_value_files_are_read_by_whole_keys() {
    let events = b"low 0\nhigh 12\nmax 3\noom 0\noom_kill x\n";
    assert_eq!(key_value(events, b"high"), Value(12));
    assert_eq!(key_value(events, b"hig"), ABSENT);
    assert_eq!(key_value(events, b"oom_kill"), MALFORMED);
    assert_eq!(single_number(b"42\n"), Value(42));
    assert_eq!(single_number(b""), MALFORMED);
}
