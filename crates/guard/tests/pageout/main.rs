//! Paging out, with the real cushion in real processes. Whether the kernel writes anything depends on the machine's swap,
//! and is measured in the lab; what the program notices does not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../../../cushion/compile.rs"]
mod compile;
mod guarded;
mod old_kernel;

use guarded::Guarded;

/// What a program says that only computes, or waits in a call, whatever was done to it meanwhile.
fn says_what_it_says_alone(mode: &str, is_served: bool) {
    let mut guarded = Guarded::start(mode);
    let served = guarded.pause_and_page_out();
    if is_served {
        assert!(!served.is_empty(), "{mode}: no process was paged out");
    }
    guarded.resume();
    let said = guarded.finish();
    assert_eq!(said.number("default"), 1, "the handler is not seen");
    assert_eq!((said.number("caught"), said.number("intact")), (0, 1));
    assert_eq!(said.number("mask"), 1, "the signal mask is as it was");
    match mode {
        "read" => assert_eq!(said.number("read"), 1),
        "poll" | "select" => assert_eq!(said.number(mode), 1, "EINTR would be -4"),
        "sleep" => assert_eq!(said.number("sleep"), 0, "EINTR would be -4"),
        // It may have been woken before it waited (EAGAIN).
        "futex" | "timed_futex" => assert!([0, -11].contains(&said.number("futex"))),
        _ => {}
    }
    if !["read", "poll", "select", "sleep"].contains(&mode) {
        assert_eq!(said.number("line"), 1);
    }
}

#[test]
fn a_program_that_computes_is_paged_out_and_does_not_notice() {
    says_what_it_says_alone("spin", true);
}

#[test]
fn all_threads_that_compute_wait_while_one_pages_out() {
    says_what_it_says_alone("threads", true);
}

#[test]
fn a_program_that_reads_is_paged_out_and_does_not_notice() {
    says_what_it_says_alone("read", true);
}

#[test]
fn a_program_that_waits_for_a_lock_is_paged_out_and_does_not_notice() {
    says_what_it_says_alone("futex", true);
}

#[test]
fn calls_that_a_handler_would_end_are_not_ended() {
    for mode in ["poll", "select", "sleep", "timed_futex"] {
        says_what_it_says_alone(mode, false);
    }
}

#[test]
fn forked_workers_are_paged_out_one_after_the_other() {
    let mut guarded = Guarded::start("children");
    let served = guarded.pause_and_page_out();
    assert_eq!(served.len(), 3, "parent and both children");
    guarded.resume();
    let said = guarded.finish();
    assert_eq!(said.all("waited"), [1, 1]);
    assert_eq!(said.all("child"), [0, 0]);
    assert_eq!(said.number("intact"), 1);
}

#[test]
fn a_program_that_uses_the_signal_itself_never_gets_ours() {
    for mode in ["own_sigaction", "own_signal"] {
        let mut guarded = Guarded::start(mode);
        assert!(guarded.pause_and_page_out().is_empty());
        guarded.resume();
        let said = guarded.finish();
        let seen = ["default", "before", "own", "caught", "intact"].map(|word| said.number(word));
        assert_eq!(seen, [1, 1, 1, 0, 1], "{mode}");
    }
}

#[test]
fn a_program_that_ignores_the_signal_is_only_paused() {
    for mode in ["ignored", "ignored_before_exec"] {
        let mut guarded = Guarded::start(mode);
        assert!(guarded.pause_and_page_out().is_empty(), "{mode}");
        assert!(!guarded.catches_signal(), "{mode}");
        guarded.resume();
        let said = guarded.finish();
        assert_eq!((said.number("ignored"), said.number("intact")), (1, 1));
    }
}

#[test]
fn a_program_without_a_cushion_is_only_paused_though_the_one_before_it_had_one() {
    let mut guarded = Guarded::start("exec_without_cushion");
    assert!(guarded.pause_and_page_out().is_empty());
    assert!(guarded.catches_signal(), "by a handler of its own");
    guarded.resume();
    let said = guarded.finish();
    assert_eq!((said.number("caught"), said.number("intact")), (0, 1));
}

#[test]
fn a_program_whose_exec_failed_is_paged_out() {
    says_what_it_says_alone("failed_exec", true);
}

#[test]
fn a_signal_without_a_request_does_nothing() {
    let mut guarded = Guarded::start("spin");
    guarded.signal_without_request();
    let said = guarded.finish();
    assert_eq!((said.number("caught"), said.number("intact")), (0, 1));
}

#[test]
fn a_kernel_without_the_advice_leaves_the_program_as_it_is() {
    old_kernel::refuse_pageout_advice();
    says_what_it_says_alone("spin", true);
}

#[test]
fn a_program_that_blocks_the_signal_is_only_paused() {
    let mut guarded = Guarded::start("blocked");
    assert!(guarded.pause_and_page_out().is_empty());
    guarded.resume();
    assert_eq!(guarded.finish().number("intact"), 1);
}

#[test]
fn a_program_continues_when_the_guard_dies_meanwhile() {
    let mut guarded = Guarded::start("spin");
    assert_eq!(guarded.pause_and_page_out().len(), 1);
    guarded.guard_dies();
    assert_eq!(guarded.finish().number("intact"), 1);
}

#[test]
fn no_handler_is_installed_where_the_guard_does_not_want_one() {
    let mut guarded = Guarded::start_without_pageout("spin");
    assert!(guarded.pause_and_page_out().is_empty());
    assert!(!guarded.catches_signal());
    guarded.resume();
    assert_eq!(guarded.finish().number("intact"), 1);
}
