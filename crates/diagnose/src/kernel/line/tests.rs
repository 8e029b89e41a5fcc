//! The same words under every stamp that a log may put before them.

use super::*;
use jiff::tz::TimeZone;
use proptest::prelude::*;

const NOON: &str = "2026-11-16T12:00:00Z";

fn calendar() -> Calendar {
    Calendar::new("2026-11-17T00:00:00Z".parse().unwrap(), TimeZone::UTC)
}

fn read(raw: &[u8]) -> Option<Line> {
    Line::parse(raw, &calendar())
}

fn program(name: &str) -> Source {
    Source::Program(name.into())
}

#[track_caller]
fn is(raw: &str, since_boot: Option<f64>, at: Option<&str>, source: Source, text: &str) {
    let line = read(raw.as_bytes()).unwrap();
    assert_eq!(
        line.since_boot,
        since_boot.map(Duration::from_secs_f64),
        "{raw}"
    );
    assert_eq!(line.at, at.map(|at| at.parse().unwrap()), "{raw}");
    assert_eq!((line.source, line.text.as_str()), (source, text), "{raw}");
}

#[test]
fn the_kernel_is_known_under_every_stamp() {
    let text = "Kernel panic - not syncing: made up";
    for (stamp, since_boot, at) in [
        ("", None, None),
        ("kernel: ", None, None),
        ("0,17,12250000,-;", Some(12.25), None),
        ("0,17,12250000,-,caller=T1;", Some(12.25), None),
        ("[   12.250000] ", Some(12.25), None),
        ("[   12.250000][    T1] ", Some(12.25), None),
        ("<0>[   12.250000] ", Some(12.25), None),
        ("[   12.250000] box kernel: ", Some(12.25), None),
        ("[Mon Nov 16 12:00:00 2026] ", None, Some(NOON)),
        ("[  +0.000001] ", None, None),
        ("Nov 16 12:00:00 box kernel: ", None, Some(NOON)),
        ("Nov 16 12:00:00 kernel: ", None, Some(NOON)),
        (
            "Nov 16 12:00:00 box kernel: [   12.250000] ",
            Some(12.25),
            Some(NOON),
        ),
        ("2026-11-16T12:00:00+0000 box kernel: ", None, Some(NOON)),
        (
            "2026-11-16T12:00:00.000000+00:00 box kernel: [12.250000] ",
            Some(12.25),
            Some(NOON),
        ),
        ("2026-11-16T12:00:00,000000+00:00 ", None, Some(NOON)),
        ("Mon 2026-11-16 12:00:00 UTC box kernel: ", None, Some(NOON)),
        ("kern  :err   : [   12.250000] ", Some(12.25), None),
        ("listopad 16 12:00:00 box kernel: ", None, None),
    ] {
        is(
            &format!("{stamp}{text}"),
            since_boot,
            at,
            Source::Kernel,
            text,
        );
    }
}

#[test]
fn a_program_is_known_by_its_name() {
    let text = "sending nothing";
    for (stamp, name) in [
        ("earlyoom[123]: ", "earlyoom"),
        ("earlyoom: ", "earlyoom"),
        ("30,340,5690716,-;earlyoom[123]: ", "earlyoom"),
        ("[   12.250000] earlyoom[123]: ", "earlyoom"),
        ("[   12.250000] box earlyoom[123]: ", "earlyoom"),
        ("Nov 16 12:00:00 box earlyoom[123]: ", "earlyoom"),
        (
            "2026-11-16T12:00:00+0000 box systemd-oomd[1]: ",
            "systemd-oomd",
        ),
        ("2026-11-16T12:00:00+0000 box sudo: ", "sudo"),
    ] {
        let line = read(format!("{stamp}{text}").as_bytes()).unwrap();
        assert_eq!(
            (line.source, line.text.as_str()),
            (program(name), text),
            "{stamp}"
        );
    }
}

#[test]
fn a_program_cannot_pass_for_the_kernel() {
    let panic = "Kernel panic - not syncing: made up";
    for stamp in [
        "12,17,12250000,-;",
        "12,17,12250000,-;made up ",
        "Nov 16 12:00:00 box two words[3]: ",
        "2026-11-16T12:00:00+0000 box python3[3]: ",
        "Nov 16 12:00:00 box python3: kernel: ",
    ] {
        let line = read(format!("{stamp}{panic}").as_bytes()).unwrap();
        assert_ne!(line.source, Source::Kernel, "{stamp}");
    }
}

#[test]
fn an_entry_of_the_journal_is_read() {
    let entry = |transport: &str| {
        let raw = format!(
            r#"{{"__REALTIME_TIMESTAMP":"1794830400000000","_TRANSPORT":"{transport}","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"made up"}}"#
        );
        read(raw.as_bytes()).unwrap()
    };
    let line = entry("kernel");
    assert_eq!(
        (line.source, line.text.as_str()),
        (Source::Kernel, "made up")
    );
    assert_eq!(line.at, Some(NOON.parse().unwrap()));
    assert_ne!(entry("syslog").source, Source::Kernel);
}

#[test]
fn what_the_drivers_say_is_the_kernels() {
    for text in [
        "nvme nvme0: I/O 7 QID 2 timeout, reset controller",
        "python3[42]: segfault at 0 ip 1 sp 2 error 4",
        "[Hardware Error]: Corrected error, no action required.",
        "[drm] VRAM is lost due to GPU reset!",
        "mce: [Hardware Error]: Machine check events logged",
    ] {
        is(
            &format!("[    1.500000] {text}"),
            Some(1.5),
            None,
            Source::Kernel,
            text,
        );
        is(text, None, None, Source::Kernel, text);
    }
}

#[test]
fn properties_and_empty_lines_say_nothing() {
    for raw in [
        &b" SUBSYSTEM=pci"[..],
        b" DEVICE=+pci:0000:00:1f.2",
        b"",
        b"   ",
        b"6,1,2,-;",
    ] {
        assert_eq!(read(raw), None);
    }
    assert_eq!(read(b"    NVRM: indented").unwrap().text, "NVRM: indented");
}

#[test]
fn escapes_of_the_kernel_are_undone_and_the_text_is_safe() {
    let text = |raw: &[u8]| read(raw).unwrap().text;
    assert_eq!(text(b"6,1,2,-;fr\\xc3\\xbch"), "früh");
    assert_eq!(text(b"6,1,2,-;one\\x0atwo\\x1b\\xzz"), r"one two\u{1b}\xzz");
    assert_eq!(text(b"[1.000000] \x1b[2J\xff"), r"\u{1b}[2J\xff");
}

#[test]
fn a_long_line_is_cut() {
    assert_eq!(read(&[b'a'; 100_000]).unwrap().text.len(), LONGEST);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>, stamp in "([0-9]{1,3},){0,4};?|\\[ ?[0-9+]{0,4}\\.?[0-9]{0,4}\\]?|[A-Z][a-z]{2} [0-9]{1,3} [0-9:]{8} |[0-9T:+-]{0,30} [a-z]{0,3}(\\[[0-9]*\\])?:? ") {
        let raw = [stamp.as_bytes(), &bytes].concat();
        if let Some(line) = read(&raw) {
            prop_assert!(!line.text.is_empty());
            prop_assert!(!line.text.contains(char::is_control));
        }
    }
}
