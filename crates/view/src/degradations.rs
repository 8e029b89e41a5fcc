//! Describes what this machine lacks and what follows from it, in one sentence each. What a person cannot notice and
//! need not fix is printed only with `--verbose`.

use crate::sentence::Detail;
use antifreeze_record::event::Degradation;
use antifreeze_text::signal;

pub(crate) fn describe_loss(degradation: Degradation, detail: u32) -> (Detail, String) {
    use Detail::{Normal, Verbose};
    let (level, text) = match degradation {
        Degradation::WallRefused => (
            Normal,
            "no wall for a process of another user (sudo or setuid): it can still fill the memory, so the run is slowed, paused or ended instead",
        ),
        Degradation::WallIgnored => (
            Normal,
            "no wall: this kernel was started with ignore_rlimit_data, so the run is slowed, paused or ended instead",
        ),
        Degradation::NotLocked => (
            Verbose,
            "the guard could not lock its memory (see `ulimit -l`): in a swap storm it may react late",
        ),
        Degradation::OomScore => (
            Verbose,
            "oom_score_adj could not be set: if memory runs out, the kernel may kill another program",
        ),
        Degradation::NoCgroup => (
            Verbose,
            "no cgroup of its own: there is no brake between a warning and a pause",
        ),
        Degradation::NoMemoryController => (
            Verbose,
            "the run's cgroup cannot limit memory: there is no brake between a warning and a pause",
        ),
        Degradation::NoPressure => (
            Verbose,
            "this kernel reports no memory pressure (PSI): stalls are detected from swapping alone",
        ),
        Degradation::RecordFailed => {
            let text = format!(
                "the record cannot be written: {}. The run stays guarded; `antifreeze explain` will show less",
                signal::errno_meaning(detail)
            );
            return (Normal, text);
        }
        Degradation::TooManyProcesses => {
            let text = format!(
                "the run has {detail} processes, more than the guard tracks: the smallest have no wall"
            );
            return (Verbose, text);
        }
        Degradation::NoCushion => (
            Normal,
            "the preload library is not loaded (a static or setuid program, or another libc): a refused request is more likely to crash the run",
        ),
    };
    (level, text.into())
}

pub(crate) fn describe_recovery(degradation: Degradation) -> (Detail, String) {
    let (level, text) = match degradation {
        Degradation::WallRefused | Degradation::WallIgnored => {
            (Detail::Normal, "the wall is on again")
        }
        Degradation::NotLocked => (Detail::Verbose, "the guard's memory is locked now"),
        Degradation::OomScore => (Detail::Verbose, "oom_score_adj could be set after all"),
        Degradation::NoCgroup => (Detail::Verbose, "the run has a cgroup of its own now"),
        Degradation::NoMemoryController => {
            (Detail::Verbose, "the run's cgroup can limit memory now")
        }
        Degradation::NoPressure => (Detail::Verbose, "the kernel reports memory pressure again"),
        Degradation::RecordFailed => (Detail::Normal, "the record is being written again"),
        Degradation::TooManyProcesses => (
            Detail::Verbose,
            "every process of the run has its wall again",
        ),
        Degradation::NoCushion => (Detail::Verbose, "the preload library is loaded now"),
    };
    (level, text.into())
}
