//! An ordinary second of a training run on a machine with 64 GiB and 16 cores: one trainer,
//! its workers, nothing wrong. Included by path where tests and examples need it.

use antifreeze_sense::{
    Cgroup, Cpu, Disk, FsSpace, Memory, Paging, Pid, Pressure, Process, ProcessName, Reading,
    Reason, Sample, Stamp, Thermal, TreeTotals,
};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// The sample `second` seconds after the start.
pub fn calm_sample(processes: u32, second: u64) -> Sample {
    let mut noise = Noise(second * 1000 + 1);
    let value = Reading::Value;
    let mut pages = |around_mib: u64| value(around_mib * MIB + noise.below(5000) * PAGE);
    let memory = Memory {
        total: pages(65_000),
        available: pages(41_000),
        free: pages(9_000),
        anon: pages(18_000),
        shmem: pages(900),
        cached: pages(30_000),
        reclaimable: pages(1_200),
        dirty: pages(4),
        writeback: value(0),
        committed: pages(38_000),
        swap_total: pages(8_000),
        swap_free: pages(8_000),
        compressed: value(0),
        swap_cached: value(0),
    };
    let cgroup = Cgroup {
        own_current: pages(21_000),
        own_anon: pages(16_000),
        own_shmem: pages(800),
        own_swap: value(0),
        own_high_events: value(0),
        limit: Reading::Unavailable(Reason::Absent),
        limit_available: Reading::Unavailable(Reason::Absent),
    };
    let tree_memory = (pages(16_800), pages(800));
    let mut count = |around: u64| value(around + noise.below(around / 50 + 1));
    let mut sample = Sample {
        at: Stamp {
            monotonic_ns: 400_000_000_000_000 + second * 1_000_000_000 + 123_457,
            realtime_ns: 1_790_000_000_000_000_000 + second * 1_000_000_000 + 765_431,
        },
        memory,
        paging: Paging {
            swapped_in: count(1_000),
            swapped_out: count(2_000),
            major_faults: count(900_000),
            scanned_direct: count(0),
            scanned_kswapd: count(3_000_000),
            refaults: count(50_000),
            oom_kills: count(0),
        },
        pressure: Pressure {
            cpu_some_us: count(3_000_000_000),
            memory_some_us: count(5_000_000),
            memory_full_us: count(4_000_000),
            io_some_us: count(900_000_000),
            io_full_us: count(800_000_000),
        },
        cpu: Cpu {
            user: count(200_000_000),
            nice: count(10_000),
            system: count(20_000_000),
            idle: count(400_000_000),
            iowait: count(1_000_000),
            irq: count(2_000_000),
            steal: count(0),
            load_hundredths: [count(900), count(850), count(800)],
            runnable: count(9),
            newest_pid: count(900_000),
            core_count: 16,
            ..Cpu::default()
        },
        disk: Disk {
            space: FsSpace {
                total: value(900_000 * MIB),
                free: value(300_000 * MIB + second * PAGE),
            },
            inodes_free: count(50_000_000),
            network: count(0),
            reads: count(9_000_000),
            read_bytes: count(800_000_000_000),
            read_ms: count(4_000_000),
            writes: count(7_000_000),
            written_bytes: count(500_000_000_000),
            write_ms: count(9_000_000),
            busy_ms: count(6_000_000),
            in_flight: count(1),
        },
        shm: FsSpace {
            total: value(32_000 * MIB),
            free: value(31_000 * MIB),
        },
        thermal: Thermal {
            hottest_millidegrees: count(71_000),
            throttle_count: count(0),
        },
        cgroup,
        tree: TreeTotals {
            count: value(processes.into()),
            threads: count(130),
            files: count(400),
            footprint: tree_memory.0,
            shmem: tree_memory.1,
            swap: value(0),
            cpu: count(9_000_000),
            major_faults: count(4_000),
            read_bytes: value(90_000 * MIB + second * 37 * PAGE),
            written_bytes: value(2_000 * MIB),
            steps: value(second * 4),
            phase: value(1 + second % 4),
            batch: value(32),
            read_asked: value(110_000 * MIB + second * 41 * PAGE),
        },
        ..Sample::default()
    };
    for core in sample.cpu.core_percents.iter_mut().take(16) {
        *core = noise.below(101) as u8;
    }
    for number in 0..processes {
        sample.processes.push(process(number, second, &mut noise));
    }
    sample
}

/// Number 0 is the trainer, the others its workers, started one after the other.
fn process(number: u32, second: u64, noise: &mut Noise) -> Process {
    let is_trainer = number == 0;
    let mut pages = |around_mib: u64, spread: u64| around_mib * MIB + noise.below(spread) * PAGE;
    let vm_data = pages(if is_trainer { 14_000 } else { 9_000 }, 3000);
    let rss_anon = pages(if is_trainer { 9_000 } else { 750 }, 20_000);
    let rss_shmem = pages(60, 4000);
    let rss_file = pages(380, 2000);
    let read_bytes = pages(9_000, 40_000);
    Process {
        pid: Pid(812_345 + number * 3),
        parent: Pid(if is_trainer { 812_340 } else { 812_345 }),
        started: 30_000_000 + u64::from(number) * 4,
        name: ProcessName::new(if is_trainer {
            b"python"
        } else {
            b"pt_data_worker"
        }),
        state: if number.is_multiple_of(3) { b'R' } else { b'S' },
        vm_data: Reading::Value(vm_data),
        rss_anon: Reading::Value(rss_anon),
        rss_shmem: Reading::Value(rss_shmem),
        rss_file: Reading::Value(rss_file),
        swap: Reading::Value(0),
        threads: Reading::Value(if is_trainer { 60 } else { 4 }),
        cpu: Reading::Value(90 * second + noise.below(3000)),
        major_faults: Reading::Value(noise.below(300)),
        read_bytes: Reading::Value(read_bytes),
        written_bytes: Reading::Value(if is_trainer { 1_900 * MIB } else { 0 }),
        wall: Reading::Value(vm_data + 20_000 * MIB),
    }
}

/// Numbers that look like those of a living machine, the same each time.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
