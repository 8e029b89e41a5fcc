//! What the system's log tells, if it is of the time of the run.

use crate::scenes::{EXIT_1, GB, Scene};
use crate::{blames, is_healthy, rules_out, spares};
use antifreeze_diagnose::kernel::{Log, incidents};
use antifreeze_diagnose::{Code, RunState};

/// With these lines in the log, at a second of the run, which begins 1000 s after the boot.
pub fn logged(mut scene: Scene, second: u64, lines: &[&str]) -> Scene {
    let text: String = lines
        .iter()
        .map(|line| format!("[{:5}.000000] {line}\n", 1000 + second))
        .collect();
    scene.facts.log = Log {
        incidents: incidents(text.as_bytes(), jiff::Timestamp::UNIX_EPOCH),
        read: vec!["the kernel's log".into()],
        missing: Vec::new(),
    };
    scene
}

/// The machine went down under a run of five minutes.
fn died() -> Scene {
    let mut scene = Scene::new().steady(300, 4 * GB);
    scene.facts.state = RunState::Rebooted;
    scene
}

fn failed() -> Scene {
    Scene::new().steady(300, 4 * GB).ended(300, EXIT_1)
}

#[test]
fn what_took_the_machine_down_is_told_and_what_came_before_the_run_is_not() {
    for (line, code, sure) in [
        (
            "Kernel panic - not syncing: Fatal exception",
            Code::KernelPanic,
            0.9,
        ),
        (
            "BUG: unable to handle page fault for address: ffff8881",
            Code::KernelPanic,
            0.8,
        ),
        (
            "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 5",
            Code::HardwareError,
            0.8,
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 79, pid=77, GPU has fallen off the bus.",
            Code::GpuLost,
            0.9,
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 62, pid=77, internal halt",
            Code::GpuFault,
            0.85,
        ),
        (
            "thermal thermal_zone0: critical temperature reached (105 C), shutting down",
            Code::ThermalThrottle,
            0.9,
        ),
    ] {
        blames(&logged(died(), 298, &[line]), code, sure);
        // Minutes before it began.
        let mut before = logged(died(), 298, &[line]);
        for incident in &mut before.facts.log.incidents {
            incident.line.since_boot = Some(std::time::Duration::from_secs(600));
        }
        blames(&before, Code::MachineReset, 0.5);
        spares(&before, code);
    }
}

#[test]
fn a_log_that_is_silent_rules_out_what_it_would_have_told() {
    let silent = logged(died(), 298, &[]);
    rules_out(&silent, Code::KernelPanic);
    rules_out(&silent, Code::GpuFault);
    let mut unread = silent;
    unread.facts.log = Log::default();
    unread.facts.log.missing = vec!["the journal: there is none".into()];
    let verdict = unread.verdict();
    assert!(
        verdict
            .ruled_out
            .iter()
            .all(|ruled| ruled.code != Code::KernelPanic)
    );
    assert!(
        verdict
            .unseen
            .contains(&"the journal: there is none".into()),
        "{:?}",
        verdict.unseen
    );
}

#[test]
fn a_machine_that_was_shut_down_did_not_die() {
    let scene = logged(died(), 299, &["reboot: Restarting system"]);
    blames(&scene, Code::KilledExternally, 0.85);
    rules_out(&scene, Code::MachineReset);
}

#[test]
fn the_fault_of_a_card_comes_before_its_consequences() {
    let lines = [
        "NVRM: Xid (PCI:0000:01:00): 31, pid=1234, name=python, MMU Fault",
        "NVRM: Xid (PCI:0000:01:00): 45, pid=1234, name=python, Ch 00000008",
    ];
    let scene = logged(failed(), 299, &lines);
    blames(&scene, Code::GpuFault, 0.85);
    assert!(scene.verdict().causes[0].summary.contains(": 31,"));
    // A run that ends well has not felt it.
    let well = Scene::new().steady(300, 4 * GB).ended(300, 0);
    is_healthy(&logged(well, 299, &lines[..1]));
}

#[test]
fn an_error_that_was_corrected_is_only_possible() {
    let disk = "I/O error, dev sda, sector 12345 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2";
    // Why it failed nobody says: it may have been that.
    blames(&logged(failed(), 299, &[disk]), Code::HardwareError, 0.6);
    assert!(logged(failed(), 299, &[disk]).verdict().causes[0].confidence < 0.75);
    let corrected = "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0";
    let verdict = logged(failed(), 299, &[corrected]).verdict();
    assert!(
        verdict.causes.iter().all(|cause| cause.confidence < 0.5),
        "{:#?}",
        verdict.causes
    );
}

#[test]
fn a_power_limit_counts_when_it_lasts() {
    let well = || Scene::new().steady(300, 4 * GB).ended(300, 0);
    let notes = |seconds: std::ops::Range<u64>| {
        let mut scene = well();
        for second in seconds {
            let line = format!(
                "CPU{}: Package power limit notification (total events = {second})",
                second % 4
            );
            let one = logged(well(), second, &[&line]);
            scene.facts.log.incidents.extend(one.facts.log.incidents);
        }
        scene
    };
    blames(&notes(10..40), Code::PowerLimit, 0.4);
    is_healthy(&notes(10..13));
}

#[test]
fn who_else_ended_it_is_named() {
    let killed = |line: &str| {
        let mut scene = Scene::new().steady(300, 4 * GB).ended(300, 15);
        let text = format!("2026-11-15T02:13:59+0000 host {line}\n");
        scene.facts.log.incidents = incidents(text.as_bytes(), jiff::Timestamp::MAX);
        scene
    };
    let earlyoom =
        killed("earlyoom[9]: sending SIGTERM to process 1234 uid 1000 \"python\": badness 900");
    blames(&earlyoom, Code::KilledExternally, 0.9);
    assert_eq!(earlyoom.verdict().causes[0].summary, "earlyoom ended it");
    let other =
        killed("python[9]: sending SIGTERM to process 1234 uid 1000 \"python\": badness 900");
    assert_ne!(other.verdict().causes[0].summary, "earlyoom ended it");
}

#[test]
fn the_library_that_crashed_is_named() {
    let crash = Scene::new().steady(300, 4 * GB).ended(300, 11);
    let line =
        "python[1234]: segfault at 8 ip 00007f01 sp 00007ffd error 4 in libtorch_cpu.so[7f00+1000]";
    let scene = logged(crash, 299, &[line]);
    blames(&scene, Code::NativeCrash, 0.9);
    assert_eq!(
        scene.verdict().causes[0].summary,
        "SIGSEGV in libtorch_cpu.so"
    );
}

#[test]
fn a_kill_for_the_limit_of_a_cgroup_is_told_from_one_for_the_machines_memory() {
    let killed = || Scene::new().steady(300, 4 * GB).ended(300, 9);
    let report = |constraint: &str, begin: &str| {
        [
            format!(
                "oom-kill:constraint={constraint},nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/docker/1,task_memcg=/docker/1,task=python,pid=1234,uid=0"
            ),
            format!(
                "{begin}: Killed process 1234 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0"
            ),
        ]
    };
    let of = |constraint, begin| {
        let lines = report(constraint, begin);
        logged(killed(), 299, &[&lines[0], &lines[1]])
    };
    blames(
        &of("CONSTRAINT_MEMCG", "Memory cgroup out of memory"),
        Code::ContainerLimit,
        0.8,
    );
    spares(
        &of("CONSTRAINT_NONE", "Out of memory"),
        Code::ContainerLimit,
    );
}
