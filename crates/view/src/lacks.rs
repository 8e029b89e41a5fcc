//! What is missing on this machine, and what follows from it, in one sentence each. What a
//! person cannot notice and need not mend is said only to those who asked for everything.

use crate::sentence::Detail;
use antifreeze_record::event::Lack;
use antifreeze_text::signal;

pub(crate) fn missing(lack: Lack, detail: u32) -> (Detail, String) {
    use Detail::{Normal, Verbose};
    let (level, text) = match lack {
        Lack::WallRefused => (
            Normal,
            "no wall for a process of another user (sudo or setuid): it can still fill the memory, so the run is slowed, paused or ended instead",
        ),
        Lack::WallIgnored => (
            Normal,
            "no wall: this kernel was started with ignore_rlimit_data, so the run is slowed, paused or ended instead",
        ),
        Lack::NotLocked => (
            Verbose,
            "the guard could not lock its memory (see `ulimit -l`): in a swap storm it may react late",
        ),
        Lack::OomScore => (
            Verbose,
            "oom_score_adj could not be set: if memory runs out after all, the kernel may pick another program",
        ),
        Lack::NoCgroup => (
            Verbose,
            "no cgroup of its own: there is no brake between a warning and a pause",
        ),
        Lack::NoMemoryController => (
            Verbose,
            "the run's cgroup cannot hold memory back: there is no brake between a warning and a pause",
        ),
        Lack::NoPressure => (
            Verbose,
            "this kernel tells no memory pressure (PSI): stalls are judged by swapping alone",
        ),
        Lack::RecordFailed => {
            let text = format!(
                "the record cannot be written: {}. The run stays guarded; `antifreeze explain` will know less",
                signal::errno_meaning(detail)
            );
            return (Normal, text);
        }
        Lack::TooManyProcesses => {
            let text = format!(
                "the run has {detail} processes, more than are followed one by one: the smallest have no wall"
            );
            return (Verbose, text);
        }
        Lack::NoCushion => (
            Normal,
            "the preload library does not reach the run (a static or setuid program, or another libc): a refused request is more likely to end it",
        ),
    };
    (level, text.into())
}

pub(crate) fn regained(lack: Lack) -> (Detail, String) {
    let (level, text) = match lack {
        Lack::WallRefused | Lack::WallIgnored => (Detail::Normal, "the wall stands again"),
        Lack::NotLocked => (Detail::Verbose, "the guard's memory is locked now"),
        Lack::OomScore => (Detail::Verbose, "oom_score_adj could be set after all"),
        Lack::NoCgroup => (Detail::Verbose, "the run has a cgroup of its own now"),
        Lack::NoMemoryController => (Detail::Verbose, "the run's cgroup can limit memory now"),
        Lack::NoPressure => (Detail::Verbose, "the kernel tells memory pressure again"),
        Lack::RecordFailed => (Detail::Normal, "the record is being written again"),
        Lack::TooManyProcesses => (
            Detail::Verbose,
            "every process of the run has its wall again",
        ),
        Lack::NoCushion => (Detail::Verbose, "the preload library reaches the run now"),
    };
    (level, text.into())
}
