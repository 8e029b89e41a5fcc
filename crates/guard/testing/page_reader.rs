//! All that a guard reads from the page in one tick, over a tree of one small process. For the tests and for the fuzz
//! target.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use antifreeze_guard::process_state::ProcessState;
use antifreeze_guard::room::{MemoryBounds, Room};
use antifreeze_guard::slow_worker::Findings;
use antifreeze_guard::trainers;
use antifreeze_guard::wall::{Wall, WallConditions, WallInput};
use antifreeze_ipc::page::HEAD_BYTES;
use antifreeze_ipc::shared::Shared;
use antifreeze_sense::clock::monotonic_ns;
use antifreeze_sense::tree::{ProcessTree, TREE_CAPACITY};
use antifreeze_sense::{Pid, Reading, Reason, Sample};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const ROOM: i64 = 500_000_000;

pub struct Reader {
    shared: Shared,
    child: Child,
    tree: ProcessTree<ProcessState>,
    wall: Wall,
    sample: Sample,
    /// Between two ticks.
    pace: Duration,
}

impl Reader {
    pub fn new(shared: Shared, pace: Duration) -> Reader {
        let child = waiter();
        let mut tree = ProcessTree::new(TREE_CAPACITY).unwrap();
        tree.add_root(Pid(child.id()), monotonic_ns()).unwrap();
        Reader {
            shared,
            child,
            tree,
            wall: Wall::new(true, None, false, Vec::new()),
            sample: Sample::default(),
            pace,
        }
    }

    /// The process of the tree.
    pub fn child(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Reads the page as the deciding thread does, and acts on the tree.
    pub fn tick(&mut self) {
        let (shared, now) = (self.shared, monotonic_ns());
        self.wall.read_wants(shared);
        self.tree
            .update_members(Reading::Unavailable(Reason::NotYet), now);
        self.tree.read_processes(now, &mut self.sample);
        trainers::read(shared, &mut self.sample);
        let room = Room {
            bytes: ROOM,
            total: 2 * ROOM as u64,
            available: ROOM as u64,
            ..Room::default()
        };
        let bounds = MemoryBounds {
            reserve: 100_000_000,
            budget: Some(ROOM as u64),
            allow_swap: 0,
        };
        let conditions = WallConditions {
            tree_grows: false,
            resumed: false,
            leaving: false,
            swap_beyond: 0,
            again: true,
        };
        let findings = Findings::default();
        let (tree, sample) = (&mut self.tree, &self.sample);
        let footprint = sample.tree.footprint.value().unwrap_or(0);
        let input = WallInput {
            now,
            room: &room,
            bounds: &bounds,
            footprint,
            peak: footprint,
            conditions,
            findings: &findings,
            shared,
        };
        self.wall.update(&input, tree);
        while self.wall.next_event().is_some() {}
        let stands = data_limit(self.child()).0;
        assert!(
            stands <= 4 * ROOM as u64,
            "the wall stands at {stands}, whatever the page says"
        );
        trainers::publish_rung(shared, 3);
        let _ = trainers::steps(shared);
        let _ = trainers::ask_to_save(shared);
        if let Some(trainers::Answer::Saved(millis)) = trainers::save_answer(shared) {
            assert!(millis <= trainers::LONGEST_SAVE_MS, "{millis}");
        }
        let _ = trainers::ask_to_stop(shared);
        let _ = (
            trainers::is_saving(shared),
            trainers::makes_no_steps(shared),
        );
        trainers::ask_for_memory_report(shared, &self.tree);
        trainers::interrupt_steps(shared, &self.tree);
        trainers::withdraw_stop_requests(shared);
        shared.withdraw_pageouts();
        let is_ours = |pid| self.tree.get(Pid(pid)).is_some();
        shared.free_slots(is_ours);
        std::thread::sleep(self.pace);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that does nothing, and ends with us.
pub fn waiter() -> Child {
    let mut command = Command::new("cat");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().unwrap();
    // Until its exec is done it is what it was forked from, with all of its memory.
    let exe = format!("/proc/{}/exe", child.id());
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    while std::fs::read_link(&exe).is_ok_and(|exe| exe == own) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Writes a value at a place, whatever stands there.
pub fn write(shared: Shared, place: u64, value: u64) {
    let page = std::ptr::from_ref(shared.page()).cast::<AtomicU64>();
    let place = place as usize % (HEAD_BYTES / 8);
    // SAFETY: within the mapping, which is of atomics and never unmapped.
    unsafe { (*page.add(place)).store(value, Relaxed) };
}

/// The soft and the hard limit on the data of a process.
pub fn data_limit(pid: Pid) -> (u64, u64) {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", pid.0)).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max data size"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    let number = |word: &str| word.parse().unwrap_or(u64::MAX);
    (number(words[3]), number(words[4]))
}

/// The kernel's letter for what a process does.
pub fn state(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.0)).unwrap();
    let after = stat.rsplit(") ").next().unwrap();
    after.chars().next().unwrap()
}
