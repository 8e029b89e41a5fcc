//! One look at this machine: `cargo run -p antifreeze-sense --example look`.
//!
//! With `--bench`, what a look costs.

use antifreeze_sense::cgroup::{AncestorLimits, CgroupLocation};
use antifreeze_sense::slow::{SlowReadings, SlowSensors};
use antifreeze_sense::{MachineSensors, Reading, Sample, parse};
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

fn main() {
    let folder = Path::new(".");
    let location = CgroupLocation::of_self();
    let mut machine = MachineSensors::open(folder);
    let mut above = AncestorLimits::open(&location);
    let mut scout = SlowSensors::new(folder);
    if std::env::args().any(|argument| argument == "--bench") {
        return bench(&mut machine, &mut above, &mut scout);
    }

    let mut sample = Sample::default();
    let mut slow = SlowReadings::default();
    machine.read(&mut sample);
    above.read(&mut sample.cgroup);
    scout.read(&mut slow);
    show(&sample, &slow);
    match location.memory_folder() {
        Some((version, folder)) => println!("cgroup       {version:?} {}", folder.path.display()),
        None => println!("cgroup       none that can be seen"),
    }
}

fn show(sample: &Sample, slow: &SlowReadings) {
    let memory = &sample.memory;
    println!(
        "memory       {} available of {}",
        mebibytes(memory.available),
        mebibytes(memory.total)
    );
    println!(
        "  anon       {}, shared {}",
        mebibytes(memory.anon),
        mebibytes(memory.shmem)
    );
    println!(
        "  swap       {} free of {}",
        mebibytes(memory.swap_free),
        mebibytes(memory.swap_total)
    );
    println!("  compressed {}", mebibytes(memory.compressed));
    let paging = &sample.paging;
    println!(
        "paging       {} pages in, {} out",
        plain(paging.swapped_in),
        plain(paging.swapped_out)
    );
    println!("  oom kills  {}", plain(paging.oom_kills));
    let pressure = &sample.pressure;
    println!(
        "stalled      memory {} µs, io {} µs",
        plain(pressure.memory_full_us),
        plain(pressure.io_full_us)
    );
    let cpu = &sample.cpu;
    println!(
        "cores        {}, {} runnable",
        cpu.core_count,
        plain(cpu.runnable)
    );
    println!("newest pid   {}", plain(cpu.newest_pid));
    let disk = &sample.disk;
    println!(
        "disk         {} free of {}",
        mebibytes(slow.disk_space.free),
        mebibytes(slow.disk_space.total)
    );
    println!(
        "  read       {}, written {}",
        mebibytes(disk.read_bytes),
        mebibytes(disk.written_bytes)
    );
    println!("  network    {}", plain(slow.network));
    println!(
        "/dev/shm     {} free of {}",
        mebibytes(slow.shm.free),
        mebibytes(slow.shm.total)
    );
    println!(
        "hottest      {}",
        or_reason(slow.thermal.hottest_millidegrees, |m| format!(
            "{} °C",
            m / 1000
        ))
    );
    println!("throttled    {}", plain(slow.thermal.throttle_count));
    let cgroup = &sample.cgroup;
    println!(
        "limit above  {}, {} left",
        mebibytes(cgroup.limit),
        mebibytes(cgroup.limit_available)
    );
}

fn or_reason(reading: Reading<u64>, show: impl FnOnce(u64) -> String) -> String {
    match reading {
        Reading::Value(value) => show(value),
        Reading::Unavailable(reason) => format!("({})", reason.describe()),
    }
}

fn mebibytes(reading: Reading<u64>) -> String {
    or_reason(reading, |bytes| format!("{} MiB", bytes >> 20))
}

fn plain(reading: Reading<u64>) -> String {
    or_reason(reading, |value| value.to_string())
}

fn bench(machine: &mut MachineSensors, above: &mut AncestorLimits, scout: &mut SlowSensors) {
    let mut sample = Sample::default();
    let mut slow = SlowReadings::default();
    let status = std::fs::read("/proc/self/status").unwrap_or_default();
    let stat = std::fs::read("/proc/self/stat").unwrap_or_default();
    time("Machine::read", 2_000, || {
        machine.read(black_box(&mut sample))
    });
    time("Above::read", 2_000, || {
        above.read(black_box(&mut sample.cgroup))
    });
    time("Scout::read", 200, || scout.read(black_box(&mut slow)));
    time("parse::status", 100_000, || {
        black_box(parse::process_status(black_box(&status)));
    });
    time("parse::stat", 100_000, || {
        black_box(parse::process_stat(black_box(&stat)));
    });
}

fn time(name: &str, rounds: u32, mut act: impl FnMut()) {
    let start = Instant::now();
    for _ in 0..rounds {
        act();
    }
    let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
    println!("{name:<14} {each:>9.2} µs");
}
