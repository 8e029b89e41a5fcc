//! Parses lines of the kernel about the machine: CPUs, memory, heat, disks, the bus, and the kernel's own end and start.

use super::incident::{Kind, Severity};
use super::scan;
use antifreeze_sense::Pid;

/// Parses a line about the machine.
pub fn parse(text: &str) -> Option<Kind> {
    boot_and_end(text)
        .or_else(|| stuck(text))
        .or_else(|| memory_error(text))
        .or_else(|| slowed(text))
        .or_else(|| machine_check(text))
        .or_else(|| disk(text))
        .or_else(|| bus(text))
}

fn boot_and_end(text: &str) -> Option<Kind> {
    if let Some(version) = text.strip_prefix("Linux version ") {
        let version = version.split(' ').next()?.into();
        return Some(Kind::Boot { version });
    }
    if let Some(why) = text.strip_prefix("Kernel panic - not syncing: ") {
        return Some(Kind::Panic { why: why.into() });
    }
    const GOING_DOWN: [&str; 4] = [
        "reboot: Power down",
        "reboot: Restarting system",
        "reboot: System halted",
        // The kernel truncates the name.
        "systemd-shutdow: ",
    ];
    if starts_with_one_of(text, &GOING_DOWN) {
        return Some(Kind::Shutdown);
    }
    const OOPS: [&str; 9] = [
        "BUG: unable to handle ",
        "BUG: kernel NULL pointer dereference",
        "BUG: Bad page ",
        "kernel BUG at ",
        "Oops: ",
        "Internal error: Oops",
        "general protection fault, ",
        "general protection fault: ",
        "Unable to handle kernel ",
    ];
    starts_with_one_of(text, &OOPS).then(|| Kind::Oops { why: text.into() })
}

/// Parses the lines of a clean shutdown.
pub fn parse_shutdown(program: &str, text: &str) -> Option<Kind> {
    let ordered = match program {
        "systemd-shutdown" | "systemd-shutdow" => true,
        "systemd" => {
            // "Shutdown" alone is also the end of a person's session.
            const TARGETS: [&str; 4] = ["Power-Off", "Power Off", "Reboot", "Halt"];
            text.strip_prefix("Reached target ")
                .is_some_and(|target| TARGETS.iter().any(|name| target.contains(name)))
        }
        "systemd-logind" => {
            const WORDS: [&str; 4] = [
                "System is powering down",
                "System is rebooting",
                "System is halting",
                "The system will ",
            ];
            starts_with_one_of(text, &WORDS)
        }
        "systemd-journald" => text.contains("from PID 1 (systemd-shutdow"),
        _ => false,
    };
    ordered.then_some(Kind::Shutdown)
}

fn stuck(text: &str) -> Option<Kind> {
    if let Some(rest) = text.strip_prefix("INFO: task ") {
        let (who, how) = rest.split_once(" blocked ")?;
        let (name, pid) = who.rsplit_once(':')?;
        return Some(Kind::HungTask {
            name: name.into(),
            pid: Pid(scan::number(pid)?.0),
            seconds: scan::number_after(how, "for more than ")?,
        });
    }
    let said = ["watchdog: ", "NMI watchdog: ", "rcu: "]
        .iter()
        .find_map(|mark| text.strip_prefix(mark))
        .unwrap_or(text);
    let stalled = said.strip_prefix("INFO: rcu_").is_some_and(|said| {
        said.contains("self-detected stall") || said.contains("detected stalls")
    });
    const LOCKUPS: [&str; 3] = [
        "BUG: soft lockup - CPU#",
        "BUG: workqueue lockup - ",
        "Watchdog detected hard LOCKUP",
    ];
    (stalled || starts_with_one_of(said, &LOCKUPS)).then_some(Kind::Lockup)
}

/// `EDAC MC0: 1 CE memory read error on …`.
fn memory_error(text: &str) -> Option<Kind> {
    let (_, rest) = text.strip_prefix("EDAC MC")?.split_once(": ")?;
    let (count, rest) = scan::number(rest)?;
    let corrected = match rest.trim_start().split(' ').next()? {
        "CE" => true,
        "UE" => false,
        _ => return None,
    };
    Some(Kind::MemoryError { corrected, count })
}

/// `mce: CPU2: Core temperature above threshold, cpu clock throttled (total events = 7)`.
fn slowed(text: &str) -> Option<Kind> {
    if text.contains("critical temperature reached") && text.contains("thermal") {
        return Some(Kind::Overheated);
    }
    let rest = text.strip_prefix("mce: ").unwrap_or(text);
    let (cpu, rest) = scan::number(rest.strip_prefix("CPU")?)?;
    let what = rest.strip_prefix(": ")?;
    let what = ["Core ", "Package "]
        .iter()
        .find_map(|part| what.strip_prefix(part))?;
    if what.starts_with("temperature ") && what.contains("above threshold") {
        return Some(Kind::Throttled { cpu });
    }
    let drew = what.starts_with("power limit notification");
    drew.then_some(Kind::PowerLimit { cpu })
}

/// `mce: [Hardware Error]: …`, and the firmware's `{1}[Hardware Error]: …`.
fn machine_check(text: &str) -> Option<Kind> {
    const MARK: &str = "[Hardware Error]: ";
    let (before, said) = text.split_once(MARK)?;
    let known = matches!(before, "" | "mce: " | "BERT: ");
    let numbered = before
        .strip_prefix('{')
        .and_then(|number| number.strip_suffix('}'));
    let known = known || numbered.is_some_and(|number| scan::pid(number).is_some());
    known.then(|| Kind::MachineCheck {
        severity: checked(said),
    })
}

/// The severity of a machine check: some lines have it in words, and one in the bits of the status:
/// `CPU 2: Machine Check: 0 Bank 5: bea0000000000108`.
fn checked(said: &str) -> Severity {
    const UNCORRECTED: u64 = 1 << 61;
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let status = said
        .split_once(": Machine Check")
        .and_then(|(_, rest)| rest.split_once(" Bank "))
        .and_then(|(_, rest)| rest.split_once(": "))
        .and_then(|(_, status)| u64::from_str_radix(status.get(..16)?, 16).ok());
    let said = said.strip_prefix("event severity: ").unwrap_or(said);
    match status {
        Some(status) if status & UNCORRECTED != 0 => Severity::Fatal,
        Some(_) => Severity::Corrected,
        None if has(&["Machine Check Exception", "Fatal", "fatal"]) => Severity::Fatal,
        None if has(&["Uncorrected", "uncorrected"]) || said.starts_with("recoverable") => {
            Severity::NonFatal
        }
        None if has(&["orrected error", "been corrected", "Deferred error"])
            || said.starts_with("corrected")
            || said.starts_with("info") =>
        {
            Severity::Corrected
        }
        None => Severity::Unknown,
    }
}

fn disk(text: &str) -> Option<Kind> {
    if text.contains("Remounting filesystem read-only") || text.contains(": forced readonly") {
        let device = file_system(text).map(Into::into);
        return Some(Kind::ReadOnlyRemount { device });
    }
    let device = failed_request(text)
        .or_else(|| failed_nvme(text))
        .or_else(|| damaged_file_system(text))?;
    Some(Kind::DiskError {
        device: device.into(),
    })
}

/// `I/O error, dev sda, sector 2048 …`, alone or after the name of a kernel function.
fn failed_request(text: &str) -> Option<&str> {
    const FUNCTIONS: [&str; 3] = ["blk_update_request: ", "print_req_error: ", "end_request: "];
    let said = FUNCTIONS
        .iter()
        .find_map(|name| text.strip_prefix(name))
        .unwrap_or(text);
    const BUFFER: [&str; 2] = ["Buffer I/O error on dev ", "Buffer I/O error on device "];
    if let Some(rest) = BUFFER.iter().find_map(|mark| said.strip_prefix(mark)) {
        return device(rest);
    }
    let (what, rest) = said.split_once(" error, dev ")?;
    (what == "I/O" || what.starts_with("critical ")).then(|| device(rest))?
}

/// `nvme nvme0: I/O 7 QID 2 timeout, reset controller`.
fn failed_nvme(text: &str) -> Option<&str> {
    let (device, what) = text.strip_prefix("nvme ")?.split_once(": ")?;
    let timeout = what.starts_with("I/O ") && what.contains(" timeout, ");
    let gone = what.starts_with("controller is down; ") || what.starts_with("Device not ready; ");
    (timeout || gone).then_some(device)
}

fn damaged_file_system(text: &str) -> Option<&str> {
    const SAY_ERROR: [&str; 3] = [
        "EXT4-fs error (device ",
        "BTRFS error (device ",
        "BTRFS critical (device ",
    ];
    const XFS: [&str; 3] = ["I/O error", "I/O Error", "Corruption"];
    let broken = starts_with_one_of(text, &SAY_ERROR)
        || text.starts_with("XFS (") && XFS.iter().any(|words| text.contains(words));
    broken.then(|| file_system(text))?
}

/// `EXT4-fs (sda1): …` or `BTRFS error (device sda1 state EA): …`.
fn file_system(text: &str) -> Option<&str> {
    let inside = scan::between(text, "(", ")")?;
    device(inside.strip_prefix("device ").unwrap_or(inside))
}

fn device(text: &str) -> Option<&str> {
    let name = text.split([',', ' ', ':']).next()?;
    (!name.is_empty()).then_some(name)
}

/// `pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=…`, and the line before it,
/// `pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0`.
fn bus(text: &str) -> Option<Kind> {
    let (who, what) = text.split_once(": ")?;
    let what = what.strip_prefix("AER: ").unwrap_or(what);
    let severity = match what.strip_prefix("PCIe Bus Error: severity=") {
        Some(rest) => rest.split(',').next()?,
        None => {
            let (severity, rest) = what.split_once(" error ")?;
            let received = rest.starts_with("received") || rest.starts_with("message received");
            text.contains(": AER: ")
                .then_some(severity)
                .filter(|_| received)?
        }
    };
    let address = who.rsplit(' ').next().filter(|word| word.contains(':'));
    Some(Kind::PcieError {
        severity: Severity::read(severity),
        device: address.map(Into::into),
    })
}

impl Severity {
    fn read(word: &str) -> Severity {
        let word = word.strip_prefix("Multiple ").unwrap_or(word);
        if word.contains("Non-Fatal") {
            Severity::NonFatal
        } else if word.contains("Fatal") {
            Severity::Fatal
        } else if word.starts_with("Correct") {
            Severity::Corrected
        } else {
            Severity::Unknown
        }
    }
}

fn starts_with_one_of(text: &str, beginnings: &[&str]) -> bool {
    beginnings
        .iter()
        .any(|beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests;
