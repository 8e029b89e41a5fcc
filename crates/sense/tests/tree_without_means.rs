//! The tree when there is nothing left to take: no heap after construction, and no file
//! descriptor. In a program of its own, because both belong to the whole process.

// What is not inside a test function is part of one all the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use antifreeze_sense::footprint::Footprint;
use antifreeze_sense::tree::ProcessTree;
use antifreeze_sense::{Pid, Reading, Reason, Sample};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// One at a time: the other would meet the missing descriptors too.
static ALONE: Mutex<()> = Mutex::new(());

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the promises that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const UNKNOWN: Reading<u64> = Reading::Unavailable(Reason::Absent);
const SLEEPERS: usize = 12;

/// A shell with sleeping children; its standard input ends them all.
struct Sleepers(Child);

impl Sleepers {
    fn start() -> Sleepers {
        let script = "i=0; while [ $i -lt $0 ]; do sleep 60 & all=\"$all $!\"; i=$((i+1)); done; \
                      echo; read x; kill $all; wait";
        let mut shell = Command::new("sh")
            .args(["-c", script, &SLEEPERS.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let mut ready = [0];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut ready).unwrap();
        Sleepers(shell)
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn nothing_is_allocated_after_construction() {
    let _alone = ALONE.lock();
    let sleepers = Sleepers::start();
    let mut tree = ProcessTree::<u64>::new(64).unwrap();
    let mut footprint = Footprint::new(64);
    let mut sample = Sample::default();
    let before = ALLOCATIONS.get();
    tree.add_root(Pid(sleepers.0.id()), 0).unwrap();
    for second in 0..20 {
        let now = second * 1_000_000_000;
        tree.update_members(UNKNOWN, now);
        tree.read_processes(now, &mut sample);
        footprint.update(
            tree.processes().map(|tracked| &tracked.process),
            &mut sample,
        );
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(sample.tree.count, Reading::Value(1 + SLEEPERS as u64));
}

#[test]
fn a_process_without_descriptors_left_still_follows_and_reads() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let _alone = ALONE.lock();
    let sleepers = Sleepers::start();
    let mut tree = ProcessTree::<u64>::new(64).unwrap();
    let mut sample = Sample::default();
    let usual = getrlimit(Resource::Nofile);
    let lowest_free = rustix::io::dup(std::io::stdin()).unwrap();
    let open = std::os::fd::AsRawFd::as_raw_fd(&lowest_free) as u64;
    drop(lowest_free);
    // Room for some of the status files that would be kept, not for all.
    let narrow = Rlimit {
        current: Some(open + 10),
        ..usual
    };
    setrlimit(Resource::Nofile, narrow).unwrap();
    let added = tree.add_root(Pid(sleepers.0.id()), 0);
    for second in 0..6 {
        let now = second * 1_000_000_000;
        tree.update_members(UNKNOWN, now);
        tree.read_processes(now, &mut sample);
    }
    setrlimit(Resource::Nofile, usual).unwrap();

    assert_eq!(added, Ok(()));
    assert_eq!(sample.tree.count, Reading::Value(1 + SLEEPERS as u64));
    assert!(tree.processes().all(|tracked| tracked.fresh));
}

/// Otherwise a guard would wait for it for ever.
#[test]
fn a_process_that_ends_leaves_the_tree_without_descriptors_left() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let _alone = ALONE.lock();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let mut tree = ProcessTree::<u64>::new(64).unwrap();
    let mut sample = Sample::default();
    let usual = getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        ..usual
    };
    tree.add_root(Pid(child.id()), 0).unwrap();
    setrlimit(Resource::Nofile, none).unwrap();
    let mut is_empty = |from: u64| {
        for second in from..from + 4 {
            let now = second * 1_000_000_000;
            tree.update_members(UNKNOWN, now);
            tree.read_processes(now, &mut sample);
        }
        tree.is_empty()
    };
    let was_empty = is_empty(0);
    let _ = child.kill();
    let _ = child.wait();
    let is_empty = is_empty(4);
    setrlimit(Resource::Nofile, usual).unwrap();
    assert!(!was_empty && is_empty);
}
