//! A process that is born takes a share of the head-room instead of a copy of its parent's.
//!
//! Six workers that each believed in the whole of it would take it six times before the
//! guard looks again. The parent keeps its own: halving that as well starves a script that
//! starts ten programs. A share that turns out too small is put right by asking the guard.

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

/// Without a page, births are counted by each process for itself, since the limit moved.
static LIMIT_AT_BIRTHS: AtomicU64 = AtomicU64::new(0);
static BIRTHS: AtomicU32 = AtomicU32::new(0);

/// What a process that is born has, and which it is of those born since the guard looked.
struct Birthright {
    limit: Limit,
    data: u64,
    birth: u32,
    /// What its forerunner's limit was, where it is not that any more.
    highest: u64,
}

impl Birthright {
    /// The limit it is to have. Asked for by the one that was born: by then the guard can see
    /// it, so that what was granted to others meanwhile is not promised again.
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

/// The fresh program inherits a limit that was cut for what its forerunner held, and holds
/// next to nothing itself. Without a page it is left alone: each program that starts another
/// would halve it again and nobody would ever put it right.
///
/// Where the C library does not tell when it loads libraries, no share is taken: the program's
/// libraries alone may exceed it. The guard looks at it instead, and knows what they are.
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
        guard::have_a_look(head);
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
    // Without a limit and before the guard's first look there is nothing to share. Later a limit is infinite only while
    // libraries are loaded: in this process, or in the one that started it.
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

/// Never raises: what the guard or a parent withheld stays withheld, and the guard may have seen
/// this process already. It is told, or it would take the lower limit for one that the program
/// chose for itself; and a slot says in any case that this process asks before it fails.
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
