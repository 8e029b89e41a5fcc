//! Parses the kernel's report of an OOM kill. It has two lines: one names the limit, the other the memory of the process.
//! Names of processes and cgroups may have any character, so numbers are read from the end of the line.

use super::incident::{Constraint, Kind};
use super::scan;
use antifreeze_sense::Pid;

/// Parses a line of the report.
pub fn parse_oom_kill(text: &str) -> Option<Kind> {
    reason(text).or_else(|| kill(text))
}

/// `oom-kill:constraint=CONSTRAINT_MEMCG,…,oom_memcg=/a,task_memcg=/a/b,task=NAME,pid=N,uid=N`.
fn reason(text: &str) -> Option<Kind> {
    let rest = text.strip_prefix("oom-kill:constraint=")?;
    let (rest, _uid) = rest.rsplit_once(",uid=")?;
    let (rest, pid) = rest.rsplit_once(",pid=")?;
    let (limits, name) = rest.rsplit_once(",task=")?;
    let constraint = match limits.split(',').next()? {
        "CONSTRAINT_NONE" => Constraint::Global,
        "CONSTRAINT_MEMCG" => {
            let group = scan::between(limits, ",oom_memcg=", ",task_memcg=");
            Constraint::Cgroup(group.map(Into::into))
        }
        "CONSTRAINT_CPUSET" | "CONSTRAINT_MEMORY_POLICY" => Constraint::Nodes,
        _ => Constraint::Unknown,
    };
    Some(Kind::OomKill {
        pid: scan::pid(pid)?,
        name: name.into(),
        constraint,
        anon_rss: None,
    })
}

/// `Out of memory: Killed process N (NAME) total-vm:1kB, anon-rss:1kB, …`; older kernels announce
/// it with `Out of memory: Kill process N (NAME) score 900 or sacrifice child` first.
fn kill(text: &str) -> Option<Kind> {
    let (constraint, rest) = if let Some(rest) = text.strip_prefix("Memory cgroup out of memory") {
        (Constraint::Cgroup(None), after_colon(rest)?)
    } else if let Some(rest) = text.strip_prefix("Out of memory") {
        (Constraint::Global, after_colon(rest)?)
    } else {
        (Constraint::Unknown, text)
    };
    let announced = rest.strip_prefix("Kill process ");
    let rest = rest.strip_prefix("Killed process ").or(announced)?;
    let (pid, rest) = scan::number(rest)?;
    // Some kernels insert ", UID N,".
    let (_, rest) = rest.split_once('(')?;
    let end = match announced {
        Some(_) => ") score ",
        None => ") total-vm:",
    };
    // A copied line may be cut here.
    let named = || Some((rest.strip_suffix(')').filter(|_| announced.is_none())?, ""));
    let (name, sizes) = rest.rsplit_once(end).or_else(named)?;
    Some(Kind::OomKill {
        pid: Pid(pid),
        name: name.into(),
        constraint,
        anon_rss: kilobytes_after(sizes, "anon-rss:"),
    })
}

/// The text after ": ", and after a remark in brackets before it.
fn after_colon(text: &str) -> Option<&str> {
    let remark = text
        .strip_prefix(" (")
        .and_then(|text| text.split_once(')'));
    remark.map_or(text, |(_, rest)| rest).strip_prefix(": ")
}

fn kilobytes_after(text: &str, mark: &str) -> Option<u64> {
    let (_, rest) = text.split_once(mark)?;
    let (number, _) = rest.split_once("kB")?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// Two lines of one report are one incident. True when `earlier` has taken in what `later` tells.
pub fn join(earlier: &mut Kind, later: &Kind) -> bool {
    let Kind::OomKill {
        pid: first,
        constraint: limit,
        anon_rss: held,
        ..
    } = earlier
    else {
        return false;
    };
    let Kind::OomKill {
        pid,
        constraint,
        anon_rss,
        ..
    } = later
    else {
        return false;
    };
    // A PID may be reused; the kill of the new process has a full report.
    if first != pid || (held.is_some() && anon_rss.is_some()) {
        return false;
    }
    *held = held.or(*anon_rss);
    // Only the first line names the limit.
    if *limit == Constraint::Unknown || *limit == Constraint::Cgroup(None) {
        *limit = constraint.clone();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn kills_for_want_of_memory() {
        let kill = |name: &str, constraint, anon_rss| Kind::OomKill {
            pid: Pid(42),
            name: name.into(),
            constraint,
            anon_rss,
        };
        tells(
            "Out of memory: Killed process 42 (a) total-vm: b) total-vm:9kB, anon-rss:3kB, file-rss:1kB",
            kill("a) total-vm: b", Constraint::Global, Some(3072)),
        );
        tells(
            "Memory cgroup out of memory: Killed process 42, UID 7, (python3) total-vm:9kB, anon-rss:3kB",
            kill("python3", Constraint::Cgroup(None), Some(3072)),
        );
        tells(
            "Out of memory (oom_kill_allocating_task): Killed process 42 (python3) total-vm:9kB, anon-rss:3kB",
            kill("python3", Constraint::Global, Some(3072)),
        );
        tells(
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/u,task=a,pid=7,b,pid=42,uid=0",
            kill("a,pid=7,b", Constraint::Global, None),
        );
        tells(
            "oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=0,cpuset=x,mems_allowed=0,task_memcg=/u,task=python3,pid=42,uid=0",
            kill("python3", Constraint::Nodes, None),
        );
        tells(
            "Out of memory: Killed process 42 (python3)",
            kill("python3", Constraint::Global, None),
        );
        for near in [
            "Out of memory: Killed process 42x (python3) total-vm:9kB",
            "Out of memory: Killed process 99999999999 (python3) total-vm:9kB",
            "Out of memory and no killable processes...",
            "oom_reaper: reaped process 42 (python3), now anon-rss:0kB",
            "oom-kill:constraint=CONSTRAINT_NONE,task=python3",
            "python3 invoked oom-killer: gfp_mask=0x0, order=0",
        ] {
            tells_nothing(near);
        }
    }
}
