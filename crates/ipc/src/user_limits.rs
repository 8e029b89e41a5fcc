//! UserLimits of the user that front and guard must not run into with work of their own. The command keeps them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Open files, the size of files, CPU time, and the stack of the first thread.
pub const RAISED: [Resource; 4] = [
    Resource::Nofile,
    Resource::Fsize,
    Resource::Cpu,
    Resource::Stack,
];

/// Descriptors that a guard may need: each process that it follows keeps one open.
const ENOUGH_FILES: u64 = 4096;
/// What a thread of Rust has, four times.
const ENOUGH_STACK: u64 = 8 << 20;

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

/// The kernel asks for this limit when the stack grows, so it holds at once. Without a limit the next program would have
/// another layout of its memory, so it is never taken away.
fn raise_stack(there: Rlimit) {
    let Some(current) = there.current.filter(|bytes| *bytes < ENOUGH_STACK) else {
        return;
    };
    let maximum = there.maximum.map(|bytes| bytes.max(ENOUGH_STACK));
    let enough = Rlimit {
        current: Some(ENOUGH_STACK),
        maximum,
    };
    if setrlimit(Resource::Stack, enough).is_err() {
        let allowed = Rlimit {
            current: there.maximum.or(Some(current)),
            maximum: there.maximum,
        };
        let _ = setrlimit(Resource::Stack, allowed);
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
        if resource == Resource::Stack {
            raise_stack(*there);
            continue;
        }
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
