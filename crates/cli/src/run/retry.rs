//! Starting again after a run was ended: as a new run, in our place.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replaces this process by one that runs the command again and goes on from a save. Returns only
/// when it cannot be done, and says why.
pub fn start_again(left: u32, save: &str, mask: libc::sigset_t) -> String {
    // SAFETY: a plain call on a set that lives here.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut()) };
    let ours = std::env::current_exe();
    let error = match ours {
        Ok(ours) => Command::new(ours)
            .args(with_retries(std::env::args_os().skip(1), left))
            .env("ANTIFREEZE_RESUME", save)
            .exec(),
        Err(error) => error,
    };
    format!("starting again: {error}")
}

/// Our own arguments, with so many retries left. The flag that comes last counts.
fn with_retries(arguments: impl Iterator<Item = OsString>, left: u32) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.collect();
    let command = arguments.iter().position(|argument| argument == "--");
    let flag = OsString::from(format!("--retries={left}"));
    arguments.insert(command.unwrap_or(arguments.len()), flag);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_goes_before_the_command_and_after_what_was_typed() {
        let typed = ["run", "--retries", "3", "--", "sh", "-c", "--", "x"];
        let again = with_retries(typed.iter().map(OsString::from), 2);
        let expected = [
            "run",
            "--retries",
            "3",
            "--retries=2",
            "--",
            "sh",
            "-c",
            "--",
            "x",
        ];
        assert_eq!(again, expected.map(OsString::from));
    }
}
