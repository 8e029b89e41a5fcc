//! The slow worker: a thread for reads that may be slow or never return, such as a hung mount, a slow sensor, or the
//! memory map of a process that is exiting. The deciding thread posts requests and collects findings, and never waits
//! for either.

use crate::counting;
use crate::hands::pageout::Inquiry;
use crate::hands::reclaim::Reclaim;
use crate::interruptible::{self, Interruptible};
use crate::others::{Grower, Others, anonymous};
use crate::save_watch::{IgnoredFiles, SaveWatch, Saved};
use antifreeze_sense::clock::monotonic_ns;
use antifreeze_sense::footprint::ProcessShare;
use antifreeze_sense::parse::Pss;
use antifreeze_sense::slow::{
    self, SlowReadings, SlowSensors as Sensors, count_open_files, read_mapped_files, read_pss,
};
use antifreeze_sense::{Pid, Reading};
use rustix::thread::futex;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard};

/// How many processes one request can name.
pub const MAX_NAMED_PROCESSES: usize = 64;

const SECOND_NS: u64 = 1_000_000_000;
/// The pause between rounds once the run has started up and nothing is urgent.
const CALM_PAUSE_NS: u64 = 10 * SECOND_NS;

/// Libraries whose programs do not survive a refused request.
const FRAGILE_LIBRARIES: [&[u8]; 2] = [b"libtensorflow_framework.so", b"libtensorflow_cc.so"];

/// What the deciding thread wants to know.
#[derive(Clone, Copy)]
pub struct Request {
    /// Processes of the tree, with their start times.
    pub named: [(Pid, u64); MAX_NAMED_PROCESSES],
    pub count: usize,
    /// The kernel already counts shared pages, in a cgroup of the tree.
    pub counted: bool,
    /// Memory is short or shrinking: read more often.
    pub urgent: bool,
    /// Much was mapped since the memory maps were read.
    pub mapped_more: bool,
    /// A save was asked for at this time.
    pub save_asked: Option<u64>,
    /// The tree is paused and memory is short: its memory may go to swap.
    pub make_room: bool,
    /// A paused process whose threads may have to run a handler.
    pub inspect: Option<Inquiry>,
}

impl Request {
    pub fn pids(&self) -> impl Iterator<Item = Pid> + '_ {
        self.named.iter().take(self.count).map(|(pid, _)| *pid)
    }
}

impl Default for Request {
    fn default() -> Self {
        Request {
            named: [(Pid(0), 0); MAX_NAMED_PROCESSES],
            count: 0,
            counted: false,
            urgent: false,
            mapped_more: false,
            save_asked: None,
            make_room: false,
            inspect: None,
        }
    }
}

/// How much of the data of a process comes from files.
#[derive(Clone, Copy, Default)]
pub struct FileData {
    pid: Pid,
    started: u64,
    pub bytes: u64,
    /// When that was read; 0 for never.
    pub at: u64,
}

/// What the slow worker has found so far.
#[derive(Clone, Copy)]
pub struct Findings {
    pub slow: SlowReadings,
    /// When `slow` was read; 0: not yet.
    pub slow_at: u64,
    /// The exact shares of the named processes, and when they were read; 0 for never.
    shares: [ProcessShare; MAX_NAMED_PROCESSES],
    share_count: usize,
    pub shares_at: u64,
    pub files: Reading<u64>,
    /// The file data of each named process.
    file_data: [FileData; MAX_NAMED_PROCESSES],
    /// When memory maps were read last.
    pub mapped_at: u64,
    /// A library is mapped whose programs do not survive a refused request.
    pub fragile: bool,
    pub saved: Option<Saved>,
    pub grower: Option<Grower>,
    /// The answer to the last inquiry.
    pub interruptible: Option<(Inquiry, Interruptible)>,
}

impl Findings {
    pub fn shares(&self) -> &[ProcessShare] {
        &self.shares[..self.share_count]
    }

    /// The file data of a process; zero and never read if unknown.
    pub fn file_data(&self, pid: Pid, started: u64) -> FileData {
        let mut known = self.file_data.iter();
        known
            .find(|known| (known.pid, known.started) == (pid, started))
            .copied()
            .unwrap_or_default()
    }

    /// Reads the memory map of the process in this place.
    fn read_maps(&mut self, request: &Request, place: usize) {
        let (Some(&(pid, started)), Some(file_data)) =
            (request.named.get(place), self.file_data.get_mut(place))
        else {
            return;
        };
        let at = monotonic_ns();
        let Reading::Value(mapped) = read_mapped_files(pid, &FRAGILE_LIBRARIES) else {
            return;
        };
        self.fragile |= mapped.needle.is_some();
        *file_data = FileData {
            pid,
            started,
            bytes: mapped.file_data,
            at,
        };
    }

    /// Counts the memory of each process, with shared pages divided among the processes that share them.
    fn count_shares(&mut self, request: &Request, at: u64) {
        self.share_count = 0;
        for (pid, started) in request.named.iter().take(request.count) {
            let (Some((_, held)), Reading::Value(pss)) = (anonymous(*pid), read_pss(*pid)) else {
                continue;
            };
            self.shares[self.share_count] = ProcessShare {
                pid: *pid,
                started: *started,
                held,
                pss,
            };
            self.share_count += 1;
        }
        self.shares_at = at;
    }
}

impl Default for Findings {
    fn default() -> Self {
        let nobody = ProcessShare {
            pid: Pid(0),
            started: 0,
            held: 0,
            pss: Pss::default(),
        };
        Findings {
            slow: SlowReadings::default(),
            slow_at: 0,
            shares: [nobody; MAX_NAMED_PROCESSES],
            share_count: 0,
            shares_at: 0,
            files: Reading::default(),
            file_data: [FileData::default(); MAX_NAMED_PROCESSES],
            mapped_at: 0,
            fragile: false,
            saved: None,
            grower: None,
            interruptible: None,
        }
    }
}

#[derive(Default)]
pub struct Mailbox {
    request: Mutex<Request>,
    findings: Mutex<Findings>,
    /// Incremented with each change of the findings.
    issue: AtomicU32,
    bell: AtomicU32,
}

impl Mailbox {
    /// Posts a request. Skipped in the rare case that the slow worker is reading the last one.
    pub fn post(&self, request: &Request) {
        let mut news = false;
        if let Ok(mut place) = self.request.try_lock() {
            news = (request.urgent && !place.urgent) || (request.mapped_more && !place.mapped_more);
            *place = *request;
        }
        let asks = request.save_asked.is_some() || request.make_room || request.inspect.is_some();
        if news || asks {
            self.bell.fetch_add(1, Release);
            let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, 1);
        }
    }

    /// Copies the findings if they are newer than this version. Otherwise leaves the copy as it is.
    pub fn collect(&self, findings: &mut Findings, issue: &mut u32) {
        let newest = self.issue.load(Acquire);
        if newest != *issue
            && let Ok(place) = self.findings.try_lock()
        {
            *findings = *place;
            *issue = newest;
        }
    }

    fn publish(&self, findings: &Findings) {
        *locked(&self.findings) = *findings;
        self.issue.fetch_add(1, Release);
    }
}

fn locked<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    place
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// When something was last read.
#[derive(Clone, Copy, Default)]
struct Last(Option<u64>);

impl Last {
    /// Whether this many nanoseconds have passed since the last time; if so, now becomes the last time. The pause may
    /// change from call to call.
    fn due(&mut self, now: u64, pause: u64) -> bool {
        let due = self.0.is_none_or(|last| now.saturating_sub(last) >= pause);
        if due {
            self.0 = Some(now);
        }
        due
    }
}

/// What is read, each at its own interval.
#[derive(Default)]
struct Rounds {
    slow: Last,
    shares: Last,
    /// How long the last count of shares took.
    shares_cost: u64,
    files: Last,
    maps: Last,
    /// When the read that is due begins: at once, except with [`DELAY_VARIABLE`].
    maps_begin: Option<u64>,
    maps_cost: u64,
    maps_pause: u64,
    maps_turn: usize,
    others: Last,
}

/// An environment variable for tests: the seconds by which each read of a memory map is delayed, as on a slow or busy
/// machine. Nothing may depend on that read being in time.
pub const DELAY_VARIABLE: &str = "ANTIFREEZE_TEST_SCOUT_DELAY";

/// The delay that [`DELAY_VARIABLE`] asks for, in nanoseconds.
pub fn delay() -> u64 {
    let seconds = std::env::var(DELAY_VARIABLE).ok();
    let seconds: Option<u64> = seconds.and_then(|text| text.parse().ok());
    seconds.unwrap_or(0).saturating_mul(SECOND_NS)
}

/// Runs the slow worker.
pub fn run(
    mailbox: &Mailbox,
    folder: &Path,
    ours: IgnoredFiles,
    reclaim: Option<std::fs::File>,
    delay: u64,
) -> ! {
    let mut sensors = Sensors::new(folder);
    let mut others = Others::default();
    let mut rounds = Rounds::default();
    let mut save = SaveWatch::new(ours);
    let mut findings = Findings::default();
    let mut reclaim = reclaim.map(Reclaim::new);
    counting::start_is_over();
    loop {
        let bell = mailbox.bell.load(Acquire);
        let request = *locked(&mailbox.request);
        let now = monotonic_ns();

        let answered = findings.interruptible.map(|(inquiry, _)| inquiry);
        if let Some(inquiry) = request.inspect.filter(|asked| answered != Some(*asked)) {
            findings.interruptible = Some((inquiry, interruptible::inspect(inquiry.pid)));
            // Published at once, before anything that takes longer.
            mailbox.publish(&findings);
        }
        if request.save_asked.is_some() {
            findings.saved = save.check(&request, written(&request), now);
        } else if request.urgent {
            save.note_usual(&request, written(&request));
        }
        let pause = |urgent, calm| SECOND_NS * if request.urgent { urgent } else { calm };
        if rounds.slow.due(now, pause(1, 10)) {
            sensors.read(&mut findings.slow);
            findings.slow_at = now;
        }
        // Reading shares walks page tables: the more it costs, the less often it is done.
        let (least, factor) = if request.urgent { (2, 50) } else { (20, 4000) };
        let rest = (least * SECOND_NS).max(rounds.shares_cost * factor);
        if request.count > 1 && !request.counted && rounds.shares.due(now, rest) {
            findings.count_shares(&request, now);
            rounds.shares_cost = monotonic_ns() - now;
        }
        if rounds.files.due(now, 60 * SECOND_NS) {
            let open = request
                .pids()
                .filter_map(|pid| count_open_files(pid).value());
            findings.files = Reading::Value(open.sum());
        }
        // Libraries are mapped at the start or, in a new worker, at any time. That matters near the wall, so one
        // process per round suffices while nothing is urgent.
        let rest = match request.mapped_more {
            true => (SECOND_NS / 4).max(rounds.maps_cost * 20),
            false => pause(1, rounds.maps_pause / SECOND_NS),
        };
        if rounds.maps.due(now, rest) {
            rounds.maps_begin.get_or_insert(now.saturating_add(delay));
        }
        if rounds.maps_begin.take_if(|begin| now >= *begin).is_some() {
            let (first, many) = if request.urgent || request.mapped_more {
                (0, request.count)
            } else {
                (rounds.maps_turn % request.count.max(1), 1)
            };
            let begin = monotonic_ns();
            for place in first..first + many {
                findings.read_maps(&request, place);
            }
            findings.mapped_at = now;
            rounds.maps_cost = monotonic_ns() - begin;
            rounds.maps_turn += 1;
            rounds.maps_pause = (2 * rounds.maps_pause).clamp(SECOND_NS, 60 * SECOND_NS);
        }
        if rounds.others.due(now, pause(1, 120)) {
            findings.grower = others.find_grower(|pid| request.pids().any(|ours| ours == pid));
        }
        mailbox.publish(&findings);

        // Memory of a paused tree that stays resident helps nobody. The kernel may take long to write it, so it is done
        // here.
        if let Some(reclaim) = reclaim.as_mut().filter(|_| request.make_room) {
            reclaim.make_room(monotonic_ns);
        }
        let pause = if request.save_asked.is_some() || request.make_room {
            SECOND_NS / 40
        } else if request.mapped_more {
            SECOND_NS / 4
        } else if request.urgent || rounds.maps_pause < CALM_PAUSE_NS {
            SECOND_NS
        } else {
            CALM_PAUSE_NS
        };
        let timeout = rustix::time::Timespec {
            tv_sec: (pause / SECOND_NS) as i64,
            tv_nsec: (pause % SECOND_NS) as i64,
        };
        let _ = futex::wait(&mailbox.bell, futex::Flags::PRIVATE, bell, Some(&timeout));
    }
}

fn written(request: &Request) -> u64 {
    let sent = request
        .pids()
        .filter_map(|pid| slow::read_written_bytes(pid).value());
    sent.sum()
}
