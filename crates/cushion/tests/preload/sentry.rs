//! A guard for tests: owns a page, and answers kicks when it is told how.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread::JoinHandle;

use antifreeze_ipc::page::{HEAD_BYTES, Head, LIMIT_UNIT, MAGIC, STALE_NS, Slot, VERSION};

pub struct Sentry {
    fd: OwnedFd,
    head: &'static Head,
    off_duty: Arc<AtomicBool>,
    answering: Option<JoinHandle<()>>,
}

impl Sentry {
    /// Stands guard with `headroom` to give; its heartbeat is fresh, and it answers nobody.
    pub fn with_headroom(headroom: u64) -> Self {
        // SAFETY: the name ends in NUL.
        let fd = unsafe { libc::memfd_create(c"page".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(fd >= 0);
        // SAFETY: just created, owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: a new mapping of a file that was made large enough.
        let at = unsafe {
            assert_eq!(libc::ftruncate(fd.as_raw_fd(), HEAD_BYTES as i64), 0);
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(
                std::ptr::null_mut(),
                HEAD_BYTES,
                prot,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        assert_ne!(at, libc::MAP_FAILED);
        // SAFETY: zeroes are a valid Head, and the mapping is never taken away.
        let head = unsafe { &*at.cast::<Head>() };
        head.magic.store(MAGIC, SeqCst);
        head.version.store(VERSION, SeqCst);
        head.headroom.store(headroom, SeqCst);
        head.wall.store(1, SeqCst);
        // Fresh for as long as any test may take.
        head.heartbeat.store(now() + 3_600_000_000_000, SeqCst);
        Self {
            fd,
            head,
            off_duty: Arc::default(),
            answering: None,
        }
    }

    /// Does what a tick is to do each time it is kicked, and then says that it has ticked.
    pub fn answering(mut self, answer: impl Fn(&Head) + Send + 'static) -> Self {
        let (head, off_duty) = (self.head, Arc::clone(&self.off_duty));
        self.answering = Some(std::thread::spawn(move || {
            let mut seen = 0;
            while !off_duty.load(SeqCst) {
                let kick = head.kick.load(SeqCst);
                if kick == seen {
                    futex(&head.kick, libc::FUTEX_WAIT, kick);
                    continue;
                }
                seen = kick;
                answer(head);
                head.births.store(0, SeqCst);
                head.tick.fetch_add(1, SeqCst);
                futex(&head.tick, libc::FUTEX_WAKE, u32::MAX >> 1);
            }
        }));
        self
    }

    pub fn head(&self) -> &'static Head {
        self.head
    }

    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.fd.as_raw_fd())
    }

    pub fn slot_of(&self, pid: u32) -> Option<&'static Slot> {
        self.head
            .slots
            .iter()
            .find(|slot| slot.pid.load(SeqCst) == pid)
    }

    /// As if both guard and front had died a while ago.
    pub fn die(&self) {
        self.head
            .heartbeat
            .store(now() - STALE_NS - 1_000_000_000, SeqCst);
    }
}

impl Drop for Sentry {
    fn drop(&mut self) {
        self.off_duty.store(true, SeqCst);
        self.head.kick.fetch_add(1, SeqCst);
        futex(&self.head.kick, libc::FUTEX_WAKE, 1);
        if let Some(thread) = self.answering.take() {
            thread.join().unwrap();
        }
    }
}

/// What the guard does for each process: the limit is what it holds and what it may take.
/// One that has ended, or is ending, gets none.
pub fn grant(pid: u32, headroom: u64) {
    // In whole units, as the guard does.
    let soft = data_bytes(pid) + headroom;
    let _ = try_limit(pid, soft - soft % LIMIT_UNIT);
}

/// What the kernel counts against the limit of this process; 0 once it has ended.
pub fn data_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let data = status.lines().find_map(|line| line.strip_prefix("VmData:"));
    data.map_or(0, |data| {
        let kb: u64 = data.trim().trim_end_matches(" kB").parse().unwrap();
        kb * 1024
    })
}

pub fn set_limit(pid: u32, soft: u64) {
    try_limit(pid, soft).unwrap();
}

fn try_limit(pid: u32, soft: u64) -> std::io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: libc::RLIM_INFINITY,
    };
    let old = std::ptr::null_mut();
    // SAFETY: the limit is a live value; the old one is not asked for.
    let code = unsafe { libc::prlimit(pid as i32, libc::RLIMIT_DATA, &limit, old) };
    match code {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the word is live; no time is given.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, forever) };
}

fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is a live value.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
