//! More processes than the table holds or than one look reads.

use super::family::{Family, SECOND, newest};
use super::*;

const SLEEPERS: &str = "
count, late = COUNT, LATE
for _ in range(count):
    if os.fork() == 0: rest()
say(count)
if late:
    wait()
    if os.fork() == 0:
        held = bytearray(32 << 20)
        say(os.getpid()); rest()
rest()
";

fn sleepers(count: usize, late: bool) -> Family {
    let source = SLEEPERS
        .replace("COUNT", &count.to_string())
        .replace("LATE", if late { "1" } else { "0" });
    let mut family = Family::start(&source);
    family.number();
    family
}

#[test]
fn a_bomb_of_six_hundred_fills_the_table_and_the_rest_is_counted() {
    let family = sleepers(600, false);
    let mut tree = family.tree();
    // Each call does a bounded part of the work.
    for call in 0..100 {
        tree.update_members(newest(), call * SECOND / 10);
        tree.read_processes(call * SECOND / 10, &mut Sample::default());
    }
    assert_eq!(tree.processes().count(), TREE_CAPACITY);
    assert_eq!(tree.overflow(), 601 - TREE_CAPACITY);
    assert!(tree.table.open_status_files() <= TREE_CAPACITY);
}

#[test]
fn the_heaviest_newcomer_takes_the_place_of_a_light_one_that_is_told() {
    let mut family = sleepers(80, true);
    let mut tree = family.tree_for(32);
    let mut now = 0;
    for _ in 0..10 {
        now += SECOND;
        tree.update_members(newest(), now);
        tree.read_processes(now, &mut Sample::default());
    }
    family.go_on();
    let heavy = family.number();
    let mut told = 0;
    for _ in 0..10 {
        now += SECOND;
        tree.update_members(newest(), now);
        told += tree.evicted().len();
        tree.read_processes(now, &mut Sample::default());
    }
    assert!(tree.get(heavy).is_some());
    assert!(tree.get(family.root).is_some(), "a root never leaves");
    assert!(told > 0);
    assert_eq!(tree.overflow(), 82 - 32);
}

#[test]
fn every_process_of_a_large_tree_is_read_in_turn() {
    let family = sleepers(150, false);
    let mut tree = family.tree();
    let mut sample = Sample::default();
    for call in 0..10 {
        tree.update_members(newest(), call);
    }
    let mut unread: std::collections::BTreeSet<_> = numbers(&tree).into_iter().collect();
    assert_eq!(unread.len(), 151);
    for refresh in 0..5 {
        // Long after their youth, when nobody is urgent.
        tree.read_processes(100 * SECOND + refresh, &mut sample);
        let fresh = tree.processes().filter(|tracked| tracked.fresh);
        let fresh: Vec<_> = fresh.map(|tracked| tracked.process.pid).collect();
        assert!(fresh.len() < 100, "{} were read in one look", fresh.len());
        for pid in fresh {
            unread.remove(&pid);
        }
    }
    assert!(unread.is_empty());
    assert_eq!(sample.processes.as_slice().len(), MAX_LISTED_PROCESSES);
    assert_eq!(sample.tree.count, Reading::Value(151));
}

#[test]
fn without_kept_descriptors_everything_is_still_read() {
    let family = sleepers(20, false);
    let mut tree = ProcessTree::<()>::open_at(Path::new("/proc"), 64, 3).unwrap();
    tree.add_root(family.root, 0).unwrap();
    tree.update_members(newest(), 0);
    let mut sample = Sample::default();
    tree.read_processes(1, &mut sample);
    assert_eq!(tree.table.open_status_files(), 3);
    assert!(tree.processes().all(|tracked| tracked.fresh));
    assert_eq!(sample.tree.count, Reading::Value(21));
}

#[test]
fn when_descriptors_run_out_some_are_given_back() {
    let family = sleepers(20, false);
    let mut tree = family.tree();
    tree.update_members(newest(), 0);
    assert_eq!(tree.table.open_status_files(), 21);
    tree.table.close_files(8);
    assert_eq!(tree.table.open_status_files(), 13);
    tree.read_processes(1, &mut Sample::default());
    assert!(tree.processes().all(|tracked| tracked.fresh));
    assert_eq!(tree.processes().count(), 21);
}
