//! Where the trainer's output goes: through a pty where the person has a terminal, through
//! a pipe where there is a pipe or a file, so that the trainer sees what it would have seen.
//!
//! The pty is not the trainer's controlling terminal. That stays the real one, with the
//! trainer in our process group, so Ctrl-C, Ctrl-Z, `fg` and reading from the keyboard
//! work as if we were not there. Modes, size, name and foreground process group of the pty
//! are those of the real terminal: the cushion asks and sets them there.

use super::inherited;
use antifreeze_ipc::page::Head;
use antifreeze_ipc::relay::Transfer;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    OptionalActions, OutputModes, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::sync::atomic::Ordering::Release;

/// One stream: the trainer writes to `give`, we read from `read` and pass on to `pass`.
/// `give` is closed once the trainer has it: the stream ends when the trainer's side does.
pub struct Stream {
    pub read: OwnedFd,
    pub pass: OwnedFd,
    pub give: Option<OwnedFd>,
    pub terminal: bool,
    /// The pipes of the relay, as `antifreeze_ipc::relay` describes them.
    pub intake: Ends,
    pub outlet: Ends,
}

/// The two ends of a pipe that only relays use.
pub struct Ends {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

impl Ends {
    fn open() -> Result<Ends, Errno> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Ends { read, write })
    }

    pub fn try_clone(&self) -> std::io::Result<Ends> {
        Ok(Ends {
            read: self.read.try_clone()?,
            write: self.write.try_clone()?,
        })
    }

    pub fn as_transfer(&self) -> Transfer<'_> {
        Transfer {
            read: self.read.as_fd(),
            write: self.write.as_fd(),
        }
    }
}

/// Standard output, and standard error unless it goes to the same place.
#[derive(Default)]
pub struct Streams {
    pub output: Option<Stream>,
    pub error: Option<Stream>,
    /// Both go through `output`, which keeps them in order.
    pub joined: bool,
    /// A restart of the command may need standard output again, so this process keeps it.
    pub kept_for_restart: bool,
}

impl Streams {
    pub fn open() -> Result<Streams, Errno> {
        let (stdout, stderr) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let is_closed = inherited::is_closed(1) || inherited::is_closed(2);
        let same = !is_closed
            && match (fstat(stdout), fstat(stderr)) {
                (Ok(first), Ok(second)) => same_place(&first, &second),
                _ => false,
            };
        let output = Stream::open(stdout)?;
        let error = if same { None } else { Stream::open(stderr)? };
        let joined = same && output.is_some();
        Ok(Streams {
            output,
            error,
            joined,
            kept_for_restart: false,
        })
    }

    pub fn each(&self) -> impl Iterator<Item = (usize, &Stream)> {
        [&self.output, &self.error]
            .into_iter()
            .enumerate()
            .filter_map(|(i, stream)| stream.as_ref().map(|stream| (i, stream)))
    }

    /// Closes our copies of the trainer's ends.
    pub fn close_given(&mut self) {
        for stream in [&mut self.output, &mut self.error].into_iter().flatten() {
            stream.give = None;
        }
    }

    /// Closes a stream that is over. Its reader sees the end where it would see it without us, except on standard
    /// error, which our own lines go to.
    pub fn give_up(&mut self, index: usize) {
        match index {
            0 => {
                let was_there = self.output.take().is_some();
                if was_there && !self.joined && !self.kept_for_restart {
                    inherited::replace_by_null(1);
                }
            }
            _ => self.error = None,
        }
    }

    /// Tells the trainer's terminals how large the real one is. True when that is new to one of them.
    pub fn resize(&self) -> bool {
        let terminals = self.each().filter(|(_, stream)| stream.terminal);
        let resized = terminals.map(|(_, stream)| {
            let sizes = (tcgetwinsize(&stream.pass), tcgetwinsize(&stream.read));
            let (Ok(real), Ok(shown)) = sizes else {
                return false;
            };
            let is_new = (real.ws_row, real.ws_col) != (shown.ws_row, shown.ws_col);
            is_new && tcsetwinsize(&stream.read, real).is_ok()
        });
        resized.fold(false, |any, resized| any | resized)
    }

    /// Writes into the page which pty stands for which terminal.
    pub fn announce(&self, head: &Head) {
        for (index, stream) in self.each().filter(|(_, stream)| stream.terminal) {
            let (pty, real) = (device_number(&stream.read), device_number(&stream.pass));
            head.output_terminals[index].store(real, Release);
            head.output_ptys[index].store(pty, Release);
        }
    }
}

/// The device number of a terminal, or of the terminal of a pty; 0 where the kernel does not say.
fn device_number(terminal: &OwnedFd) -> u32 {
    let mut number = 0u32;
    // SAFETY: the kernel writes a number to a live one, or nothing.
    let code = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGDEV, &raw mut number) };
    if code == 0 { number } else { 0 }
}

impl Stream {
    /// None when the stream was closed: the trainer then finds it closed too.
    fn open(theirs: BorrowedFd<'_>) -> Result<Option<Stream>, Errno> {
        if inherited::is_closed(theirs.as_raw_fd()) {
            return Ok(None);
        }
        let pass = rustix::io::fcntl_dupfd_cloexec(theirs, 3)?;
        let terminal = rustix::termios::isatty(&pass);
        let (read, give) = if terminal {
            pty(pass.as_fd())?
        } else {
            pipe()?
        };
        // Ours alone, so nobody else is surprised: we read until there is nothing left.
        let flags = rustix::fs::fcntl_getfl(&read)?;
        rustix::fs::fcntl_setfl(&read, flags | OFlags::NONBLOCK)?;
        Ok(Some(Stream {
            read,
            pass,
            give: Some(give),
            terminal,
            intake: Ends::open()?,
            outlet: Ends::open()?,
        }))
    }
}

fn same_place(first: &Stat, second: &Stat) -> bool {
    let both_terminals = FileType::from_raw_mode(first.st_mode) == FileType::CharacterDevice
        && first.st_mode == second.st_mode
        && first.st_rdev == second.st_rdev;
    (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino) || both_terminals
}

fn pty(real: BorrowedFd<'_>) -> Result<(OwnedFd, OwnedFd), Errno> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    if let Ok(mut modes) = tcgetattr(real) {
        // The real terminal turns newlines into what it needs; twice would be wrong.
        modes.output_modes.remove(OutputModes::OPOST);
        tcsetattr(&slave, OptionalActions::Now, &modes)?;
    }
    if let Ok(size) = tcgetwinsize(real) {
        let _ = tcsetwinsize(&master, size);
    }
    Ok((master, slave))
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, give) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // A larger pipe lets a chatty trainer run ahead; the default works too.
    let _ = rustix::pipe::fcntl_setpipe_size(&give, 1 << 20);
    Ok((read, give))
}
