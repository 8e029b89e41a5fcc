use super::MachineSensors;
use crate::{Reading, Reason, Sample};
use Reading::{Unavailable, Value};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const ABSENT: Reading<u64> = Unavailable(Reason::Absent);

const MEMINFO: &str = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  400 kB\n\
SwapTotal:  0 kB\nSwapFree:  0 kB\n";

/// A kernel of our own making: what is not written into it does not exist.
struct Kernel {
    home: TempDir,
}

impl Kernel {
    fn new() -> Kernel {
        Kernel {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn with(self, file: &str, text: &str) -> Kernel {
        self.write(file, text);
        self
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.home.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn open(&self) -> MachineSensors {
        let home = self.home.path();
        MachineSensors::open_at(&home.join("proc"), &home.join("sys"), home)
    }

    fn sample(&self) -> Sample {
        let mut sample = Sample::default();
        self.open().read(&mut sample);
        sample
    }
}

#[test]
fn a_kernel_without_anything_is_explained_and_not_zero() {
    let sample = Kernel::new().sample();
    assert_eq!(sample.memory.total, ABSENT);
    assert_eq!(sample.paging.swapped_in, ABSENT);
    assert_eq!(sample.pressure.memory_full_us, ABSENT);
    assert_eq!(sample.cpu.user, ABSENT);
    assert_eq!(sample.cpu.newest_pid, ABSENT);
    assert_eq!(sample.cpu.core_count, 0);
    assert_eq!(sample.disk.reads, ABSENT);
    assert!(sample.at.monotonic_ns > 0 && sample.at.realtime_ns > sample.at.monotonic_ns);
}

#[test]
fn without_pressure_and_swap_the_rest_is_read() {
    let sample = Kernel::new()
        .with("proc/meminfo", MEMINFO)
        .with("proc/vmstat", "pgmajfault 7\noom_kill 0\n")
        .sample();
    assert_eq!(sample.memory.available, Value(400 * 1024));
    assert_eq!(sample.memory.swap_total, Value(0));
    assert_eq!(sample.memory.compressed, ABSENT);
    assert_eq!(sample.paging.major_faults, Value(7));
    assert_eq!(sample.paging.swapped_in, ABSENT);
    assert_eq!(sample.pressure.memory_some_us, ABSENT);
}

#[test]
fn pressure_is_told_for_each_resource() {
    let psi = |some: u32, full: u32| {
        format!("some avg10=0.00 total={some}\nfull avg10=0.00 total={full}\n")
    };
    let sample = Kernel::new()
        .with("proc/pressure/cpu", &psi(1, 2))
        .with("proc/pressure/memory", &psi(3, 4))
        .with("proc/pressure/io", &psi(5, 6))
        .sample();
    assert_eq!(sample.pressure.cpu_some_us, Value(1));
    assert_eq!(sample.pressure.memory_some_us, Value(3));
    assert_eq!(sample.pressure.memory_full_us, Value(4));
    assert_eq!(sample.pressure.io_some_us, Value(5));
    assert_eq!(sample.pressure.io_full_us, Value(6));
}

#[test]
fn compressed_memory_is_that_of_all_zram_devices_and_of_zswap() {
    let sample = Kernel::new()
        .with("proc/meminfo", "MemTotal: 1000 kB\nZswap: 1 kB\n")
        .with("sys/block/zram0/mm_stat", " 9 8 2048 0 0 0 0 0 0\n")
        .with("sys/block/zram1/mm_stat", " 9 8 4096 0 0 0 0 0 0\n")
        .with("sys/block/sda/stat", "1\n")
        .sample();
    assert_eq!(sample.memory.compressed, Value(1024 + 2048 + 4096));
}

#[test]
fn the_cache_of_zfs_counts_as_available_down_to_its_smallest_size() {
    let arc = |size: u64| {
        format!("13 1 0x01 147 39984 4 5\nname type data\nc_min 4 10240\nsize 4 {size}\n")
    };
    let with_arc = |size| {
        Kernel::new()
            .with("proc/meminfo", MEMINFO)
            .with("proc/spl/kstat/zfs/arcstats", &arc(size))
            .sample()
            .memory
            .available
    };
    assert_eq!(with_arc(110 * 1024), Value((400 + 100) * 1024));
    assert_eq!(with_arc(1), Value(400 * 1024));
    // Never more than there is.
    assert_eq!(with_arc(1 << 40), Value(1000 * 1024));
}

#[test]
fn a_truncated_file_gives_what_it_holds_and_no_half_numbers() {
    let sample = Kernel::new()
        .with("proc/meminfo", "MemTotal:  1000 kB\nMemAvail")
        .with("proc/loadavg", "0.10 0.2")
        .with("proc/stat", "cpu  10 0")
        .sample();
    assert_eq!(sample.memory.total, Value(1000 * 1024));
    assert_eq!(sample.memory.available, ABSENT);
    assert_eq!(
        sample.cpu.load_hundredths[0],
        Unavailable(Reason::Malformed)
    );
    assert_eq!(sample.cpu.user, Unavailable(Reason::Malformed));
    assert_eq!(sample.cpu.core_count, 0);
}

#[test]
fn cores_are_busy_since_the_look_before() {
    let kernel = Kernel::new().with(
        "proc/stat",
        "cpu0 50 0 0 50 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0\n",
    );
    let mut machine = kernel.open();
    let mut sample = Sample::default();
    machine.read(&mut sample);
    assert_eq!(sample.cpu.core_count, 2);
    assert_eq!(sample.cpu.core_percents[..2], [50, 0], "since boot");

    kernel.write(
        "proc/stat",
        "cpu0 50 0 0 150 0 0 0 0\ncpu1 0 0 75 125 0 0 0 0\n",
    );
    machine.read(&mut sample);
    assert_eq!(sample.cpu.core_percents[..2], [0, 75]);

    machine.read(&mut sample);
    assert_eq!(
        sample.cpu.core_percents[..2],
        [0, 75],
        "no tick passed: still what was known"
    );
}

#[test]
fn a_core_that_is_switched_off_does_not_lend_its_past_to_another() {
    let kernel = Kernel::new().with(
        "proc/stat",
        "cpu0 0 0 0 100 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0\ncpu2 100 0 0 0 0 0 0 0\n",
    );
    let mut machine = kernel.open();
    let mut sample = Sample::default();
    machine.read(&mut sample);
    kernel.write(
        "proc/stat",
        "cpu0 0 0 0 200 0 0 0 0\ncpu2 110 0 0 90 0 0 0 0\n",
    );
    machine.read(&mut sample);
    assert_eq!(sample.cpu.core_count, 2);
    assert_eq!(sample.cpu.core_percents[..2], [0, 10]);
}

#[test]
fn counters_that_fall_do_not_make_a_core_busy() {
    let kernel = Kernel::new().with("proc/stat", "cpu0 0 0 0 100 900 0 0 0\n");
    let mut machine = kernel.open();
    let mut sample = Sample::default();
    machine.read(&mut sample);
    kernel.write("proc/stat", "cpu0 5 0 0 100 800 0 0 0\n");
    machine.read(&mut sample);
    assert_eq!(sample.cpu.core_percents[0], 0);
}

/// A block device of this machine, with its number.
fn some_block_device() -> Option<(String, String)> {
    fs::read_dir("/sys/block")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let source = format!("/dev/{}", entry.file_name().to_str()?);
            let number = fs::read_to_string(entry.path().join("dev")).ok()?;
            let number = number.trim().replace(':', " ");
            Path::new(&source).exists().then_some((source, number))
        })
}

#[test]
fn a_file_system_that_numbers_itself_is_traced_to_its_device() {
    let Some((source, number)) = some_block_device() else {
        return eprintln!("skipped: no block device to be seen here");
    };
    // A tmpfs has no device, as btrfs has none in the eyes of stat.
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("skipped: no /dev/shm to write to");
    };
    let point = folder.path().display();
    let mounted = |kind: &str, source: &str| {
        let table =
            format!("1 0 0:5 / / rw - ext4 x rw\n2 1 0:9 / {point} rw - {kind} {source} rw\n");
        let kernel = Kernel::new().with("proc/self/mountinfo", &table).with(
            "proc/diskstats",
            &format!("{number} x 11 0 0 0 0 0 0 0 0 0 0\n"),
        );
        let home = kernel.home.path();
        let mut sample = Sample::default();
        MachineSensors::open_at(&home.join("proc"), &home.join("sys"), folder.path())
            .read(&mut sample);
        sample.disk.reads
    };
    assert_eq!(mounted("btrfs", &source), Value(11));
    assert_eq!(mounted("tmpfs", "tmpfs"), ABSENT);
    assert_eq!(mounted("nfs4", "host:/export"), ABSENT);
}

#[test]
fn what_others_filled_is_left_alone() {
    let mut sample = Sample::default();
    sample.disk.space.free = Value(1);
    sample.disk.network = Value(1);
    sample.thermal.hottest_millidegrees = Value(2);
    sample.tree.count = Value(3);
    Kernel::new().open().read(&mut sample);
    assert_eq!(sample.disk.space.free, Value(1));
    assert_eq!(sample.disk.network, Value(1));
    assert_eq!(sample.thermal.hottest_millidegrees, Value(2));
    assert_eq!(sample.tree.count, Value(3));
}

#[test]
fn this_machine_can_be_read() {
    let mut machine = MachineSensors::open(Path::new("/"));
    let mut sample = Sample::default();
    machine.read(&mut sample);
    let memory = sample.memory;
    assert!(memory.total.value().unwrap() >= memory.available.value().unwrap());
    assert!(memory.available.value().unwrap() > 0);
    assert!(sample.cpu.core_count > 0);
    assert!(
        sample
            .cpu
            .core_percents
            .iter()
            .all(|percent| *percent <= 100)
    );
    // Numbers begin anew when they are used up, so that ours may be larger.
    assert!(sample.cpu.newest_pid.value().unwrap() > 0);
    assert!(sample.paging.major_faults.value().is_some());
}
