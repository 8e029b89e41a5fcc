//! Limits that the user has set are for the command: antifreeze does not run into them, or steps aside and says so.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use support::{Ended, Scene};

const LIMIT: Duration = Duration::from_secs(90);
const ORDINARY_USER: &str = "65534";
const PRINT_ALL: &str = "ulimit -n; ulimit -f; ulimit -t; ulimit -s; echo all | cat";

/// What a command prints below limits, alone and under `antifreeze run`.
fn both(limits: &str, as_user: bool) -> (Ended, Ended) {
    let under = format!("{} run -- ", env!("CARGO_BIN_EXE_antifreeze"));
    let run = |prefix: &str| {
        let scene = Scene::new();
        let script = format!("{limits}; exec {prefix}sh -c '{PRINT_ALL}'");
        let mut shell = match as_user {
            false => scene.command("bash"),
            true => {
                let anybody = std::fs::Permissions::from_mode(0o777);
                std::fs::set_permissions(scene.path(""), anybody).unwrap();
                let mut shell = scene.command("setpriv");
                shell.args(["--reuid", ORDINARY_USER, "--clear-groups", "bash"]);
                shell.env("HOME", scene.path(""));
                shell
            }
        };
        shell.args(["-c", &script]);
        let ended = scene.finish(&mut shell, LIMIT);
        scene.until("nothing is left", LIMIT, || scene.living().is_empty());
        ended
    };
    (run(""), run(&under))
}

/// The command behaves as it does alone, and at most one line says that the guard could not start.
#[track_caller]
fn is_as_alone(limits: &str, as_user: bool) -> Ended {
    let (alone, under) = both(limits, as_user);
    assert_eq!(
        under.status.code(),
        alone.status.code(),
        "{limits}\n{under}"
    );
    assert_eq!(under.stdout, alone.stdout, "{limits}\n{under}");
    let refusals = under.stderr.matches("without a guard").count();
    assert!(refusals <= 1, "{under}");
    assert!(!under.stderr.contains("panicked"), "{under}");
    under
}

#[test]
fn a_soft_limit_is_the_commands_alone() {
    for limits in [
        "ulimit -S -n 24",
        "ulimit -S -f 1",
        "ulimit -S -t 60",
        "ulimit -S -s 64",
    ] {
        is_as_alone(limits, false).tells("antifreeze: guarding ");
    }
}

#[test]
fn a_limit_that_leaves_the_guard_no_room_leaves_the_command_alone() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can become an ordinary user");
        return;
    }
    for (limits, name) in [
        ("ulimit -n 24", "`ulimit -n` allows 24 open files"),
        ("ulimit -f 1", "`ulimit -f` allows files of "),
        ("ulimit -u 20", "`ulimit -u` allows 20 processes"),
    ] {
        is_as_alone(limits, true).tells(name);
    }
}

/// The kernel sends SIGXFSZ to whoever writes beyond the limit, and that is not the command.
#[test]
fn output_beyond_the_limit_for_files_ends_the_command() {
    let scene = Scene::new();
    let mut shell = scene.command("bash");
    let script = "ulimit -f 4000; exec $0 run -- head -c 6000000 /dev/zero > much";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_antifreeze")]);
    let ended = scene.finish(&mut shell, LIMIT);
    ended.is_ended_by(25).tells("see `ulimit -f`");
    let bytes = std::fs::metadata(scene.path("much")).unwrap().len();
    assert_eq!(bytes, 4000 * 1024);
}
