//! The processes around the tree: reapers, whose children belong to it, and outsiders, which never belong to it.

use super::procfs::{Proc, read_content};
use super::table::Identity;
use crate::Pid;
use core::mem::MaybeUninit;
use rustix::fd::OwnedFd;

/// Reapers that are remembered: the guard, the front, and fronts that took over from another.
const MAX_REAPERS: usize = 4;
/// Outsiders that are remembered. Helpers are few, and restarted ones replace the oldest.
const MAX_OUTSIDERS: usize = 64;

/// The processes around the tree.
#[derive(Default)]
pub struct Boundary {
    reapers: RecentList<Identity, MAX_REAPERS>,
    outsiders: RecentList<Outsider, MAX_OUTSIDERS>,
}

struct Outsider {
    identity: Identity,
    /// Its status file, kept open: one read shows whether the number still is its own.
    status: Option<OwnedFd>,
}

impl Outsider {
    fn open(proc: &Proc, pid: Pid) -> rustix::io::Result<Outsider> {
        let status = proc.open_file(pid, b"/status").ok();
        let identity = Identity::read(proc, pid)?;
        let mut outsider = Outsider { identity, status };
        // The file was opened by number before the start time was read: both are of one process if that is still alive.
        outsider.status = outsider.status.take_if(|file| is_alive(file));
        Ok(outsider)
    }
}

fn is_alive(status: &OwnedFd) -> bool {
    read_content(status, &mut [MaybeUninit::uninit(); 1]).is_ok()
}

impl Boundary {
    pub fn add_reaper(&mut self, proc: &Proc, pid: Pid) -> rustix::io::Result<()> {
        let reaper = Identity::read(proc, pid)?;
        self.reapers.add(reaper, |known| *known == reaper);
        Ok(())
    }

    pub fn exclude(&mut self, proc: &Proc, pid: Pid) -> rustix::io::Result<Identity> {
        let outsider = Outsider::open(proc, pid)?;
        let identity = outsider.identity;
        self.outsiders
            .add(outsider, |known| known.identity == identity);
        Ok(identity)
    }

    pub fn reaper(&self, pid: Pid) -> Option<Identity> {
        self.reapers().find(|reaper| reaper.pid == pid)
    }

    pub fn reapers(&self) -> impl Iterator<Item = Identity> {
        self.reapers.iter().copied()
    }

    /// Whether one read at most shows that it is a reaper or an outsider. False where more reads are needed.
    pub fn is_known(&self, pid: Pid) -> bool {
        let is_it = |known: &Outsider| {
            known.identity.pid == pid && known.status.as_ref().is_some_and(is_alive)
        };
        self.reaper(pid).is_some() || self.outsiders.iter().any(is_it)
    }

    /// Closes the files that are only kept to save time.
    pub fn close_files(&mut self) {
        for outsider in self.outsiders.list.iter_mut().flatten() {
            outsider.status = None;
        }
    }

    /// Whether it does not belong to the tree even if its parent is a reaper.
    pub fn is_outside(&self, identity: Identity) -> bool {
        let outsiders = self.outsiders.iter().map(|known| known.identity);
        outsiders
            .chain(self.reapers())
            .any(|known| known == identity)
    }
}

/// A list of the last `N` entries.
struct RecentList<T, const N: usize> {
    list: [Option<T>; N],
    next: usize,
}

impl<T, const N: usize> Default for RecentList<T, N> {
    fn default() -> Self {
        RecentList {
            list: [const { None }; N],
            next: 0,
        }
    }
}

impl<T, const N: usize> RecentList<T, N> {
    fn add(&mut self, named: T, is_same: impl Fn(&T) -> bool) {
        if self.iter().any(is_same) {
            return;
        }
        if let Some(place) = self.list.get_mut(self.next) {
            *place = Some(named);
        }
        self.next = (self.next + 1) % N;
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.list.iter().flatten()
    }
}
