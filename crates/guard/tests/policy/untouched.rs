//! Memory that is mapped and not touched: what of it is charged to the run.

use crate::given::{BOOT, GB, MB, SECOND};
use crate::wall::{TICK, limit, process, room};
use antifreeze_guard::policy::{Bound, WallRoom, WallState};

/// A program that has run for a minute and maps `mapped` bytes untouched, of which it says so much; then it holds
/// `filled` more a tick later.
fn with_untouched(mapped: u64, reserved: u64, zeroed: u64, filled: u64) -> WallState {
    let mut state = WallState::default();
    state.observe(BOOT - 60 * SECOND, 2 * GB, 2 * GB, 0, 1);
    state.observe(BOOT - TICK, 2 * GB, 2 * GB, 0, 1);
    state.exclude_untouched(reserved, zeroed);
    state.observe(BOOT, 2 * GB + mapped, 2 * GB, 0, 1);
    state.observe(BOOT + TICK, 2 * GB + mapped, 2 * GB + filled, 0, 1);
    state
}

fn share(room: &WallRoom, state: WallState) -> u64 {
    limit(room, state) - state.vm_data()
}

#[test]
fn what_was_reserved_or_allocated_zeroed_and_is_not_touched_is_not_charged() {
    let ten = 10 * GB;
    let machine = room(8 * GB as i64);
    assert_eq!(share(&machine, with_untouched(ten, 0, 0, 0)), 0);
    assert_eq!(share(&machine, with_untouched(ten, ten, 0, 0)), 8 * GB);
    assert_eq!(share(&machine, with_untouched(ten, 0, ten, 0)), 8 * GB);
}

#[test]
fn zeroed_memory_is_charged_as_far_as_it_is_about_to_be_filled() {
    let machine = room(8 * GB as i64);
    // 1 GB a second: 4 GB of it within the next seconds.
    let filled = GB / 10;
    let state = with_untouched(10 * GB, 0, 10 * GB, filled);
    let forgiven = 512 * MB;
    let expected = 8 * GB - (4 * GB - filled - forgiven);
    assert!(
        share(&machine, state).abs_diff(expected) < 64 * MB,
        "{}",
        share(&machine, state)
    );
    let reserved = with_untouched(10 * GB, 10 * GB, 0, filled);
    assert_eq!(share(&machine, reserved), 8 * GB);
}

#[test]
fn of_a_budget_zeroed_memory_takes_its_part_and_what_is_reserved_does_not() {
    let budget = WallRoom {
        bound: Bound::Budget,
        total: 8 * GB,
        ..room(6 * GB as i64)
    };
    assert_eq!(share(&budget, with_untouched(10 * GB, 0, 10 * GB, 0)), 0);
    assert_eq!(
        share(&budget, with_untouched(10 * GB, 10 * GB, 0, 0)),
        6 * GB
    );
}

#[test]
fn what_was_reserved_long_ago_forgives_nothing_new() {
    let mut state = with_untouched(10 * GB, 10 * GB, 0, 0);
    for at in [20, 40, 60] {
        state.observe(BOOT + at * SECOND, 12 * GB, 2 * GB, 0, 1);
    }
    assert_eq!(state.reserved_lately(), 0);
    state.observe(BOOT + 61 * SECOND, 16 * GB, 2 * GB, 0, 1);
    assert!(share(&room(8 * GB as i64), state) < 5 * GB);
}

#[test]
fn a_request_beyond_a_limit_that_the_program_chose_is_known_as_such() {
    let mut state = process(GB);
    assert_eq!(state.beyond_chosen(GB), None);
    state.respect(3 * GB);
    assert_eq!(state.beyond_chosen(GB), Some(false));
    assert_eq!(state.beyond_chosen(2 * GB + 1), Some(true));
}
