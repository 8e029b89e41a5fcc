//! The dynamic loader, which cannot ask: it is never refused the data of a library, and nothing else gets in
//! beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use antifreeze_ipc::page::Slot;

use crate::MB;
use crate::library;
use crate::sentry::{Sentry, data_bytes, grant, set_limit};
use crate::subject::{Plan, Running};

const LIMIT: u64 = 200 * MB;
/// So much that no share of it lowers LIMIT.
const PLENTY: u64 = 1 << 40;

/// A library with this many bytes of zero-filled data.
fn zero_filled(bytes: u64) -> PathBuf {
    let bytes = format!("-DBYTES={bytes}ul");
    library::subject("library", &["-shared", "-fPIC", &bytes]).unwrap()
}

/// The same with its data in the file, which is as long as that says and has no blocks on the disk for it: the
/// writable segment is the last, so its size in the file may be made its size in memory.
fn of_file(folder: &Path, bytes: u64) -> PathBuf {
    let mut image = fs::read(zero_filled(bytes)).unwrap();
    let number = |image: &[u8], at: usize| {
        u64::from_le_bytes(image[at..at + 8].try_into().unwrap()) as usize
    };
    let half = |at: usize| usize::from(u16::from_le_bytes([image[at], image[at + 1]]));
    let (table, entry_bytes, entries) = (number(&image, 32), half(54), half(56));
    let (load, writable) = (1, 2);
    let entry = (0..entries)
        .map(|i| table + i * entry_bytes)
        .rfind(|at| image[*at] == load && image[at + 4] & writable != 0)
        .unwrap();
    let (offset, in_memory) = (number(&image, entry + 8), number(&image, entry + 40));
    assert!(in_memory as u64 >= bytes);
    image.copy_within(entry + 40..entry + 48, entry + 32);
    let path = folder.join("of_file.so");
    fs::write(&path, image).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len((offset + in_memory) as u64).unwrap();
    path
}

/// Loads the library under the limit, with a page and without: the limit moves by its size and by no more.
fn is_loaded_and_nothing_else(library: &Path) {
    let sentry = Sentry::with_headroom(PLENTY);
    let steps = "room load:1 room malloc:300000000";
    for page in [false, true] {
        let plan = Plan::steps(LIMIT, steps).with_library(library);
        let said = match page {
            true => plan.with_page(&sentry).run(),
            false => plan.run(),
        };
        assert_eq!(said.only("load"), 1, "page: {page}");
        let room = said.all("room");
        assert!(room[0].abs_diff(room[1]) < 2 * MB, "page: {page}, {room:?}");
        assert_eq!(said.only("malloc"), 0, "page: {page}");
    }
}

#[test]
fn a_library_far_larger_than_the_limit_is_loaded_and_the_limit_moves_by_its_size_alone() {
    is_loaded_and_nothing_else(&zero_filled(1 << 30));
}

#[test]
fn so_is_one_whose_data_are_in_its_file() {
    let folder = tempfile::tempdir().unwrap();
    is_loaded_and_nothing_else(&of_file(folder.path(), 1 << 30));
}

#[test]
fn the_guard_hears_how_much_the_libraries_have_taken() {
    let sentry = Sentry::with_headroom(PLENTY);
    let mut subject = Plan::steps(LIMIT, "wait load:1 wait")
        .with_library(&zero_filled(1 << 30))
        .with_page(&sentry)
        .start();
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    let of_start = slot.libraries.load(SeqCst);
    subject.go_on();
    assert_eq!(subject.says("load"), 1);
    subject.says("wait");
    let loaded = slot.libraries.load(SeqCst) - of_start;
    assert!(loaded.abs_diff(1 << 30) < 2 * MB, "{loaded}");
}

#[test]
fn the_users_own_limit_is_not_raised_for_a_library() {
    let sentry = Sentry::with_headroom(PLENTY);
    sentry.head().ceiling.store(LIMIT, SeqCst);
    let capped = Plan::steps(LIMIT, "load:1 limit")
        .with_library(&zero_filled(1 << 30))
        .with_page(&sentry)
        .run();
    assert_eq!(capped.only("limit"), LIMIT as i64);

    let sentry = Sentry::with_headroom(PLENTY);
    sentry.head().wall.store(0, SeqCst);
    let unguarded = Plan::steps(LIMIT, "load:1 limit")
        .with_library(&zero_filled(1 << 30))
        .with_page(&sentry)
        .run();
    assert_eq!(unguarded.only("limit"), LIMIT as i64);
}

/// A guard that lowers the limit all the time, as fast as it can or after a rest in the middle of it.
struct Lowering {
    off: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Lowering {
    fn start(subject: &Running, slot: &'static Slot, rest: Duration) -> Lowering {
        let (pid, off) = (subject.pid(), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&off);
        let thread = thread::spawn(move || {
            let mut lowered = 0;
            // Once at least, however late this thread runs.
            while !until.load(SeqCst) || lowered == 0 {
                slot.moving.store(1, SeqCst);
                if slot.loading.load(SeqCst) == 0 {
                    thread::sleep(rest);
                    grant(pid, 16 * MB);
                    lowered += 1;
                }
                slot.moving.store(0, SeqCst);
            }
        });
        Lowering {
            off,
            thread: Some(thread),
        }
    }

    fn stop(mut self) {
        self.off.store(true, SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Loads again and again under a guard that lowers the limit; returns how often it could.
fn loads_while_lowered(times: u32, rest: Duration) {
    let sentry = Sentry::with_headroom(PLENTY).answering(|_| {});
    let mut subject = Plan::steps(LIMIT, &format!("wait load:{times} wait"))
        .with_library(&zero_filled(400 << 20))
        .with_page(&sentry)
        .start();
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    let lowering = Lowering::start(&subject, slot, rest);
    subject.go_on();
    assert_eq!(subject.says("load"), i64::from(times));
    subject.says("wait");
    lowering.stop();
}

#[test]
fn a_guard_that_lowers_the_limit_without_rest_refuses_no_library() {
    loads_while_lowered(300, Duration::ZERO);
}

#[test]
fn a_guard_that_is_held_up_while_it_lowers_the_limit_refuses_no_library() {
    loads_while_lowered(20, Duration::from_millis(50));
}

#[test]
fn a_guard_that_died_while_it_moved_the_limit_does_not_hold_the_loader_up() {
    let sentry = Sentry::with_headroom(PLENTY);
    let mut subject = Plan::steps(LIMIT, "wait load:1 wait")
        .with_library(&zero_filled(1 << 30))
        .with_page(&sentry)
        .start();
    subject.says("wait");
    let slot = sentry.slot_of(subject.pid()).unwrap();
    slot.moving.store(1, SeqCst);
    sentry.die();
    subject.go_on();
    assert_eq!(subject.says("load"), 1);
}

#[test]
fn a_child_that_is_forked_while_its_parent_loads_is_limited_as_any() {
    let headroom = 64 * MB;
    let sentry = Sentry::with_headroom(headroom);
    let said = Plan::steps(LIMIT, "unlimited_children:600000000")
        .with_library(&zero_filled(400 << 20))
        .with_page(&sentry)
        .run();
    assert_eq!(said.only("unlimited_children"), 0);
}

#[test]
fn a_program_that_is_started_has_room_for_the_libraries_it_is_linked_with() {
    let folder = tempfile::tempdir().unwrap();
    let linked = folder.path().join("liblarge.so");
    fs::copy(zero_filled(400 << 20), &linked).unwrap();
    let path = format!(
        "-L{0} -Wl,-rpath,{0} -Wl,--no-as-needed",
        folder.path().display()
    );
    let mut arguments: Vec<&str> = path.split(' ').collect();
    arguments.push("-llarge");
    let program = library::linked_subject("steps", folder.path(), &arguments).unwrap();
    let sentry = Sentry::with_headroom(64 * MB);
    // It starts itself anew from a limit that its libraries exceed by far.
    let said = Plan::program(&program, 900 * MB)
        .arguments(["exec", "room"])
        .with_page(&sentry)
        .run();
    let room = said.only("room");
    assert!(room > 0 && room <= 64 * MB as i64, "{room}");
}

/// A library that needs another, each with 400 MB of data. The kernel counts those of the first only once they are
/// mapped, so it is the second one that a limit refuses.
fn with_dependency(folder: &Path) -> PathBuf {
    fs::copy(zero_filled(400 << 20), folder.join("liblarge.so")).unwrap();
    let path = folder.display();
    let arguments = format!(
        "-shared -fPIC -DBYTES=400000000ul -L{path} -Wl,-rpath,{path} -Wl,--no-as-needed -llarge"
    );
    let arguments: Vec<&str> = arguments.split(' ').collect();
    library::linked_subject("library", folder, &arguments).unwrap()
}

/// The C library asks for the current folder between the announcement of such a library and its mapping.
#[test]
fn a_library_that_is_named_by_a_relative_path_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["library", "library2"] {
        fs::copy(zero_filled(400 << 20), folder.path().join(name)).unwrap();
    }
    let said = Plan::steps(LIMIT, "load_two:1")
        .in_folder(folder.path())
        .with_library(Path::new("./library"))
        .with_page(&Sentry::with_headroom(PLENTY))
        .run();
    assert_eq!(said.only("load_two"), 2);
}

#[test]
fn a_program_with_an_allocator_of_its_own_loads_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let library = with_dependency(folder.path());
    let program = library::subject("own_allocator", &[]).unwrap();
    let said = Plan::program(&program, LIMIT)
        .with_library(&library)
        .with_page(&Sentry::with_headroom(PLENTY).answering(|_| {}))
        .run();
    assert_eq!(said.only("load"), 1);
}

#[test]
fn a_constructor_may_wait_for_a_thread_that_allocates() {
    let waits = library::subject("constructor", &["-shared", "-fPIC"]).unwrap();
    let said = Plan::steps(LIMIT, "load:1").with_library(&waits).run();
    assert_eq!(said.only("load"), 1);
}

/// Where the limit is high enough for the next program, the guard still must not lower it before that has begun.
#[test]
fn a_program_that_is_started_from_a_large_one_has_room_for_its_libraries() {
    let folder = tempfile::tempdir().unwrap();
    with_dependency(folder.path());
    let path = folder.path().display();
    let arguments = format!("-Wl,-rpath,{path} -Wl,--no-as-needed {path}/library");
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let program = library::linked_subject("steps", folder.path(), &arguments).unwrap();
    for _ in 0..20 {
        let sentry = Sentry::with_headroom(PLENTY).answering(|_| {});
        let mut subject = Plan::program(&program, 2400 * MB)
            .arguments(["malloc:1500000000", "wait", "exec", "room", "wait"])
            .with_page(&sentry)
            .start();
        assert_eq!(subject.says("malloc"), 1);
        subject.says("wait");
        // In whole units, as the guard sets it.
        set_limit(subject.pid(), 2400 * MB);
        let slot = sentry.slot_of(subject.pid()).unwrap();
        subject.go_on();
        while data_bytes(subject.pid()) > 1000 * MB {}
        let loading = slot.loading.load(SeqCst);
        let has_begun = data_bytes(subject.pid()) > 100 * MB;
        assert!(loading != 0 || has_begun, "the guard may lower the limit");
        assert!(subject.says("room") > 0);
        subject.says("wait");
    }
}
