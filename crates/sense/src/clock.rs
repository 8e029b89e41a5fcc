//! The clocks of a run: every time that the guard, the front or the record states was read here.
//!
//! Two clocks are used, and a name says which one a number comes from. The *monotonic* clock never jumps and stands
//! still while the machine is suspended: ages, intervals and deadlines are differences of it, and it means nothing in
//! another boot. The *realtime* clock is what people read and may be set at any time: it only dates events and files.
//! All numbers are nanoseconds. Reading a clock does not allocate, block or enter the kernel where the kernel offers
//! it in the process (vDSO).
//!
//! Code that only measures how long something takes in its own process may use [`std::time::Instant`], which is the
//! same monotonic clock. The preload library reads its clocks itself, since it uses no crate.

use core::time::Duration;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// One moment on both clocks: one that never jumps, one that people read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// CLOCK_MONOTONIC in nanoseconds.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME in nanoseconds since 1970.
    pub realtime_ns: u64,
}

impl Stamp {
    /// Reads both clocks, one right after the other.
    pub fn now() -> Stamp {
        Stamp {
            monotonic_ns: monotonic_ns(),
            realtime_ns: realtime_ns(),
        }
    }
}

/// Reads CLOCK_MONOTONIC, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Reads CLOCK_REALTIME, in nanoseconds since 1970.
pub fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// How long the machine has been running and suspended since it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uptime {
    /// CLOCK_MONOTONIC: the time that the machine was running.
    pub awake: Duration,
    /// CLOCK_BOOTTIME less CLOCK_MONOTONIC: the time that it was suspended.
    pub suspended: Duration,
}

impl Uptime {
    /// Reads both clocks, the running time first.
    pub fn now() -> Uptime {
        let awake = Duration::from_nanos(monotonic_ns());
        let whole = Duration::from_nanos(nanoseconds(clock_gettime(ClockId::Boottime)));
        Uptime {
            awake,
            suspended: whole.saturating_sub(awake),
        }
    }
}

/// A clock that was set to before 1970 reads 0.
fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
