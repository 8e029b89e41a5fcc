//! A small family of real processes below a reaper of its own, all of them gone when the
//! test is over and within a minute in any case.

use super::{Pid, ProcessTree};
use crate::{Reading, parse};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub const SECOND: u64 = 1_000_000_000;

/// The reaper: starts the root, reaps whatever ends below it, and on SIGTERM ends all.
const REAPER: &str = "
import ctypes, os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
reaper = os.getpid()
waited = {signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, waited)
signal.alarm(60)

def say(number): os.write(1, b'%d\\n' % number)
def wait(): os.read(0, 1)
def rest():
    while True: signal.pause()

if os.fork() == 0:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)
    say(os.getpid())
    exec(sys.argv[1])
    os._exit(0)
ending = False
while True:
    ending |= signal.sigwait(waited) != signal.SIGCHLD
    try:
        while ending or os.waitpid(-1, os.WNOHANG)[0]:
            if ending:
                for child in open('/proc/thread-self/children').read().split():
                    os.kill(int(child), signal.SIGKILL)
                os.waitpid(-1, 0)
    except ChildProcessError:
        if ending: break
";

pub struct Family {
    reaper: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub root: Pid,
}

impl Family {
    /// Runs Python in the root. It may use `say(number)`, `wait()` for [`Family::go_on`],
    /// and `rest()` for ever.
    pub fn start(root: &str) -> Family {
        let mut reaper = Command::new("python3")
            .args(["-I", "-S", "-c", REAPER, root])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let input = reaper.stdin.take().unwrap();
        let output = BufReader::new(reaper.stdout.take().unwrap());
        let mut family = Family {
            reaper,
            input,
            output,
            root: Pid(0),
        };
        family.root = family.number();
        family
    }

    pub fn reaper(&self) -> Pid {
        Pid(self.reaper.id())
    }

    /// A tree with this root and reaper.
    pub fn tree(&self) -> ProcessTree<u32> {
        self.tree_for(super::super::TREE_CAPACITY)
    }

    pub fn tree_for(&self, capacity: usize) -> ProcessTree<u32> {
        let mut tree = ProcessTree::new(capacity).unwrap();
        tree.add_root(self.root, 0).unwrap();
        tree.add_reaper(self.reaper()).unwrap();
        tree
    }

    /// The next number that one of them says.
    pub fn number(&mut self) -> Pid {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        Pid(line.trim().parse().expect("the family speaks"))
    }

    pub fn has_spoken(&mut self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let mut polled = [PollFd::new(self.output.get_ref(), PollFlags::IN)];
        let at_once = Timespec::default();
        !self.output.buffer().is_empty() || poll(&mut polled, Some(&at_once)).unwrap() > 0
    }

    /// Lets one that waits go on.
    pub fn go_on(&mut self) {
        self.input.write_all(b".").unwrap();
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        use rustix::process::{Signal, kill_process};
        // Not reaped yet, so the number is its own.
        let _ = kill_process(rustix::process::Pid::from_child(&self.reaper), Signal::TERM);
        let _ = self.reaper.wait();
    }
}

/// The kernel's newest number.
pub fn newest() -> Reading<u64> {
    parse::load_average(&std::fs::read("/proc/loadavg").unwrap()).newest
}
