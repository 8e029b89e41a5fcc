use super::*;

const ALICE: u32 = 1000;
const BOB: u32 = 1001;

fn name_of(user: u32) -> String {
    match user {
        0 => "root".to_owned(),
        ALICE => "alice".to_owned(),
        BOB => "bob".to_owned(),
        other => other.to_string(),
    }
}

fn refusal(request: &Request) -> Option<Refusal> {
    super::refusal(request, name_of)
}

fn process(pid: u32, line: &str) -> Process {
    let words: Vec<Vec<u8>> = line
        .split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect();
    let program = line.split(' ').next().unwrap_or_default();
    Process {
        pid,
        program: program.trim_start_matches('-').to_owned(),
        words,
        users: [ALICE; 3],
        ..Process::default()
    }
}

fn named(pid: u32, short_name: &str, program: &str) -> Process {
    Process {
        short_name: short_name.to_owned(),
        ..process(pid, program)
    }
}

fn at_terminal(pid: u32, line: &str) -> Process {
    Process {
        leads_session: true,
        has_terminal: true,
        ..process(pid, line)
    }
}

fn of_user(user: u32, process: Process) -> Process {
    Process {
        users: [user; 3],
        ..process
    }
}

/// Alice asks, from a shell with the number 50.
fn request(target: Process) -> Request {
    Request {
        target,
        ancestors: vec![50, 40, 1],
        user: ALICE,
        ..Request::default()
    }
}

fn below(target: Process, descendants: Vec<Process>) -> Request {
    Request {
        descendants,
        ..request(target)
    }
}

fn crowd(count: u32) -> Vec<Process> {
    (0..count)
        .map(|pid| process(1000 + pid, "python loader.py"))
        .collect()
}

#[test]
fn what_may_be_attached_to_is_decided_by_what_the_kernel_tells() {
    use Refusal::*;
    let setuid = Process {
        users: [ALICE, 0, 0],
        ..process(90, "helper")
    };
    let kernel = Process {
        is_kernel_thread: true,
        ..of_user(0, process(2, "kthreadd"))
    };
    let ended = Process {
        has_ended: true,
        ..process(90, "python")
    };
    let antifreeze = Process {
        is_antifreeze: true,
        ..process(90, "antifreeze run python")
    };
    let training = || process(90, "python train.py");
    for (request, expected) in [
        (request(training()), None),
        (request(at_terminal(90, "python train.py")), None),
        (request(process(90, "jupyter-lab")), None),
        (below(training(), crowd(199)), None),
        (below(training(), crowd(200)), Some(TooMany(201))),
        (request(process(1, "docker-init")), Some(First)),
        (request(process(1, "python train.py")), Some(First)),
        (request(kernel), Some(KernelThread)),
        (request(ended), Some(Ended)),
        (request(antifreeze), Some(Antifreeze)),
        (request(process(50, "bash")), Some(Ancestor)),
        (request(process(40, "python train.py")), Some(Ancestor)),
        (request(process(90, "systemd --user")), Some(Manager)),
        (request(process(90, "systemd-logind")), Some(Manager)),
        (request(process(90, "gdm-session-worker")), Some(Manager)),
        (request(process(90, "gnome-session-binary")), Some(Manager)),
        (request(process(90, "sddm")), Some(Manager)),
        (request(process(90, "lightdm")), Some(Manager)),
        (request(process(90, "sshd")), Some(Manager)),
        (request(process(90, "sshd-session")), Some(Manager)),
        (request(process(90, "login")), Some(Manager)),
        (request(process(90, "tmux")), Some(Manager)),
        (request(process(90, "screen")), Some(Manager)),
        (
            request(process(90, "containerd-shim-runc-v2")),
            Some(Manager),
        ),
        (request(process(90, "screen-4.9.1")), Some(Manager)),
        (request(process(90, ".gnome-shell-wrapped")), Some(Manager)),
        // Where the file may not be read, there is only the short name.
        (request(named(90, "tmux: server", "tmux")), Some(Manager)),
        (request(process(90, "dbus-broker-lau")), Some(Manager)),
        // An interpreter and busybox run them by another name.
        (request(named(90, "supervisord", "python3")), Some(Manager)),
        (request(named(90, "login", "busybox")), Some(Manager)),
        // These only look like one of them.
        (request(process(90, "screenshot-model")), None),
        (request(process(90, "python3.12")), None),
        (request(process(90, "tmux-train")), None),
        (
            Request {
                guarded_by: Some("20261116-131741-170".to_owned()),
                ..request(training())
            },
            Some(Guarded("20261116-131741-170".to_owned())),
        ),
        (request(at_terminal(90, "bash")), Some(Shell)),
        (request(at_terminal(90, "-zsh")), Some(Shell)),
        (request(at_terminal(90, "bash --login -i")), Some(Shell)),
        (request(at_terminal(90, "busybox sh")), Some(Shell)),
        (request(at_terminal(90, "bash run.sh")), None),
        (request(at_terminal(90, "sh -c train")), None),
        (request(at_terminal(90, "bash -lc train")), None),
        // A shell that a launcher started, without a terminal of its own.
        (request(process(90, "bash")), None),
        (request(of_user(BOB, training())), Some(OtherUser(BOB))),
        (request(of_user(0, training())), Some(OtherUser(0))),
        (request(setuid), Some(OtherUser(0))),
        (
            below(training(), vec![of_user(BOB, process(91, "python"))]),
            Some(OtherUsersBelow(1, BOB)),
        ),
        (
            below(process(90, "code"), vec![at_terminal(91, "bash")]),
            Some(SessionBelow(91)),
        ),
        (
            below(process(90, "daemon"), vec![process(91, "tmux")]),
            Some(SessionBelow(91)),
        ),
    ] {
        assert_eq!(refusal(&request), expected, "{:?}", request.target);
    }
}

#[test]
fn flags_allow_what_was_asked_for_and_nothing_else() {
    use Refusal::*;
    // Root asks, and all that is Alice's is named as well.
    let user = |name: &str, request: Request| Request {
        other_users: vec![name.to_owned(), "alice".to_owned()],
        user: 0,
        ..request
    };
    let yes = |request: Request| Request {
        yes: true,
        ..request
    };
    let all = |request: Request| user("root", yes(request));
    let of_bob = || of_user(BOB, process(90, "python train.py"));
    let large = || below(process(90, "python"), crowd(500));
    let editor = || below(process(90, "code"), vec![at_terminal(91, "bash")]);
    for (request, expected) in [
        (user("bob", request(of_bob())), None),
        (user("1001", request(of_bob())), None),
        (user("carol", request(of_bob())), Some(OtherUser(BOB))),
        (
            user(
                "bob",
                below(of_bob(), vec![of_user(1002, process(91, "sh"))]),
            ),
            Some(OtherUsersBelow(1, 1002)),
        ),
        // A name does not make Alice root.
        (
            Request {
                user: ALICE,
                ..user("bob", request(of_bob()))
            },
            Some(OtherUser(BOB)),
        ),
        (yes(request(of_bob())), Some(OtherUser(BOB))),
        (yes(large()), None),
        (user("bob", large()), Some(TooMany(501))),
        (yes(editor()), None),
        (all(request(process(1, "systemd"))), Some(First)),
        (all(request(process(90, "sshd"))), Some(Manager)),
        (all(request(process(50, "bash"))), Some(Ancestor)),
        (all(request(at_terminal(90, "bash"))), Some(Shell)),
    ] {
        assert_eq!(refusal(&request), expected, "{:?}", request.target);
    }
}

#[test]
fn a_process_that_asks_for_itself_is_its_own_to_guard() {
    let by_itself = |target: Process| Request {
        by_itself: true,
        ..request(target)
    };
    // The parent of the attach, a wrapper further up, and the first process of a container.
    for pid in [50, 40, 1] {
        assert_eq!(refusal(&by_itself(process(pid, "python train.py"))), None);
    }
    // The tether alone opens no other process.
    assert_eq!(
        refusal(&by_itself(process(90, "sshd"))),
        Some(Refusal::Manager)
    );
}

#[test]
fn a_refusal_says_why_and_what_to_do_instead() {
    let train = || process(91, "python train.py");
    let as_root = |request: Request| Request { user: 0, ..request };
    for (request, expected) in [
        (
            below(process(90, "tmux"), vec![train()]),
            "process 90 (tmux) runs sessions, logins, services or containers, and all of them would be limited. \
             Attach to the training itself, such as: antifreeze attach 91 (python train.py)",
        ),
        (
            request(at_terminal(90, "bash")),
            "process 90 (bash) is a shell at a terminal, and every command typed there would be limited. Attach to the \
             training itself: `pgrep -a python` lists the Python processes with their PIDs",
        ),
        (
            as_root(request(process(90, "python train.py"))),
            "process 90 (python) belongs to the user alice. To guard it anyway, name the user: antifreeze attach \
             --user alice 90",
        ),
        (
            Request {
                other_users: vec!["alice".to_owned()],
                ..as_root(below(
                    process(90, "python"),
                    vec![of_user(BOB, process(91, "sh"))],
                ))
            },
            "process 90 (python) has a process of another user below it (bob). To guard them anyway, name the \
             user: antifreeze attach --user alice --user bob 90",
        ),
        (
            request(of_user(BOB, process(90, "python"))),
            "process 90 (python) belongs to the user bob; only bob or root can attach to it",
        ),
        (
            request(of_user(0, process(90, "python"))),
            "process 90 (python) belongs to root; only root can attach to it",
        ),
        (
            Request {
                guarded_by: Some("20261116-131741-170".to_owned()),
                ..request(process(90, "python"))
            },
            "process 90 (python), or a process above or below it, is guarded already by run 20261116-131741-170, and \
             two guards would change each other's limits. What that run does: antifreeze runs show \
             20261116-131741-170. To set another budget, end the other `antifreeze attach` first (Ctrl-C)",
        ),
        (
            below(process(90, "python"), crowd(500)),
            "process 90 (python) is a tree of 501 processes, more than the 200 that a training may have. To guard \
             all of them: antifreeze attach --yes 90",
        ),
        (
            below(process(90, "code"), vec![at_terminal(92, "bash"), train()]),
            "process 90 (code) has a session below it that a person may be using (process 92), which would be limited \
             too. Attach to the training itself, such as: antifreeze attach 91 (python train.py). To guard all \
             of it: antifreeze attach --yes 90",
        ),
    ] {
        let refusal = refusal(&request).unwrap();
        assert_eq!(refusal.explain(&request, name_of), expected);
    }
}
