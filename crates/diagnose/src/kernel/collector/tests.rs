//! Short made-up logs, and what is left of them.

use super::super::incident::Constraint;
use super::super::incidents_in;
use super::*;
use jiff::tz::TimeZone;
use proptest::prelude::*;

fn read(text: &str) -> Vec<Incident> {
    let reference = "2026-11-17T00:00:00Z".parse().unwrap();
    incidents_in(text.as_bytes(), reference, TimeZone::UTC)
}

fn kinds(text: &str) -> Vec<Kind> {
    read(text).into_iter().map(|found| found.kind).collect()
}

fn oom(pid: u32, name: &str, constraint: Constraint, anon_rss: Option<u64>) -> Kind {
    Kind::OomKill {
        pid: Pid(pid),
        name: name.into(),
        constraint,
        anon_rss,
    }
}

#[test]
fn a_kill_told_in_two_lines_is_one() {
    let log = "\
[  100.000001] jupyter invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0
[  100.000002] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task_memcg=/job/a,task=python3,pid=42,uid=7
[  100.000003] mce: CPU1: Core temperature above threshold, cpu clock throttled (total events = 1)
[  100.200000] Memory cgroup out of memory: Killed process 42 (python3) total-vm:9000kB, anon-rss:2000kB, file-rss:0kB, shmem-rss:0kB, UID:7 pgtables:40kB oom_score_adj:0
[  100.300000] oom_reaper: reaped process 42 (python3), now anon-rss:0kB
";
    let found = read(log);
    let job = Constraint::Cgroup(Some("/job".into()));
    let kill = oom(42, "python3", job, Some(2000 * 1024));
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].kind, kill);
    assert!(found[0].line.text.starts_with("Memory cgroup"));
    assert_eq!(found[1].kind, Kind::Throttled { cpu: 1 });
}

#[test]
fn an_older_kernels_kill_is_one_too() {
    let log = "\
Nov 16 12:00:00 box kernel: Out of memory: Kill process 42 (python) score 905 or sacrifice child
Nov 16 12:00:03 box kernel: Killed process 42 (python) total-vm:90kB, anon-rss:20kB, file-rss:0kB
";
    let kill = oom(42, "python", Constraint::Global, Some(20480));
    assert_eq!(kinds(log), [kill]);
}

#[test]
fn kills_of_one_number_at_different_times_are_two() {
    let line = "Out of memory: Killed process 42 (a) total-vm:9kB, anon-rss:2kB";
    let reason = "oom-kill:constraint=CONSTRAINT_NONE,task_memcg=/,task=a,pid=42,uid=0";
    let log = format!("[1.000000] {line}\n[2.000000] {line}\n");
    assert_eq!(kinds(&log).len(), 2);
    let log = format!("[1.000000] {reason}\n[99.000000] {line}\n");
    assert_eq!(kinds(&log).len(), 2);
}

#[test]
fn lines_about_one_fault_are_one() {
    for log in [
        "[1.000000] mce: [Hardware Error]: Machine check events logged\n[1.000100] mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 4: a0\n",
        "[1.000000] BUG: kernel NULL pointer dereference, address: 0\n[1.000100] Oops: 0000 [#1] SMP\n",
        "[1.000000] pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0\n[1.000100] nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n",
        "[1.000000] box systemd[1]: Reached target System Reboot.\n[40.000100] systemd-shutdown[1]: Syncing filesystems\n",
    ] {
        assert_eq!(kinds(log).len(), 1, "{log}");
        let again = log.replace("[1.", "[9001.").replace("[40.", "[9040.");
        assert_eq!(kinds(&(log.to_owned() + &again)).len(), 2, "{log}");
    }
}

#[test]
fn the_line_below_an_amd_timeout_names_the_process() {
    let log = "\
[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring comp_1.0.0 timeout, signaled seq=7, emitted seq=9
[drm:amdgpu_job_timedout [amdgpu]] *ERROR* Process information: process my python pid 42 thread python3 pid 43
";
    let timeout = Kind::AmdRingTimeout {
        gpu: None,
        ring: "comp_1.0.0".into(),
        process: Some(("my python".into(), Pid(42))),
    };
    assert_eq!(kinds(log), [timeout]);
    let newer = "amdgpu 0000:03:00.0: amdgpu: ring gfx timeout, signaled seq=7, emitted seq=9\namdgpu 0000:03:00.0: amdgpu:  Process python3 pid 42 thread python3 pid 43\n";
    assert!(matches!(
        &kinds(newer)[..],
        [Kind::AmdRingTimeout { gpu: Some(_), process: Some((name, Pid(42))), .. }] if name == "python3"
    ));
}

#[test]
fn nohang_names_its_victim_before_it_acts() {
    let log = "\
Nov 16 12:00:00 box nohang[9]:   PID: 42, name: python3, badness: 800
Nov 16 12:00:00 box nohang[9]:   Sending SIGTERM to the victim
Nov 16 12:00:00 box python3[9]:   Sending SIGTERM to the victim
";
    let guard = Kind::OutsideGuard {
        who: Guard::Nohang,
        pid: Some(Pid(42)),
        name: Some("python3".into()),
        signal: Some("SIGTERM".into()),
    };
    assert_eq!(kinds(log), [guard]);
}

#[test]
fn an_indented_line_goes_on_with_the_one_before_it() {
    let gone = "NVRM: fallen off the bus and is not responding to commands.";
    let log = format!("[9.000000] NVRM: The NVIDIA GPU 0000:01:00.0\n        {gone}\n");
    let found = read(&log);
    assert_eq!(found[0].line.since_boot, Some(Duration::from_secs(9)));
    let log = format!("Nov 16 12:00:00 box python3[9]: two lines\n        {gone}\n");
    assert_eq!(read(&log), []);
}

#[test]
fn of_very_many_the_latest_are_kept() {
    let log: String = (0..MAX_SEVERE + 5)
        .map(|code| format!("NVRM: Xid (PCI:0000:01:00): {code}, made up\n"))
        .collect();
    let found = kinds(&log);
    assert_eq!(found.len(), MAX_SEVERE);
    assert!(matches!(found[0], Kind::Xid { code: 5, .. }));
}

#[test]
fn heat_does_not_crowd_out_a_death() {
    let heat = "mce: CPU1: Core temperature above threshold, cpu clock throttled\n";
    let mut log = String::from("[1.000000] Kernel panic - not syncing: made up\n");
    for second in 0..20_000 {
        log += &format!("[{}.000000] {heat}", second * 5);
    }
    let found = kinds(&log);
    assert_eq!(found.len(), 1 + MAX_MINOR);
    assert!(matches!(found[0], Kind::Panic { .. }));
}

proptest! {
    #[test]
    fn any_bytes_are_read(parts in prop::collection::vec((0usize..12, prop::collection::vec(any::<u8>(), 0..20)), 0..40)) {
        const PIECES: [&str; 12] = [
            "oom-kill:constraint=", ",task=", ",pid=1", ",uid=", "\nOut of memory: Killed process 1 (",
            ") total-vm:", "anon-rss:99999999999999999999kB", "NVRM: Xid (PCI:", "): ", "traps: a[1] ip:", "] ",
            "amdgpu 0000:00:00.0: Process ",
        ];
        let mut bytes = Vec::new();
        for (piece, noise) in parts {
            bytes.extend_from_slice(PIECES[piece].as_bytes());
            bytes.extend(noise);
        }
        let _ = incidents_in(&bytes, Timestamp::UNIX_EPOCH, TimeZone::UTC);
    }
}
