//! What must hold whatever was seen.

use crate::arbitrary::*;
use crate::given::*;
use antifreeze_guard::policy::{
    Bound, Candidate, HISTORY_INPUTS, History, Motion, PolicyInput, WallRoom, WallState, decide,
    plan,
};
use antifreeze_record::event::Rung;
use proptest::prelude::*;
use std::time::Duration;

proptest! {
    #[test]
    fn more_memory_never_gives_a_higher_rung(
        inputs in walk(), past in past(), config in any_config(), more in 1u64..8000,
    ) {
        let richer: Vec<PolicyInput> = inputs
            .iter()
            .map(|input| PolicyInput {
                room: input.room + (more * MB) as i64,
                available: input.available + more * MB,
                ..*input
            })
            .collect();
        let poor = decide(&built(&inputs, &past), &config);
        let rich = decide(&built(&richer, &past), &config);
        prop_assert!(rich.rung <= poor.rung, "{:?} with more, {:?} with less", rich, poor);
    }

    #[test]
    fn a_pause_is_never_for_a_budget_nor_for_a_tree_that_grows(
        inputs in walk(), mut past in past(), config in any_config(), rate in 200u64..2000,
    ) {
        if past.rung == Rung::Pause {
            past.rung = Rung::Brake;
        }
        let start = inputs[0].at;
        let growing: Vec<PolicyInput> = inputs
            .iter()
            .map(|input| PolicyInput {
                footprint: 4 * GB + (input.at - start) / 1_000_000 * rate * MB / 1000,
                ..*input
            })
            .collect();
        prop_assert_ne!(rung(&built(&growing, &past), &config), Rung::Pause);

        past.stopped = None;
        let budgeted: Vec<PolicyInput> = inputs
            .iter()
            .map(|input| PolicyInput { bound: Bound::Budget, ..*input })
            .collect();
        prop_assert_ne!(rung(&built(&budgeted, &past), &config), Rung::Pause);
    }

    #[test]
    fn any_history_at_all_gives_a_decision(
        inputs in prop::collection::vec(wild_moment(), 0..40), past in past(), config in any_config(),
    ) {
        let decision = decide(&built_wild(&inputs, &past), &config);
        prop_assert!(decision.pace >= Duration::from_millis(50));
        prop_assert!(decision.pace <= Duration::from_secs(2));
        prop_assert!(!decision.page_out || decision.rung == Rung::Pause, "it runs");
        if let Some(told) = decision.forecast {
            prop_assert!((0.0..=1.0).contains(&told.confidence));
            prop_assert!(told.growth.is_finite());
        }
    }

    #[test]
    fn nothing_leads_down_from_a_stop(
        inputs in walk(), past in past(), config in any_config(),
    ) {
        let mut history = built(&inputs, &past);
        enter(&mut history, Rung::Stop, past.since);
        prop_assert!(rung(&history, &config) >= Rung::Stop);
    }

    #[test]
    fn a_kill_follows_a_stop_only(
        inputs in walk(), mut past in past(), config in any_config(),
    ) {
        past.stopped = None;
        prop_assert!(rung(&built(&inputs, &past), &config) != Rung::Kill);
    }

    #[test]
    fn a_tree_the_user_stopped_is_left_alone_unless_all_is_lost(
        inputs in walk(), mut past in past(), config in any_config(),
    ) {
        past.rung = past.rung.min(Rung::Pause);
        let held: Vec<PolicyInput> = inputs
            .iter()
            .map(|input| PolicyInput {
                motion: Motion::StoppedByUser,
                available: input.available.max(input.reserve / 8),
                ..*input
            })
            .collect();
        prop_assert!(rung(&built(&held, &past), &config) <= Rung::Warn);
    }

    #[test]
    fn a_limit_is_never_below_what_is_mapped(
        room in -4000i64..16000, peak in 0u64..8000, grows in any::<bool>(),
        looks in prop::collection::vec((0u64..4000, 0u64..4000, 0u64..4000), 1..20),
    ) {
        let (states, room) = wall_case(room, peak, grows, &looks);
        let mut limits = vec![None; states.len()];
        plan(&room, &states, &mut limits);
        for (Candidate { state, .. }, limit) in states.iter().zip(&limits) {
            prop_assert!(limit.unwrap() >= state.vm_data());
        }
    }

    #[test]
    fn threatened_head_room_is_promised_once(
        room in -4000i64..16000, peak in 0u64..8000, grows in any::<bool>(),
        looks in prop::collection::vec((0u64..4000, 0u64..4000, 0u64..4000), 1..20),
    ) {
        let (states, room) = wall_case(room, peak, grows, &looks);
        let growth: u64 = states.iter().map(|process| process.state.growth()).sum();
        let head = room.room.max(0) as u64;
        let pool = if grows { head } else { head.max(room.peak.saturating_sub(room.footprint)) };
        prop_assume!(growth > 0 && growth * 2 >= pool);
        let mut limits = vec![None; states.len()];
        plan(&room, &states, &mut limits);
        let promised: u64 = states
            .iter()
            .zip(&limits)
            .map(|(Candidate { state, .. }, limit)| limit.unwrap() - state.vm_data())
            .sum();
        prop_assert!(promised <= pool, "{promised} of {pool}");
    }

    #[test]
    fn what_is_granted_lies_open_to_nobody_else(
        room in 0i64..4000,
        looks in prop::collection::vec((0u64..4000, 0u64..500, 0u64..500), 2..12),
    ) {
        let looks: Vec<_> = looks.iter().map(|&(held, wants, open)| {
            let wants = if wants < 250 { 0 } else { wants };
            (held, wants, open)
        }).collect();
        let mut candidates: Vec<Candidate> = looks.iter().map(|&(held, wants, open)| {
            let mut state = WallState::default();
            state.observe(BOOT, held * MB, held * MB, 0, 1);
            state.placed((held + open) * MB);
            let open = if wants == 0 { open * MB } else { 0 };
            Candidate { state, wants: wants * MB, asks: true, open, files: 0 }
        }).collect();
        let (_, room) = wall_case(room, 0, true, &[(1, 0, 0)]);
        let pool = room.room as u64;
        let mut limits = vec![None; candidates.len()];
        // Others are bound by the first plan, and everybody is looked at again.
        let first = plan(&room, &candidates, &mut limits);
        if first.contested {
            for (candidate, limit) in candidates.iter_mut().zip(&limits) {
                if candidate.wants == 0 {
                    candidate.open = limit.unwrap() - candidate.state.vm_data();
                    candidate.state.placed(limit.unwrap());
                }
            }
        }
        let second = plan(&room, &candidates, &mut limits);
        prop_assert!(!second.contested, "{first:?} {second:?}");
        let taken: u64 = candidates.iter().zip(&limits).map(|(candidate, limit)| match limit {
            Some(limit) if candidate.wants > 0 && *limit >= candidate.state.vm_data() + candidate.wants => candidate.wants,
            _ if candidate.wants > 0 => 0,
            _ => candidate.open,
        }).sum();
        let somebody_was_granted = second.left < pool;
        prop_assert!(!somebody_was_granted || taken <= pool, "{taken} of {pool}");
    }

    #[test]
    fn without_a_wall_there_is_no_limit(
        room in -4000i64..16000,
        looks in prop::collection::vec((0u64..4000, 0u64..4000, 0u64..4000), 1..20),
    ) {
        let (states, room) = wall_case(room, 0, false, &looks);
        let mut limits = vec![Some(1); states.len()];
        plan(&WallRoom { wall: false, ..room }, &states, &mut limits);
        prop_assert!(limits.iter().all(Option::is_none));
    }
}

proptest! {
    // Each case is twenty seconds of decisions.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_noisy_signal_steps_down_at_most_every_two_seconds(
        noise in prop::collection::vec(-80i64..80, 200..201),
        centre in prop_oneof![Just(1024u64), Just(512), Just(4096 + 1024)],
        step in prop_oneof![Just(50u64), Just(100), Just(500)],
    ) {
        let mut history = History::new();
        let mut last_down = None::<u64>;
        let mut at = BOOT;
        for noise in noise {
            at += step * 1_000_000;
            let mut input = PolicyInput { at, ..quiet() };
            available(&mut input, (centre as i64 + noise) as u64 * MB);
            history.push(input);
            let rung = rung(&history, &config());
            if rung < history.acts.rung {
                if let Some(last) = last_down {
                    prop_assert!(at - last >= 2 * SECOND);
                }
                last_down = Some(at);
            }
            if rung != history.acts.rung {
                history.acts.rung = rung;
                history.acts.since = at;
            }
        }
    }
}

/// Processes of so many megabytes mapped, more mapped at the second look, and touched.
fn wall_case(
    room: i64,
    peak: u64,
    grows: bool,
    looks: &[(u64, u64, u64)],
) -> (Vec<Candidate>, WallRoom) {
    let states = looks
        .iter()
        .map(|&(mapped, more, touched)| {
            let mut state = WallState::default();
            state.observe(BOOT, mapped * MB, touched * MB, 0, 1);
            state.observe(BOOT + SECOND / 10, (mapped + more) * MB, touched * MB, 0, 1);
            Candidate {
                state,
                wants: 0,
                asks: false,
                open: 0,
                files: 0,
            }
        })
        .collect();
    let room = WallRoom {
        resumed: false,
        leaving: false,
        swap_beyond: 0,
        handed_out: 0,
        total: 16 << 30,
        wall: true,
        room: room * MB as i64,
        bound: Bound::Machine,
        reserve: GB,
        footprint: 2 * GB,
        peak: peak * MB,
        tree_grows: grows,
    };
    (states, room)
}

#[test]
fn a_full_history_forgets_the_oldest() {
    let history = history(300.0, 1000, |t, input| input.footprint = t as u64);
    assert_eq!(history.iter().count(), HISTORY_INPUTS);
    assert_eq!(
        history.iter().next().unwrap().footprint,
        301 - HISTORY_INPUTS as u64
    );
}
