//! Helpers for testing patterns: a line is an incident with every stamp, but only from the right source.

use super::clock::Calendar;
use super::incident::Kind;
use super::line::Line;
use jiff::tz::TimeZone;

const STAMPS: [&str; 3] = [
    "[   12.250000] ",
    "2026-11-16T12:00:00+0000 box kernel: ",
    "4,17,12250000,-;",
];

pub fn kind(raw: &str) -> Option<Kind> {
    let reference = "2026-11-17T00:00:00Z".parse().unwrap();
    let calendar = Calendar::new(reference, TimeZone::UTC);
    Kind::from_line(&Line::parse(raw.as_bytes(), &calendar).unwrap())
}

/// Said by the kernel, and by nobody else.
#[track_caller]
pub fn tells(text: &str, expected: Kind) {
    for stamp in STAMPS {
        assert_eq!(
            kind(&format!("{stamp}{text}")),
            Some(expected.clone()),
            "{stamp}"
        );
    }
    let said = format!("2026-11-16T12:00:00+0000 box python3[9]: {text}");
    assert_eq!(kind(&said), None);
    assert_eq!(kind(&format!("12,17,12250000,-;python3[9]: {text}")), None);
}

#[track_caller]
pub fn tells_nothing(text: &str) {
    for stamp in STAMPS {
        assert_eq!(kind(&format!("{stamp}{text}")), None);
    }
}

/// Said by this program, and by nobody else.
#[track_caller]
pub fn program_tells(program: &str, text: &str, expected: Kind) {
    for stamp in [
        "Nov 16 12:00:00 box ",
        "2026-11-16T12:00:00.000000+00:00 box ",
        "[ 1.000000] ",
    ] {
        let raw = format!("{stamp}{program}[9]: {text}");
        assert_eq!(kind(&raw), Some(expected.clone()), "{raw}");
        assert_eq!(kind(&format!("{stamp}python3[9]: {text}")), None);
    }
    tells_nothing(text);
}

pub fn text(text: &str) -> String {
    text.into()
}
