//! Computes the exit status of `run` from how the command ended and from what happened to its output.

use super::inherited;
use rustix::io::Errno;

/// The exit status if output was lost and the command's own status does not show it: an input/output error,
/// `EX_IOERR` of sysexits(3).
const OUTPUT_LOST: u8 = 74;

/// The exit status of `run`, and the signal by which it ends if the command did so. `cut_off` is a signal that came
/// while output was waited for that the command would have written itself, and `loss` the reason why output did not
/// arrive.
pub fn exit_status(status: i32, cut_off: Option<i32>, loss: Option<Errno>) -> (u8, Option<i32>) {
    outcome(status, cut_off, loss, inherited::ignored_sigpipe() != 0)
}

fn outcome(
    status: i32,
    cut_off: Option<i32>,
    loss: Option<Errno>,
    ignores_pipe: bool,
) -> (u8, Option<i32>) {
    let killed = |signal: i32| (128 + signal as u8, Some(signal));
    let has_succeeded = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
    let has_died_of_pipe = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGPIPE;
    match (cut_off, loss) {
        (Some(signal), _) => killed(signal),
        // The command met our pipe where it would have met the limit.
        (None, Some(Errno::FBIG)) if has_succeeded || has_died_of_pipe => killed(libc::SIGXFSZ),
        (None, Some(Errno::PIPE)) if has_succeeded && !ignores_pipe => killed(libc::SIGPIPE),
        (None, Some(_)) if has_succeeded => (OUTPUT_LOST, None),
        _ if libc::WIFEXITED(status) => (libc::WEXITSTATUS(status) as u8, None),
        _ => killed(libc::WTERMSIG(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUCCESS: i32 = 0;
    const FAILURE: i32 = 3 << 8;

    #[test]
    fn the_status_is_the_commands_unless_it_hides_that_output_was_lost() {
        for (status, cut_off, loss, ignores_pipe, expected) in [
            (SUCCESS, None, None, false, 0),
            (FAILURE, None, None, false, 3),
            (libc::SIGTERM, None, None, false, 143),
            (SUCCESS, None, Some(Errno::NOSPC), false, 74),
            (FAILURE, None, Some(Errno::NOSPC), false, 3),
            (SUCCESS, None, Some(Errno::PIPE), false, 141),
            (SUCCESS, None, Some(Errno::PIPE), true, 74),
            (FAILURE, None, Some(Errno::PIPE), false, 3),
            (libc::SIGPIPE, None, Some(Errno::FBIG), false, 153),
            (libc::SIGTERM, None, Some(Errno::FBIG), false, 143),
            (SUCCESS, Some(libc::SIGTERM), None, false, 143),
        ] {
            let (status, signal) = outcome(status, cut_off, loss, ignores_pipe);
            assert_eq!(status, expected, "{cut_off:?} {loss:?}");
            let ended_by = Some(i32::from(status) - 128).filter(|number| *number > 0);
            assert_eq!(signal, ended_by, "{cut_off:?} {loss:?}");
        }
    }
}
