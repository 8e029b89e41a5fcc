//! A program with the cushion in it, and a guard that can do one thing: pause it and page it out.

use antifreeze_guard::hands::pageout::{Pageout, PageoutState};
use antifreeze_guard::hands::stop;
use antifreeze_guard::interruptible::inspect;
use antifreeze_guard::process_state::ProcessState;
use antifreeze_ipc::page::{self, PAGEOUT_SIGNAL, PAGER_FINISHED, STALE_NS};
use antifreeze_ipc::shared::{Memory, Shared};
use antifreeze_sense::clock::monotonic_ns;
use antifreeze_sense::tree::{ProcessTree, TREE_CAPACITY};
use antifreeze_sense::{MachineSensors, Pid, Sample};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use crate::compile::compile;

/// Whatever goes wrong, a test ends.
const DEADLINE: Duration = Duration::from_secs(60);
/// Smaller processes are not asked.
const LARGE: u64 = 16 << 20;

pub struct Guarded {
    child: Child,
    said: Vec<(String, i64)>,
    /// How many processes the subject consists of.
    processes: usize,
    output: BufReader<ChildStdout>,
    shared: Shared,
    _memory: Memory,
    machine: MachineSensors,
    sample: Sample,
    tree: ProcessTree<ProcessState>,
}

pub struct Said(Vec<(String, i64)>);

impl Said {
    pub fn all(&self, word: &str) -> Vec<i64> {
        let lines = self.0.iter().filter(|(said, _)| said == word);
        lines.map(|(_, number)| *number).collect()
    }

    pub fn number(&self, word: &str) -> i64 {
        match self.all(word)[..] {
            [number] => number,
            _ => panic!("{word} in {:?}", self.0),
        }
    }
}

impl Guarded {
    pub fn start(mode: &str) -> Guarded {
        Guarded::start_with(mode, 1)
    }

    pub fn start_without_pageout(mode: &str) -> Guarded {
        Guarded::start_with(mode, 0)
    }

    fn start_with(mode: &str, pages_out: u32) -> Guarded {
        let (shared, memory) = Shared::create().unwrap();
        let head = shared.page();
        head.pages_out.store(pages_out, Release);
        // Fresh for as long as any test may take.
        head.heartbeat
            .store(monotonic_ns() + 3_600_000_000_000, Release);
        let path = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            memory.page.as_raw_fd()
        );
        let mut child = Command::new(subject())
            .arg(mode)
            .env("LD_PRELOAD", cushion())
            .env(page::ENV, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut tree = ProcessTree::new(TREE_CAPACITY).unwrap();
        tree.add_root(Pid(child.id()), monotonic_ns()).unwrap();
        Guarded {
            child,
            said: Vec::new(),
            processes: if mode == "children" { 3 } else { 1 },
            output,
            shared,
            _memory: memory,
            machine: MachineSensors::open(Path::new("/")),
            sample: Sample::default(),
            tree,
        }
    }

    fn advance(&mut self) {
        self.machine.read(&mut self.sample);
        self.tree
            .update_members(self.sample.cpu.newest_pid, monotonic_ns());
        self.tree.read_processes(monotonic_ns(), &mut self.sample);
    }

    /// Pauses the tree and pages it out as the guard would; returns the processes that served the request.
    pub fn pause_and_page_out(&mut self) -> Vec<Pid> {
        self.wait_until_ready();
        let mut pageout = Pageout::new(true);
        let began = Instant::now();
        loop {
            self.advance();
            stop::pause(&mut self.tree, self.shared);
            let found = pageout
                .inquiry()
                .map(|inquiry| (inquiry, inspect(inquiry.pid)));
            pageout.advance(monotonic_ns(), true, found, &mut self.tree, self.shared);
            let is_over = |pid: Pid, state: PageoutState| {
                state == PageoutState::Over || self.pager(pid) == page::PAGER_NONE
            };
            let mut large = self
                .tree
                .processes()
                .filter(|tracked| tracked.process.rss_anon.value().unwrap_or(0) >= LARGE);
            if large.all(|tracked| is_over(tracked.process.pid, tracked.state.pageout)) {
                break;
            }
            assert!(began.elapsed() < DEADLINE, "not over in time");
            std::thread::sleep(Duration::from_millis(5));
        }
        self.tree
            .processes()
            .map(|tracked| tracked.process.pid)
            .filter(|pid| self.pager(*pid) == PAGER_FINISHED)
            .collect()
    }

    fn pager(&self, pid: Pid) -> u32 {
        let slot = self.shared.slot(pid.0);
        slot.map_or(page::PAGER_NONE, |(_, slot)| slot.pager.load(Acquire))
    }

    /// Reads what the subject says until all of its processes are ready.
    fn wait_until_ready(&mut self) {
        while self.said.iter().filter(|(word, _)| word == "ready").count() < self.processes {
            let line = self.line().expect("the subject has ended");
            self.said.push(line);
        }
    }

    fn line(&mut self) -> Option<(String, i64)> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (word, number) = line.trim_end().split_once(' ')?;
        Some((word.to_owned(), number.parse().unwrap()))
    }

    pub fn catches_signal(&self) -> bool {
        self.signal_is_in("SigCgt:")
    }

    fn signal_is_in(&self, field: &str) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix(field));
        let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
        mask >> (PAGEOUT_SIGNAL - 1) & 1 == 1
    }

    /// Sends the signal to a process that runs and was not asked to page itself out.
    pub fn signal_without_request(&mut self) {
        self.wait_until_ready();
        let pid = self.child.id() as i32;
        // SAFETY: a signal to our own child, which has a handler for it.
        let code = unsafe { libc::kill(pid, PAGEOUT_SIGNAL) };
        assert_eq!(code, 0);
        let began = Instant::now();
        while self.has_pending_signal() {
            assert!(began.elapsed() < DEADLINE, "the signal was not taken");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.pager(Pid(self.child.id())), page::PAGER_READY);
    }

    fn has_pending_signal(&self) -> bool {
        self.signal_is_in("ShdPnd:")
    }

    pub fn resume(&mut self) {
        stop::resume(&mut self.tree, self.shared);
    }

    /// As if the guard had been killed together with its keeper: the processes run, and the request stands.
    pub fn guard_dies(&mut self) {
        let stale = monotonic_ns() - STALE_NS - 1_000_000_000;
        self.shared.page().heartbeat.store(stale, Release);
        for tracked in self.tree.processes() {
            let _ = self
                .tree
                .send_signal(tracked.process.pid, rustix::process::Signal::CONT);
        }
    }

    /// Lets the program go on to its end.
    pub fn finish(mut self) -> Said {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        while let Some(line) = self.line() {
            self.said.push(line);
        }
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {:?}", self.said);
        Said(self.said)
    }
}

fn cushion() -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cushion/src");
    built("cushion.so", |out| compile(&sources, out).unwrap())
}

fn subject() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pageout/subject.c");
    built("pageout-subject", |out| {
        let status = Command::new("cc")
            .args(["-O1", "-pthread", "-o"])
            .args([out, &source])
            .status();
        assert!(status.unwrap().success());
    })
}

/// Each test may be a process of its own, and several may build at once: each uses what it has built.
fn built(name: &str, build: impl Fn(&Path)) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let fresh = folder.join(format!("{}-{name}", std::process::id()));
    if !fresh.exists() {
        build(&fresh);
    }
    fresh
}
