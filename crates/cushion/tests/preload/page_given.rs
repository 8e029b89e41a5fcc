//! With a page: the guard is asked, told and, when it is gone, done without.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};

use crate::MB;
use crate::sentry::{Sentry, grant, set_limit};
use crate::subject::Plan;

const LIMIT: u64 = 200 * MB;
/// So much that no share of it lowers LIMIT.
const PLENTY: u64 = 1 << 40;

/// A sentry that gives `headroom` to the process whose number stands in the cell.
fn sentry_of(ward: &Arc<AtomicU32>, headroom: u64) -> Sentry {
    let ward = Arc::clone(ward);
    Sentry::with_headroom(PLENTY).answering(move |_| grant(ward.load(SeqCst), headroom))
}

#[test]
fn a_request_that_fits_by_now_is_met_when_the_guard_looks_again() {
    let ward = Arc::new(AtomicU32::new(0));
    let sentry = sentry_of(&ward, 900 * MB);
    let mut subject = Plan::steps(LIMIT, "wait malloc:800000000 errno_of_malloc:10")
        .with_page(&sentry)
        .start();
    subject.says("wait");
    ward.store(subject.pid(), SeqCst);
    subject.go_on();
    assert_eq!(subject.says("malloc"), 1);
    assert!(
        sentry
            .slot_of(subject.pid())
            .is_none_or(|slot| slot.refused.load(SeqCst) == 0)
    );
    assert!(subject.finish().status.success());
}

#[test]
fn a_guard_that_looked_just_before_the_question_is_asked_twice() {
    let ward = Arc::new(AtomicU32::new(0));
    let looked = AtomicBool::new(false);
    let pid = Arc::clone(&ward);
    let sentry = Sentry::with_headroom(PLENTY).answering(move |_| {
        // The first answer is an old look's: nothing has changed.
        if looked.swap(true, SeqCst) {
            grant(pid.load(SeqCst), 900 * MB);
        }
    });
    let mut subject = Plan::steps(LIMIT, "wait malloc:800000000")
        .with_page(&sentry)
        .start();
    subject.says("wait");
    ward.store(subject.pid(), SeqCst);
    subject.go_on();
    assert_eq!(subject.says("malloc"), 1);
}

#[test]
fn a_refusal_is_told_in_the_slot() {
    let sentry = Sentry::with_headroom(PLENTY);
    let mut subject = Plan::steps(LIMIT, "malloc:1000000000 wait")
        .with_page(&sentry)
        .start();
    assert_eq!(subject.says("malloc"), 0);
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    assert_eq!(slot.refused.load(SeqCst), 1);
    assert_eq!(slot.refused_bytes.load(SeqCst), 1_000_000_000);
    assert_ne!(slot.refused_at.load(SeqCst), 0);
    assert_eq!(slot.landed.load(SeqCst), 1);
    assert_eq!(slot.own_limit.load(SeqCst), LIMIT + 32 * MB);
    assert_eq!(slot.lifted.load(SeqCst), 0);
    assert_ne!(sentry.head().kick.load(SeqCst), 0);
}

#[test]
fn a_large_refused_mapping_is_told_and_opens_no_strip() {
    let sentry = Sentry::with_headroom(PLENTY);
    let mut subject = Plan::steps(LIMIT, "mmap:1000000000 limit wait")
        .with_page(&sentry)
        .start();
    assert_eq!(subject.says("mmap"), 0);
    assert_eq!(subject.says("limit"), LIMIT as i64);
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    assert_eq!(
        (slot.refused.load(SeqCst), slot.landed.load(SeqCst)),
        (1, 0)
    );
}

#[test]
fn the_page_says_how_large_strip_and_reserve_are() {
    let sentry = Sentry::with_headroom(PLENTY);
    sentry.head().strip.store(5 * MB, SeqCst);
    sentry.head().small_reserve.store(16 * MB, SeqCst);
    let mut subject = Plan::steps(LIMIT, "fill:65536 limit wait")
        .with_page(&sentry)
        .start();
    subject.says("fill");
    assert_eq!(subject.says("limit"), (LIMIT + 21 * MB) as i64);
    subject.says("wait");
    assert_eq!(
        sentry.slot_of(subject.pid()).unwrap().drawn.load(SeqCst),
        16 * MB
    );
}

#[test]
fn strip_and_reserve_are_armed_again_when_the_guard_moves_the_limit() {
    let sentry = Sentry::with_headroom(PLENTY);
    let turn = "fill:65536 limit free wait ";
    let mut subject = Plan::steps(LIMIT, turn.repeat(5).trim_end())
        .with_page(&sentry)
        .start();
    for number in 0..5 {
        let limit = LIMIT + number * MB;
        assert!(subject.says("fill") > (limit + 56 * MB) as i64);
        assert_eq!(subject.says("limit"), (limit + 96 * MB) as i64);
        subject.says("free");
        subject.says("wait");
        set_limit(subject.pid(), limit + MB);
        subject.go_on();
    }
    assert!(subject.finish().status.success());
}

/// Frameworks free a batch in another thread, a moment after the next one is asked for.
#[test]
fn a_large_request_waits_for_memory_that_is_freed_a_moment_later() {
    let ward = Arc::new(AtomicU32::new(0));
    let answers = AtomicU32::new(0);
    let pid = Arc::clone(&ward);
    let sentry = Sentry::with_headroom(PLENTY).answering(move |_| {
        let pid = pid.load(SeqCst);
        if pid != 0 && answers.fetch_add(1, SeqCst) == 3 {
            grant(pid, 900 * MB);
        }
    });
    let mut subject = Plan::steps(LIMIT, "wait malloc:800000000")
        .with_page(&sentry)
        .start();
    subject.says("wait");
    ward.store(subject.pid(), SeqCst);
    subject.go_on();
    assert_eq!(subject.says("malloc"), 1);
    assert!(subject.finish().status.success());
}

#[test]
fn a_stale_heartbeat_lifts_the_limit() {
    let sentry = Sentry::with_headroom(PLENTY);
    sentry.die();
    let mut subject = Plan::steps(LIMIT, "malloc:1000000000 limit wait")
        .with_page(&sentry)
        .start();
    assert_eq!(subject.says("malloc"), 1);
    assert_eq!(subject.says("limit"), -1);
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    assert_eq!(
        (slot.lifted.load(SeqCst), slot.refused.load(SeqCst)),
        (1, 0)
    );
}

#[test]
fn a_guard_that_answers_late_but_lives_is_not_done_without() {
    let sentry =
        Sentry::with_headroom(PLENTY).answering(|head| head.heartbeat.store(u64::MAX, SeqCst));
    sentry.die();
    let said = Plan::steps(LIMIT, "malloc:1000000000 limit")
        .with_page(&sentry)
        .run();
    assert_eq!(said.only("malloc"), 0);
    assert_eq!(said.only("limit"), (LIMIT + 32 * MB) as i64);
}

#[test]
fn while_the_guard_keeps_no_wall_the_limit_is_the_users_own() {
    for dead in [false, true] {
        let sentry = Sentry::with_headroom(MB);
        sentry.head().wall.store(0, SeqCst);
        if dead {
            sentry.die();
        }
        let steps = "malloc:1000000000 limit fill:65536 limit children:1 exec limit";
        let said = Plan::steps(LIMIT, steps).with_page(&sentry).run();
        assert_eq!(said.only("malloc"), 0);
        assert_eq!(said.all("limit"), [LIMIT as i64; 3]);
        assert_eq!(sentry.head().births.load(SeqCst), 0);
        assert_eq!(sentry.head().kick.load(SeqCst), 0);
        assert!(
            sentry
                .head()
                .slots
                .iter()
                .all(|slot| slot.pid.load(SeqCst) == 0)
        );
    }
}

#[test]
fn a_process_goes_on_when_no_slot_is_left() {
    let sentry = Sentry::with_headroom(PLENTY);
    for slot in &sentry.head().slots {
        slot.pid.store(u32::MAX, SeqCst);
    }
    let said = Plan::steps(LIMIT, "malloc:1000000000 limit")
        .with_page(&sentry)
        .run();
    assert_eq!(said.only("limit"), (LIMIT + 32 * MB) as i64);
}

#[test]
fn the_second_path_is_tried_when_the_first_is_gone() {
    let sentry = Sentry::with_headroom(PLENTY);
    let paths = format!("/proc/self/fd/999:{}", sentry.path());
    let said = Plan::steps(LIMIT, "malloc:1000000000")
        .with_page_at(&paths)
        .run();
    assert_eq!(said.only("malloc"), 0);
    assert_ne!(sentry.head().kick.load(SeqCst), 0);
}

#[test]
fn what_is_reserved_is_never_refused_and_the_guard_hears_of_it_first() {
    let sentry = Sentry::with_headroom(PLENTY);
    let steps = "reserve:1000000000 large_stack:536870912 make_code:268435456 make_writable:536870912 room wait";
    let mut subject = Plan::steps(LIMIT, steps).with_page(&sentry).start();
    assert_eq!(subject.says("reserve"), 1);
    assert_eq!(subject.says("large_stack"), 0);
    assert_eq!(subject.says("make_code"), 1);
    assert_eq!(
        subject.says("make_writable"),
        0,
        "memory is limited as before"
    );
    let room = subject.says("room");
    assert!(room < (LIMIT + 4 * MB) as i64, "{room}");
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    // Each in units of the limit, and the thread with what starting it takes besides.
    assert_eq!(slot.reserved.load(SeqCst), 1_806_696_448);
}

#[test]
fn a_reservation_beyond_the_limit_of_the_user_is_refused() {
    let sentry = Sentry::with_headroom(PLENTY);
    sentry.head().ceiling.store(LIMIT + 64 * MB, SeqCst);
    let mut subject = Plan::steps(LIMIT, "reserve:300000000 wait")
        .with_page(&sentry)
        .start();
    assert_eq!(subject.says("reserve"), 0);
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    assert_eq!(
        (slot.refused.load(SeqCst), slot.reserved.load(SeqCst)),
        (0, 0)
    );
}

#[test]
fn large_zeroed_blocks_are_told() {
    let sentry = Sentry::with_headroom(PLENTY);
    let mut subject = Plan::steps(LIMIT, "calloc:80000000 malloc:40000000 calloc:1000000 wait")
        .with_page(&sentry)
        .start();
    subject.says("calloc");
    subject.says("malloc");
    subject.says("calloc");
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    assert_eq!(slot.zeroed.load(SeqCst), 80_000_000);
}
