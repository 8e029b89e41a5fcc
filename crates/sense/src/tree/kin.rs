//! Who stands around the tree: the reapers, whose children belong to it, and those who
//! never belong to it.

use super::procfs::Proc;
use super::table::Identity;
use crate::Pid;

/// The guard, the front, and one front that took over from another.
const REAPERS: usize = 4;
/// Helpers are few, and restarted ones take the place of the oldest.
const OUTSIDERS: usize = 64;

#[derive(Default)]
pub struct Kin {
    reapers: Ring<REAPERS>,
    outsiders: Ring<OUTSIDERS>,
}

impl Kin {
    pub fn add_reaper(&mut self, proc: &Proc, pid: Pid) -> rustix::io::Result<()> {
        self.reapers.add(Identity::of(proc, pid)?);
        Ok(())
    }

    pub fn exclude(&mut self, proc: &Proc, pid: Pid) -> rustix::io::Result<Identity> {
        let outsider = Identity::of(proc, pid)?;
        self.outsiders.add(outsider);
        Ok(outsider)
    }

    pub fn reaper(&self, pid: Pid) -> Option<Identity> {
        self.reapers().find(|reaper| reaper.pid == pid)
    }

    pub fn reapers(&self) -> impl Iterator<Item = Identity> {
        self.reapers.iter()
    }

    /// A process that may have a reaper for its parent and still is none of the tree.
    pub fn is_outside(&self, identity: Identity) -> bool {
        let mut outside = self.outsiders.iter().chain(self.reapers.iter());
        outside.any(|known| known == identity)
    }
}

/// The last `N` that were named.
struct Ring<const N: usize> {
    list: [Option<Identity>; N],
    next: usize,
}

impl<const N: usize> Default for Ring<N> {
    fn default() -> Self {
        Ring {
            list: [None; N],
            next: 0,
        }
    }
}

impl<const N: usize> Ring<N> {
    fn add(&mut self, identity: Identity) {
        if self.iter().any(|known| known == identity) {
            return;
        }
        if let Some(place) = self.list.get_mut(self.next) {
            *place = Some(identity);
        }
        self.next = (self.next + 1) % N;
    }

    fn iter(&self) -> impl Iterator<Item = Identity> {
        self.list.iter().flatten().copied()
    }
}
