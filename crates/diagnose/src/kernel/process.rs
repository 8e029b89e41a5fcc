//! Parses lines of the kernel about a process that crashed.

use super::incident::Kind;
use super::scan;

/// Parses a line about a crash.
pub fn parse(text: &str) -> Option<Kind> {
    segfault(text).or_else(|| trap(text))
}

/// `python3[4242]: segfault at 0 ip … sp … error 4 in libtorch.so[7f…+1000]`.
fn segfault(text: &str) -> Option<Kind> {
    let (who, rest) = text.split_once(": segfault at ")?;
    let (name, pid) = scan::named_pid(who)?;
    Some(Kind::Segfault {
        name: name.into(),
        pid,
        library: library(rest),
    })
}

/// `traps: python3[4242] trap invalid opcode ip:… sp:… error:0 in libmkl.so[7f…+1000]`.
fn trap(text: &str) -> Option<Kind> {
    let (said, rest) = text.strip_prefix("traps: ")?.split_once(" ip:")?;
    // The name may hold spaces; the process number is the last one in brackets.
    let (who, what) = said.split_at_checked(said.rfind("] ")? + 1)?;
    let (name, pid) = scan::named_pid(who)?;
    let what = what.trim();
    Some(Kind::Trap {
        name: name.into(),
        pid,
        what: what.strip_prefix("trap ").unwrap_or(what).into(),
        library: library(rest),
    })
}

/// The mapped file that holds the failing instruction.
fn library(text: &str) -> Option<String> {
    let (_, place) = text.split_once(" in ")?;
    let (file, _) = place.rsplit_once('[')?;
    (!file.is_empty()).then(|| file.into())
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use antifreeze_sense::Pid;

    #[test]
    fn programs_that_fall() {
        let segfault = |name: &str, library: Option<&str>| Kind::Segfault {
            name: name.into(),
            pid: Pid(42),
            library: library.map(Into::into),
        };
        let place = "segfault at 0 ip 000000000000002a sp 00007ffc00000000 error 4";
        tells(
            &format!(
                "python3[42]: {place} in libmade_up.so.1[7f0000000000+1000] likely on CPU 3 (core 3, socket 0)"
            ),
            segfault("python3", Some("libmade_up.so.1")),
        );
        tells(
            &format!("two words[42]: {place}"),
            segfault("two words", None),
        );
        tells_nothing(&format!("python3[4x2]: {place}"));
        tells(
            "traps: pt_main_thread[42] trap invalid opcode ip:7f00 sp:7f01 error:0 in libmade_up.so[7f00+10]",
            Kind::Trap {
                name: text("pt_main_thread"),
                pid: Pid(42),
                what: text("invalid opcode"),
                library: Some(text("libmade_up.so")),
            },
        );
        tells(
            "traps: a] b[42] general protection fault ip:7f00 sp:7f01 error:0",
            Kind::Trap {
                name: text("a] b"),
                pid: Pid(42),
                what: text("general protection fault"),
                library: None,
            },
        );
        tells_nothing("traps: 5 callbacks suppressed");
    }
}
