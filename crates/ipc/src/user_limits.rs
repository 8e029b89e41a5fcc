//! Raises resource limits of the user that front and guard could reach by work of their own. The command keeps the
//! original ones.

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
/// The usual limit of the stack.
const ENOUGH_STACK: u64 = 8 << 20;

/// The earlier values of [`RAISED`].
#[derive(Clone)]
pub struct UserLimits([Rlimit; RAISED.len()]);

impl UserLimits {
    /// Restores them, for a process that becomes a program of the user.
    pub fn restore(&self) {
        for (resource, limit) in RAISED.into_iter().zip(&self.0) {
            let _ = setrlimit(resource, *limit);
        }
    }
}

/// Raises the limit of the stack, and returns it as it was before. The kernel reads it when the stack grows, so it holds
/// at once. It is never taken away altogether: without a limit the next program would have another layout of its memory.
pub fn raise_stack() -> Rlimit {
    let before = getrlimit(Resource::Stack);
    if before.current.is_none_or(|bytes| bytes >= ENOUGH_STACK) {
        return before;
    }
    let enough = Rlimit {
        current: Some(ENOUGH_STACK),
        maximum: before.maximum.map(|bytes| bytes.max(ENOUGH_STACK)),
    };
    if setrlimit(Resource::Stack, enough).is_err() {
        let allowed = Rlimit {
            current: before.maximum,
            maximum: before.maximum,
        };
        let _ = setrlimit(Resource::Stack, allowed);
    }
    before
}

/// Restores the limit of the stack.
pub fn restore_stack(before: Rlimit) {
    let _ = setrlimit(Resource::Stack, before);
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
            raise_stack();
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
