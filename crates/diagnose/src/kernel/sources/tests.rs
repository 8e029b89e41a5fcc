//! Made-up machines: a folder for the root, with the files that a machine would have.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const PANIC: &str = "Kernel panic - not syncing: made up";
const XID: &str = "NVRM: Xid (PCI:0000:01:00): 79, made up";
const BOOT: &str = "Linux version 6.12.1-made-up (someone@box) #1 SMP";

const PAST: Boot = Boot::Past([0xab; 16]);

struct Machine(TempDir);

impl Machine {
    fn new() -> Machine {
        Machine(TempDir::new().unwrap())
    }

    fn with(self, path: &str, text: &str) -> Machine {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A journalctl that says this about any boot. Another process writes it: were it open for
    /// writing here while another test starts a program, it could not be started.
    fn with_journal(self, script: &str) -> Machine {
        let machine = self.with("usr/bin/script", &format!("#!/bin/sh\n{script}\n"));
        let folder = machine.0.path().join("usr/bin");
        let script = folder.join("script");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let copied = Command::new("cp")
            .args([script, folder.join("journalctl")])
            .status();
        assert!(copied.unwrap().success());
        machine
    }

    fn booted(self, seconds: i64) -> Machine {
        self.with("proc/stat", &format!("cpu 1 2 3\nbtime {seconds}\n"))
    }

    fn aged(self, path: &str, seconds: u64) -> Machine {
        let file = File::options()
            .append(true)
            .open(self.0.path().join(path))
            .unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        file.set_modified(at).unwrap();
        self
    }

    fn log(&self, boot: Boot) -> Log {
        gather(boot, self.0.path())
    }
}

#[track_caller]
fn tells(log: &Log, texts: &[&str]) {
    let found: Vec<_> = log
        .incidents
        .iter()
        .map(|found| found.line.text.as_str())
        .collect();
    assert_eq!(found, texts);
}

#[test]
fn a_bare_machine_tells_why_it_tells_nothing() {
    for boot in [Boot::This, PAST] {
        let log = Machine::new().log(boot);
        assert!(log.incidents.is_empty() && log.read.is_empty());
        assert_eq!(log.missing.len(), 3, "{:?}", log.missing);
        assert_eq!(log.missing[0], "there is no journalctl here");
    }
}

#[test]
fn what_two_sources_tell_is_told_once() {
    let log = Machine::new()
        .with_journal(&format!(
            "echo '2020-01-01T00:00:00.000000+0000 box kernel: {XID}'"
        ))
        .with(
            "dev/kmsg",
            &format!(
                "2,1,1000000,-;{XID}\n SUBSYSTEM=pci\n2,2,2000000,-;{XID}\n0,3,3000000,-;{PANIC}\n"
            ),
        )
        .log(Boot::This);
    assert_eq!(log.read, ["the journal", "/dev/kmsg"]);
    assert!(log.missing.is_empty());
    tells(&log, &[XID, XID, PANIC]);
}

#[test]
fn the_journal_is_asked_about_the_right_boot() {
    let machine = Machine::new().with_journal(&format!(
        "case \"$*\" in *--boot=abababababababababababababababab*) echo '2020-01-01T00:00:00+0000 box kernel: {PANIC}';; *) echo '2020-01-01T00:00:00+0000 box kernel: {XID}';; esac"
    ));
    tells(&machine.log(Boot::This), &[XID]);
    tells(&machine.log(PAST), &[PANIC]);
}

#[test]
fn a_journal_that_fails_says_why() {
    let machine = Machine::new().with_journal("echo 'no persistent journal was found' >&2; exit 1");
    let why = &machine.log(PAST).missing[0];
    assert_eq!(why, "the journal says: no persistent journal was found");
    let machine = Machine::new().with_journal("exit 0");
    assert!(machine.log(Boot::This).missing[0].contains("group adm or systemd-journal"));
}

#[test]
fn a_closed_kernel_log_names_the_way_out() {
    let why = kmsg::read(Path::new("/nowhere")).unwrap_err();
    assert_eq!(why, "there is no /dev/kmsg here");
    let machine = Machine::new().with("dev/kmsg/is/a/folder", "");
    let why = machine.log(Boot::This).missing.pop().unwrap();
    assert!(why.starts_with("the kernel log may not be read: Is a directory"));
    assert!(why.ends_with("try sudo dmesg > FILE, then --kernel-log FILE"));
}

#[test]
fn a_log_file_is_parted_at_its_boots() {
    let log = format!("Nov 14 01:00:00 box kernel: {BOOT}\nNov 14 02:00:00 box kernel: {XID}\n");
    let newer = format!(
        "Nov 15 01:00:00 box kernel: {BOOT}\nNov 15 02:00:00 box kernel: {PANIC}\nNov 16 01:00:00 box kernel: {BOOT}\nNov 16 02:00:00 box kernel: {XID}\n"
    );
    let machine = Machine::new()
        .with("var/log/kern.log.1", &log)
        .with("var/log/kern.log", &newer);
    let this = machine.log(Boot::This);
    tells(&this, &[BOOT, XID]);
    assert_eq!(this.read, ["/var/log/kern.log"]);
    tells(&machine.log(PAST), &[BOOT, PANIC]);
    let machine = Machine::new().with("var/log/messages", &log);
    tells(&machine.log(PAST), &[]);
}

#[test]
fn a_log_file_that_is_no_longer_written_tells_nothing_of_this_boot() {
    let line = format!("2020-01-01T00:00:00+00:00 box kernel: {XID}\n");
    let machine = Machine::new()
        .with("var/log/kern.log", &line)
        .booted(1_700_000_000);
    tells(&machine.log(Boot::This), &[]);
}

#[test]
fn a_crash_that_the_firmware_kept_is_read_with_its_date() {
    let part =
        |text: &str| format!("Panic#1 Part1\n<2>[   40.000000] {XID}\n<0>[   50.000000] {text}\n");
    let machine = Machine::new()
        .with("sys/fs/pstore/dmesg-efi-1", &part(PANIC))
        .aged("sys/fs/pstore/dmesg-efi-1", 1_600_000_050)
        .with(
            "sys/fs/pstore/dmesg-efi-0",
            &part("Kernel panic - not syncing: long ago"),
        )
        .aged("sys/fs/pstore/dmesg-efi-0", 1_500_000_000)
        .booted(1_600_000_100);
    let log = machine.log(PAST);
    tells(&log, &[XID, PANIC]);
    assert_eq!(log.read, ["/sys/fs/pstore/dmesg-efi-1"]);
    let at = |index: usize| log.incidents[index].line.at.unwrap().as_second();
    assert_eq!((at(0), at(1)), (1_600_000_040, 1_600_000_050));
}

#[test]
fn of_crashes_that_were_moved_only_the_last_counts() {
    let machine = Machine::new()
        .with(
            "var/lib/systemd/pstore/17/001/dmesg-efi-17",
            &format!("<0>[ 1.000000] {PANIC}\n"),
        )
        .with(
            "var/lib/systemd/pstore/16/dmesg.txt",
            &format!("<0>[ 1.000000] {XID}\n"),
        )
        .with("var/lib/systemd/pstore/17/console-x", XID)
        .aged("var/lib/systemd/pstore/16/dmesg.txt", 1_500_000_000)
        .booted(1_600_000_000);
    tells(&machine.log(PAST), &[PANIC]);
    assert!(machine.log(Boot::This).incidents.is_empty());
}

#[test]
fn a_crash_that_was_put_together_is_not_read_twice() {
    let text = format!("<0>[ 1.000000] {PANIC}\n");
    let machine = Machine::new()
        .with("var/lib/systemd/pstore/17/dmesg.txt", &text)
        .with("var/lib/systemd/pstore/17/001/dmesg-efi-17", &text)
        .booted(1_600_000_000);
    tells(&machine.log(PAST), &[PANIC]);
}

#[test]
fn a_saved_log_is_read_whole() {
    let machine = Machine::new()
        .with("saved", &format!("[1.000000] {XID}\n[2.000000] {PANIC}\n"))
        .with("saved.gz", "");
    let path = machine.0.path().join("saved");
    tells(&from_file(&path).unwrap(), &[XID, PANIC]);
    fs::write(machine.0.path().join("saved.gz"), [0x1f, 0x8b, 8]).unwrap();
    let error = from_file(&machine.0.path().join("saved.gz")).unwrap_err();
    assert!(error.to_string().contains("gunzip"));
    assert!(from_file(machine.0.path()).is_err());
    assert!(from_file(&machine.0.path().join("nowhere")).is_err());
}

#[test]
fn this_machine_is_asked_without_harm() {
    for boot in [Boot::This, PAST] {
        let log = gather(boot, Path::new("/"));
        assert!(!log.read.is_empty() || !log.missing.is_empty());
    }
}
