//! Reads the wall as this process sees it: its soft limit, and how much memory it holds.

use crate::page::LIMIT_UNIT;
use crate::{statm, sys};

/// A soft `RLIMIT_DATA` and what it may be raised to.
#[derive(Clone, Copy)]
pub struct Limit {
    pub soft: u64,
    hard: u64,
}

impl Limit {
    /// None without a wall: the limit is infinite.
    pub fn read() -> Option<Self> {
        Self::read_any().filter(|limit| limit.soft != u64::MAX)
    }

    /// The limit, finite or not. None when the kernel does not say.
    pub fn read_any() -> Option<Self> {
        let sys::Rlimit { soft, hard } = sys::data_limit()?;
        Some(Self { soft, hard })
    }

    /// The most it may be raised to, `ceiling` included.
    pub fn highest(self, ceiling: u64) -> u64 {
        self.hard.min(ceiling).max(self.soft)
    }

    /// Whether so many bytes more are beyond a limit of the user's own, on data or on address space: `ulimit -d` and
    /// `ulimit -v`.
    pub fn is_users(self, bytes: u64, ceiling: u64) -> bool {
        let is_beyond = |limit: u64, held: fn() -> Option<u64>| {
            limit != u64::MAX && held().is_some_and(|held| held.saturating_add(bytes) > limit)
        };
        is_beyond(ceiling.min(self.hard), data_bytes)
            || is_beyond(sys::address_space_limit().unwrap_or(u64::MAX), || {
                bytes_of(statm::all_pages)
            })
    }

    /// The soft limit after raising by `bytes`; None when it stands at the hard one.
    pub fn raised(self, bytes: u64) -> Option<u64> {
        let soft = rounded(self.soft.saturating_add(bytes)).min(self.hard);
        (soft > self.soft).then_some(soft)
    }

    pub fn move_to(self, soft: u64) -> bool {
        sys::set_data_limit(sys::Rlimit {
            soft,
            hard: self.hard,
        })
    }

    pub fn lift(self) -> bool {
        self.soft < self.hard && self.move_to(self.hard)
    }
}

/// The next limit that may be set.
pub fn rounded(soft: u64) -> u64 {
    soft.checked_next_multiple_of(LIMIT_UNIT)
        .unwrap_or(u64::MAX)
}

/// What the kernel counts against the limit, at most the main stack too high.
pub fn data_bytes() -> Option<u64> {
    bytes_of(statm::data_pages)
}

fn bytes_of(pages: fn(&[u8]) -> Option<u64>) -> Option<u64> {
    let file = sys::File::read_only(c"/proc/self/statm")?;
    let pages = pages(file.read(&mut [0; 160]))?;
    pages.checked_mul(sys::page_bytes())
}
