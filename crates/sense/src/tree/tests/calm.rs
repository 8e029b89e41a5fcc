//! In a calm tree a process whose sizes are as they were is not read again at once, and nothing is missed by that.

use super::*;
use rustix::process::Signal;

/// A root with one child that says its number, runs this, and sleeps there by now: what still runs changes its sizes.
fn parent_of(child: &str) -> (Family, Pid) {
    let mut family = Family::start(&format!(
        "
if os.fork() == 0:
    say(os.getpid())
{child}
    rest()
rest()
"
    ));
    let child = family.number();
    await_state(child, b'S');
    (family, child)
}

/// Looks at these seconds, all of them later than the tree's youth.
fn refresh(tree: &mut ProcessTree<u32>, seconds: impl IntoIterator<Item = u64>) {
    for second in seconds {
        tree.update_members(newest(), second * SECOND);
        tree.read_processes(second * SECOND, &mut Sample::default());
    }
}

fn await_state(pid: Pid, state: u8) {
    let status = || std::fs::read(format!("/proc/{}/status", pid.0)).unwrap();
    while crate::parse::process_status(&status()).state != state {
        std::thread::yield_now();
    }
}

fn is_fresh(tree: &ProcessTree<u32>, pid: Pid) -> bool {
    tree.get(pid).unwrap().fresh
}

#[test]
fn what_is_as_it_was_is_read_again_within_eight_seconds() {
    let (family, child) = parent_of("");
    let mut tree = family.tree();
    refresh(&mut tree, [0, 10, 12]);
    let mut unread = 0;
    for second in (14..60).step_by(2) {
        refresh(&mut tree, [second]);
        assert!(is_fresh(&tree, family.root), "a root is read at each look");
        unread = if is_fresh(&tree, child) {
            0
        } else {
            unread + 1
        };
        assert!(unread <= 3, "not read since {} s", second - 2 * unread);
    }
    refresh(&mut tree, [70, 72]);
    assert!(!is_fresh(&tree, child), "spared");
}

#[test]
fn growth_is_seen_at_the_very_next_look() {
    let (mut family, child) = parent_of("    wait(); held = bytearray(64 << 20); say(len(held))");
    let mut tree = family.tree();
    refresh(&mut tree, [0, 10, 12, 14]);
    assert!(!is_fresh(&tree, child));
    family.go_on();
    family.number();
    refresh(&mut tree, [16]);
    let grown = tree.get(child).unwrap();
    assert!(grown.fresh && grown.grown >= 64 << 20);
}

#[test]
fn an_end_is_seen_at_the_very_next_look() {
    let (family, child) = parent_of("");
    let mut tree = family.tree();
    refresh(&mut tree, [0, 10, 12, 14]);
    assert!(!is_fresh(&tree, child));
    tree.send_signal(child, Signal::KILL).unwrap();
    // The root does not wait for it, so it stays as a zombie.
    await_state(child, b'Z');
    refresh(&mut tree, [16]);
    assert!(tree.get(child).unwrap().process.has_ended());
}

#[test]
fn completing_a_look_tells_who_was_stopped() {
    let (family, child) = parent_of("");
    let mut tree = family.tree();
    refresh(&mut tree, [0, 10, 12]);
    tree.send_signal(child, Signal::STOP).unwrap();
    await_state(child, b'T');
    refresh(&mut tree, [14]);
    assert_ne!(
        tree.get(child).unwrap().process.state,
        b'T',
        "it was spared"
    );
    tree.read_skipped_statuses(14 * SECOND);
    assert_eq!(tree.get(child).unwrap().process.state, b'T');
}

#[test]
fn files_with_sizes_are_given_back_before_all_others() {
    let (family, child) = parent_of("");
    let mut tree = family.tree();
    refresh(&mut tree, [0, 10, 12, 14]);
    assert!(!is_fresh(&tree, child));
    tree.table.close_files(1);
    assert_eq!(tree.table.open_status_files(), 2);
    refresh(&mut tree, [16, 18]);
    assert!(is_fresh(&tree, child), "read as before");
    tree.table.close_files(1);
    assert_eq!(tree.table.open_status_files(), 1);
}
