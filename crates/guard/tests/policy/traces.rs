//! Real runs of the freeze lab, decided on again: what the lab needs half an hour for, in a
//! second, and the same each time.
//!
//! A replay cannot react. The run goes on as the guard of that day let it, whatever is
//! decided now; and a record has five looks a second where the guard took ten. Where a
//! scenario's own promise cannot be seen for that reason, its test says so and holds what can
//! be seen. `lab/README.md` has the scenarios.

use crate::given::{MB, config, saving};
use crate::story::Story;
use crate::trace::Trace;
use antifreeze_guard::policy::Config;
use antifreeze_record::event::Rung;

fn replay(scenario: &str) -> Story {
    Trace::load(scenario).replay(&config())
}

fn pages_out() -> Config {
    Config {
        pages_out: true,
        ..config()
    }
}

/// The first of it, which there has to be.
fn when(story: &Story, at: Option<f64>) -> f64 {
    at.unwrap_or_else(|| panic!("never: {story:?}"))
}

fn assert_goes_on(story: &Story) {
    assert!(story.highest() < Rung::Pause, "{story:?}");
}

fn assert_warned_before_the_wall(story: &Story) {
    let warned = when(story, story.reached(Rung::Warn));
    let walled = when(story, story.walled.first().copied());
    assert!(warned < walled, "{story:?}");
}

fn assert_stopped_after_a_warning(story: &Story) {
    let warned = when(story, story.reached(Rung::Warn));
    let stopped = when(story, story.reached(Rung::Stop));
    assert!(warned + 1.0 <= stopped, "{story:?}");
}

fn assert_pauses_and_goes_on(story: &Story) {
    assert_eq!((story.paused, story.resumed), (1, 1), "{story:?}");
    assert!(story.highest() < Rung::Stop, "{story:?}");
}

#[test]
fn leak_is_warned_of_before_the_wall_and_goes_on() {
    let story = replay("leak");
    assert_warned_before_the_wall(&story);
    assert_goes_on(&story);
}

#[test]
fn leak_zram_is_warned_of_before_the_wall_and_goes_on() {
    let story = replay("leak-zram");
    assert_warned_before_the_wall(&story);
    assert_goes_on(&story);
}

#[test]
fn leak_noswap_is_warned_of_before_the_wall_and_goes_on() {
    let story = replay("leak-noswap");
    assert_warned_before_the_wall(&story);
    assert_goes_on(&story);
}

#[test]
fn torch_leak_is_warned_of_before_the_wall_and_goes_on() {
    let story = replay("torch-leak");
    assert_warned_before_the_wall(&story);
    assert_goes_on(&story);
}

/// It was stopped in this run, which an earlier policy guarded, just as the wall refused it.
#[test]
fn torch_leak_on_a_slow_disk_meets_the_wall_and_goes_on() {
    assert_goes_on(&replay("torch-leak-slow-disk"));
}

#[test]
fn huge_goes_on() {
    assert_goes_on(&replay("huge"));
}

#[test]
fn growing_batch_goes_on() {
    assert_goes_on(&replay("growing-batch"));
}

#[test]
fn worker_leak_goes_on() {
    assert_goes_on(&replay("worker-leak"));
}

#[test]
fn forker_goes_on() {
    assert_goes_on(&replay("forker"));
}

#[test]
fn fork_burst_goes_on() {
    assert_goes_on(&replay("fork-burst"));
}

#[test]
fn shared_memory_is_warned_and_then_stopped() {
    assert_stopped_after_a_warning(&replay("shared-memory"));
}

/// The trace ends with that day's stop: one that comes half a second later is not seen.
#[test]
fn late_fill_is_warned_and_then_stopped() {
    assert_stopped_after_a_warning(&replay("late-fill"));
}

#[test]
fn deaf_is_warned_and_then_stopped() {
    assert_stopped_after_a_warning(&replay("deaf"));
}

#[test]
fn saver_is_asked_to_save_before_the_wall() {
    let story = Trace::load("saver").replay(&saving());
    let asked = when(&story, story.first(Rung::Checkpoint));
    let walled = when(&story, story.walled.first().copied());
    assert!(asked < walled, "{story:?}");
}

#[test]
fn cold_data_goes_on() {
    assert_goes_on(&replay("cold-data"));
}

#[test]
fn page_cache_goes_on() {
    assert_goes_on(&replay("page-cache"));
}

#[test]
fn oversubscribed_goes_on() {
    assert_goes_on(&replay("oversubscribed"));
}

#[test]
fn neighbour_costs_a_pause_and_no_more() {
    assert_pauses_and_goes_on(&replay("neighbour"));
}

/// In the record the trainer runs on for a second after this pause, and what its step gives back looks like room: how
/// often it is paused cannot be seen here.
#[test]
fn neighbour_pauses_a_tree_that_pages_out_earlier() {
    let paused = |story: &Story| when(story, story.first(Rung::Pause));
    let story = Trace::load("neighbour").replay(&pages_out());
    assert!(story.highest() < Rung::Stop, "{story:?}");
    assert!(paused(&story) < paused(&replay("neighbour")), "{story:?}");
}

#[test]
fn without_a_neighbour_a_tree_that_pages_out_is_not_paused() {
    for scenario in [
        "leak",
        "cold-data",
        "oversubscribed",
        "page-cache",
        "worker-leak",
    ] {
        let story = Trace::load(scenario).replay(&pages_out());
        assert_eq!(story.paused, 0, "{scenario}: {story:?}");
    }
}

#[test]
fn neighbour_zram_costs_a_pause_and_no_more() {
    let zram = Config {
        swap_is_memory: true,
        ..config()
    };
    assert_pauses_and_goes_on(&Trace::load("neighbour-zram").replay(&zram));
}

#[test]
fn neighbour_noswap_costs_a_pause_and_no_more() {
    assert_pauses_and_goes_on(&replay("neighbour-noswap"));
}

/// Of single decisions this holds by construction; over a whole run each decision also stands
/// on what was done before.
#[test]
fn more_memory_never_leads_a_run_to_a_higher_rung() {
    let scenarios = Trace::scenarios();
    assert!(!scenarios.is_empty());
    for scenario in scenarios {
        for config in [config(), saving()] {
            let trace = Trace::load(&scenario);
            let poor = trace.replay(&config);
            let rich = trace.with_more(200 * MB).replay(&config);
            assert!(
                rich.highest() <= poor.highest(),
                "{scenario}: {rich:?} with more, {poor:?} with less"
            );
        }
    }
}

/// The records end where the machine did.
#[test]
fn a_steady_run_is_let_be_until_the_machine_dies() {
    for death in ["cut", "crash", "reset"] {
        assert_goes_on(&replay(death));
    }
}
