//! Incidents: what a line of the log says about a failure, with the numbers that matter. Only the kernel is trusted about
//! the machine, and only a guard about its own kills; other programs that print the same words are ignored.

use super::line::{Line, Source};
use super::{gpu, guards, machine, memory, process};
use antifreeze_sense::Pid;

/// An incident in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incident {
    /// Its line; of a report of several lines, the one that says the most.
    pub line: Line,
    /// What happened.
    pub kind: Kind,
}

/// The kinds of incidents. Names and texts are safe to print, as is the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The kernel killed a process because memory ran out.
    OomKill {
        pid: Pid,
        name: String,
        constraint: Constraint,
        /// In bytes.
        anon_rss: Option<u64>,
    },
    /// A task was blocked for so long, mostly on a disk.
    HungTask {
        name: String,
        pid: Pid,
        seconds: u32,
    },
    /// A CPU hung in the kernel.
    Lockup,
    /// The CPU reported a hardware error.
    MachineCheck { severity: Severity },
    /// Memory returned wrong bits.
    MemoryError { corrected: bool, count: u32 },
    /// A CPU was throttled because of heat.
    Throttled { cpu: u32 },
    /// The machine switched itself off because of heat.
    Overheated,
    /// A CPU was throttled because of its power limit.
    PowerLimit { cpu: u32 },
    /// A disk or file system reported an error.
    DiskError { device: String },
    /// The kernel made a damaged file system read-only.
    ReadOnlyRemount { device: Option<String> },
    /// The PCIe bus reported an error.
    PcieError {
        severity: Severity,
        /// Its address, "0000:01:00.0".
        device: Option<String>,
    },
    /// A process crashed with an invalid memory access.
    Segfault {
        name: String,
        pid: Pid,
        library: Option<String>,
    },
    /// A process crashed in another way, such as with an invalid instruction.
    Trap {
        name: String,
        pid: Pid,
        what: String,
        library: Option<String>,
    },
    /// The kernel panicked.
    Panic { why: String },
    /// The kernel met an error of its own and may have continued.
    Oops { why: String },
    /// An error code of the NVIDIA driver: see [`super::xid`].
    Xid {
        /// Its address, "0000:01:00".
        gpu: String,
        code: u32,
        pid: Option<Pid>,
        detail: String,
    },
    /// An NVIDIA GPU no longer responds.
    GpuOffTheBus { gpu: Option<String> },
    /// Work on an AMD GPU timed out.
    AmdRingTimeout {
        gpu: Option<String>,
        ring: String,
        /// The process whose work it was.
        process: Option<(String, Pid)>,
    },
    /// An AMD GPU was reset.
    AmdReset { gpu: Option<String> },
    /// The contents of an AMD GPU's memory were lost.
    AmdLost {
        gpu: Option<String>,
        /// The reset failed as well: the GPU cannot be used until the next boot.
        for_good: bool,
    },
    /// Another guard killed something.
    OutsideGuard {
        who: Guard,
        pid: Option<Pid>,
        /// A process, cgroup or job step.
        name: Option<String>,
        signal: Option<String>,
    },
    /// The machine was shut down cleanly.
    Shutdown,
    /// The kernel booted.
    Boot { version: String },
}

/// The memory limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// The memory of the machine.
    Global,
    /// The limit of a cgroup: a container, unit or job. None where the log does not name it.
    Cgroup(Option<String>),
    /// The memory nodes that the process was bound to.
    Nodes,
    /// The line does not say.
    Unknown,
}

/// How severe an error is, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The line does not say.
    Unknown,
    /// It was corrected.
    Corrected,
    /// It was not corrected, and the machine can continue.
    NonFatal,
    /// The machine cannot continue.
    Fatal,
}

/// Other guards that kill processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Guard {
    Earlyoom,
    SystemdOomd,
    Slurm,
    Nohang,
    Kubernetes,
}

impl Kind {
    /// Parses a line; None for a line without an incident, as nearly all are.
    pub fn from_line(line: &Line) -> Option<Kind> {
        let text = line.text.as_str();
        match &line.source {
            Source::Program(name) => {
                guards::parse(name, text).or_else(|| machine::parse_shutdown(name, text))
            }
            Source::Kernel => memory::parse_oom_kill(text)
                .or_else(|| gpu::parse(text))
                .or_else(|| machine::parse(text))
                .or_else(|| process::parse(text)),
        }
    }
}
