//! Where the wall stands, and what a changed limit means. Each test is something that
//! went wrong once on a real machine.

use crate::given::{BOOT, GB, MB, SECOND};
use antifreeze_guard::policy::{
    Bound, Candidate, OwnLimit, Planned, WallRoom, WallSign, WallState, closed, detect, plan,
};

pub const TICK: u64 = SECOND / 10;
const STRIP: u64 = 32 * MB;
const SMALL: u64 = 64 * MB;

/// A process seen so long ago, and for the last time now; all it mapped is touched.
pub fn process(mapped: u64) -> WallState {
    let mut state = WallState::default();
    state.observe(BOOT - 10 * SECOND, mapped, mapped, 0, 1);
    state.observe(BOOT, mapped, mapped, 0, 1);
    state
}

/// The same a tick later, with so much more mapped and touched.
fn growing(mapped: u64, by: u64) -> WallState {
    let mut state = process(mapped);
    state.observe(BOOT + TICK, mapped + by, mapped + by, 0, 1);
    state
}

pub fn room(bytes: i64) -> WallRoom {
    WallRoom {
        resumed: false,
        leaving: false,
        swap_beyond: 0,
        handed_out: 0,
        total: 16 << 30,
        wall: true,
        room: bytes,
        bound: Bound::Machine,
        reserve: GB,
        footprint: 2 * GB,
        peak: 2 * GB,
        tree_grows: false,
    }
}

fn limits(room: &WallRoom, states: &[WallState]) -> Vec<Option<u64>> {
    let candidates: Vec<Candidate> = states
        .iter()
        .map(|&state| Candidate {
            state,
            wants: 0,
            asks: false,
            open: 0,
            files: 0,
        })
        .collect();
    let mut limits = vec![None; states.len()];
    plan(room, &candidates, &mut limits);
    limits
}

pub fn limit(room: &WallRoom, state: WallState) -> u64 {
    limits(room, &[state])[0].unwrap_or_else(|| panic!("no new limit"))
}

#[test]
fn the_limit_is_what_it_has_plus_the_room() {
    assert_eq!(limit(&room(GB as i64), process(2 * GB)), 3 * GB);
}

#[test]
fn without_room_what_there_is_stays_legal_and_nothing_more() {
    for missing in [0, 3 * GB as i64] {
        assert_eq!(limit(&room(-missing), process(2 * GB)), 2 * GB);
    }
}

#[test]
fn importing_torch_charges_nothing_for_its_untouched_half_gigabyte() {
    let mut state = process(20 * MB);
    state.observe(BOOT + SECOND, 600 * MB, 100 * MB, 0, 1);
    assert_eq!(state.recent_slack(), 500 * MB);
    let mut later = state;
    later.observe(BOOT + SECOND + TICK, 600 * MB, 100 * MB, 0, 1);
    assert_eq!(limit(&room(GB as i64), later), 600 * MB + GB);
}

#[test]
fn slack_beyond_the_forgiven_is_charged_while_it_is_young() {
    let mut state = process(GB);
    for tick in 1..3 {
        state.observe(BOOT + tick * TICK, 3 * GB, GB, 0, 1);
    }
    let charged = 2 * GB - 512 * MB;
    assert_eq!(
        limit(&room(4 * GB as i64), state),
        3 * GB + 4 * GB - charged
    );

    for second in 1..40 {
        state.observe(BOOT + second * SECOND, 3 * GB, GB, 0, 1);
    }
    assert_eq!(limit(&room(4 * GB as i64), state), 3 * GB + 4 * GB);
}

/// On a machine of 512 MB a quarter of it was forgiven, and a batch that grew each epoch was
/// granted what there was no room for.
#[test]
fn what_is_forgiven_leaves_half_the_reserve_should_it_be_filled() {
    let mut state = process(100 * MB);
    state.observe(BOOT + TICK, 270 * MB, 100 * MB, 0, 1);
    let small = WallRoom {
        total: 480 * MB,
        reserve: 48 * MB,
        footprint: 100 * MB,
        peak: 100 * MB,
        ..room(170 * MB as i64)
    };
    assert_eq!(limit(&small, state), 270 * MB + 24 * MB);
}

#[test]
fn what_is_in_swap_was_touched() {
    let mut state = process(GB);
    state.observe(BOOT + TICK, 3 * GB, GB, 2 * GB, 1);
    assert_eq!(state.recent_slack(), 0);
}

#[test]
fn thread_stacks_are_never_charged() {
    let mut state = process(GB);
    let stacks = 200 * 8 * MB;
    state.observe(BOOT + TICK, GB + stacks, GB, 0, 201);
    assert_eq!(state.recent_slack(), 0);
}

#[test]
fn a_steady_tree_may_return_to_its_peak_when_others_took_the_room() {
    let mut state = process(3 * GB);
    state.observe(BOOT + TICK, 2 * GB, 2 * GB, 0, 1);
    let squeezed = WallRoom {
        peak: 3 * GB,
        ..room(100 * MB as i64)
    };
    assert_eq!(limit(&squeezed, state), 3 * GB);
    assert_eq!(
        limit(
            &WallRoom {
                room: -100 * MB as i64,
                ..squeezed
            },
            state
        ),
        3 * GB
    );

    let by_itself = WallRoom {
        tree_grows: true,
        ..squeezed
    };
    assert_eq!(limit(&by_itself, state), 2 * GB + 100 * MB);
    let too_deep = WallRoom {
        room: -600 * MB as i64,
        ..squeezed
    };
    assert_eq!(limit(&too_deep, state), 2 * GB);
    let just_resumed = WallRoom {
        resumed: true,
        ..too_deep
    };
    assert_eq!(limit(&just_resumed, state), 3 * GB, "no pause may help it");
    let over_budget = WallRoom {
        room: 0,
        bound: Bound::Budget,
        ..squeezed
    };
    assert_eq!(limit(&over_budget, state), 2 * GB);
}

#[test]
fn who_saves_or_ends_is_lent_a_part_of_the_reserve() {
    let at_the_wall = WallRoom {
        tree_grows: true,
        ..room(-100 * MB as i64)
    };
    assert_eq!(limit(&at_the_wall, process(2 * GB)), 2 * GB);
    let leaving = WallRoom {
        leaving: true,
        ..at_the_wall
    };
    assert_eq!(limit(&leaving, process(2 * GB)), 2 * GB + GB / 4 - 100 * MB);
    let over_budget = WallRoom {
        bound: Bound::Budget,
        room: 0,
        total: 4 * GB,
        ..leaving
    };
    assert_eq!(limit(&over_budget, process(2 * GB)), 2 * GB + GB / 8);
}

#[test]
fn what_was_pushed_to_swap_is_no_room_for_who_grows() {
    let pushed = WallRoom {
        tree_grows: true,
        swap_beyond: 300 * MB,
        ..room(500 * MB as i64)
    };
    assert_eq!(limit(&pushed, process(2 * GB)), 2 * GB + 200 * MB);
    let by_others = WallRoom {
        tree_grows: false,
        ..pushed
    };
    assert_eq!(limit(&by_others, process(2 * GB)), 2 * GB + 500 * MB);
}

#[test]
fn a_high_water_mark_of_untouched_memory_is_not_returned_to() {
    let mut state = process(8 * GB);
    state.observe(BOOT + TICK, 2 * GB, 2 * GB, 0, 1);
    let squeezed = WallRoom {
        peak: 3 * GB,
        ..room(100 * MB as i64)
    };
    assert_eq!(limit(&squeezed, state), 3 * GB);
}

#[test]
fn sixteen_idle_loaders_leave_the_main_process_everything() {
    let mut tree = vec![process(200 * MB); 16];
    tree.push(growing(2 * GB, 50 * MB));
    for (state, limit) in tree.iter().zip(limits(&room(GB as i64), &tree)) {
        assert_eq!(limit, Some(state.vm_data() + GB));
    }
}

#[test]
fn workers_that_grow_at_once_share_what_is_left() {
    let mut tree = vec![growing(200 * MB, 130 * MB); 6];
    tree.extend([process(GB); 2]);
    let head = 400 * MB;
    let limits = limits(&room(head as i64), &tree);
    let promised: Vec<u64> = tree
        .iter()
        .zip(limits)
        .map(|(state, limit)| limit.unwrap() - state.vm_data())
        .collect();
    assert!(promised.iter().sum::<u64>() <= head);
    assert!(
        promised[..6].iter().all(|&share| share > 50 * MB),
        "{promised:?}"
    );
    assert!(
        promised[6..].iter().all(|&share| share == 25 * MB),
        "{promised:?}"
    );
}

#[test]
fn a_changed_limit_tells_who_changed_it() {
    let own = |limit, landed| OwnLimit { limit, landed };
    for (found, set, own, sign) in [
        (GB, GB, own(0, false), WallSign::None),
        (GB, GB, own(2 * GB, true), WallSign::None),
        (GB + STRIP, GB, own(GB + STRIP, true), WallSign::Landed),
        (GB + MB, GB, own(GB + MB, false), WallSign::DrewSmall),
        // It drew again between the two readings.
        (GB + MB, GB, own(GB + 2 * MB, false), WallSign::DrewSmall),
        (GB - MB, GB, own(0, false), WallSign::Foreign),
        (GB - MB, GB, own(GB + MB, false), WallSign::Foreign),
        (u64::MAX, GB, own(0, false), WallSign::Foreign),
    ] {
        assert_eq!(detect(found, set, own), sign, "{found} {set} {own:?}");
    }
}

#[test]
fn an_open_strip_stays_until_memory_was_given_back() {
    let mut state = process(2 * GB);
    state.placed(2 * GB);
    let opened = 2 * GB + STRIP;
    let own = OwnLimit {
        limit: opened,
        landed: true,
    };
    assert_eq!(state.notice(opened, own, STRIP, SMALL), WallSign::Landed);
    assert_eq!(limits(&room(0), &[state]), [None], "left open");

    state.observe(BOOT + TICK, 2 * GB + STRIP / 4, 2 * GB, 0, 1);
    assert_eq!(
        state.notice(opened, own, STRIP, SMALL),
        WallSign::None,
        "told once"
    );
    assert_eq!(limits(&room(0), &[state]), [None]);

    state.observe(BOOT + 2 * TICK, 2 * GB - STRIP / 4, 2 * GB, 0, 1);
    assert_eq!(limits(&room(0), &[state]), [None], "not enough");

    state.observe(BOOT + 3 * TICK, GB, GB, 0, 1);
    let grows = WallRoom {
        tree_grows: true,
        ..room(0)
    };
    assert_eq!(
        limits(&grows, &[state]),
        [None],
        "it may still be giving back"
    );
    state.observe(BOOT + 4 * TICK, GB, GB, 0, 1);
    assert_eq!(limit(&grows, state), GB);
}

#[test]
fn where_no_cushion_is_a_strip_is_told_by_the_limit_alone() {
    let mut state = process(2 * GB);
    state.placed(2 * GB);
    for chosen in [3 * GB, GB, 2 * GB] {
        assert!(!state.own_opening(chosen, STRIP).landed, "{chosen}");
    }
    let own = state.own_opening(2 * GB + STRIP, STRIP);
    assert_eq!(
        state.notice(2 * GB + STRIP, own, STRIP, SMALL),
        WallSign::Landed
    );
}

#[test]
fn where_no_cushion_is_everybody_has_what_it_would_hand_out() {
    let attached = WallRoom {
        handed_out: 64 * MB,
        ..room(0)
    };
    assert_eq!(limit(&attached, process(2 * GB)), 2 * GB + 64 * MB);
}

#[test]
fn of_a_budget_the_peak_is_not_given_back() {
    let beyond = WallRoom {
        bound: Bound::Budget,
        footprint: GB,
        peak: 4 * GB,
        ..room(GB as i64)
    };
    assert_eq!(limit(&beyond, process(GB)), 2 * GB);
}

#[test]
fn an_open_strip_does_not_hold_back_new_room() {
    let mut state = process(2 * GB);
    state.placed(2 * GB);
    let opened = 2 * GB + STRIP;
    state.notice(
        opened,
        OwnLimit {
            limit: opened,
            landed: true,
        },
        STRIP,
        SMALL,
    );
    assert_eq!(limit(&room(GB as i64), state), 3 * GB);
}

#[test]
fn a_leak_in_sips_does_not_get_its_small_reserve_back_every_look() {
    let mut state = process(2 * GB);
    state.placed(2 * GB);
    let drawn = 2 * GB + 8 * MB;
    let own = OwnLimit {
        limit: drawn,
        landed: false,
    };
    assert_eq!(state.notice(drawn, own, STRIP, SMALL), WallSign::DrewSmall);
    state.observe(BOOT + TICK, 2 * GB + 4 * MB, 2 * GB + 4 * MB, 0, 1);
    assert_eq!(limits(&room(0), &[state]), [None]);
}

#[test]
fn a_limit_the_program_chose_is_never_raised() {
    let mut state = process(GB);
    state.placed(4 * GB);
    assert_eq!(
        state.notice(2 * GB, OwnLimit::default(), STRIP, SMALL),
        WallSign::Foreign
    );
    assert_eq!(limits(&room(8 * GB as i64), &[state]), [None]);
    assert_eq!(
        limit(&room(100 * MB as i64), state),
        GB + 100 * MB,
        "ours may be lower"
    );

    let mut child = WallState::child_of(&state);
    child.observe(BOOT, GB, GB, 0, 1);
    assert_eq!(limit(&room(8 * GB as i64), child), 2 * GB);

    let mut from_the_start = process(GB);
    from_the_start.respect(3 * GB);
    assert_eq!(limit(&room(8 * GB as i64), from_the_start), 3 * GB);
}

#[test]
fn a_newborn_taking_its_share_has_not_chosen_it() {
    let mut state = WallState::default();
    state.observe(BOOT, GB, GB, 0, 1);
    state.placed(4 * GB);
    state.observe(BOOT + TICK, GB, GB, 0, 1);
    assert_eq!(
        state.notice(2 * GB, OwnLimit::default(), STRIP, SMALL),
        WallSign::None
    );
    assert_eq!(limit(&room(8 * GB as i64), state), 9 * GB);
}

#[test]
fn a_limit_that_hardly_moves_is_left() {
    let mut state = process(2 * GB);
    state.placed(3 * GB);
    assert_eq!(limits(&room((GB + MB / 2) as i64), &[state]), [None]);
    assert_eq!(limits(&room((GB - MB / 2) as i64), &[state]), [None]);
    assert_eq!(limit(&room((GB + 2 * MB) as i64), state), 3 * GB + 2 * MB);
    assert_eq!(limit(&room((GB - 2 * MB) as i64), state), 3 * GB - 2 * MB);

    let mut small = process(10 * MB);
    small.placed(20 * MB);
    assert_eq!(
        limit(&room((10 * MB - MB / 2) as i64), small),
        20 * MB - MB / 2,
        "tighter by 1 %"
    );
}

#[test]
fn more_places_than_processes_are_left_empty() {
    let mut places = [Some(1), Some(1)];
    plan(
        &room(GB as i64),
        &[Candidate {
            state: process(GB),
            wants: 0,
            asks: false,
            open: 0,
            files: 0,
        }],
        &mut places,
    );
    assert_eq!(places, [Some(2 * GB), None]);
}

#[test]
fn those_who_ask_at_once_are_not_promised_the_same_room_twice() {
    let askers = [130 * MB, 130 * MB, 130 * MB].map(|wants| Candidate {
        state: process(GB),
        wants,
        asks: false,
        open: 0,
        files: 0,
    });
    let mut limits = [None; 3];
    plan(&room(300 * MB as i64), &askers, &mut limits);
    let granted = limits.map(|limit| limit.unwrap_or(0).saturating_sub(GB) >= 130 * MB);
    assert_eq!(granted, [true, true, false]);
    let promised: u64 = limits.iter().map(|limit| limit.unwrap_or(GB) - GB).sum();
    assert!(promised <= 300 * MB, "{promised}");
}

#[test]
fn who_asks_alone_gets_all_there_is() {
    let alone = [
        Candidate {
            state: process(GB),
            wants: 10 * MB,
            asks: false,
            open: 0,
            files: 0,
        },
        Candidate {
            state: process(GB),
            wants: 0,
            asks: false,
            open: 0,
            files: 0,
        },
    ];
    let mut limits = [None; 2];
    plan(&room(300 * MB as i64), &alone, &mut limits);
    assert_eq!(limits[0], Some(GB + 300 * MB));
}

#[test]
fn siblings_that_can_ask_share_what_none_of_them_was_promised_alone() {
    let sibling = Candidate {
        state: process(GB),
        wants: 0,
        asks: true,
        open: 0,
        files: 0,
    };
    let mut limits = [None; 6];
    plan(&room(600 * MB as i64), &[sibling; 6], &mut limits);
    assert_eq!(limits, [Some(GB + 100 * MB); 6]);
    let mut alone = [None];
    plan(&room(600 * MB as i64), &[sibling], &mut alone);
    assert_eq!(alone, [Some(GB + 600 * MB)]);
}

/// One that has a gigabyte and may take so much more without a word.
fn with_open(open: u64) -> Candidate {
    let mut state = process(GB);
    state.placed(GB + open);
    Candidate {
        state,
        wants: 0,
        asks: true,
        open,
        files: 0,
    }
}

#[test]
fn what_others_may_take_unseen_is_granted_once_they_may_no_more() {
    let asker = Candidate {
        wants: 130 * MB,
        ..with_open(0)
    };
    let three = room(300 * MB as i64);
    let mut limits = [None; 2];
    let planned = plan(&three, &[asker, with_open(200 * MB)], &mut limits);
    let left = 300 * MB - 130 * MB - MB;
    let contested = true;
    assert_eq!(planned, Planned { left, contested });
    // It keeps as much as the grant would leave: whoever starts there maps libraries.
    let of_other = limits[1].unwrap() - GB;
    assert!((left / 2..=left).contains(&of_other), "{of_other}");

    let planned = plan(&three, &[asker, with_open(of_other)], &mut limits);
    let contested = false;
    assert_eq!(planned, Planned { left, contested });
    assert!(limits[0] >= Some(GB + 130 * MB + MB));
}

#[test]
fn what_does_not_fit_in_any_case_is_not_worth_a_second_look() {
    let asker = Candidate {
        wants: 400 * MB,
        ..with_open(0)
    };
    let mut limits = [None; 2];
    let planned = plan(
        &room(300 * MB as i64),
        &[asker, with_open(200 * MB)],
        &mut limits,
    );
    assert!(!planned.contested);
}

#[test]
fn a_closed_limit_leaves_what_it_was_opened_for() {
    let mut state = process(GB);
    assert_eq!(closed(&state), GB);
    state.placed(GB);
    let landed = OwnLimit {
        limit: GB + STRIP,
        landed: true,
    };
    state.notice(GB + STRIP, landed, STRIP, SMALL);
    assert_eq!(closed(&state), GB + STRIP);
}

#[test]
fn two_looks_of_one_moment_grow_as_one() {
    let mut state = growing(GB, 10 * MB);
    state.observe(BOOT + TICK, GB + 15 * MB, GB, 0, 1);
    assert_eq!(state.growth(), 15 * MB);
    state.observe(BOOT + 2 * TICK, GB + 15 * MB, GB, 0, 1);
    assert_eq!(state.growth(), 0);
}

#[test]
fn the_data_of_libraries_are_not_charged_however_small_the_budget() {
    let mut state = WallState::default();
    // A program that has mapped 480 MB which nobody touches, 400 of them of its libraries.
    state.observe(BOOT - SECOND, 10 * MB, 10 * MB, 0, 1);
    state.observe(BOOT, 780 * MB, 300 * MB, 0, 1);
    let budget = WallRoom {
        bound: Bound::Budget,
        total: 800 * MB,
        ..room(500 * MB as i64)
    };
    let limit_with = |files| {
        let candidate = Candidate {
            state,
            files,
            ..with_open(0)
        };
        let mut limits = [None];
        plan(&budget, &[candidate], &mut limits);
        limits[0].unwrap() - 780 * MB
    };
    assert_eq!(limit_with(0), 500 * MB - (480 - 200) * MB);
    assert_eq!(limit_with(400 * MB), 500 * MB);
}

#[test]
fn a_file_that_is_mapped_is_no_growth_also_when_it_is_seen_a_look_after_it_was_told_of() {
    let mut state = process(GB);
    state.exclude_file_growth(3 * GB);
    state.observe(BOOT + TICK, 4 * GB, GB, 0, 1);
    assert_eq!(state.growth(), 0);

    let mut state = process(GB);
    state.exclude_file_growth(3 * GB);
    state.observe(BOOT + TICK, GB, GB, 0, 1);
    state.exclude_file_growth(3 * GB);
    state.observe(BOOT + 2 * TICK, 4 * GB + 10 * MB, GB + 10 * MB, 0, 1);
    assert_eq!(state.growth(), 10 * MB, "what came beside it is");

    // One that was given back before anybody looked does not hide what comes later.
    let mut state = process(GB);
    state.exclude_file_growth(3 * GB);
    for tick in 1..=3 {
        state.observe(BOOT + tick * TICK, GB, GB, 0, 1);
        state.exclude_file_growth(3 * GB);
    }
    state.observe(BOOT + 4 * TICK, 2 * GB, 2 * GB, 0, 1);
    assert_eq!(state.growth(), GB);
}

#[test]
fn a_limit_that_was_moved_for_a_file_is_nothing_to_land_on() {
    let mut state = process(GB);
    state.placed(2 * GB);
    state.exclude_file_growth(3 * GB);
    state.observe(BOOT + TICK, 4 * GB, GB, 0, 1);
    let own = OwnLimit {
        limit: 5 * GB,
        landed: false,
    };
    assert_eq!(state.notice(5 * GB, own, STRIP, SMALL), WallSign::None);
    assert_eq!(state.opened(), None);
    // The same without a file is a draw on the reserve.
    let mut state = process(GB);
    state.placed(2 * GB);
    state.observe(BOOT + TICK, 2 * GB, GB, 0, 1);
    assert_eq!(state.notice(5 * GB, own, STRIP, SMALL), WallSign::DrewSmall);
    assert!(state.opened().is_some());
}

/// The guard may find a limit that was raised for a library before the cushion says why.
#[test]
fn an_opening_is_no_larger_than_what_the_cushion_hands_out() {
    let mut state = process(GB);
    state.placed(2 * GB);
    let own = OwnLimit {
        limit: 5 * GB,
        landed: false,
    };
    state.notice(5 * GB, own, STRIP, SMALL);
    assert_eq!(limit(&room(0), state), GB + STRIP + SMALL);
}

#[test]
fn what_is_handed_out_beyond_the_room_is_handed_out_once() {
    let state = process(GB);
    let beyond = |room_left: i64| {
        let room = WallRoom {
            handed_out: 64 * MB,
            tree_grows: true,
            ..room(room_left)
        };
        limit(&room, state) - GB
    };
    let mb = MB as i64;
    assert_eq!(beyond(10 * mb), 74 * MB);
    assert_eq!(beyond(0), 64 * MB);
    assert_eq!(beyond(-30 * mb), 34 * MB);
    assert_eq!(beyond(-100 * mb), 0);
}
