//! `antifreeze probe-cards`: reads NVIDIA GPUs for as long as a run is guarded. The front starts it.
//!
//! The probe is a process of its own, because a driver call may hang forever and because the guard loads no library.
//! One thread calls the driver; the main thread waits for the end of the run and then exits, even if the other hangs.

mod asleep;
mod nvidia;

use antifreeze_ipc::page::STALE_NS;
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::{gpu_readings, process_title};
use antifreeze_sense::clock::monotonic_ns;
use antifreeze_sense::{Gpus, Reason};
use asleep::Slots;
use nvidia::{Driver, Unusable};
use rustix::fd::{BorrowedFd, RawFd};
use rustix::process::{Pid, getppid};
use rustix::thread::futex;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

/// The time between two reads. Ten reads a second were measured to slow GPUs down.
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// The time between two reads of an idle GPU that may be suspended: reading keeps it awake.
const IDLE_READ_INTERVAL: Duration = Duration::from_secs(20);
/// The number of idle reads in a row before a GPU may be suspended.
const READS_BEFORE_IDLE: u32 = 5;
/// How often the probe checks whether the guard has died.
const WATCH_INTERVAL: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// The same niceness as the command's default.
const NICENESS: i32 = 10;

/// Whether an NVIDIA driver is installed.
pub fn has_driver() -> bool {
    nvidia::has_driver()
}

/// Reads the GPUs until the guard is gone.
pub fn probe(memory: [RawFd; 2]) -> Result<(), String> {
    // SAFETY: the front opened them for us, and nothing else owns the numbers.
    let [page, state] = memory.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) });
    let shared = Shared::open(page, state).map_err(|errno| {
        format!("the page: {errno}; this command is started by `antifreeze run`")
    })?;
    let _ = rustix::thread::set_name(c"af-probe");
    process_title::set(b"af-probe");
    // SAFETY: a system call on a number.
    unsafe { libc::nice(NICENESS) };
    std::thread::Builder::new()
        .spawn(move || read_gpus(shared))
        .map_err(|error| format!("starting a thread: {error}"))?;
    watch(shared);
    // Not by `exit`: the driver's library would be asked to clean up, and may hang.
    // SAFETY: ends the process; nothing of ours is left to write.
    unsafe { libc::_exit(0) }
}

/// Returns when the run has ended. While the front lives, a dead guard will be replaced, however long that takes
/// on an overloaded machine.
fn watch(shared: Shared) {
    let head = shared.head();
    let started = monotonic_ns();
    let front = Pid::from_raw(head.front_pid.load(Acquire) as i32);
    loop {
        let beat = head.heartbeat.load(Acquire).max(started);
        let is_unguarded = monotonic_ns().saturating_sub(beat) > STALE_NS;
        if head.closed.load(Acquire) != 0 || is_unguarded && getppid() != front {
            return;
        }
        let _ = futex::wait(
            &head.closed,
            futex::Flags::empty(),
            0,
            Some(&WATCH_INTERVAL),
        );
    }
}

fn read_gpus(shared: Shared) {
    let slots = Slots::open(std::path::Path::new("/sys"));
    let mut driver = None;
    let mut idle = 0;
    loop {
        if slots.are_all_asleep() {
            driver = None;
            gpu_readings::publish(shared, Gpus::unavailable(Reason::Absent), monotonic_ns());
            std::thread::sleep(READ_INTERVAL);
            continue;
        }
        let loaded = match driver.take() {
            Some(known) => Ok(known),
            None => Driver::load(),
        };
        let pause = match loaded {
            Ok(mut known) => {
                let gpus = known.read();
                gpu_readings::publish(shared, gpus, monotonic_ns());
                idle = if is_idle(&gpus) { idle + 1 } else { 0 };
                if idle >= READS_BEFORE_IDLE && slots.may_sleep() {
                    IDLE_READ_INTERVAL
                } else {
                    driver = Some(known);
                    READ_INTERVAL
                }
            }
            Err(Unusable::ForEver(reason)) => {
                return gpu_readings::publish(
                    shared,
                    Gpus::unavailable(reason),
                    gpu_readings::FOR_EVER,
                );
            }
            Err(Unusable::Now(reason)) => {
                gpu_readings::publish(shared, Gpus::unavailable(reason), monotonic_ns());
                IDLE_READ_INTERVAL
            }
        };
        std::thread::sleep(pause);
    }
}

/// Whether no GPU is computing.
fn is_idle(gpus: &Gpus) -> bool {
    gpus.busy_percent.value() == Some(0)
}
