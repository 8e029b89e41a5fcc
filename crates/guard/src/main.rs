//! The program antifreeze-guard, which only `antifreeze run` starts.
//!
//! The order of the steps matters. The trainer is forked while there is one thread; everything is opened and allocated;
//! memory is locked before the other threads start; only then is the trainer released.

use antifreeze_guard::act::Executor;
use antifreeze_guard::counting;
use antifreeze_guard::descriptors;
use antifreeze_guard::event_sink::EventSink;
use antifreeze_guard::hands::brake::Brake;
use antifreeze_guard::hands::cgroup::Home;
use antifreeze_guard::hands::limit::{self, Limits};
use antifreeze_guard::hands::pageout::Pageout;
use antifreeze_guard::keeper::Keeper;
use antifreeze_guard::others::StatusFile;
use antifreeze_guard::policy::{Config, Decision, History};
use antifreeze_guard::process_state::ProcessState;
use antifreeze_guard::room::MemoryBounds;
use antifreeze_guard::save_watch::{FileId, IgnoredFiles};
use antifreeze_guard::sentinel::{LoopState, Sentinel};
use antifreeze_guard::slow_worker::{self, Findings, Mailbox, Request};
use antifreeze_guard::spawn::{self, Held};
use antifreeze_guard::takeover::{self, RelayWakers};
use antifreeze_guard::undo;
use antifreeze_guard::wall::Wall;
use antifreeze_guard::writer::{self, Trouble, Writer};
use antifreeze_ipc::boot_id::boot_id;
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::state::GuardedProcess;
use antifreeze_ipc::user_limits;
use antifreeze_record::event::{Degradation, EventKind};
use antifreeze_record::{RecordHead, SCHEMA, frame_ring};
use antifreeze_sense::Stamp;
use antifreeze_sense::cgroup::{AncestorLimits, CgroupLocation, OwnCgroup};
use antifreeze_sense::clock::monotonic_ns;
use antifreeze_sense::footprint::Footprint;
use antifreeze_sense::tree::{ProcessTree, TREE_CAPACITY, TrackedProcess};
use antifreeze_sense::{MachineSensors, Pid, Sample};
use rustix::fd::{BorrowedFd, FromRawFd, OwnedFd};
use rustix::process::set_child_subreaper;
use rustix::thread::futex;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

mod signals;

fn main() -> ExitCode {
    // Before anything that needs much stack.
    let limits = user_limits::raise();
    match guard(&limits) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("antifreeze-guard: {message}");
            ExitCode::from(125)
        }
    }
}

#[inline(never)]
fn guard(limits: &user_limits::UserLimits) -> Result<(), String> {
    let mut arguments = std::env::args_os().skip(1);
    let args = arguments
        .next()
        .and_then(|args| GuardArgs::parse(args.to_str()?))
        .ok_or("this program is started by `antifreeze run`")?;
    // Some threads may never end (a hung mount), so what they share is never freed.
    let args: &'static GuardArgs = Box::leak(Box::new(args));
    let folder = PathBuf::from(arguments.next().unwrap_or_default());
    let command: Vec<OsString> = arguments.collect();

    // Executed from a memfd, the process would be named after the number of a descriptor.
    let _ = rustix::thread::set_name(c"antifreeze-guar");
    one_arena();
    keep_descriptors(args);
    // SAFETY: the front opened them for us, and nothing else owns the numbers.
    let memory = [args.page, args.state].map(|fd| unsafe { BorrowedFd::borrow_raw(fd) });
    let shared =
        Shared::open(memory[0], memory[1]).map_err(|error| format!("the page: {error}"))?;
    let head = shared.head();
    head.guard_pid.store(std::process::id(), Release);
    shared.page().guard_pid.store(std::process::id(), Release);
    counting::count_in(shared.page());
    set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("becoming a subreaper: {error}"))?;

    let there = Pid(args.adopt.max(args.attach));
    let held = match there {
        Pid(0) => {
            Some(spawn::spawn(args, shared, limits, &command).map_err(|e| format!("fork: {e}"))?)
        }
        _ => None,
    };
    let root = held.as_ref().map_or(there, |held| held.pid);
    head.root_pid.store(root.0, Release);
    // The group of the trainer too, unless it was running before us.
    let group = Pid(rustix::process::getpgrp().as_raw_nonzero().get() as u32);
    let group = (args.attach == 0).then_some(group);
    step_aside(args);
    let of_held = held.as_ref().map_or([-1; 2], Held::descriptors);
    descriptors::close_others(args, &of_held);
    descriptors::let_go_of_input_and_output();
    signals::settle(shared);
    let earlier_keeper = Pid(head.keeper_pid.load(Acquire));
    let keeper = Keeper::stand(shared, args, held.as_ref(), group);
    if args.adopt != 0 {
        // The keeper may have died together with the earlier guard.
        undo::continue_paused(shared);
    }

    let (frames, consumer) = frame_ring();
    let trouble: &'static Trouble = Box::leak(Box::default());
    let mailbox: &'static Mailbox = Box::leak(Box::default());
    // SAFETY: as above; from here on the event sink owns it.
    let wake = unsafe { OwnedFd::from_raw_fd(args.wake) };
    let mut events = EventSink {
        shared,
        frames,
        wake,
        trouble,
    };
    let location = CgroupLocation::of_self();
    let home = make_home(args, root, &location, &mut events);
    let mut sentinel = prepare(args, shared, root, &location, home, events, mailbox)?;
    // Keepers are not part of the command.
    let keepers = [
        earlier_keeper,
        keeper.as_ref().map_or(Pid(0), |keeper| keeper.pid),
    ];
    for keeper in keepers.into_iter().filter(|keeper| keeper.0 != 0) {
        let _ = sentinel.tree.exclude(keeper);
    }
    sentinel.keeper = keeper;
    let recording = !folder.as_os_str().is_empty();
    let writer = recording.then(|| Writer {
        head: record_head(&sentinel, command),
        folder: folder.clone(),
        again: args.adopt != 0,
        frames: consumer,
        shared,
    });
    if recording {
        let _ = writer::announce(&folder, [args.page, args.state]);
    }

    lock_memory(&mut sentinel.events);
    let ignored = IgnoredFiles {
        outputs: args.pass.map(file_id),
        // As the kernel names the files in it.
        folder: match folder.canonicalize() {
            Ok(folder) => folder.into_os_string().into_encoded_bytes().leak(),
            Err(_) => b"",
        },
    };
    let swap_is_memory = sentinel.executor.config.swap_is_memory;
    let home = sentinel.executor.home.as_mut();
    // In zram, the pages of a paused trainer would take up the room that they free.
    let reclaim = home
        .and_then(|home| home.reclaim.take())
        .filter(|_| !swap_is_memory);
    let delay = slow_worker::delay();
    thread("slow-worker", move || {
        slow_worker::run(mailbox, &working_folder(), ignored, reclaim, delay)
    })?;
    let wakers = sentinel.wakers;
    let mut relays = Vec::new();
    for index in takeover::STREAMS {
        if args.read[index] >= 0 {
            relays.push(thread("relay", move || {
                takeover::stand_by(shared, args, index, wakers);
            })?);
        }
    }
    let writer = match writer {
        Some(writer) => Some(thread("writer", move || writer.run(trouble))?),
        None => None,
    };
    if args.attach != 0 {
        undo::raise_oom_score(shared, root);
    }
    begin(&mut sentinel, held);
    descriptors::let_go_of_standard_streams();
    counting::start_is_over();
    sentinel.guard();
    sentinel.events.emit(EventKind::TreeEnded);
    let keeper = sentinel.finish();
    if let Some(writer) = writer {
        let _ = writer.join();
    }
    takeover::wait_until_passed(shared, args, wakers);
    head.closed.store(1, Release);
    let _ = futex::wake(&head.closed, futex::Flags::empty(), u32::MAX >> 1);
    for relay in relays {
        let _ = relay.join();
    }
    if let Some(keeper) = keeper {
        keeper.dismiss(shared);
    }
    Ok(())
}

/// The first tick sets the limits, so the trainer never runs without them.
fn begin(sentinel: &mut Sentinel<'_>, held: Option<Held>) {
    let (head, page) = (sentinel.shared.head(), sentinel.shared.page());
    let (strip, small) = sentinel.bounds.cushion();
    page.strip.store(strip, Relaxed);
    page.small_reserve.store(small, Relaxed);
    page.ceiling
        .store(sentinel.wall.ceiling.unwrap_or(0), Relaxed);
    head.limits.store(u32::from(sentinel.wall.on), Release);
    page.wall.store(u32::from(sentinel.wall.on), Relaxed);
    if let Some(root) = sentinel.tree.get(sentinel.root) {
        head.root_started.store(root.process.started, Relaxed);
    }
    sentinel.tick(monotonic_ns());
    if let Some(held) = held {
        held.release();
    }
    if head.begun.load(Acquire) == 0 {
        sentinel.events.emit(EventKind::Started {
            guard: Pid(std::process::id()),
            root: sentinel.root,
            total: sentinel.sample.memory.total.value().unwrap_or(0),
            reserve: sentinel.bounds.reserve,
            budget: sentinel.bounds.budget,
        });
        if sentinel.args.attach != 0 {
            let pid = sentinel.root;
            sentinel.events.emit(EventKind::Attached { pid });
        }
        head.begun.store(1, Release);
    }
    if sentinel.args.adopt != 0 {
        sentinel.events.emit(EventKind::GuardRestored);
    }
}

fn prepare<'a>(
    args: &'a GuardArgs,
    shared: Shared,
    root: Pid,
    location: &CgroupLocation,
    home: Option<Home>,
    mut events: EventSink<'a>,
    mailbox: &'a Mailbox,
) -> Result<Sentinel<'a>, String> {
    let mut tree: ProcessTree<ProcessState> =
        ProcessTree::new(TREE_CAPACITY).map_err(|error| format!("opening /proc: {error}"))?;
    let ours = Pid(std::process::id());
    let front = Pid(shared.head().front_pid.load(Relaxed));
    let _ = tree.exclude(ours);
    let _ = tree.exclude(front);
    let head = shared.head();
    for helper in [&head.probe_pid, &head.listener_pid] {
        if let pid @ 1.. = helper.load(Relaxed) {
            let _ = tree.exclude(Pid(pid));
        }
    }
    let _ = tree.add_reaper(ours);
    let _ = tree.add_reaper(front);
    let _ = tree.add_root(root, monotonic_ns());
    let root_started = match args.attach {
        0 => shared.head().root_started.load(Relaxed),
        _ => args.attach_started,
    };
    let is_another =
        |tracked: &TrackedProcess<ProcessState>| tracked.process.started != root_started;
    if root_started != 0 && tree.get(root).is_none_or(is_another) {
        // It has ended, and its PID may belong to another process by now.
        let _ = tree.exclude(root);
    }
    // What an earlier guard guarded. Orphans below an attached process are not reparented to us.
    let inherited: Vec<GuardedProcess> = shared.guarded().filter(undo::is_alive).collect();
    for noted in inherited.iter().filter(|_| args.attach != 0) {
        let _ = tree.add_root(noted.pid, monotonic_ns());
    }

    let has_cushion = args.attach == 0 && !args.preload.is_empty();
    let can_reclaim = home.as_ref().is_some_and(|home| home.reclaim.is_some());
    let swaps = swaps_to_disk();
    let pages_out_inside = swaps && has_cushion && !can_reclaim;
    shared
        .page()
        .pages_out
        .store(pages_out_inside.into(), Release);
    let wall_works = !limit::ignored_by_kernel();
    if args.wall && !wall_works {
        events.emit_degraded(Degradation::WallIgnored, 0);
    }
    if args.wall && args.preload.is_empty() && args.attach == 0 {
        events.emit_degraded(Degradation::NoCushion, 0);
    }
    let wakers = RelayWakers::new().map_err(|error| format!("an eventfd: {error}"))?;
    let mut sentinel = Sentinel {
        args,
        shared,
        bounds: MemoryBounds {
            reserve: args.reserve,
            budget: (args.budget > 0).then_some(args.budget),
            allow_swap: args.allow_swap,
        },
        machine: MachineSensors::open(&working_folder()),
        above: AncestorLimits::open(location),
        own: home
            .as_ref()
            .and_then(|home| home.memory.as_deref())
            .map(OwnCgroup::open),
        tree,
        footprint: Footprint::new(TREE_CAPACITY),
        history: History::new(),
        wall: Wall::new(
            args.wall && wall_works,
            Limits::read(ours).ok().and_then(|limits| limits.soft),
            args.attach != 0,
            inherited,
        ),
        executor: Executor {
            config: Config {
                wall: args.wall && wall_works,
                can_save: args.checkpoint_signal != 0,
                dies_at_wall: false,
                attached: args.attach != 0,
                swap_is_memory: swap_is_memory(),
                pages_out: pages_out_inside || (swaps && can_reclaim),
                pause_deadline: Duration::from_secs(args.pause_deadline_s),
                stop_deadline: Duration::from_secs(args.stop_deadline_s),
            },
            root,
            checkpoint_signal: args.checkpoint_signal,
            home,
            brake: if args.adopt == 0 {
                Brake::default()
            } else {
                Brake::inherited()
            },
            shared,
            resume_requests: shared.head().resume_requests.load(Relaxed),
            reports_asked_at: 0,
            interrupted_at: 0,
            was_interrupted: false,
            steps_at_stop: 0,
            standstill: antifreeze_guard::standstill::Standstill::default(),
            pageout: Pageout::new(pages_out_inside),
        },
        events,
        mailbox,
        root,
        front_status: StatusFile::open(front).filter(|_| is_parent(front)),
        sample: Sample::default(),
        findings: Findings::default(),
        findings_issue: 0,
        request: Request::default(),
        corrected_at: 0,
        mapped: (0, 0),
        keeper: None,
        wakers: Box::leak(Box::new(wakers)),
        decision: Decision::default(),
        state: LoopState::default(),
    };
    sentinel.machine.read(&mut sentinel.sample);
    sentinel.above.read(&mut sentinel.sample.cgroup);
    let first = sentinel.sample;
    sentinel.bounds.fit(&first);
    if first.pressure.memory_full_us.value().is_none() {
        sentinel.events.emit_degraded(Degradation::NoPressure, 0);
    }
    Ok(sentinel)
}

fn make_home(
    args: &GuardArgs,
    root: Pid,
    location: &CgroupLocation,
    events: &mut EventSink<'_>,
) -> Option<Home> {
    if args.attach != 0 {
        // An attached process stays in its cgroup: whoever put it there relies on that.
        if args.adopt == 0 {
            events.emit_degraded(Degradation::NoCgroup, 0);
        }
        return None;
    }
    if args.adopt != 0 {
        return Home::find(root, &args.run_id, location);
    }
    match Home::make(root, &args.run_id, args.nice, location) {
        Ok(home) => {
            if home.high.is_none() {
                events.emit_degraded(Degradation::NoMemoryController, 0);
            }
            Some(home)
        }
        Err(degradation) => {
            events.emit_degraded(degradation, 0);
            None
        }
    }
}

/// Whether a paused tree can be written to swap on a disk. zram does not help, because it takes up the room that the
/// tree would free.
fn swaps_to_disk() -> bool {
    let swaps = std::fs::read("/proc/swaps").unwrap_or_default();
    antifreeze_sense::parse::has_swap(&swaps) && !antifreeze_sense::parse::swap_is_memory(&swaps)
}

fn swap_is_memory() -> bool {
    std::fs::read("/proc/swaps").is_ok_and(|areas| antifreeze_sense::parse::swap_is_memory(&areas))
}

fn record_head(sentinel: &Sentinel<'_>, command: Vec<OsString>) -> RecordHead {
    RecordHead {
        schema: SCHEMA,
        run: sentinel.args.run_id.clone(),
        boot: boot_id(),
        start: Stamp::now(),
        total: sentinel.sample.memory.total.value().unwrap_or(0),
        reserve: sentinel.bounds.reserve,
        budget: sentinel.bounds.budget,
        folder: working_folder(),
        command,
        truncated: false,
    }
}

fn working_folder() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// Checked after its status file was opened by number, so that the file is that of the front.
fn is_parent(front: Pid) -> bool {
    let parent = rustix::process::getppid();
    parent.is_some_and(|pid| pid.as_raw_nonzero().get() as u32 == front.0)
}

fn file_id(fd: i32) -> Option<FileId> {
    // SAFETY: handed over by the front and open as long as we live.
    let fd = (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })?;
    let stat = rustix::fs::fstat(fd).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Descriptors from the front must not reach the trainer, except those that become its output.
fn keep_descriptors(args: &GuardArgs) {
    for fd in args.kept_descriptors().chain(args.give) {
        // SAFETY: a flag on a number; one that is not open only fails.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Leaves the front's process group to the trainer, so that signals of the terminal do not reach us, and closes our
/// copies of its output.
fn step_aside(args: &GuardArgs) {
    // SAFETY: plain system calls; the numbers are ours since the front handed them over,
    // and both streams may share one.
    unsafe {
        libc::setpgid(0, 0);
        for fd in args.give.iter().filter(|fd| **fd >= 0) {
            libc::close(*fd);
        }
    }
}

/// Uses one malloc arena for all threads: each further one would reserve 64 MB of address space.
fn one_arena() {
    // SAFETY: called before any other thread exists.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Locks all present and future pages, so that a storm cannot swap the guard out.
fn lock_memory(events: &mut EventSink<'_>) {
    use rustix::mm::{MlockAllFlags, mlockall};
    if let Err(errno) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE) {
        events.emit_degraded(Degradation::NotLocked, errno.raw_os_error() as u32);
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    life: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, String> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(128 * 1024)
        .spawn(move || {
            signals::block_child_signals();
            life()
        })
        .map_err(|error| format!("starting the {name}: {error}"))
}
