//! Lines that name a process: those of the run, and those of others.

use crate::log::logged;
use crate::scenes::{EXIT_1, GB, MB, Scene};
use crate::{blames, spares};
use antifreeze_diagnose::kernel::{Log, incidents};
use antifreeze_diagnose::verdict::EndKind;
use antifreeze_diagnose::{Code, Run};
use antifreeze_record::event::EventKind;
use antifreeze_sense::Pid;

const SIZES: &str = "total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0";

fn ended(status: u32) -> Scene {
    Scene::new().steady(300, 4 * GB).ended(300, status)
}

/// In a container processes are numbered anew.
fn contained(status: u32) -> Scene {
    let mut scene = ended(status);
    for sample in &mut scene.samples {
        let processes = sample.processes.as_slice().to_vec();
        sample.processes.clear();
        for (number, mut process) in (7..).zip(processes) {
            process.pid = Pid(number);
            sample.processes.push(process);
        }
    }
    scene
}

fn killed(begin: &str, pid: u32, name: &str) -> String {
    format!("{begin}: Killed process {pid} ({name}) {SIZES}")
}

fn most_sure(scene: &Scene, code: Code) -> f64 {
    let causes = scene.verdict().causes;
    let cause = causes.iter().find(|cause| cause.code == code);
    cause.map_or(0.0, |cause| cause.confidence)
}

#[test]
fn what_another_guard_did_to_another_process_is_not_what_ended_the_run() {
    let earlyoom = |pid: u32, name: &str| {
        format!("earlyoom[812]: sending SIGKILL to process {pid} uid 0 \"{name}\"")
    };
    let own = logged(ended(9), 299, &[&earlyoom(1234, "python")]);
    blames(&own, Code::KilledExternally, 0.95);
    assert_eq!(own.verdict().causes[0].summary, "earlyoom ended it");
    for (pid, name) in [(4242, "firefox"), (4242, "python")] {
        let other = logged(ended(9), 299, &[&earlyoom(pid, name)]).verdict();
        assert!(
            other
                .causes
                .iter()
                .all(|cause| !cause.summary.contains("earlyoom")),
            "{name}: {:#?}",
            other.causes
        );
    }
    // The root is known by the guard's first word, though no look saw it.
    let started = EventKind::Started {
        guard: Pid(4000),
        root: Pid(4242),
        total: 0,
        reserve: 0,
        budget: None,
    };
    let root = ended(9).event(0, started);
    let root = logged(root, 299, &[&earlyoom(4242, "bash")]);
    blames(&root, Code::KilledExternally, 0.95);
}

#[test]
fn a_group_that_another_guard_ended_is_known_by_its_name() {
    let oomd = |group: &str| {
        let line = format!(
            "systemd-oomd[7]: Killed /user.slice/{group} due to memory pressure for /user.slice"
        );
        logged(ended(9), 299, &[&line])
    };
    blames(&oomd("antifreeze-7f3a.scope"), Code::KilledExternally, 0.95);
    let other = oomd("app-firefox-99.scope").verdict();
    assert!(other.causes[0].confidence <= 0.7, "{:#?}", other.causes);
}

#[test]
fn a_kill_for_want_of_memory_counts_if_it_was_one_of_the_run() {
    for (begin, code) in [
        ("Memory cgroup out of memory", Code::ContainerLimit),
        ("Out of memory", Code::SwapThrash),
    ] {
        let own = logged(ended(9), 299, &[&killed(begin, 1234, "python")]);
        blames(&own, code, 0.75);
        assert_eq!(own.verdict().end.kind, EndKind::OomKilled);
        for (pid, name) in [(555_555, "java"), (999_999, "chrome"), (4242, "python")] {
            let other = logged(ended(9), 299, &[&killed(begin, pid, name)]);
            spares(&other, code);
            let verdict = other.verdict();
            assert_eq!(verdict.end.kind, EndKind::Killed, "{name}");
            assert!(
                !verdict.end.detail.contains("kernel"),
                "{}",
                verdict.end.detail
            );
            assert_eq!(verdict.causes[0].code, Code::KilledExternally);
            assert!(
                !verdict.causes[0].summary.contains("counted no OOM kill"),
                "{}",
                verdict.causes[0].summary
            );
        }
    }
}

#[test]
fn what_the_kernel_counted_is_not_the_runs_where_the_log_names_another() {
    let counted =
        || ended(9).last(|last| last.paging.oom_kills = antifreeze_sense::Reading::Value(4));
    let line = killed("Out of memory", 999_999, "chrome");
    assert_eq!(counted().verdict().end.kind, EndKind::OomKilled);
    let other = logged(counted(), 250, &[&line]);
    assert_eq!(other.verdict().end.kind, EndKind::Killed);
}

#[test]
fn numbers_of_a_container_are_not_those_of_the_log() {
    for (begin, code) in [
        ("Memory cgroup out of memory", Code::ContainerLimit),
        ("Out of memory", Code::SwapThrash),
    ] {
        let likely = logged(contained(9), 299, &[&killed(begin, 4242, "python")]);
        let verdict = likely.verdict();
        assert_eq!(verdict.end.kind, EndKind::OomKilled);
        assert!(
            verdict.end.detail.contains("probably"),
            "{}",
            verdict.end.detail
        );
        let sure = most_sure(&likely, code);
        assert!((0.6..=0.7).contains(&sure), "{sure}");
        // Another's name; or long before the end.
        spares(
            &logged(contained(9), 299, &[&killed(begin, 4242, "java")]),
            code,
        );
        spares(
            &logged(contained(9), 200, &[&killed(begin, 4242, "python")]),
            code,
        );
    }
    let earlyoom = "earlyoom[9]: sending SIGKILL to process 4242 uid 0 \"python\": badness 900";
    let likely = logged(contained(9), 299, &[earlyoom]);
    let sure = most_sure(&likely, Code::KilledExternally);
    assert!((0.6..=0.7).contains(&sure), "{sure}");
    // The program that was started is only who asked for the container.
    let mut docker = ended(137 << 8);
    docker.facts.command = vec!["/usr/bin/docker".into(), "run".into(), "net".into()];
    let line = killed("Memory cgroup out of memory", 4242, "python");
    let sure = most_sure(&logged(docker, 299, &[&line]), Code::ContainerLimit);
    assert!((0.6..=0.7).contains(&sure), "{sure}");
    // A limit above the run tells of a container too.
    let mut limited = ended(9);
    limited.facts.container = Some(6_000 * MB);
    let line = killed("Memory cgroup out of memory", 4242, "python");
    let sure = most_sure(&logged(limited, 299, &[&line]), Code::ContainerLimit);
    assert!((0.6..=0.7).contains(&sure), "{sure}");
}

#[test]
fn the_library_in_which_another_program_crashed_is_not_named() {
    let crash = |who: &str, second: u64| {
        let line = format!(
            "{who}: segfault at 8 ip 00007f01 sp 00007ffd error 4 in libmade_up.so[7f00+1000]"
        );
        logged(ended(11), second, &[&line])
    };
    blames(&crash("python[1234]", 299), Code::NativeCrash, 0.9);
    // The kernel numbers threads, and those bear names of their own.
    for who in [
        "python[4242]",
        "pt_autograd_0[4242]",
        "cuda-EvtHandlr[4242]",
    ] {
        let thread = crash(who, 299);
        blames(&thread, Code::NativeCrash, 0.75);
        assert!(thread.verdict().causes[0].confidence < 0.9);
        assert_eq!(
            thread.verdict().causes[0].summary,
            "SIGSEGV in libmade_up.so"
        );
    }
    for other in [crash("gnome-shell[4242]", 299), crash("python[4242]", 100)] {
        blames(&other, Code::NativeCrash, 0.65);
        let summary = &other.verdict().causes[0].summary;
        assert!(!summary.contains("libmade_up"), "{summary}");
    }
}

#[test]
fn without_a_record_the_name_has_to_fit() {
    let told = |line: &str| {
        let log = Log {
            incidents: incidents(line.as_bytes(), jiff::Timestamp::MAX),
            read: vec!["a file".into()],
            missing: Vec::new(),
        };
        Run::from_output(b"epoch 1 loss 0.7\nKilled\n".to_vec(), log).verdict
    };
    for begin in ["Out of memory", "Memory cgroup out of memory"] {
        let own = told(&format!("[ 1000.000000] {}\n", killed(begin, 7, "python3")));
        assert_eq!(own.end.kind, EndKind::OomKilled);
        assert!((0.6..=0.7).contains(&own.causes[0].confidence));
        let other = told(&format!("[ 1000.000000] {}\n", killed(begin, 7, "chrome")));
        assert_eq!(other.end.kind, EndKind::Killed);
        assert_eq!(other.causes[0].code, Code::KilledExternally);
    }
}

#[test]
fn a_number_that_was_given_to_another_since_is_anothers() {
    // A loader that was seen at the beginning only.
    let mut scene = ended(9);
    for sample in scene.samples.iter_mut().skip(20) {
        let main = sample.processes.as_slice()[0];
        sample.processes.clear();
        sample.processes.push(main);
    }
    let line = killed("Out of memory", 1240, "chrome");
    spares(&logged(scene, 299, &[&line]), Code::SwapThrash);
    let failed = logged(
        ended(EXIT_1),
        299,
        &[&killed("Memory cgroup out of memory", 9, "java")],
    );
    spares(&failed, Code::ContainerLimit);
}
