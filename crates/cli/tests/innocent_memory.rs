//! Programs that reserve much and use little, filter their system calls, live in another time namespace, or have a
//! sanitizer: they run as they do alone, and memory is as limited as before.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Ended, Scene};

/// Generous: it only bounds what a failing test may cost.
const LIMIT: Duration = Duration::from_secs(120);

/// Reserves far more than any machine has, starts threads with large stacks, and then asks for more than the budget.
const RESERVES: &str = "\
import mmap, threading
NORESERVE = 0x4000
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE
reserved = [mmap.mmap(-1, size, flags=flags) for size in (30 << 30, 1 << 40)]
threading.stack_size(256 << 20)
done = threading.Event()
threads = [threading.Thread(target=done.wait) for _ in range(100)]
for thread in threads:
    thread.start()
reserved[1][1 << 39] = 7
print('reserved and started', len(threads))
for request in (lambda: bytes(400 << 20), lambda: mmap.mmap(-1, 400 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)):
    try:
        request()
        print('met no wall')
    except (MemoryError, OSError):
        print('refused')
done.set()
";

#[test]
fn what_is_reserved_and_never_touched_is_not_refused_and_memory_is_as_limited_as_before() {
    let scene = Scene::new();
    let script = scene.script("train.py", RESERVES);
    let mut run = scene.run("300MB");
    let ended = scene.finish(run.args(["--", "python3"]).arg(script), LIMIT);
    ended.exits(0).prints("reserved and started 100");
    assert_eq!(ended.stdout.matches("refused").count(), 2, "{ended}");
    assert!(!ended.stdout.contains("met no wall"), "{ended}");
}

/// Four arrays of zeros, each of which fits, and all of which together do not; and one that does not fit.
const ZEROS: &str = "\
import sys
with open('/proc/meminfo') as file:
    available = [int(line.split()[1]) << 10 for line in file if line.startswith('MemAvailable')][0]
zeros = [bytes(available // 3) for _ in range(4)]
print('allocated', len(zeros))
try:
    bytes(available)
    print('met no wall')
except MemoryError:
    print('refused')
";

#[test]
fn zeroed_memory_that_is_not_touched_takes_nothing_from_the_next_request() {
    let scene = Scene::new();
    let script = scene.script("train.py", ZEROS);
    let mut run = scene.antifreeze();
    run.args(["run", "--", "python3"]).arg(script);
    let ended = scene.finish(&mut run, LIMIT);
    ended.exits(0).prints("allocated 4").prints("refused");
}

/// Installs a filter that ends the process at one system call, and forks.
const FILTERS: &str = "\
import ctypes, os, platform, struct, sys
x86 = platform.machine() == 'x86_64'
number = {'openat': 257 if x86 else 56, 'prlimit64': 302 if x86 else 261}[sys.argv[1]]
libc = ctypes.CDLL(None)
statement = lambda code, yes, no, value: struct.pack('HBBI', code, yes, no, value)
program = ctypes.create_string_buffer(
    statement(0x20, 0, 0, 0) + statement(0x15, 0, 1, number)
    + statement(0x06, 0, 0, 0x80000000) + statement(0x06, 0, 0, 0x7fff0000))
class Filter(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('program', ctypes.c_void_p)]
filter = Filter(4, ctypes.addressof(program))
assert libc.prctl(38, 1, 0, 0, 0) == 0
if sys.argv[2] == 'prctl':
    assert libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0
else:
    assert libc.syscall(317 if x86 else 277, 1, 0, ctypes.byref(filter)) == 0
child = os.fork()
if child == 0:
    os._exit(4)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
try:
    bytes(900 << 20)
except MemoryError:
    os._exit(5)
os._exit(6)
";

#[test]
fn a_process_that_filters_its_system_calls_forks_and_meets_the_wall_without_being_killed() {
    for call in ["openat", "prlimit64"] {
        for by in ["prctl", "seccomp"] {
            let scene = Scene::new();
            let script = scene.script("filters.py", FILTERS);
            let mut run = scene.run("200MB");
            run.args(["--", "python3", "-I"]).arg(script);
            scene.finish(run.args([call, by]), LIMIT).exits(5);
        }
    }
}

#[test]
fn a_request_over_the_budget_is_refused_in_another_time_namespace() {
    for shift in ["100000", "-1"] {
        let scene = Scene::new();
        let script = scene.script("train.py", "bytes(900 << 20)");
        let unshare = ["unshare", "--time", "--monotonic", shift, "--fork"];
        let mut probe = scene.command(unshare[0]);
        probe.args(&unshare[1..]).arg("true");
        if !scene.finish(&mut probe, LIMIT).status.success() {
            println!("skipped: no time namespaces here");
            return;
        }
        let mut run = scene.run("200MB");
        run.arg("--").args(unshare).arg("python3").arg(script);
        let ended = scene.finish(&mut run, LIMIT);
        ended.exits(1).tells("MemoryError").tells("refused 944 MB");
    }
}

#[test]
fn a_refusal_by_a_limit_of_the_users_own_is_not_told_as_ours() {
    for limit in ["-S -d 500000", "-d 500000", "-v 700000"] {
        let scene = Scene::new();
        let script = scene.script("train.py", "bytes(900 << 20)");
        let mut run = scene.command("sh");
        let command = format!("ulimit {limit}; exec \"$@\"");
        run.args(["-c", &command, "sh", env!("CARGO_BIN_EXE_antifreeze")]);
        run.args(["run", "--", "python3"]).arg(script);
        let ended = scene.finish(&mut run, LIMIT);
        ended
            .exits(1)
            .tells("MemoryError")
            .never_tells("antifreeze: refused")
            .never_tells("kept for you. The script")
            .never_tells("memory leak");
    }
}

const SANITIZED: &str = "\
#include <stdio.h>
#include <stdlib.h>
int main(void) { char *block = malloc(100 << 20); block[5] = 3; puts(\"ok\"); free(block); return 3; }
";

/// Compiles a program with a sanitizer; None where this compiler has none.
fn sanitized(scene: &Scene, options: &[&str]) -> Option<PathBuf> {
    let source = scene.script("sanitized.c", SANITIZED);
    let program = scene.path(options.concat());
    let mut compile = Command::new("cc");
    compile.args(["-O1", "-g"]).args(options).arg(&source);
    compile.arg("-o").arg(&program).stderr(Stdio::null());
    let made = compile.status().is_ok_and(|status| status.success());
    let runs = made
        && scene
            .finish(&mut scene.command(&program), LIMIT)
            .status
            .code()
            == Some(3);
    if !runs {
        println!("skipped {options:?}: no such sanitizer here");
    }
    runs.then_some(program)
}

#[test]
fn programs_with_a_sanitizer_run_however_they_are_started() {
    let scene = Scene::new();
    for options in [
        &["-fsanitize=address"][..],
        &["-fsanitize=address", "-static-libasan"],
        &["-fsanitize=thread"],
        &["-fsanitize=undefined"],
    ] {
        let Some(program) = sanitized(&scene, options) else {
            continue;
        };
        let program = program.to_str().unwrap();
        let is_well = |ended: Ended| {
            ended.exits(3).prints("ok").never_tells("ERROR");
        };
        let mut directly = scene.run("300MB");
        is_well(scene.finish(directly.args(["--", program]), LIMIT));
        let mut by_shell = scene.run("300MB");
        by_shell.args(["--", "sh", "-c", "\"$0\"; exit $?", program]);
        is_well(scene.finish(&mut by_shell, LIMIT));
        let spawns = "\
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";
        let script = scene.script("spawns.py", spawns);
        let mut spawned = scene.run("300MB");
        spawned.args(["--", "python3"]).arg(script).arg(program);
        is_well(scene.finish(&mut spawned, LIMIT));
    }
}
