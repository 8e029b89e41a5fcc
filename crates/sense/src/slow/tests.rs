use super::process::{ProcessFolder, for_each_line};
use super::{
    SlowReadings, SlowSensors, count_open_files, read_mapped_files, read_pss,
    visit_files_being_written,
};
use crate::{Gpus, Pid, Reading, Reason};
use Reading::{Unavailable, Value};
use proptest::prelude::*;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn me() -> Pid {
    Pid(std::process::id())
}

/// A process that ended and was waited for: its number is free.
fn ended() -> Pid {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    Pid(child.id())
}

fn scout(home: &Path, files: &[(&str, &str)]) -> SlowReadings {
    for (name, text) in files {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let mut slow = SlowReadings::default();
    SlowSensors::open_at(
        &home.join("proc"),
        &home.join("sys"),
        &home.join("shm"),
        home,
    )
    .read(&mut slow);
    slow
}

#[test]
fn the_hottest_plausible_sensor_is_told() {
    let home = tempfile::tempdir().unwrap();
    let slow = scout(
        home.path(),
        &[
            ("sys/class/thermal/thermal_zone0/temp", "45000\n"),
            ("sys/class/thermal/thermal_zone1/temp", "-128000\n"),
            ("sys/class/thermal/cooling_device0/temp", "99000\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "255000\n"),
            ("sys/class/hwmon/hwmon0/temp2_input", "71500\n"),
            ("sys/class/hwmon/hwmon0/temp2_crit", "100000\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "0\n"),
        ],
    );
    assert_eq!(slow.thermal.hottest_millidegrees, Value(71_500));
}

#[test]
fn a_device_that_sleeps_is_left_asleep() {
    let home = tempfile::tempdir().unwrap();
    let card = "sys/class/hwmon/hwmon0";
    let slow = scout(
        home.path(),
        &[
            (&format!("{card}/temp1_input"), "80000\n"),
            (
                &format!("{card}/device/power/runtime_status"),
                "suspended\n",
            ),
            ("sys/class/hwmon/hwmon1/temp1_input", "40000\n"),
            (
                "sys/class/hwmon/hwmon1/device/power/runtime_status",
                "active\n",
            ),
        ],
    );
    assert_eq!(slow.thermal.hottest_millidegrees, Value(40_000));
}

#[test]
fn a_packages_slow_downs_count_once_and_its_cores_each() {
    let home = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for (cpu, package, core) in [(0, 0, 1), (1, 0, 2), (2, 1, 4)] {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        files.push((
            format!("{folder}/thermal_throttle/core_throttle_count"),
            format!("{core}\n"),
        ));
        files.push((
            format!("{folder}/thermal_throttle/package_throttle_count"),
            format!("{}\n", 100 * (package + 1)),
        ));
        files.push((
            format!("{folder}/topology/physical_package_id"),
            format!("{package}\n"),
        ));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let slow = scout(home.path(), &files);
    assert_eq!(slow.thermal.throttle_count, Value(1 + 2 + 4 + 100 + 200));
}

#[test]
fn a_machine_without_sensors_has_no_temperature_rather_than_zero() {
    let home = tempfile::tempdir().unwrap();
    let slow = scout(home.path(), &[]);
    assert_eq!(
        slow.thermal.hottest_millidegrees,
        Unavailable(Reason::Absent)
    );
    assert_eq!(slow.thermal.throttle_count, Unavailable(Reason::Absent));
    assert_eq!(slow.shm.free, Unavailable(Reason::Absent));
    assert_eq!(slow.network, Unavailable(Reason::Absent));
}

#[test]
fn the_folders_file_system_is_measured() {
    let home = tempfile::tempdir().unwrap();
    let slow = scout(home.path(), &[]);
    let expected = rustix::fs::statvfs(home.path()).unwrap();
    assert_eq!(
        slow.disk_space.total,
        Value(expected.f_blocks * expected.f_frsize)
    );
    assert!(slow.disk_space.free.value().unwrap() <= slow.disk_space.total.value().unwrap());
}

#[test]
fn a_network_mount_is_known_by_its_type() {
    for (kind, far) in [
        ("nfs4", 1),
        ("fuse.sshfs", 1),
        ("9p", 1),
        ("ext4", 0),
        ("fuse.mergerfs", 0),
    ] {
        let home = tempfile::tempdir().unwrap();
        let point = home.path().canonicalize().unwrap();
        let table = format!(
            "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / {} rw - {kind} source rw\n",
            point.display()
        );
        let slow = scout(home.path(), &[("proc/self/mountinfo", &table)]);
        assert_eq!(slow.network, Value(far), "{kind}");
    }
}

#[test]
fn a_process_that_ended_is_gone_and_not_absent() {
    let pid = ended();
    assert_eq!(read_pss(pid), Unavailable(Reason::Gone));
    assert_eq!(count_open_files(pid), Unavailable(Reason::Gone));
    assert_eq!(
        read_mapped_files(pid, &[b"libc"]),
        Unavailable(Reason::Gone)
    );
    assert_eq!(
        visit_files_being_written(pid, |_, _| {}),
        Unavailable(Reason::Gone)
    );
}

#[test]
fn a_process_that_ends_while_it_is_looked_at_is_gone() {
    let child = Waiting::new();
    let look = ProcessFolder::open(Pid(child.0.id())).unwrap();
    assert_eq!(look.open_file(c"no-such-file").unwrap_err(), Errno::NOENT);
    drop(child);
    assert_eq!(look.open_file(c"smaps_rollup").unwrap_err(), Errno::SRCH);
}

/// A child that is up and waits for its input to end.
struct Waiting(Child);

impl Waiting {
    fn new() -> Waiting {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // What it sends back shows that it has loaded its libraries and closed them.
        child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        Waiting(child)
    }

    fn count_open_files(&self) -> u64 {
        count_open_files(Pid(self.0.id())).value().unwrap()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn memory_that_is_filled_shows_in_the_share() {
    const SIZE: usize = 16 << 20;
    let before = read_pss(me()).value().unwrap();
    let filled = std::hint::black_box(vec![1u8; SIZE]);
    let after = read_pss(me()).value().unwrap();
    drop(filled);
    assert!(after.anon + after.swap >= before.anon + before.swap + SIZE as u64 / 2);
}

#[test]
fn every_open_file_is_counted_however_many() {
    let few = Waiting::new().count_open_files();
    let handed_on: Vec<_> = (0..300)
        .map(|_| {
            let file = fs::File::open("/dev/null").unwrap();
            fcntl_setfd(&file, FdFlags::empty()).unwrap();
            file
        })
        .collect();
    let many = Waiting::new().count_open_files();
    assert_eq!(many, few + handed_on.len() as u64);
}

#[test]
fn a_mapped_library_is_found_by_a_part_of_its_path_and_the_data_of_files_are_counted() {
    let needle = |needles: &[&[u8]]| read_mapped_files(me(), needles).value().unwrap().needle;
    assert_eq!(needle(&[b"no-such-library", b"libc.so"]), Some(1));
    assert_eq!(needle(&[b"no-such-library", b""]), None);

    let before = read_mapped_files(me(), &[]).value().unwrap().file_data;
    assert!((4096..64 << 20).contains(&before), "{before}");
    let home = tempfile::tempdir().unwrap();
    let map = |name: &str, rights, kind| {
        let library = fs::File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(home.path().join(name))
            .unwrap();
        library.set_len(32 << 20).unwrap();
        // SAFETY: anywhere, and nothing looks into it.
        unsafe { rustix::mm::mmap(core::ptr::null_mut(), 32 << 20, rights, kind, &library, 0) }
            .unwrap();
        read_mapped_files(me(), &[]).value().unwrap().file_data
    };
    use rustix::mm::{MapFlags, ProtFlags};
    let both = ProtFlags::READ | ProtFlags::WRITE;
    assert_eq!(
        map("libmade up.so.1", ProtFlags::READ, MapFlags::PRIVATE),
        before
    );
    assert_eq!(map("libmade up.so.1", both, MapFlags::SHARED), before);
    let after = map("libmade up.so.1", both, MapFlags::PRIVATE);
    assert_eq!(after - before, 32 << 20);
    let after = map("model.bin", both, MapFlags::PRIVATE);
    assert_eq!(after - before, 64 << 20);
    // SAFETY: as above.
    let anonymous = unsafe {
        rustix::mm::mmap_anonymous(core::ptr::null_mut(), 32 << 20, both, MapFlags::PRIVATE)
    };
    assert!(anonymous.is_ok());
    assert_eq!(map("model.bin", ProtFlags::READ, MapFlags::PRIVATE), after);
}

#[test]
fn only_regular_living_files_open_for_writing_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let mut saved = fs::File::create(home.join("model.pt")).unwrap();
    saved.write_all(&[0; 1234]).unwrap();
    fs::write(home.join("data"), "x").unwrap();
    let _read = fs::File::open(home.join("data")).unwrap();
    let _deleted = fs::File::create(home.join("deleted")).unwrap();
    fs::remove_file(home.join("deleted")).unwrap();
    let _device = fs::File::create("/dev/null").unwrap();

    let mut seen = Vec::new();
    let listed = visit_files_being_written(me(), |path, size| seen.push((path.to_vec(), size)));
    assert_eq!(listed, Value(()));
    let here = home.as_os_str().as_encoded_bytes();
    seen.retain(|(path, _)| path.starts_with(here));
    assert_eq!(seen, [([here, b"/model.pt"].concat(), 1234)]);
    drop(saved);
}

proptest! {
    /// Wherever the pieces of a stream end, its lines are the same.
    #[test]
    fn lines_are_whole_across_any_pieces(
        lines in prop::collection::vec("[a-z]{0,3000}", 0..12), pieces in prop::collection::vec(1usize..3000, 1..50),
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut seen = Vec::new();
        let mut at = 0;
        let mut sizes = pieces.into_iter().cycle();
        let next = |space: &mut [u8]| {
            let size = sizes.next().unwrap().min(space.len()).min(text.len() - at);
            space[..size].copy_from_slice(&text.as_bytes()[at..at + size]);
            at += size;
            Ok(size)
        };
        for_each_line(next, |line| seen.push(String::from_utf8(line.to_vec()).unwrap())).unwrap();
        prop_assert_eq!(seen, lines);
    }
}

#[test]
fn a_line_that_is_too_long_does_not_hide_the_next() {
    let text = [vec![b'x'; 30_000], b"\nlast\n".to_vec()].concat();
    let mut rest = &text[..];
    let mut last = Vec::new();
    for_each_line(
        |space| Ok(rest.read(space).unwrap()),
        |line| last = line.to_vec(),
    )
    .unwrap();
    assert_eq!(last, b"last");
}

#[test]
fn cards_that_are_awake_are_told_together() {
    let home = tempfile::tempdir().unwrap();
    let card = "sys/class/drm/card0/device";
    let other = "sys/class/drm/card1/device";
    let files = [
        (format!("{card}/mem_info_vram_total"), "8000\n"),
        (format!("{card}/mem_info_vram_used"), "6000\n"),
        (format!("{card}/gpu_busy_percent"), "97\n"),
        (format!("{card}/hwmon/hwmon3/temp1_input"), "71000\n"),
        (format!("{card}/hwmon/hwmon3/power1_average"), "90000000\n"),
        (format!("{card}/hwmon/hwmon3/power1_cap"), "150000000\n"),
        (format!("{other}/mem_info_vram_total"), "4000\n"),
        (format!("{other}/mem_info_vram_used"), "100\n"),
        (format!("{other}/gpu_busy_percent"), "3\n"),
        (
            "sys/class/drm/card0-DP-1/device/mem_info_vram_total".into(),
            "1\n",
        ),
        (
            "sys/class/drm/renderD128/device/mem_info_vram_total".into(),
            "1\n",
        ),
        ("sys/class/drm/card2/device/vendor".into(), "0x10de\n"),
    ];
    let mut files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    let both = Gpus {
        memory_used: Value(6100),
        memory_total: Value(12_000),
        busy_percent: Value(97),
        hottest_millidegrees: Value(71_000),
        power_microwatts: Value(90_000_000),
        power_limit_microwatts: Value(150_000_000),
        throttle_bits: Unavailable(Reason::Absent),
        fullest_permille: Value(750),
        count: Value(2),
        lost: Unavailable(Reason::Absent),
    };
    assert_eq!(scout(home.path(), &files).gpus, both);

    let asleep = format!("{card}/power/runtime_status");
    files.push((&asleep, "suspended\n"));
    let one = Gpus {
        memory_used: Value(100),
        memory_total: Value(4000),
        busy_percent: Value(3),
        hottest_millidegrees: Unavailable(Reason::Absent),
        power_microwatts: Unavailable(Reason::Absent),
        power_limit_microwatts: Unavailable(Reason::Absent),
        throttle_bits: Unavailable(Reason::Absent),
        fullest_permille: Value(25),
        count: Value(1),
        lost: Unavailable(Reason::Absent),
    };
    assert_eq!(scout(home.path(), &files).gpus, one);
}
