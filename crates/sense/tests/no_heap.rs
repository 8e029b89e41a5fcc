//! Nothing allocates once it is open: the guard reads while memory is gone.

use antifreeze_sense::cgroup::{AncestorLimits, CgroupLocation, OwnCgroup};
use antifreeze_sense::slow::{self, SlowReadings, SlowSensors};
use antifreeze_sense::{MachineSensors, Pid, Sample};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of(act: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    act();
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn the_count_sees_an_allocation() {
    assert_eq!(
        allocations_of(|| drop(std::hint::black_box(Box::new(1)))),
        1
    );
}

#[test]
fn reading_the_machine_and_its_cgroups_takes_no_heap() {
    let location = CgroupLocation::of_self();
    let mut machine = MachineSensors::open(Path::new("/"));
    let mut above = AncestorLimits::open(&location);
    let own = location
        .memory_folder()
        .map(|(_, folder)| OwnCgroup::open(&folder.path));
    let mut sample = Sample::default();
    let taken = allocations_of(|| {
        machine.read(&mut sample);
        above.read(&mut sample.cgroup);
        if let Some(own) = &own {
            own.read(&mut sample.cgroup);
        }
    });
    assert!(sample.memory.total.value().is_some());
    assert_eq!(taken, 0);
}

#[test]
fn the_scout_takes_no_heap() {
    let mut scout = SlowSensors::new(Path::new("/"));
    let mut slow = SlowReadings::default();
    let me = Pid(std::process::id());
    let mut written = 0;
    let taken = allocations_of(|| {
        scout.read(&mut slow);
        assert!(slow::read_pss(me).value().is_some());
        assert!(slow::count_open_files(me).value().is_some());
        assert!(
            slow::read_mapped_files(me, &[b"libtensorflow_framework.so"])
                .value()
                .is_some()
        );
        assert!(
            slow::visit_files_being_written(me, |_, size| written += size)
                .value()
                .is_some()
        );
    });
    assert!(slow.disk_space.total.value().is_some());
    assert_eq!(taken, 0);
}
