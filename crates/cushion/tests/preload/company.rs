//! The library beside other allocators, and the programs it does not reach.

use std::sync::atomic::Ordering::SeqCst;

use crate::MB;
use crate::library;
use crate::sentry::Sentry;
use crate::subject::Plan;

const LIMIT: u64 = 200 * MB;

#[test]
fn another_preloaded_allocator_keeps_its_blocks_and_gets_the_strip() {
    let other = library::subject("allocator", &["-shared", "-fPIC"]).unwrap();
    let calls = "malloc:100 calloc:160 realloc:100 reallocarray:160 memalign:100 \
                 aligned_alloc:128 posix_memalign:100 valloc:100 pvalloc:100";
    let steps = format!("{calls} free malloc:1000000000 limit");
    for order in [[&library::cushion(), &other], [&other, &library::cushion()]] {
        let cushion_first = order[1] == &other;
        let said = Plan::steps(LIMIT, &steps)
            .preloading(&order.map(|path| path.as_path()))
            .run();
        assert_eq!(said.all("malloc"), [1, 0]);
        assert_eq!(said.only("reallocarray"), 1);
        assert_eq!(said.only("free"), 1);
        let strip = if cushion_first { 32 * MB } else { 0 };
        assert_eq!(said.only("limit"), (LIMIT + strip) as i64);
    }
}

#[test]
fn a_static_program_is_not_affected() {
    let Ok(program) = library::subject("steps", &["-static"]) else {
        eprintln!("skipped: this machine cannot link static programs");
        return;
    };
    let sentry = Sentry::with_headroom(MB);
    let steps = ["malloc:1000000000", "limit"];
    let said = Plan::program(&program, LIMIT)
        .arguments(steps)
        .with_page(&sentry)
        .run();
    assert_eq!(said.only("malloc"), 0);
    assert_eq!(said.only("limit"), LIMIT as i64);
}

#[test]
fn a_program_with_an_empty_environment_is_not_affected() {
    let steps = "malloc:1000000000 limit";
    let said = Plan::steps(LIMIT, steps).with_empty_environment().run();
    assert_eq!(said.only("malloc"), 0);
    assert_eq!(said.only("limit"), LIMIT as i64);
}

#[test]
fn eight_threads_allocate_correctly_with_room() {
    let said = Plan::steps(2048 * MB, "churn:8").run();
    assert_eq!(said.only("churn"), 0);
}

#[test]
fn eight_threads_allocate_correctly_on_the_reserve() {
    let sentry = Sentry::with_headroom(1 << 40);
    sentry.head().small_reserve.store(128 * MB, SeqCst);
    let steps = "mmap:200000000 churn:8 limit";
    let said = Plan::steps(LIMIT, steps).with_page(&sentry).run();
    assert_eq!(said.only("churn"), 0);
    // Their stacks alone are more than there was room for.
    let drawn = said.only("limit") - LIMIT as i64;
    assert!(
        drawn >= 54 * MB as i64 && drawn <= 128 * MB as i64,
        "{drawn}"
    );
}
