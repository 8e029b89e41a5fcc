//! Gives a new process a share of the head-room instead of a copy of its parent's.
//!
//! Six workers that each used all of it would take it six times before the next tick. The parent keeps its own: halving
//! that too would starve a script that starts ten programs. A process whose share is too small asks the guard.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::limit::{Limit, data_bytes, rounded};
use crate::next::Next;
use crate::page::Head;
use crate::share::share;
use crate::{guard, loader, pageout_signal, reserve, seccomp, shared, sys};

// SAFETY: the signature of fork(2).
static NEXT_FORK: Next<unsafe extern "C" fn() -> c_int> = unsafe { Next::new(c"fork") };

/// Without a page, each process counts births itself, since the limit moved.
static LIMIT_AT_BIRTHS: AtomicU64 = AtomicU64::new(0);
static BIRTHS: AtomicU32 = AtomicU32::new(0);

/// What a new process inherits, and its number among those born since the last tick.
struct Birthright {
    limit: Limit,
    data: u64,
    birth: u32,
    /// The earlier limit of the program before it, if that was raised.
    highest: u64,
}

impl Birthright {
    /// The limit it should have. Computed by the new process itself: by then the guard can see it, so what was granted
    /// to others meanwhile is not promised again.
    fn soft(&self) -> u64 {
        let headroom = match shared::head() {
            Some(head) => head.headroom.load(Acquire),
            None => self.limit.soft.saturating_sub(self.data),
        };
        let share = share(headroom, self.birth);
        let soft = self.data.saturating_add(share).min(self.highest);
        rounded(soft.max(self.data))
    }
}

/// Looks up the next definition while there is one thread.
pub fn resolve() {
    let _ = NEXT_FORK.get();
}

/// # Safety
/// As fork(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> c_int {
    let Some(next) = NEXT_FORK.get() else {
        sys::set_errno(sys::EAGAIN);
        return -1;
    };
    // Read in the parent: the first look into its own /proc costs a fresh process ten times as
    // much, and without a page a child's counting is lost to the next child.
    let errno = sys::KeptErrno::new();
    let birthright = match shared::head() {
        _ if seccomp::is_filtered() => None,
        Some(head) => of_tree(head),
        None => of_parent(),
    };
    drop(errno);
    // SAFETY: passed on as it came.
    let pid = unsafe { next() };
    if pid == 0 {
        let _errno = sys::KeptErrno::new();
        reserve::forget();
        loader::forget();
        guard::find_clock();
        take(birthright);
        pageout_signal::after_fork();
    }
    pid
}

/// Sets the limit of a program that was just executed: it inherits a limit for what the program before it held, and
/// holds almost nothing itself. Without a page the limit stays: each program that starts another would halve it again,
/// and nothing would ever raise it.
///
/// If the C library does not show when it loads libraries, no share is taken: the libraries alone may exceed it. The
/// guard reads the process instead, and knows what they are.
pub fn after_exec() {
    let Some(head) = shared::head().filter(|head| is_guarded(head)) else {
        return;
    };
    let slot = shared::slot();
    if let Some(slot) = slot {
        loader::after_exec(slot);
    }
    if loader::is_known() {
        let withheld = slot.map_or(0, |slot| slot.before_exec.swap(0, AcqRel));
        let birthright = of_tree(head);
        take(birthright.map(|birthright| Birthright {
            highest: if withheld == 0 { u64::MAX } else { withheld },
            ..birthright
        }));
    }
    if let Some(slot) = slot {
        slot.loading.store(0, Release);
    }
    if !loader::is_known() {
        guard::ask_for_tick(head);
    }
}

fn is_guarded(head: &Head) -> bool {
    head.wall.load(Acquire) == 1 && !guard::is_gone(head)
}

fn of_tree(head: &Head) -> Option<Birthright> {
    if !is_guarded(head) {
        return None;
    }
    let limit = Limit::read_any()?;
    // Without a limit before the first tick there is nothing to share. Later a limit is infinite only while libraries
    // are loaded: in this process, or in the one that started it.
    if limit.soft == u64::MAX && head.headroom.load(Acquire) == 0 {
        return None;
    }
    let data = data_bytes()?;
    let birth = head.births.fetch_add(1, AcqRel).saturating_add(1);
    Some(Birthright {
        limit,
        data,
        birth,
        highest: u64::MAX,
    })
}

fn of_parent() -> Option<Birthright> {
    let (limit, data) = (Limit::read()?, data_bytes()?);
    if LIMIT_AT_BIRTHS.swap(limit.soft, Relaxed) != limit.soft {
        BIRTHS.store(0, Relaxed);
    }
    let birth = BIRTHS.fetch_add(1, Relaxed).saturating_add(1);
    Some(Birthright {
        limit,
        data,
        birth,
        highest: u64::MAX,
    })
}

/// Never raises the limit: what the guard or a parent withheld stays withheld, and the guard may have read this process
/// already. The change is reported, or the guard would take the lower limit for one set by the program; and a slot shows in any
/// case that this process asks before it fails.
fn take(birthright: Option<Birthright>) {
    let Some(birthright) = birthright else {
        return;
    };
    let slot = shared::slot();
    let soft = birthright.soft();
    if let Some(limit) = Limit::read_any().filter(|limit| soft < limit.soft) {
        if let Some(slot) = slot {
            slot.own_limit.store(soft, Release);
        }
        limit.move_to(soft);
    }
}
