//! The page under a process that writes to it what it likes: what the guard reads there leads to no panic, to nothing that
//! is done to a process outside of the tree, and to no wait without end.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../testing/page_reader.rs"]
mod page_reader;

use antifreeze_ipc::shared::Shared;
use antifreeze_sense::Pid;
use page_reader::Reader;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Ticks of a guard, each over another scribbled page.
const TICKS: usize = 1000;
/// The same, while another thread takes a core.
const CONTENDED_TICKS: usize = 200;

/// Numbers that follow from the first.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Values at which arithmetic goes wrong, and any other.
    fn value(&mut self, pids: [Pid; 2]) -> u64 {
        match self.next() % 8 {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << 63,
            4 => u64::from(u32::MAX),
            5 => u64::from(pids[0].0) << 32 | u64::from(pids[1].0),
            6 => u64::from(pids[1].0) << 32 | u64::from(pids[0].0),
            _ => self.next(),
        }
    }
}

#[test]
fn a_page_that_is_scribbled_over_harms_neither_the_guard_nor_a_stranger() {
    let (shared, memory) = Shared::create().unwrap();
    let mut reader = Reader::new(shared, Duration::ZERO);
    let mut stranger = page_reader::waiter();
    let pids = [reader.child(), Pid(stranger.id())];
    let limits = page_reader::data_limit(pids[1]);
    let mut dice = Dice(0x5eed);
    for _ in 0..TICKS {
        for _ in 0..dice.next() % 64 {
            let (place, value) = (dice.next(), dice.value(pids));
            page_reader::write(shared, place, value);
        }
        reader.tick();
    }
    assert!(stranger.try_wait().unwrap().is_none(), "it was ended");
    assert_eq!(page_reader::data_limit(pids[1]), limits);
    assert_eq!(page_reader::state(pids[1]), 'S');
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    drop(memory);
}

#[test]
fn a_page_that_changes_while_it_is_read_harms_the_guard_no_more() {
    let (shared, _memory) = Shared::create().unwrap();
    let mut reader = Reader::new(shared, Duration::ZERO);
    let pids = [reader.child(), Pid(1)];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let scribbles = || {
            let mut dice = Dice(0xd1ce);
            while !over.load(Relaxed) {
                let (place, value) = (dice.next(), dice.value(pids));
                page_reader::write(shared, place, value);
                std::thread::yield_now();
            }
        };
        scope.spawn(scribbles);
        for _ in 0..CONTENDED_TICKS {
            reader.tick();
        }
        over.store(true, Relaxed);
    });
}

#[test]
fn page_and_state_cannot_be_cut_short() {
    let (_, memory) = Shared::create().unwrap();
    for fd in [memory.page.as_fd(), memory.state.as_fd()] {
        let size = rustix::fs::fstat(fd).unwrap().st_size as u64;
        for wrong in [0, size - 1, size + 1, 1 << 40] {
            let refused = rustix::fs::ftruncate(fd, wrong);
            assert_eq!(refused, Err(rustix::io::Errno::PERM), "{wrong}");
        }
        let unsealed = rustix::fs::fcntl_add_seals(fd, rustix::fs::SealFlags::WRITE);
        assert_eq!(unsealed, Err(rustix::io::Errno::PERM));
    }
}

#[test]
fn a_page_that_is_too_short_is_not_mapped() {
    let (_, memory) = Shared::create().unwrap();
    let name = "short";
    let short = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&short, 4096).unwrap();
    assert!(Shared::open(&short, &memory.state).is_err());
    assert!(Shared::open(&memory.page, &short).is_err());
    assert!(Shared::open(&memory.page, &memory.page).is_err());
    assert!(Shared::open(&memory.page, &memory.state).is_ok());
}
