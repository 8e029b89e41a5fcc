//! Lines about parts of the machine: what they explain, and which ends have nothing to do with them.

use crate::log::logged;
use crate::scenes::{EXIT_1, GB, Scene};
use crate::{blames, is_healthy, spares};
use antifreeze_diagnose::{Code, RunState};

const CORRECTED: &str = "mce: [Hardware Error]: Corrected error, no action required.";
const UNCORRECTED: &str =
    "mce: [Hardware Error]: Uncorrected, software containable error. CPU:2 Bank 5";
const DISK: &str = "I/O error, dev sdb, sector 12345 op 0x0:(READ) flags 0x0 phys_seg 1";
const LOST: &str = "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.";
const BLENDER: &str = "NVRM: Xid (PCI:0000:01:00): 13, pid=777, name=blender, Graphics Exception";
const RING: &str = "amdgpu 0000:03:00.0: amdgpu: ring gfx timeout, signaled seq=7, emitted seq=9";
const PANIC: &str = "Kernel panic - not syncing: Fatal exception";
const LOCKUP: &str = "watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [python:1234]";
const OVERHEATED: &str = "thermal thermal_zone0: critical temperature reached, shutting down";

/// All that a machine may say of its parts.
const ALL: [&str; 18] = [
    CORRECTED,
    UNCORRECTED,
    "mce: [Hardware Error]: Machine check events logged",
    "{1}[Hardware Error]: event severity: corrected",
    "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0",
    "I/O error, dev sr0, sector 0 op 0x0:(READ) flags 0x0",
    "I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0",
    "I/O error, dev loop7, sector 0 op 0x0:(READ) flags 0x0",
    "Buffer I/O error on dev sdc1, logical block 0, async page read",
    "EXT4-fs (sdc1): Remounting filesystem read-only",
    DISK,
    LOST,
    BLENDER,
    RING,
    PANIC,
    LOCKUP,
    OVERHEATED,
    "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
];

fn run() -> Scene {
    Scene::new().steady(300, 4 * GB)
}

fn raised(error: &str) -> Scene {
    let output = format!(
        "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n    f(x)\n{error}\n"
    );
    run().printed(&output).ended(300, EXIT_1)
}

fn died() -> Scene {
    let mut scene = run();
    scene.facts.state = RunState::Rebooted;
    scene
}

fn crashed(signal: u32) -> Scene {
    run().ended(300, signal)
}

fn pasted(scene: &Scene) -> Option<String> {
    let verdict = scene.verdict();
    let cause = verdict
        .causes
        .iter()
        .find(|cause| cause.code == Code::HardwareError);
    assert!(cause.is_some(), "{:#?}", verdict.causes);
    cause?.remedies[0].code.clone()
}

#[test]
fn an_error_of_the_script_is_told_whatever_the_machine_says_of_its_parts() {
    for line in ALL {
        let scene = logged(raised("ValueError: bad shape"), 299, &[line]);
        blames(&scene, Code::UserException, 0.9);
        let others = &scene.verdict().causes[1..];
        assert!(
            others.iter().all(|cause| cause.confidence <= 0.4),
            "{line}: {others:#?}"
        );
    }
}

#[test]
fn a_run_that_ends_well_has_not_felt_any_of_it() {
    for line in ALL {
        is_healthy(&logged(run().ended(300, 0), 299, &[line]));
    }
}

#[test]
fn what_a_disk_did_explains_what_could_not_be_read_and_what_fell() {
    for (scene, sure) in [
        (
            raised("OSError: [Errno 5] Input/output error: 'data.bin'"),
            0.8,
        ),
        (
            raised("OSError: Unable to read data (file read failed)"),
            0.8,
        ),
        (crashed(7), 0.8),
        (crashed(11), 0.7),
        (died(), 0.8),
    ] {
        blames(&logged(scene, 299, &[DISK]), Code::HardwareError, sure);
    }
    let read_only = "EXT4-fs (sdc1): Remounting filesystem read-only";
    let error = "OSError: [Errno 30] Read-only file system: 'last.pt'";
    blames(
        &logged(raised(error), 299, &[read_only]),
        Code::HardwareError,
        0.8,
    );
    for other in [
        "OSError: [Errno 28] No space left on device",
        "OSError: [Errno 54] made up",
        "FileNotFoundError: [Errno 2] No such file or directory: 'a'",
        "RuntimeError: CUDA error: unknown error",
    ] {
        spares(&logged(raised(other), 299, &[DISK]), Code::HardwareError);
    }
    // Minutes before the end: it went on from that.
    let long = || Scene::new().steady(900, 4 * GB).ended(900, 11);
    blames(&logged(long(), 899, &[DISK]), Code::HardwareError, 0.7);
    blames(&logged(long(), 100, &[DISK]), Code::NativeCrash, 0.7);
    for beside in ["sr0", "fd0", "loop7", "zram0"] {
        let line = DISK.replace("sdb", beside);
        spares(&logged(crashed(7), 299, &[&line]), Code::HardwareError);
    }
}

#[test]
fn the_disk_that_the_log_names_is_to_be_looked_at() {
    for (device, paste) in [
        ("sdb", Some("sudo smartctl -a /dev/sdb")),
        ("sdc1", Some("sudo smartctl -a /dev/sdc")),
        ("nvme1n1", Some("sudo smartctl -a /dev/nvme1")),
        ("nvme0n1p3", Some("sudo smartctl -a /dev/nvme0")),
        ("dm-0", Some("lsblk -s /dev/dm-0")),
        ("md127", Some("lsblk -s /dev/md127")),
        ("mmcblk0p1", None),
        ("vda1", None),
        ("$(reboot)", None),
    ] {
        let scene = logged(died(), 299, &[&DISK.replace("sdb", device)]);
        assert_eq!(pasted(&scene).as_deref(), paste, "{device}");
    }
    // Only its own words are left: the disk is that of its folder.
    let mut scene = raised("OSError: [Errno 5] Input/output error: 'data.bin'");
    assert_eq!(pasted(&scene).as_deref(), Some("findmnt --target ."));
    scene.facts.mount = Some("ext4 /dev/sdd2 on /home".into());
    assert_eq!(pasted(&scene).as_deref(), Some("sudo smartctl -a /dev/sdd"));
    scene.facts.mount = Some("nfs4 server:/home on /home".into());
    assert_eq!(pasted(&scene), None);
}

#[test]
fn what_was_corrected_is_no_cause_and_what_was_not_is_one_of_a_fall() {
    for scene in [died(), crashed(7), crashed(11)] {
        blames(
            &logged(scene, 299, &[UNCORRECTED]),
            Code::HardwareError,
            0.8,
        );
    }
    for corrected in [
        CORRECTED,
        "{1}[Hardware Error]: It has been corrected by h/w and requires no further action",
        "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 5: 9c20000000000108",
    ] {
        for scene in [died(), crashed(11), run().ended(300, EXIT_1)] {
            let causes = logged(scene, 299, &[corrected]).verdict().causes;
            let hardware = causes
                .iter()
                .find(|cause| cause.code == Code::HardwareError);
            assert!(
                hardware.is_none_or(|cause| cause.confidence < 0.4),
                "{corrected}: {causes:#?}"
            );
        }
    }
    // Several lines, of which only one says how grave it was.
    let report = [
        "mce: [Hardware Error]: Machine check events logged",
        CORRECTED,
    ];
    let causes = logged(died(), 299, &report).verdict().causes;
    assert_eq!(causes[0].code, Code::MachineReset, "{causes:#?}");
}

#[test]
fn a_card_that_is_lost_ends_what_used_it_and_what_fell() {
    let busy = || run().card(|_, _| {});
    for scene in [
        died(),
        crashed(6),
        run().ended(300, 9),
        busy().ended(300, EXIT_1),
        raised("RuntimeError: CUDA error: unknown error"),
        raised("torch.distributed.DistBackendError: NCCL error: remote process exited"),
    ] {
        blames(&logged(scene, 299, &[LOST]), Code::GpuLost, 0.9);
    }
    let mut running = busy();
    running.facts.state = RunState::StillGuarded;
    blames(&logged(running, 299, &[LOST]), Code::GpuLost, 0.6);
    let mut running = run();
    running.facts.state = RunState::StillGuarded;
    is_healthy(&logged(running, 299, &[LOST]));
    let other = logged(raised("ValueError: bad shape"), 299, &[LOST]);
    spares(&other, Code::GpuLost);
    let hello =
        r#"{"what":"hello","t":1,"pid":7,"framework":"torch","version":"2.8","device":"cpu"}"#;
    for status in [EXIT_1, 9, 11] {
        let cpu = logged(run().said(hello).ended(300, status), 299, &[LOST]);
        let causes = cpu.verdict().causes;
        let lost = causes.iter().find(|cause| cause.code == Code::GpuLost);
        assert!(
            lost.is_none_or(|lost| lost.confidence <= 0.5),
            "{status}: {causes:#?}"
        );
    }
}

#[test]
fn the_fault_of_another_program_on_the_card_is_not_this_ones() {
    let error = "RuntimeError: CUDA error: unknown error";
    spares(&logged(raised(error), 299, &[BLENDER]), Code::GpuFault);
    let own = BLENDER.replace("777", "1234").replace("blender", "python");
    blames(&logged(raised(error), 299, &[&own]), Code::GpuFault, 0.85);
    let unsaid = "NVRM: Xid (PCI:0000:01:00): 13, Graphics Exception";
    blames(&logged(raised(error), 299, &[unsaid]), Code::GpuFault, 0.7);
    // That there is one in the log is not denied.
    let died = logged(died(), 299, &[BLENDER]).verdict();
    assert!(
        died.ruled_out
            .iter()
            .all(|ruled| ruled.code != Code::GpuFault)
    );
    // A reset takes the work of all; what the program itself says is surer.
    let reset = "NVRM: Xid (PCI:0000:01:00): 62, pid=777, name=blender, internal halt";
    let lost = logged(raised(error), 299, &[reset]);
    blames(&lost, Code::GpuFault, 0.75);
    spares(
        &logged(raised("ValueError: bad shape"), 299, &[reset]),
        Code::GpuFault,
    );
    let illegal = "RuntimeError: CUDA error: an illegal memory access was encountered";
    let illegal = logged(raised(illegal), 299, &[reset]);
    blames(&illegal, Code::GpuFault, 0.85);
    assert!(illegal.verdict().causes[0].summary.contains("illegal"));
    let hip = "RuntimeError: HIP error: unspecified launch failure";
    blames(&logged(raised(hip), 299, &[RING]), Code::GpuFault, 0.85);
}

#[test]
fn a_panic_ends_a_machine_and_not_a_run() {
    blames(&logged(died(), 299, &[PANIC]), Code::KernelPanic, 0.9);
    for scene in [run().ended(300, EXIT_1), crashed(11), run().ended(300, 15)] {
        spares(&logged(scene, 299, &[PANIC]), Code::KernelPanic);
    }
    // A run that was killed may have hung in it.
    let hung = logged(run().ended(300, 9), 299, &[LOCKUP]).verdict();
    assert!(
        hung.causes
            .iter()
            .any(|cause| cause.code == Code::KernelPanic && cause.confidence < 0.5),
        "{:#?}",
        hung.causes
    );
}
