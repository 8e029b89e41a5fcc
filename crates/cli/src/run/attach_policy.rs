//! Decides which processes `antifreeze attach` refuses: those that a machine or a session depends on, and those of
//! other users. The decision is pure; [`super::target`] reads the facts from the kernel.

use antifreeze_text::sanitize;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt;

/// A larger tree is attached to only with `--yes`. Eight ranks with sixteen loaders each are 137 processes.
const MAX_TREE_PROCESSES: usize = 200;
/// Processes of a tree that are named as ones to attach to instead.
const MAX_NAMED: usize = 3;

/// Programs that run sessions, logins, terminals, services and containers.
const MANAGERS: &[&str] = &[
    // Init systems, service managers and message buses.
    "init",
    "systemd",
    "openrc-init",
    "openrc-run",
    "supervise-daemon",
    "runit",
    "runsvdir",
    "runsv",
    "s6-svscan",
    "s6-supervise",
    "dinit",
    "dbus-daemon",
    "dbus-broker",
    "dbus-broker-launch",
    "supervisord",
    "cron",
    "crond",
    "atd",
    // Logins.
    "login",
    "sshd",
    "sshd-session",
    "sshd-auth",
    "dropbear",
    "telnetd",
    "getty",
    "agetty",
    "mingetty",
    "su",
    "sudo",
    "doas",
    "runuser",
    "mosh-server",
    "etserver",
    "etterminal",
    // Display managers, desktops and display servers.
    "gdm",
    "gdm3",
    "sddm",
    "lightdm",
    "lxdm",
    "xdm",
    "greetd",
    "ly",
    "cosmic-comp",
    "cosmic-session",
    "gnome-shell",
    "plasmashell",
    "plasma_session",
    "ksmserver",
    "kwin_x11",
    "kwin_wayland",
    "kwin_wayland_wrapper",
    "startplasma-wayland",
    "startplasma-x11",
    "xfce4-session",
    "lxqt-session",
    "lxsession",
    "mate-session",
    "cinnamon",
    "cinnamon-session",
    "budgie-wm",
    "sway",
    "niri",
    "river",
    "labwc",
    "Hyprland",
    "i3",
    "awesome",
    "bspwm",
    "dwm",
    "openbox",
    "weston",
    "X",
    "Xorg",
    "Xorg.bin",
    "Xwayland",
    "Xvnc",
    "Xtigervnc",
    "x11vnc",
    "xinit",
    "xrdp",
    "xrdp-sesman",
    // Terminal multiplexers.
    "tmux",
    "screen",
    "zellij",
    "dtach",
    "abduco",
    // Containers and clusters.
    "dockerd",
    "containerd",
    "conmon",
    "crio",
    "kubelet",
    "slurmd",
    "slurmstepd",
];
/// Programs of the same kind whose names begin so.
const MANAGER_PREFIXES: &[&str] = &[
    "systemd-",
    "gdm-",
    "sddm-",
    "gnome-session",
    "containerd-shim",
];
/// The kernel cuts what a process calls itself to this many bytes.
const MAX_SHORT_NAME: usize = 15;
const SHELLS: [&str; 14] = [
    "sh", "bash", "dash", "zsh", "fish", "ksh", "ksh93", "mksh", "tcsh", "csh", "nu", "elvish",
    "ash", "busybox",
];

/// A process, as the kernel tells of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// The name of its program's file, or where that may not be read, its short name.
    pub program: String,
    /// What it calls itself (`comm`): that of the script where an interpreter runs one, that of the applet in busybox.
    pub short_name: String,
    /// Its arguments, the first included.
    pub words: Vec<Vec<u8>>,
    /// Its real, effective and saved user.
    pub users: [u32; 3],
    pub leads_session: bool,
    pub has_terminal: bool,
    pub is_kernel_thread: bool,
    pub has_ended: bool,
    /// It is a front, a guard, a keeper or a probe.
    pub is_antifreeze: bool,
}

/// The process to attach to, and who asks.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub target: Process,
    /// What the target has started, and what that has started.
    pub descendants: Vec<Process>,
    /// The caller's parent, the parent of that, and so on.
    pub ancestors: Vec<u32>,
    /// The user of the caller.
    pub user: u32,
    /// The target itself asked to be guarded, as `antifreeze.guard()` does.
    pub by_itself: bool,
    /// Names or numbers of other users whose processes are meant.
    pub other_users: Vec<String>,
    /// The run that guards the target, a process above it or one below it already.
    pub guarded_by: Option<String>,
    pub yes: bool,
}

/// Why a process is not attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Ended,
    First,
    KernelThread,
    Antifreeze,
    Ancestor,
    Manager,
    Shell,
    /// The process or a part of it is guarded by this run already.
    Guarded(String),
    OtherUser(u32),
    /// The number of processes below it that belong to users who were not named, and one of these users.
    OtherUsersBelow(usize, u32),
    /// A process below it is a terminal or a session that people use.
    SessionBelow(u32),
    TooMany(usize),
}

/// None: it may be attached to. `name_of` gives the name of a user.
pub fn refusal(request: &Request, name_of: impl Fn(u32) -> String) -> Option<Refusal> {
    let target = &request.target;
    if target.is_kernel_thread {
        return Some(Refusal::KernelThread);
    }
    if target.has_ended {
        return Some(Refusal::Ended);
    }
    if request.by_itself && request.ancestors.contains(&target.pid) {
        return None;
    }
    if target.pid == 1 {
        return Some(Refusal::First);
    }
    if request.ancestors.contains(&target.pid) {
        return Some(Refusal::Ancestor);
    }
    if target.is_antifreeze {
        return Some(Refusal::Antifreeze);
    }
    if is_manager(target) {
        return Some(Refusal::Manager);
    }
    if is_used_shell(target) {
        return Some(Refusal::Shell);
    }
    if let Some(run) = &request.guarded_by {
        return Some(Refusal::Guarded(run.clone()));
    }
    // Only root may limit processes of others.
    let is_named = |user: u32| {
        let mut named = request.other_users.iter();
        request.user == 0
            && named.any(|named| *named == user.to_string() || *named == name_of(user))
    };
    let other = |process: &Process| {
        let mut users = process.users.into_iter();
        users.find(|user| *user != request.user && !is_named(*user))
    };
    if let Some(user) = other(target) {
        return Some(Refusal::OtherUser(user));
    }
    let others: Vec<u32> = request.descendants.iter().filter_map(other).collect();
    if let Some(user) = others.first() {
        return Some(Refusal::OtherUsersBelow(others.len(), *user));
    }
    if request.yes {
        return None;
    }
    let is_session = |process: &&Process| is_manager(process) || is_used_shell(process);
    if let Some(session) = request.descendants.iter().find(is_session) {
        return Some(Refusal::SessionBelow(session.pid));
    }
    let count = request.descendants.len() + 1;
    (count > MAX_TREE_PROCESSES).then_some(Refusal::TooMany(count))
}

fn is_manager(process: &Process) -> bool {
    is_manager_name(plain_name(&process.program))
        || is_manager_name(plain_name(&process.short_name))
}

fn is_manager_name(name: &str) -> bool {
    let is_cut = |whole: &&str| name.len() == MAX_SHORT_NAME && whole.starts_with(name);
    MANAGERS
        .iter()
        .any(|manager| *manager == name || is_cut(manager))
        || MANAGER_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// The name of a program without what distributions and titles add to it: `tmux: server`, `screen-4.9.1`,
/// `.gnome-shell-wrapped` of NixOS.
fn plain_name(name: &str) -> &str {
    let name = name.split(':').next().unwrap_or(name);
    let name = match name.strip_prefix('.') {
        Some(hidden) => hidden.split("-wrapp").next().unwrap_or(hidden),
        None => name,
    };
    match name.rsplit_once('-') {
        Some((before, version)) if version.starts_with(|first: char| first.is_ascii_digit()) => {
            before
        }
        _ => name,
    }
}

/// A shell that a person types into: it leads a session at a terminal, and was given no script to run.
fn is_used_shell(process: &Process) -> bool {
    SHELLS.contains(&process.program.as_str())
        && process.leads_session
        && process.has_terminal
        && !runs_script(&process.words)
}

fn runs_script(words: &[Vec<u8>]) -> bool {
    // busybox names its shell first.
    words.iter().skip(1).any(|word| {
        let is_command = word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'c');
        is_command
            || !word.starts_with(b"-") && !SHELLS.iter().any(|shell| shell.as_bytes() == word)
    })
}

impl Refusal {
    /// Why, and what to do instead. `name_of` gives the name of a user.
    pub fn explain(&self, request: &Request, name_of: impl Fn(u32) -> String) -> String {
        let target = &request.target;
        let pid = target.pid;
        let program = sanitize::escape(target.program.as_bytes());
        let who = format!("process {pid} ({program})");
        let below = training_below(request);
        let instead = || match &below {
            Some(lines) => format!("Attach to the training itself, such as: {lines}"),
            None => format!("Attach to the training itself: {FIND_PID_HINT}"),
        };
        match self {
            Refusal::Ended => format!("{who} has ended already; {FIND_PID_HINT}"),
            Refusal::First => format!(
                "{who} is the first process of this machine or container, and every other process is below it. {}",
                instead()
            ),
            Refusal::KernelThread => {
                format!("{who} is a kernel thread, which cannot be limited; {FIND_PID_HINT}")
            }
            Refusal::Antifreeze => format!(
                "{who} is a part of antifreeze itself, and what it runs is guarded already; `antifreeze runs` lists it"
            ),
            Refusal::Ancestor => format!(
                "{who} has started this command, which would be limited too. Start the training with \
                 `antifreeze run COMMAND`; in a Python script call antifreeze.guard(), in a notebook %load_ext antifreeze"
            ),
            Refusal::Manager => format!(
                "{who} runs sessions, logins, services or containers, and all of them would be limited. {}",
                instead()
            ),
            Refusal::Shell => format!(
                "{who} is a shell at a terminal, and every command typed there would be limited. {}",
                instead()
            ),
            Refusal::Guarded(run) => format!(
                "{who}, or a process above or below it, is guarded already by run {run}, and two guards would change \
                 each other's limits. What that run does: antifreeze runs show {run}. To set another budget, end the \
                 other `antifreeze attach` first (Ctrl-C)"
            ),
            Refusal::OtherUser(user) => {
                let owner = name_of(*user);
                match request.user {
                    0 => format!(
                        "{who} belongs to the user {owner}. To guard it anyway, name the user: antifreeze attach \
                         {} {pid}",
                        user_flags(request, &owner)
                    ),
                    _ if *user == 0 => format!("{who} belongs to root; only root can attach to it"),
                    _ => format!(
                        "{who} belongs to the user {owner}; only {owner} or root can attach to it"
                    ),
                }
            }
            Refusal::OtherUsersBelow(count, user) => {
                let owner = name_of(*user);
                let processes = match count {
                    1 => "a process".to_owned(),
                    count => format!("{count} processes"),
                };
                let of_owner = format!("{who} has {processes} of another user below it ({owner}).");
                match request.user {
                    0 => format!(
                        "{of_owner} To guard them anyway, name the user: antifreeze attach {} {pid}",
                        user_flags(request, &owner)
                    ),
                    _ => format!("{of_owner} {}", instead()),
                }
            }
            Refusal::SessionBelow(session) => {
                let mut text = format!(
                    "{who} has a session below it that a person may be using (process {session}), which would be \
                     limited too."
                );
                if below.is_some() {
                    let _ = write!(text, " {}.", instead());
                }
                let _ = write!(text, " To guard all of it: antifreeze attach --yes {pid}");
                text
            }
            Refusal::TooMany(count) => format!(
                "{who} is a tree of {count} processes, more than the {MAX_TREE_PROCESSES} that a training may have. To guard \
                 all of them: antifreeze attach --yes {pid}"
            ),
        }
    }
}

/// How to find the process that was meant.
pub const FIND_PID_HINT: &str = "`pgrep -a python` lists the Python processes with their PIDs";

/// The flags that name the users, with one more.
fn user_flags(request: &Request, owner: &str) -> String {
    let named = request.other_users.iter().map(String::as_str);
    let flags: Vec<String> = named
        .chain([owner])
        .map(|name| format!("--user {name}"))
        .collect();
    flags.join(" ")
}

/// The Python processes below the target that were started by it and not by one another, as lines to type.
fn training_below(request: &Request) -> Option<String> {
    let lines: Vec<String> = request
        .descendants
        .iter()
        .filter(|process| process.program.starts_with("python") && !process.has_ended)
        .filter(|process| process.users.iter().all(|user| *user == request.user))
        .filter(|process| !request.ancestors.contains(&process.pid))
        .take(MAX_NAMED)
        .map(|process| {
            // Only the file of the interpreter's path, which may be long.
            let program = process.program.clone().into_bytes();
            let words = process.words.iter().skip(1).take(3).cloned();
            let words: Vec<OsString> = [program]
                .into_iter()
                .chain(words)
                .map(OsString::from_vec)
                .collect();
            let command = antifreeze_text::layout::cut(&sanitize::shell_command(&words), 40);
            format!("antifreeze attach {} ({command})", process.pid)
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

#[cfg(test)]
#[path = "attach_policy_tests.rs"]
mod tests;
