//! Head-room is split at birth, not copied.

use std::sync::atomic::Ordering::SeqCst;

use crate::MB;
use crate::sentry::{Sentry, grant};
use crate::subject::Plan;

const HEADROOM: u64 = 512 * MB;
/// The main stack is counted as data, and the subject itself takes a little after its birth.
const NEAR: i64 = 2 * MB as i64;

fn near(value: i64, expected: u64) -> bool {
    (value - expected as i64).abs() <= NEAR
}

#[test]
fn six_children_share_the_headroom_and_the_parent_keeps_its_own() {
    let sentry = Sentry::with_headroom(HEADROOM);
    let said = Plan::steps(600 * MB, "limit children:6")
        .with_page(&sentry)
        .run();
    let shares = said.all("share");
    // The program itself was the first birth.
    let expected = [128, 64, 32, 32, 32, 32];
    assert_eq!(shares.len(), expected.len());
    for (share, expected) in shares.iter().zip(expected) {
        assert!(near(*share, expected * MB), "{shares:?}");
    }
    assert_eq!(said.only("parent"), said.only("limit"));
    assert_eq!(sentry.head().births.load(SeqCst), 7);
}

#[test]
fn a_program_that_starts_has_its_inherited_limit_lowered() {
    let sentry = Sentry::with_headroom(HEADROOM);
    let said = Plan::steps(2048 * MB, "room exec room")
        .with_page(&sentry)
        .run();
    let rooms = said.all("room");
    assert!(
        near(rooms[0], 256 * MB) && near(rooms[1], 128 * MB),
        "{rooms:?}"
    );
}

#[test]
fn a_limit_is_never_raised_at_birth() {
    let sentry = Sentry::with_headroom(HEADROOM);
    let said = Plan::steps(40 * MB, "limit children:1 exec limit")
        .with_page(&sentry)
        .run();
    assert_eq!(said.all("limit")[0], 40 * MB as i64);
    assert!(said.all("limit")[1] <= 40 * MB as i64);
    assert_eq!(said.only("parent"), 40 * MB as i64);
}

#[test]
fn nobody_is_split_when_the_guard_is_gone() {
    let sentry = Sentry::with_headroom(HEADROOM);
    sentry.die();
    let said = Plan::steps(2048 * MB, "limit children:2 exec limit")
        .with_page(&sentry)
        .run();
    assert_eq!(said.all("limit"), [2048 * MB as i64; 2]);
}

#[test]
fn the_last_of_ten_children_is_not_failed_wrongly() {
    let sentry = Sentry::with_headroom(HEADROOM).answering(|head| {
        for slot in &head.slots {
            let pid = slot.pid.load(SeqCst);
            if pid != 0 {
                grant(pid, HEADROOM);
            }
        }
    });
    let steps = format!("children:10 malloc:{} room", HEADROOM / 2);
    let said = Plan::steps(2048 * MB, &steps).with_page(&sentry).run();
    let shares = said.all("share");
    assert_eq!(shares.len(), 10);
    assert!(near(shares[9], 32 * MB), "{shares:?}");
    assert_eq!(said.only("malloc"), 1);
}

#[test]
fn a_child_has_a_slot_of_its_own() {
    let sentry = Sentry::with_headroom(HEADROOM);
    let steps = "malloc:1000000000 children:1 malloc:1000000000";
    let said = Plan::steps(600 * MB, steps).with_page(&sentry).run();
    assert_eq!(said.all("malloc"), [0, 0]);
    let slots = sentry.head().slots.iter();
    let refused: Vec<_> = slots
        .filter(|slot| slot.pid.load(SeqCst) != 0)
        .map(|slot| slot.refused.load(SeqCst))
        .collect();
    assert_eq!(refused, [1, 1]);
}

#[test]
fn without_a_page_children_split_what_the_parent_has_left() {
    let said = Plan::steps(512 * MB, "children:3 exec room").run();
    let shares = said.all("share");
    for (share, expected) in shares.iter().zip([256, 128, 64]) {
        assert!(near(*share, expected * MB), "{shares:?}");
    }
    assert!(
        near(said.only("room"), 64 * MB),
        "a program that starts keeps what it inherits"
    );
}
