//! UserLimits of the user that front and guard must not run into with work of their own. The command keeps them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files, the size of files, and CPU time.
pub const RAISED: [Resource; 3] = [Resource::Nofile, Resource::Fsize, Resource::Cpu];

/// Descriptors that a guard may need: each process that it follows keeps one open.
const ENOUGH_FILES: u64 = 4096;

/// [`RAISED`] as they were before.
#[derive(Clone)]
pub struct UserLimits([Rlimit; RAISED.len()]);

impl UserLimits {
    /// Puts them back, for a process that becomes a program of the user's.
    pub fn restore(&self) {
        for (resource, limit) in RAISED.into_iter().zip(&self.0) {
            let _ = setrlimit(resource, *limit);
        }
    }
}

/// Raises each of [`RAISED`] as far as this process may: root also beyond the hard limit.
pub fn raise() -> UserLimits {
    let before = UserLimits(RAISED.map(getrlimit));
    for (resource, there) in RAISED.into_iter().zip(&before.0) {
        // None: no limit.
        let wanted = match resource {
            Resource::Nofile => there.maximum.map(|files| files.max(ENOUGH_FILES)),
            _ => None,
        };
        let all = Rlimit {
            current: wanted,
            maximum: wanted,
        };
        if setrlimit(resource, all).is_err() {
            let allowed = Rlimit {
                current: there.maximum,
                maximum: there.maximum,
            };
            let _ = setrlimit(resource, allowed);
        }
    }
    before
}
