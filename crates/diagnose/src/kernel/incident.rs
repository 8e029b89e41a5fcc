//! What a log line tells of a death: an incident, with the numbers that matter. Only the kernel
//! is believed about the machine, only a guard about its own kills; a program that prints
//! the same words is passed over.

use super::line::{Line, Source};
use super::{gpu, guards, machine, memory, process};
use antifreeze_sense::Pid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// The line that told it; of a report of several lines, the one that says most.
    pub line: Line,
    pub kind: Kind,
}

/// Names and texts are safe to print, as the line they came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel killed a process for want of memory.
    OomKill {
        pid: Pid,
        name: String,
        constraint: Constraint,
        /// In bytes.
        anon_rss: Option<u64>,
    },
    /// A task waited this long without being woken, mostly for a disk.
    HungTask {
        name: String,
        pid: Pid,
        seconds: u32,
    },
    /// A processor did not come out of the kernel.
    Lockup,
    /// The processor reported a fault of its own or of a part near it.
    MachineCheck {
        severity: Severity,
    },
    /// Memory gave back other bits than were written.
    MemoryError {
        corrected: bool,
        count: u32,
    },
    /// A processor was slowed because it was hot.
    Throttled {
        cpu: u32,
    },
    /// So hot that the machine switched itself off.
    Overheated,
    /// A processor was slowed because it drew too much power.
    PowerLimit {
        cpu: u32,
    },
    DiskError {
        device: String,
    },
    /// The kernel stopped writing to a file system that is damaged.
    ReadOnlyRemount {
        device: Option<String>,
    },
    PcieError {
        severity: Severity,
        /// Its address, "0000:01:00.0".
        device: Option<String>,
    },
    Segfault {
        name: String,
        pid: Pid,
        library: Option<String>,
    },
    /// Another fault of a program: an instruction that the processor does not know, and the like.
    Trap {
        name: String,
        pid: Pid,
        what: String,
        library: Option<String>,
    },
    Panic {
        why: String,
    },
    /// The kernel stumbled over its own code and perhaps went on.
    Oops {
        why: String,
    },
    /// An error code of the NVIDIA driver: see [`super::xid`].
    Xid {
        /// Its address, "0000:01:00".
        gpu: String,
        code: u32,
        pid: Option<Pid>,
        detail: String,
    },
    /// An NVIDIA GPU does not answer any more.
    GpuOffTheBus {
        gpu: Option<String>,
    },
    /// Work given to an AMD GPU did not come to an end.
    AmdRingTimeout {
        gpu: Option<String>,
        ring: String,
        /// Whose work it was.
        process: Option<(String, Pid)>,
    },
    AmdReset {
        gpu: Option<String>,
    },
    /// What the GPU's memory held is lost.
    AmdLost {
        gpu: Option<String>,
        /// The reset failed too: the GPU is of no use until the next boot.
        for_good: bool,
    },
    /// Another guard than ours ended something.
    OutsideGuard {
        who: Guard,
        pid: Option<Pid>,
        /// A process, a control group or a job's step.
        name: Option<String>,
        signal: Option<String>,
    },
    /// The machine was told to go down: it did not just die.
    Shutdown,
    Boot {
        version: String,
    },
}

/// Whose memory had come to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// The machine's.
    Global,
    /// A control group's: a container, a unit, a job. None where the log does not name it.
    Cgroup(Option<String>),
    /// That of the memory nodes which the process was bound to.
    Nodes,
    Unknown,
}

/// The less grave first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The line does not say.
    Unknown,
    Corrected,
    NonFatal,
    Fatal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Earlyoom,
    SystemdOomd,
    Slurm,
    Nohang,
    Kubernetes,
}

impl Kind {
    /// None for a line that tells of no death, as nearly all do.
    pub fn from_line(line: &Line) -> Option<Kind> {
        let text = line.text.as_str();
        match &line.source {
            Source::Program(name) => {
                guards::told(name, text).or_else(|| machine::going_down(name, text))
            }
            Source::Kernel => memory::oom_kill(text)
                .or_else(|| gpu::told(text))
                .or_else(|| machine::told(text))
                .or_else(|| process::told(text)),
        }
    }
}
