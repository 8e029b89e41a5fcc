//! Without a page: the strip and the small reserve in their built-in sizes, and no more.

use crate::MB;
use crate::subject::Plan;

const LIMIT: u64 = 200 * MB;

#[test]
fn every_large_request_of_the_malloc_family_is_refused_and_opens_the_strip_once() {
    for call in [
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "memalign",
        "aligned_alloc",
        "posix_memalign",
        "valloc",
        "pvalloc",
    ] {
        let steps = format!("{call}:1000000000 limit {call}:1000000000 limit");
        let said = Plan::steps(LIMIT, &steps).run();
        assert_eq!(said.all(call), [0, 0]);
        let open = (LIMIT + 32 * MB) as i64;
        assert_eq!(said.all("limit"), [open, open], "{call}");
    }
}

#[test]
fn a_refused_mapping_opens_no_strip() {
    let said = Plan::steps(LIMIT, "mmap:1000000000 limit").run();
    assert_eq!(said.only("mmap"), 0);
    assert_eq!(said.only("limit"), LIMIT as i64);
}

#[test]
fn small_requests_are_met_until_the_reserve_is_used_up_and_the_last_opens_the_strip() {
    let said = Plan::steps(LIMIT, "fill:65536 limit fill:65536 limit").run();
    let most = (LIMIT + 96 * MB) as i64;
    assert_eq!(said.all("limit"), [most, most]);
    let filled = said.all("fill");
    assert!(filled[0] > (LIMIT + 56 * MB) as i64, "{filled:?}");
    assert!(filled[1] > 24 * MB as i64, "{filled:?}");
}

#[test]
fn a_mapping_of_a_megabyte_is_small_and_a_larger_one_is_not() {
    let at_the_wall = "mmap:200000000";
    let said = Plan::steps(
        LIMIT,
        &format!("{at_the_wall} mmap:16000000 mmap:1048576 limit"),
    );
    let said = said.run();
    assert_eq!(said.all("mmap"), [1, 0, 1]);
    let said = Plan::steps(LIMIT, &format!("{at_the_wall} fill:65536")).run();
    assert!(said.only("fill") > 56 * MB as i64);
}

#[test]
fn threads_start_at_the_wall_and_draw_on_the_reserve() {
    let said = Plan::steps(LIMIT, "mmap:204000000 thread thread thread limit").run();
    assert_eq!(said.all("thread"), [0, 0, 0]);
    let drawn = said.only("limit") - LIMIT as i64;
    assert!(
        drawn >= 18 * MB as i64 && drawn % (9 * MB as i64) == 0,
        "{drawn}"
    );
}

#[test]
fn what_no_limit_would_admit_leaves_the_limit_alone() {
    let said = Plan::steps(LIMIT, "overflow:16 malloc:18446744073709551615 limit").run();
    assert_eq!(said.only("overflow"), i64::from(libc::ENOMEM));
    assert_eq!(said.only("malloc"), 0);
    assert_eq!(said.only("limit"), LIMIT as i64);
}

#[test]
fn errors_and_corner_cases_reach_the_program_as_they_are() {
    let steps = "badly_aligned:64 realloc_to_nothing:64 errno_of_malloc:1000000000 \
                 errno_of_malloc:64 limit";
    let said = Plan::steps(LIMIT, steps).run();
    assert_eq!(said.only("badly_aligned"), i64::from(libc::EINVAL));
    assert_eq!(said.only("realloc_to_nothing"), 0);
    assert_eq!(said.all("errno_of_malloc"), [i64::from(libc::ENOMEM), 0]);
}

#[test]
fn an_infinite_limit_is_never_touched() {
    let steps = "malloc:100000000000 limit children:1 exec limit";
    let said = Plan::steps(libc::RLIM_INFINITY, steps).run();
    assert_eq!(said.only("malloc"), 0);
    assert_eq!(said.all("limit"), [-1, -1]);
    assert_eq!(said.only("parent"), -1);
}

#[test]
fn a_failure_that_the_wall_did_not_cause_draws_on_nothing() {
    // Refused by the address space limit of the subject, with gigabytes to go to the wall.
    let said = Plan::steps(1 << 40, "malloc:4000000000 limit").run();
    assert_eq!(said.only("malloc"), 0);
    assert_eq!(said.only("limit"), 1 << 40);
}

#[test]
fn a_page_that_is_none_counts_as_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let short = folder.path().join("short");
    let other = folder.path().join("other");
    std::fs::write(&short, b"AFPG").unwrap();
    std::fs::write(&other, vec![0; 128 * 1024]).unwrap();
    let long = "x".repeat(500);
    let paths = format!("::/nowhere:{long}:{}:{}", short.display(), other.display());
    let said = Plan::steps(LIMIT, "limit malloc:1000000000 limit")
        .with_page_at(&paths)
        .run();
    assert_eq!(said.all("limit"), [LIMIT as i64, (LIMIT + 32 * MB) as i64]);
}
