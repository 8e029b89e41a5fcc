//! Names and numbers that could mislead.

use super::family::{Family, newest};
use super::*;

#[test]
fn a_hostile_name_confuses_nothing() {
    let mut family = Family::start(
        "
if os.fork() == 0:
    with open('/proc/self/comm', 'wb', buffering=0) as name: name.write(b') R 1 (\\x1b\\nTgid:')
    say(os.getpid()); rest()
rest()
",
    );
    let child = family.number();
    let mut tree = family.tree();
    let mut sample = Sample::default();
    tree.update_members(newest(), 0);
    tree.read_processes(0, &mut sample);
    let process = tree.get(child).unwrap().process;
    assert_eq!(process.parent, family.root);
    assert_eq!(process.name.as_bytes(), b") R 1 (\x1b\nTgid:");
    assert!(process.cpu.value().is_some());
}

#[test]
fn a_signal_reaches_a_process_of_the_tree() {
    let mut family = Family::start(
        "
child = os.fork()
if child == 0: rest()
say(child)
say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) + 100)
rest()
",
    );
    let child = family.number();
    let mut tree = family.tree();
    tree.update_members(newest(), 0);
    tree.send_signal(child, Signal::TERM).unwrap();
    assert_eq!(family.number(), Pid(100 - 15));
    assert_eq!(tree.send_signal(child, Signal::TERM), Err(Errno::SRCH));
}

#[test]
fn a_signal_to_a_process_outside_is_refused() {
    let family = Family::start("rest()");
    let tree = family.tree();
    assert_eq!(
        tree.send_signal(family.reaper(), Signal::CONT),
        Err(Errno::SRCH)
    );
}

/// Lets a child of the tree end and gives its number to a stranger. Needs the right to
/// choose numbers, so it says nothing where that is missing.
#[test]
fn a_number_given_to_a_stranger_is_neither_read_nor_signalled() {
    let mut family = Family::start(
        "
child = os.fork()
if child == 0: rest()
say(child)
wait()
os.kill(child, 9)
os.wait()
say(1)
rest()
",
    );
    let child = family.number();
    let mut tree = family.tree();
    tree.update_members(newest(), 0);
    family.go_on();
    family.number();

    let mut unknown_children = Family::start(&STRANGER.replace("NUMBER", &child.0.to_string()));
    if unknown_children.number() != child {
        return;
    }
    assert_eq!(tree.send_signal(child, Signal::KILL), Err(Errno::SRCH));
    unknown_children.go_on();
    assert_eq!(unknown_children.number(), Pid(1), "the stranger lives");
    tree.read_processes(1, &mut Sample::default());
    assert!(tree.get(child).is_none());
    tree.update_members(newest(), 2);
    assert!(tree.get(child).is_none());
}

/// The number of an excluded process goes to another child of the tree, which belongs to it. Needs the same right.
#[test]
fn whoever_got_the_number_of_an_excluded_child_belongs_to_the_tree() {
    let mut family = Family::start(&format!(
        "
child = os.fork()
if child == 0: rest()
say(child)
wait()
os.kill(child, 9)
os.wait()
# Start times are counted in hundredths of a second.
ended = os.times().elapsed
while os.times().elapsed < ended + 0.03: pass
{}",
        STRANGER.replace("NUMBER", "child")
    ));
    let child = family.number();
    let mut tree = family.tree();
    tree.exclude(child).unwrap();
    // Descents with and without kept files.
    for second in [0, 10, 12, 14] {
        tree.update_members(Reading::Value(1), second * SECOND);
        tree.read_processes(second * SECOND, &mut Sample::default());
        assert!(tree.get(child).is_none(), "excluded");
    }
    family.go_on();
    if family.number() != child {
        return;
    }
    tree.update_members(Reading::Value(2), 16 * SECOND);
    tree.update_members(Reading::Value(1000), 18 * SECOND);
    assert!(tree.get(child).is_some(), "another process");
}

/// Starts a process with a number of our choice (clone3 with set_tid), which says its
/// number, and again 1 when asked; says 0 where that is not allowed.
const STRANGER: &str = "
wanted = ctypes.c_int(NUMBER)
asked = (ctypes.c_uint64 * 11)(0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(wanted), 1, 0)
made = ctypes.CDLL(None).syscall(435, asked, ctypes.sizeof(asked))
if made < 0: say(0)
if made == 0:
    say(os.getpid()); wait(); say(1)
rest()
";
