//! What the NVIDIA driver's error codes (Xid) mean for training, and what to do first. The numbers are NVIDIA's; the texts
//! are ours.

/// Where the fault is, as far as the code alone shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// In the program that ran on the GPU.
    Program,
    /// In a state of the GPU that only a reset ends.
    Reset,
    /// In the GPU or its link, if it happens again.
    Hardware,
    /// The GPU is lost until the next reboot.
    Lost,
    /// Elsewhere: it is the consequence of an earlier fault.
    Consequence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xid {
    /// The code.
    pub code: u32,
    /// What it means.
    pub meaning: &'static str,
    /// What to do first.
    pub remedy: &'static str,
    /// Where the fault is.
    pub class: Class,
}

/// What is known about a code.
pub fn xid(code: u32) -> Option<&'static Xid> {
    let index = KNOWN.binary_search_by_key(&code, |xid| xid.code).ok()?;
    KNOWN.get(index)
}

const SUSPECT_CODE: &str =
    "restart the program; if it happens again, look for an index out of range or a custom kernel";
const RESET: &str = "reset the GPU (nvidia-smi --gpu-reset) or reboot";
const RESET_OR_REPLACE: &str =
    "reset the GPU (nvidia-smi --gpu-reset) or reboot; if it happens again, have the GPU replaced";
const RESET_AND_UPDATE: &str = "reset the GPU (nvidia-smi --gpu-reset) or reboot; if it happens again, try another driver version";

/// In order of their codes.
const KNOWN: [Xid; 21] = [
    known(
        13,
        "the program caused an exception in the GPU's engine",
        SUSPECT_CODE,
        Class::Program,
    ),
    known(
        31,
        "the program accessed an invalid GPU address",
        SUSPECT_CODE,
        Class::Program,
    ),
    known(
        43,
        "the GPU stopped working for this program",
        "look for an error of the program itself, or an Xid before this one",
        Class::Consequence,
    ),
    known(
        45,
        "the driver removed a program's work after an earlier error",
        "look for the Xid before this one",
        Class::Consequence,
    ),
    known(
        48,
        "the GPU's memory had an error that could not be corrected",
        RESET_OR_REPLACE,
        Class::Hardware,
    ),
    known(
        61,
        "the GPU's inner controller stopped at a breakpoint",
        RESET_AND_UPDATE,
        Class::Reset,
    ),
    known(
        62,
        "the GPU's inner controller halted",
        RESET_AND_UPDATE,
        Class::Reset,
    ),
    known(
        63,
        "the GPU retired a bad row of its memory",
        "reset the GPU when no run needs it, so that the spare row is used",
        Class::Reset,
    ),
    known(
        64,
        "the GPU could not retire a bad row of its memory",
        RESET_OR_REPLACE,
        Class::Hardware,
    ),
    known(
        69,
        "the program sent the GPU an invalid command",
        SUSPECT_CODE,
        Class::Program,
    ),
    known(
        74,
        "the link between GPUs (NVLink) had an error",
        "check the bridge or cable between the GPUs, then reset them",
        Class::Hardware,
    ),
    known(
        79,
        "the GPU has fallen off the bus: the machine cannot reach it",
        "reboot; then check power supply and cables, heat, and how the card sits in its slot",
        Class::Lost,
    ),
    known(
        92,
        "the GPU's memory corrects errors unusually often",
        "watch it; if it continues, have the GPU replaced",
        Class::Hardware,
    ),
    known(
        94,
        "the GPU's memory had an error that hit only this program",
        "restart the program from its last checkpoint; reset the GPU when no run needs it",
        Class::Program,
    ),
    known(
        95,
        "the GPU's memory had an error that may have hit every program on it",
        RESET_OR_REPLACE,
        Class::Reset,
    ),
    known(
        109,
        "the GPU did not switch between programs in time",
        RESET_AND_UPDATE,
        Class::Reset,
    ),
    known(
        119,
        "the GPU's own system processor did not answer the driver",
        RESET_AND_UPDATE,
        Class::Reset,
    ),
    known(
        120,
        "the GPU's own system processor failed",
        RESET_AND_UPDATE,
        Class::Reset,
    ),
    known(
        140,
        "the GPU's memory had an error that it did not recover from",
        RESET_OR_REPLACE,
        Class::Reset,
    ),
    known(143, "the GPU could not be started", RESET, Class::Reset),
    known(
        154,
        "the driver says what the GPU needs now",
        "do what the text of this message names",
        Class::Consequence,
    ),
];

const fn known(code: u32, meaning: &'static str, remedy: &'static str, class: Class) -> Xid {
    Xid {
        code,
        meaning,
        remedy,
        class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_and_says_something() {
        assert!(KNOWN.is_sorted_by_key(|known| known.code));
        for known in &KNOWN {
            assert_eq!(xid(known.code), Some(known));
            assert!(!known.meaning.is_empty() && !known.remedy.is_empty());
        }
        for code in [0, 1, 14, 80, u32::MAX] {
            assert_eq!(xid(code), None);
        }
    }

    #[test]
    fn the_class_tells_the_program_from_the_machine() {
        for (code, class) in [
            (13, Class::Program),
            (31, Class::Program),
            (45, Class::Consequence),
            (48, Class::Hardware),
            (79, Class::Lost),
            (119, Class::Reset),
        ] {
            assert_eq!(xid(code).unwrap().class, class);
        }
    }
}
