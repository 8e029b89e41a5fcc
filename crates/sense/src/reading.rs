//! A value that was read, or the reason why there is none. A missing value is never 0.

/// What a sensor returned: a value, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// The value that was read.
    Value(T),
    /// There is no value, for this reason.
    Unavailable(Reason),
}

/// Why there is no value. The numbers are stored in records: they may be added to, and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// This kernel or machine does not offer it.
    Absent = 0,
    /// It exists, and we lack the permission to read it.
    Denied = 1,
    /// The process ended while it was being read.
    Gone = 2,
    /// It was read and could not be parsed.
    Malformed = 3,
    /// It is sampled at a slower pace, and there is no first value yet.
    NotYet = 4,
    /// The sensor has not answered for some time (a hung mount, a hung driver).
    Stale = 5,
    /// The record was written before this value existed.
    NotRecorded = 6,
    /// The kernel returned another error.
    Failed = 7,
}

impl Reason {
    /// Every reason, at the index of its number.
    pub const ALL: [Reason; 8] = [
        Reason::Absent,
        Reason::Denied,
        Reason::Gone,
        Reason::Malformed,
        Reason::NotYet,
        Reason::Stale,
        Reason::NotRecorded,
        Reason::Failed,
    ];

    /// The reason with this number; [`Reason::NotRecorded`] for one that only a newer writer knows.
    pub fn from_code(code: u8) -> Reason {
        Reason::ALL
            .get(usize::from(code))
            .copied()
            .unwrap_or(Reason::NotRecorded)
    }

    /// The reason in plain words, to follow "no value: ".
    pub fn describe(self) -> &'static str {
        match self {
            Reason::Absent => "not offered by this machine",
            Reason::Denied => "no permission to read it",
            Reason::Gone => "the process had ended",
            Reason::Malformed => "not understood",
            Reason::NotYet => "not sampled yet",
            Reason::Stale => "the sensor does not answer",
            Reason::NotRecorded => "not recorded",
            Reason::Failed => "the kernel refused",
        }
    }
}

impl<T: Copy> Reading<T> {
    /// The value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Reading::Value(value) => Some(value),
            Reading::Unavailable(_) => None,
        }
    }

    /// Applies `f` to the value and keeps the reason.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Reading::Value(value) => Reading::Value(f(value)),
            Reading::Unavailable(reason) => Reading::Unavailable(reason),
        }
    }
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading::Unavailable(Reason::NotYet)
    }
}

impl From<rustix::io::Errno> for Reason {
    fn from(errno: rustix::io::Errno) -> Self {
        use rustix::io::Errno;
        match errno {
            Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NODATA => Reason::Absent,
            Errno::ACCESS | Errno::PERM => Reason::Denied,
            Errno::SRCH => Reason::Gone,
            _ => Reason::Failed,
        }
    }
}

impl<T> From<rustix::io::Errno> for Reading<T> {
    fn from(errno: rustix::io::Errno) -> Self {
        Reading::Unavailable(errno.into())
    }
}
