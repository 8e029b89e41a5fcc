//! The page of a real run under a process of its tree that has given up root's privileges, kept what it had opened, and
//! writes to it what it likes.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::process::Child;
use std::time::Duration;
use support::Scene;

const LIMIT: Duration = Duration::from_secs(90);

/// Opens and maps the page as root, becomes nobody, and writes the number of a stranger, and numbers at which arithmetic
/// goes wrong, all over it. It tries to cut it short as well. Meanwhile its parent, still root, prints.
const SCRIBBLE: &str = "
import ctypes, mmap, os, random, struct, sys, time
STRANGER = int(sys.argv[1])
def scribble():
    path = os.environ['ANTIFREEZE_PAGE'].split(':')[0]
    descriptor = os.open(path, os.O_RDWR)
    size = os.fstat(descriptor).st_size
    page = mmap.mmap(descriptor, size)
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    for shorter in (0, 4096, size - 1):
        try:
            os.ftruncate(descriptor, shorter)
            print('cut short', flush=True)
        except PermissionError:
            pass
    try:
        # What belongs to front and guard alone is not to be reached from here.
        os.open('/proc/%d/fd/%d' % (GUARD, int(path.split('/')[-1]) + 1), os.O_RDWR)
        print('state opened', flush=True)
    except OSError:
        pass
    dice = random.Random(5)
    words = [STRANGER, STRANGER << 32 | STRANGER, 1, 1 << 32 | 1, 2**60, 2**64 - 1, 2**63, 0]
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for _ in range(2000):
            struct.pack_into('=Q', page, dice.randrange(size // 8) * 8, dice.choice(words))
        time.sleep(0.001)
    os._exit(0)
GUARD = os.getppid()
if os.fork() == 0:
    try:
        scribble()
    finally:
        os._exit(1)
for number in range(200):
    print(number, flush=True)
    time.sleep(0.02)
print('child', os.wait()[1], flush=True)
sys.exit(7)
";

fn limits(child: &Child) -> String {
    fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap()
}

/// The CPU time of a process in hundredths of a second.
fn cpu_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(") ").next()?.split_whitespace().skip(11);
    let mut number = || fields.next()?.parse::<u64>().ok();
    Some(number()? + number()?)
}

#[test]
fn a_process_that_gave_up_its_privileges_harms_nobody_outside_of_the_run() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root has privileges to give up");
    }
    let scene = Scene::new();
    let mut stranger = scene.command("sleep").arg("600").spawn().unwrap();
    let before = limits(&stranger);
    let script = scene.script("scribble.py", SCRIBBLE);
    let mut command = scene.run("500MB");
    command.args(["--", "python3"]).arg(script);
    command.arg(stranger.id().to_string());
    let mut front = scene.start(&mut command);
    let mut worst = 0;
    scene.until("the end of the front", LIMIT, || {
        worst = worst.max(cpu_time(front.id()).unwrap_or(0));
        front.try_wait().unwrap().is_some()
    });
    let ended = scene.ended(front.wait().unwrap());
    ended
        .exits(7)
        .prints("child 0")
        .never_tells("replaced")
        .never_tells("was gone");
    let printed = fs::read_to_string(scene.path("stdout")).unwrap();
    let numbers: Vec<u32> = printed
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    assert!(!printed.contains("cut short") && !printed.contains("state opened"));
    assert!(
        stranger.try_wait().unwrap().is_none(),
        "the stranger was ended"
    );
    assert_eq!(limits(&stranger), before);
    // It has less to do than in a second of computing, whatever number of events the page names.
    assert!(worst < 100, "the front took {worst} hundredths of a second");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
