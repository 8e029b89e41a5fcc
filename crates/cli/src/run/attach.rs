//! `antifreeze attach`: guards a running process. If that process started this one (`antifreeze.guard()` in Python),
//! the two share a tether: standard output tells the process where the page is, and a byte on standard input asks to
//! detach.

use super::attach_policy::{FIND_PID_HINT, Request, refusal};
use super::front::Front;
use super::target::{Target, user_name};
use super::{OWN_FAILURE, Prepared, prepare};
use crate::args::AttachArguments;
use crate::config::Settings;
use crate::output::complain;
use crate::term_style::terminal_style;
use antifreeze_diagnose::Facts;
use antifreeze_guard::hands::limit::Limits;
use antifreeze_sense::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use rustix::io::Errno;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;

/// Guards the process until it ends or asks to detach, and returns the exit status.
pub fn attach(mut arguments: AttachArguments) -> u8 {
    let (message, status) = match attached(&mut arguments) {
        Ok(()) => return 0,
        Err(Failure::Usage(message)) => (message, 2),
        Err(Failure::Own(message)) => (message, OWN_FAILURE),
    };
    match arguments.tether {
        // Python raises it.
        true => Tether::fail(&message),
        false => complain(&message),
    }
    status
}

enum Failure {
    Usage(String),
    Own(String),
}

fn attached(arguments: &mut AttachArguments) -> Result<(), Failure> {
    let pid = arguments.pid;
    let target = admitted(arguments).map_err(Failure::Usage)?;
    // What it writes, it writes there; and so do its settings stand there.
    let folder = target
        .working_folder()
        .unwrap_or_else(|| PathBuf::from("/"));
    let _ = std::env::set_current_dir(&folder);
    let settings = Settings::read(&folder).map_err(Failure::Usage)?;
    settings.fill_terms(&mut arguments.terms);
    let Prepared {
        store,
        notes,
        mut guard_args,
        mut facts,
        detail,
    } = prepare(&arguments.terms, &folder, target.command()).map_err(Failure::Usage)?;
    guard_args.attach = pid;
    guard_args.attach_started = target.started;
    facts.attached = true;
    let style = terminal_style(rustix::stdio::stderr());
    let mut front =
        Front::start(guard_args, facts, detail, style, false, None).map_err(Failure::Own)?;
    let target = Rc::new(target);
    front.watch_target(Rc::clone(&target));
    if arguments.tether {
        front.hold(Tether, arguments.tersely);
    }
    notes.iter().for_each(|note| front.say(note));
    let closed = front.watch(None, false);
    if let Some(message) = closed.not_started {
        return Err(Failure::Own(message));
    }
    if let Some(store) = store {
        store.prune_as_usual();
    }
    Ok(())
}

/// The process, if it may be attached to; otherwise the reason.
fn admitted(arguments: &AttachArguments) -> Result<Target, String> {
    let pid = arguments.pid;
    let none = || format!("there is no process {pid}; {FIND_PID_HINT}");
    let target = Target::open(pid).map_err(|errno| match errno {
        Errno::SRCH => none(),
        _ => format!("process {pid} cannot be read: {errno}"),
    })?;
    let request = Request {
        by_itself: arguments.tether,
        other_users: arguments.user.clone(),
        yes: arguments.yes,
        ..target.request().ok_or_else(none)?
    };
    if let Some(refusal) = refusal(&request, user_name) {
        let why = refusal.explain(&request, user_name);
        return Err(format!("not attached: {why}"));
    }
    match Limits::read(Pid(pid)) {
        Ok(_) => Ok(target),
        Err(Errno::SRCH) => Err(none()),
        Err(Errno::PERM) if !arguments.user.is_empty() => Err(format!(
            "process {pid} cannot be limited: another user's process needs CAP_SYS_RESOURCE, which root in a container \
             may lack. Attach from outside the container, or as the user of the process"
        )),
        Err(errno) => Err(format!("process {pid} cannot be limited: {errno}")),
    }
}

/// The connection to the process that asked to be guarded.
pub struct Tether;

/// A message from the guarded process.
pub enum Word {
    Nothing,
    /// Detach: the guarded code succeeded (0) or failed (1).
    Leave(u8),
    /// The other end is closed.
    Gone,
}

impl Tether {
    /// Reports that the process is guarded, with what its part of antifreeze has to know.
    pub fn say(&self, guard: u32, page: BorrowedFd<'_>, strip: u64, facts: &Facts) {
        let (front, fd) = (std::process::id(), page.as_raw_fd());
        let words = serde_json::json!({
            "page": format!("/proc/{guard}/fd/{fd}:/proc/{front}/fd/{fd}"),
            "run": facts.record,
            "strip": strip,
            "may_use": facts.usable_memory(),
        });
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{words}");
        let _ = out.flush();
    }

    /// Reports why the process is not guarded.
    pub fn fail(message: &str) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{}", serde_json::json!({ "error": message }));
        let _ = out.flush();
    }

    pub fn receive(&self) -> Word {
        let mut ready = [PollFd::new(self, PollFlags::IN)];
        if !matches!(poll(&mut ready, Some(&NOW)), Ok(1..)) {
            return Word::Nothing;
        }
        let mut byte = [0u8];
        match rustix::io::read(self, &mut byte) {
            Ok(1) => Word::Leave(byte[0].min(1)),
            Err(Errno::INTR | Errno::AGAIN) => Word::Nothing,
            _ => Word::Gone,
        }
    }
}

impl AsFd for Tether {
    fn as_fd(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdin()
    }
}

const NOW: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
