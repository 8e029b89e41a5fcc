//! Parses lines in which other guards report that they killed something.

use super::incident::{Guard, Kind};
use super::scan;
use antifreeze_sense::Pid;

/// Parses a line of a guard.
pub fn parse(program: &str, text: &str) -> Option<Kind> {
    match program {
        "earlyoom" => earlyoom(text),
        "systemd-oomd" => systemd_oomd(text),
        "slurmstepd" | "slurmd" => slurm(text),
        "kubelet" | "containerd" | "k3s" => kubernetes(text),
        _ => None,
    }
}

/// `sending SIGTERM to process 4242 uid 1000 "python3": …`. It rehearses with signal 0.
fn earlyoom(text: &str) -> Option<Kind> {
    let (signal, rest) = text.strip_prefix("sending ")?.split_once(" to process ")?;
    let (pid, _) = scan::number(rest)?;
    let sent = signal.starts_with("SIG");
    sent.then(|| Kind::OutsideGuard {
        who: Guard::Earlyoom,
        pid: Some(Pid(pid)),
        name: scan::between(rest, "\"", "\":")
            .or_else(|| scan::between(rest, "\"", "\""))
            .map(Into::into),
        signal: Some(signal.into()),
    })
}

/// `Killed /user.slice/… due to memory pressure …`; newer: `Marked … for killing due to …`.
fn systemd_oomd(text: &str) -> Option<Kind> {
    let killed = scan::between(text, "Killed ", " due to ").filter(|_| text.starts_with("Killed "));
    let marked = scan::between(text, "Marked ", " for killing due to ")
        .filter(|_| text.starts_with("Marked "));
    Some(Kind::OutsideGuard {
        who: Guard::SystemdOomd,
        pid: None,
        name: Some(killed.or(marked)?.into()),
        signal: Some("SIGKILL".into()),
    })
}

/// `error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks …`.
fn slurm(text: &str) -> Option<Kind> {
    let (_, rest) = text.split_once("Detected ")?;
    let (_, rest) = scan::number(rest)?;
    let event = rest.trim_start();
    if !event.starts_with("oom_kill event") && !event.starts_with("oom-kill event") {
        return None;
    }
    let step = ["StepId=", "in step "]
        .iter()
        .find_map(|mark| event.split_once(mark))
        .and_then(|(_, rest)| rest.split(' ').next());
    Some(Kind::OutsideGuard {
        who: Guard::Slurm,
        pid: None,
        name: step.map(|step| step.trim_end_matches('.').into()),
        signal: Some("SIGKILL".into()),
    })
}

/// The reason `OOMKilled`, or `System OOM encountered, victim process: python3, pid: 4242`.
fn kubernetes(text: &str) -> Option<Kind> {
    let victim = text.split_once("System OOM encountered, victim process: ");
    if victim.is_none() && !text.contains("OOMKilled") {
        return None;
    }
    let named = victim.and_then(|(_, rest)| rest.split_once(", pid: "));
    Some(Kind::OutsideGuard {
        who: Guard::Kubernetes,
        pid: named.and_then(|(_, pid)| Some(Pid(scan::number(pid)?.0))),
        name: named.map(|(name, _)| name.into()),
        signal: Some("SIGKILL".into()),
    })
}

/// Parses the line in which nohang names its victim, `PID: 4242, name: python3, badness: 800`, …
pub fn nohang_victim(text: &str) -> Option<(Pid, String)> {
    let (pid, rest) = scan::number(text.trim_start().strip_prefix("PID:")?.trim_start())?;
    let rest = rest.strip_prefix(", ")?;
    let rest = rest
        .strip_prefix("name: ")
        .or_else(|| rest.strip_prefix("Name: "))?;
    let name = rest.rsplit_once(", badness: ").map_or_else(
        || rest.split(", state: ").next().unwrap_or(rest),
        |(name, _)| name,
    );
    Some((Pid(pid), name.into()))
}

/// Parses the line in which nohang sends a signal: `Sending SIGTERM to the victim`.
pub fn nohang_signal(text: &str) -> Option<&str> {
    let signal = text
        .trim_start()
        .strip_prefix("Sending ")?
        .strip_suffix(" to the victim")?;
    signal.starts_with("SIG").then_some(signal)
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn other_guards() {
        let guard = |who, pid, name: &str, signal: &str| Kind::OutsideGuard {
            who,
            pid,
            name: Some(name.into()),
            signal: Some(signal.into()),
        };
        program_tells(
            "earlyoom",
            "sending SIGTERM to process 42 uid 1000 \"python3\": oom_score 900, VmRSS 9 MiB, cmdline \"a \"b\": c\"",
            guard(Guard::Earlyoom, Some(Pid(42)), "python3", "SIGTERM"),
        );
        let rehearsal = "sending 0 (no-op signal) to process 42 uid 1000 \"python3\": badness 900";
        assert_eq!(kind(&format!("earlyoom[9]: {rehearsal}")), None);
        for said in [
            "Killed /user.slice/made-up.scope due to memory pressure for /user.slice being 61.00% > 50.00%",
            "Marked /user.slice/made-up.scope for killing due to memory used (1) / total (2)",
        ] {
            let killed = guard(
                Guard::SystemdOomd,
                None,
                "/user.slice/made-up.scope",
                "SIGKILL",
            );
            program_tells("systemd-oomd", said, killed);
        }
        assert_eq!(
            kind("systemd-oomd[9]: Considered 9 cgroups for killing, top candidates were:"),
            None
        );
        program_tells(
            "slurmstepd",
            "error: Detected 2 oom_kill events in StepId=77.batch. Some of the step tasks have been OOM Killed.",
            guard(Guard::Slurm, None, "77.batch", "SIGKILL"),
        );
        assert_eq!(
            kind("slurmstepd: error: *** STEP 77.0 ON box CANCELLED ***"),
            None
        );
        program_tells(
            "kubelet",
            "made up: System OOM encountered, victim process: python3, pid: 42",
            guard(Guard::Kubernetes, Some(Pid(42)), "python3", "SIGKILL"),
        );
        assert!(kind("kubelet[9]: container x terminated, reason=\"OOMKilled\"").is_some());
        assert_eq!(
            kind("kubelet[9]: container x terminated, reason=\"Error\""),
            None
        );
    }
}
