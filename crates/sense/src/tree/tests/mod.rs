//! The tree against real processes, and against a made-up /proc for what cannot be made
//! to happen at will.

mod calm;
mod crowd;
mod family;
mod identity;
mod made_up;

use super::*;
use crate::{MAX_LISTED_PROCESSES, Reading, Reason, Sample};
use family::{Family, SECOND, newest};

const NO_NEWEST: Reading<u64> = Reading::Unavailable(Reason::Absent);

fn numbers<S: Copy + Default>(tree: &ProcessTree<S>) -> Vec<Pid> {
    let mut numbers: Vec<_> = tree
        .processes()
        .map(|tracked| tracked.process.pid)
        .collect();
    numbers.sort();
    numbers
}

#[test]
fn children_and_their_children_are_found() {
    let mut family = Family::start(
        "
if os.fork() == 0:
    if os.fork() == 0:
        say(os.getpid()); rest()
    say(os.getpid()); rest()
rest()
",
    );
    let mut tree = family.tree();
    let mut expected = vec![family.root, family.number(), family.number()];
    expected.sort();
    tree.update_members(newest(), 0);
    assert_eq!(numbers(&tree), expected);
}

#[test]
fn a_process_started_later_is_found_by_its_number() {
    let mut family = Family::start(
        "
wait()
if os.fork() == 0:
    say(os.getpid()); rest()
rest()
",
    );
    let mut tree = family.tree();
    for _ in 0..3 {
        tree.update_members(newest(), 0);
    }
    family.go_on();
    let child = family.number();
    tree.update_members(newest(), 1);
    assert!(tree.get(child).is_some());
    assert_eq!(tree.get(child).unwrap().process.parent, family.root);
}

#[test]
fn a_child_of_a_thread_is_found_with_and_without_the_newest_number() {
    let mut family = Family::start(
        "
import threading
def work():
    wait()
    if os.fork() == 0:
        say(os.getpid()); rest()
    rest()
threading.Thread(target=work).start()
say(0)
rest()
",
    );
    family.number();
    let mut by_number = family.tree();
    let mut by_descent = family.tree();
    by_number.update_members(NO_NEWEST, 0);
    by_descent.update_members(NO_NEWEST, 0);
    family.go_on();
    let child = family.number();
    // Numbers of our own making: others on this machine start processes as they please.
    let [before, after] = [child.0 - 1, child.0].map(|number| Reading::Value(number.into()));
    by_number.update_members(before, 1);
    by_number.update_members(before, 1);
    by_descent.update_members(NO_NEWEST, 1);
    for tree in [&by_number, &by_descent] {
        assert!(
            tree.get(child).is_none(),
            "every thread was asked, which is dear"
        );
    }
    by_number.update_members(after, 1);
    assert!(by_number.get(child).is_some());
    by_descent.update_members(NO_NEWEST, SECOND);
    assert!(by_descent.get(child).is_some());
}

#[test]
fn a_newest_number_that_stands_still_is_believed_for_some_looks_and_then_no_more() {
    let mut family = Family::start(
        "
for _ in range(2):
    wait()
    if os.fork() == 0:
        say(os.getpid()); rest()
rest()
",
    );
    let mut tree = family.tree();
    let still = Reading::Value(7);
    for _ in 0..3 {
        tree.update_members(still, 0);
    }
    family.go_on();
    let first = family.number();
    tree.update_members(still, 1);
    assert!(
        tree.get(first).is_none(),
        "nothing was started, so nothing is read"
    );
    for _ in 0..8 {
        tree.update_members(still, SECOND);
    }
    assert!(tree.get(first).is_some());

    family.go_on();
    let second = family.number();
    tree.update_members(still, SECOND + 1);
    assert!(
        tree.get(second).is_some(),
        "a number that once misled is not asked again"
    );
}

#[test]
fn a_daemon_that_was_seen_stays() {
    let mut family = Family::start(
        "
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        say(os.getpid()); rest()
    wait()
    os._exit(0)
os.wait()
say(1)
rest()
",
    );
    let mut tree = family.tree();
    let daemon = family.number();
    tree.update_members(newest(), 0);
    assert!(tree.get(daemon).is_some());
    family.go_on();
    family.number();
    tree.update_members(newest(), 1);
    tree.read_processes(2, &mut Sample::default());
    assert_eq!(tree.get(daemon).unwrap().process.parent, family.reaper());
    assert_eq!(tree.processes().count(), 2);
}

#[test]
fn a_daemon_whose_parents_were_gone_before_the_first_look_is_found_below_the_reaper() {
    let mut family = Family::start(
        "
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while os.getppid() != reaper: os.sched_yield()
        say(os.getpid()); rest()
    os._exit(0)
os.wait()
rest()
",
    );
    let daemon = family.number();
    let mut tree = family.tree();
    tree.update_members(newest(), 0);
    assert!(tree.get(daemon).is_some());
}

#[test]
fn the_unseen_child_of_a_process_that_went_away_is_looked_for_below_the_reaper() {
    let mut family = Family::start(
        "
if os.fork() == 0:
    say(os.getpid())
    wait()
    if os.fork() == 0:
        while os.getppid() != reaper: os.sched_yield()
        say(os.getpid()); rest()
    os._exit(0)
os.wait()
rest()
",
    );
    let parent = family.number();
    let mut tree = family.tree();
    let still = Reading::Value(7);
    for _ in 0..3 {
        tree.update_members(still, 0);
    }
    assert!(tree.get(parent).is_some());
    family.go_on();
    let orphan = family.number();
    while tree.get(parent).is_some() {
        tree.read_processes(1, &mut Sample::default());
    }
    tree.update_members(still, 2);
    assert!(tree.get(orphan).is_some());
}

#[test]
fn a_child_of_the_reaper_that_was_excluded_stays_out_with_all_its_own() {
    let family = Family::start("rest()");
    let mut tree = ProcessTree::<()>::new(8).unwrap();
    tree.add_reaper(family.reaper()).unwrap();
    tree.exclude(family.root).unwrap();
    tree.update_members(newest(), 0);
    assert!(tree.is_empty());
}

#[test]
fn many_children_that_end_at_once_leave_nothing_behind() {
    let mut family = Family::start(
        "
for _ in range(300):
    if os.fork() == 0: os._exit(0)
    os.wait()
say(1)
rest()
",
    );
    let mut tree = family.tree();
    let mut now = 0;
    while !family.has_spoken() {
        now += SECOND / 10;
        tree.update_members(newest(), now);
        tree.read_processes(now, &mut Sample::default());
    }
    tree.update_members(newest(), now + SECOND);
    tree.read_processes(now + SECOND, &mut Sample::default());
    assert_eq!(numbers(&tree), [family.root]);
}

#[test]
fn a_zombie_is_not_counted_and_a_tree_of_the_dead_is_empty() {
    let mut family = Family::start(
        "
child = os.fork()
if child == 0: os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
say(child)
wait()
os._exit(0)
",
    );
    let child = family.number();
    let mut tree = family.tree();
    let mut sample = Sample::default();
    tree.update_members(newest(), 0);
    tree.read_processes(0, &mut sample);
    assert_eq!(tree.get(child).unwrap().process.state, b'Z');
    assert_eq!(sample.tree.count, Reading::Value(1));
    assert!(!tree.is_empty());

    family.go_on();
    while !tree.is_empty() {
        tree.update_members(newest(), 1);
        tree.read_processes(1, &mut sample);
    }
    assert_eq!(sample.tree.count, Reading::Value(0));
}

#[test]
fn growth_is_read_and_the_largest_is_listed_first() {
    let mut family = Family::start(
        "
if os.fork() == 0:
    say(os.getpid())
    wait()
    held = bytearray(64 << 20)
    say(len(held)); rest()
rest()
",
    );
    let child = family.number();
    let mut tree = family.tree();
    let mut sample = Sample::default();
    tree.update_members(newest(), 0);
    tree.read_processes(0, &mut sample);
    family.go_on();
    family.number();
    tree.read_processes(1, &mut sample);

    let grown = tree.get(child).unwrap();
    assert!(
        grown.fresh && grown.grown >= 64 << 20,
        "grown by {}",
        grown.grown
    );
    let listed = sample.processes.as_slice();
    assert_eq!(listed[0].pid, child);
    assert!(listed[0].rss_anon.value().unwrap() >= 64 << 20);
    assert_eq!(listed.len(), 2);
    assert_eq!(sample.tree.threads, Reading::Value(2));
    assert!(sample.tree.cpu.value().is_some());
    assert_eq!(sample.tree.read_bytes, Reading::Unavailable(Reason::NotYet));

    tree.read_processes(4 * SECOND, &mut sample);
    assert!(sample.tree.written_bytes.value().is_some());
}

#[test]
fn what_the_caller_keeps_about_a_process_stays_with_it() {
    let family = Family::start("rest()");
    let mut tree = family.tree();
    for tracked in tree.processes_mut() {
        tracked.state = 42;
    }
    tree.update_members(newest(), 0);
    tree.read_processes(0, &mut Sample::default());
    assert_eq!(tree.get(family.root).unwrap().state, 42);
}
