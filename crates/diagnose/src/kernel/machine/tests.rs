//! Lines about the machine, and lines that only look like them.

use super::super::testing::*;
use super::*;

#[test]
fn tasks_and_processors_that_hang() {
    for waits in ["blocked for more than", "blocked in I/O wait for more than"] {
        tells(
            &format!("INFO: task kworker/0:1:42 {waits} 122 seconds."),
            Kind::HungTask {
                name: text("kworker/0:1"),
                pid: Pid(42),
                seconds: 122,
            },
        );
    }
    for lockup in [
        "watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [python3:42]",
        "NMI watchdog: Watchdog detected hard LOCKUP on cpu 3",
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    ] {
        tells(lockup, Kind::Lockup);
    }
    tells_nothing("INFO: task python3:42 is made up");
    tells_nothing("NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.");
    tells_nothing("rcu: INFO: rcu_made up");
}

#[test]
fn hardware_that_reports_a_fault() {
    for (said, severity) in [
        (
            "mce: [Hardware Error]: Machine check events logged",
            Severity::Unknown,
        ),
        (
            "{1}[Hardware Error]: event severity: corrected",
            Severity::Corrected,
        ),
        (
            "{1}[Hardware Error]: event severity: recoverable",
            Severity::NonFatal,
        ),
        (
            "{1}[Hardware Error]: event severity: fatal",
            Severity::Fatal,
        ),
        (
            "[Hardware Error]: Corrected error, no action required.",
            Severity::Corrected,
        ),
        (
            "[Hardware Error]: Deferred error, no action required.",
            Severity::Corrected,
        ),
        (
            "[Hardware Error]: Uncorrected, software restartable error.",
            Severity::NonFatal,
        ),
        ("[Hardware Error]: System Fatal error.", Severity::Fatal),
        (
            "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 5: bea0000000000108",
            Severity::Fatal,
        ),
        (
            "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 5: 9c20000000000108",
            Severity::Corrected,
        ),
        (
            "mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 5",
            Severity::Fatal,
        ),
    ] {
        tells(said, Kind::MachineCheck { severity });
    }
    tells_nothing("mce: CPU supports 7 MCE banks");
    tells_nothing("x[1]: y [Hardware Error]: made up");
    for (word, corrected) in [("CE", true), ("UE", false)] {
        tells(
            &format!("EDAC MC1: 262 {word} memory read error on DIMM_A1 (channel:0)"),
            Kind::MemoryError {
                corrected,
                count: 262,
            },
        );
    }
    tells_nothing("EDAC MC0: Giving out device to module made_up");
    tells_nothing("EDAC MC: Ver: 3.0.0");
}

#[test]
fn heat_and_power() {
    for hot in [
        "mce: CPU12: Package temperature above threshold, cpu clock throttled (total events = 7)",
        "CPU12: Core temperature is above threshold, cpu clock is throttled",
    ] {
        tells(hot, Kind::Throttled { cpu: 12 });
    }
    tells_nothing("mce: CPU12: Core temperature/speed normal");
    tells(
        "thermal thermal_zone0: acpitz: critical temperature reached, shutting down",
        Kind::Overheated,
    );
    tells_nothing("thermal LNXTHERM:00: registered as thermal_zone0");
    tells(
        "CPU3: Package power limit notification (total events = 7)",
        Kind::PowerLimit { cpu: 3 },
    );
    tells_nothing("CPU3: Package power limit normal");
}

#[test]
fn disks_and_file_systems() {
    for (said, device) in [
        (
            "I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0",
            "sda",
        ),
        (
            "blk_update_request: critical medium error, dev sdb, sector 1",
            "sdb",
        ),
        (
            "Buffer I/O error on dev sda1, logical block 0, async page read",
            "sda1",
        ),
        ("nvme nvme0: I/O 7 QID 2 timeout, reset controller", "nvme0"),
        (
            "nvme nvme1: controller is down; will reset: CSTS=0xffffffff",
            "nvme1",
        ),
        ("EXT4-fs error (device sda1): made_up:12: inode #3", "sda1"),
        (
            "XFS (dm-0): metadata I/O error in \"made_up\" at daddr 0x1",
            "dm-0",
        ),
        (
            "BTRFS error (device sda1 state EA): parent transid verify failed",
            "sda1",
        ),
    ] {
        let device = device.into();
        tells(said, Kind::DiskError { device });
    }
    for near in [
        "nvme nvme0: Shutdown timeout set to 10 seconds",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode",
        "XFS (dm-0): Mounting V5 Filesystem",
        "made up error, dev sda, sector 1",
    ] {
        tells_nothing(near);
    }
    for said in [
        "EXT4-fs (sda1): Remounting filesystem read-only",
        "BTRFS info (device sda1 state EA): forced readonly",
    ] {
        let device = Some(text("sda1"));
        tells(said, Kind::ReadOnlyRemount { device });
    }
    tells_nothing("EXT4-fs (sda1): re-mounted. Opts: (null)");
}

#[test]
fn the_bus() {
    let (port, card) = ("0000:00:1c.0", "0000:01:00.0");
    for (said, severity, device) in [
        (
            "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
            Severity::Corrected,
            port,
        ),
        (
            "nvidia 0000:01:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=x",
            Severity::NonFatal,
            card,
        ),
        (
            "pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0",
            Severity::Fatal,
            port,
        ),
        (
            "pcieport 0000:00:1c.0: AER: Multiple Correctable error message received from 0000:01:00.0",
            Severity::Corrected,
            port,
        ),
    ] {
        let device = Some(device.into());
        tells(said, Kind::PcieError { severity, device });
    }
    tells_nothing("pcieport 0000:00:1c.0: AER: enabled with IRQ 120");
    tells_nothing("pcieport 0000:00:1c.0: made up error received: x");
}

#[test]
fn the_kernels_own_death_and_birth() {
    let why = text("made up");
    tells("Kernel panic - not syncing: made up", Kind::Panic { why });
    tells_nothing("---[ end Kernel panic - not syncing: made up ]---");
    for oops in [
        "BUG: unable to handle page fault for address: 0000000000001000",
        "Oops: 0002 [#1] PREEMPT SMP",
        "general protection fault, probably for non-canonical address 0x1: 0000 [#1] SMP",
    ] {
        tells(oops, Kind::Oops { why: oops.into() });
    }
    tells_nothing("BUG: made up");
    tells_nothing("watchdog: general protection fault, no");
    let version = text("6.12.1-made-up");
    tells(
        "Linux version 6.12.1-made-up (someone@box) #1 SMP",
        Kind::Boot { version },
    );
    tells_nothing("made up: Linux version 6.12.1");
}

#[test]
fn marks_of_an_orderly_end() {
    tells("reboot: Power down", Kind::Shutdown);
    tells("reboot: Restarting system", Kind::Shutdown);
    tells_nothing("reboot: made up");
    for (program, said) in [
        ("systemd-shutdown", "Syncing filesystems and block devices."),
        (
            "systemd",
            "Reached target poweroff.target - System Power Off.",
        ),
        ("systemd", "Reached target Power-Off."),
        ("systemd-logind", "System is rebooting."),
        (
            "systemd-journald",
            "Received SIGTERM from PID 1 (systemd-shutdow).",
        ),
    ] {
        program_tells(program, said, Kind::Shutdown);
    }
    // A person who logs out.
    assert_eq!(
        kind("Nov 16 12:00:00 box systemd[99]: Reached target Shutdown."),
        None
    );
    assert_eq!(
        kind("Nov 16 12:00:00 box systemd[1]: Reached target Swap."),
        None
    );
}
