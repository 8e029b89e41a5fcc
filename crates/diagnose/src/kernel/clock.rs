//! The times that logs are stamped with. Some leave out the year and nearly all the zone:
//! a calendar supplies both.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use std::time::Duration;

/// A leap day comes back after eight years at the latest.
const YEARS_BACK: i16 = 8;
/// No stamp is longer.
const STAMP: usize = 40;

pub struct Calendar {
    /// Nothing in the log is later than this.
    reference: Timestamp,
    year: i16,
    zone: TimeZone,
}

impl Calendar {
    pub fn new(reference: Timestamp, zone: TimeZone) -> Calendar {
        Calendar {
            reference,
            year: reference.to_zoned(zone.clone()).year(),
            zone,
        }
    }

    /// `2026-11-16T12:00:00.123456+0100`, with or without fraction and colon in the offset.
    pub fn iso(&self, stamp: &str) -> Option<Timestamp> {
        let dated = stamp.starts_with(|first: char| first.is_ascii_digit()) && stamp.contains('T');
        if !dated || stamp.len() > STAMP {
            return None;
        }
        stamp.parse().ok().or_else(|| {
            let local: DateTime = stamp.parse().ok()?;
            self.local(local)
        })
    }

    /// `Nov`, `16`, `12:00:00`: of the latest year in which it is not in the future.
    pub fn yearless(&self, month: &str, day: &str, time: &str) -> Option<Timestamp> {
        let (month, day, time) = (month_of(month)?, day.parse().ok()?, time_of(time)?);
        (0..=YEARS_BACK).find_map(|back| {
            let date = civil::Date::new(self.year.checked_sub(back)?, month, day).ok()?;
            let at = self.local(date.to_datetime(time))?;
            (at <= self.reference).then_some(at)
        })
    }

    /// `Mon Nov 16 12:00:00 2026`, as `dmesg -T` writes it.
    pub fn with_year(&self, stamp: &str) -> Option<Timestamp> {
        let mut words = stamp.split_ascii_whitespace();
        let (_, month, day) = (words.next()?, words.next()?, words.next()?);
        let (time, year) = (words.next()?, words.next()?);
        let date =
            civil::Date::new(year.parse().ok()?, month_of(month)?, day.parse().ok()?).ok()?;
        self.local(date.to_datetime(time_of(time)?))
    }

    fn local(&self, at: DateTime) -> Option<Timestamp> {
        Some(at.to_zoned(self.zone.clone()).ok()?.timestamp())
    }
}

/// `12:00:00`, perhaps with a fraction.
pub fn is_time(word: &str) -> bool {
    time_of(word).is_some()
}

fn time_of(word: &str) -> Option<Time> {
    let colons = word.bytes().filter(|byte| *byte == b':').count();
    if colons != 2 || word.len() > STAMP {
        return None;
    }
    word.parse().ok()
}

fn month_of(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let index = MONTHS.iter().position(|month| *month == word)?;
    i8::try_from(index + 1).ok()
}

/// `123.456789`, the kernel's seconds since boot.
pub fn since_boot(stamp: &str) -> Option<Duration> {
    let (seconds, fraction) = stamp.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(seconds.parse().ok()?, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(reference: &str) -> Calendar {
        Calendar::new(reference.parse().unwrap(), TimeZone::UTC)
    }

    #[track_caller]
    fn at(found: Option<Timestamp>) -> String {
        found.unwrap().to_string()
    }

    #[test]
    fn a_stamp_without_a_year_is_never_in_the_future() {
        for (reference, month, day, expected) in [
            ("2026-11-16T12:00:01Z", "Nov", "16", "2026-11-16T12:00:00Z"),
            ("2026-11-16T11:59:59Z", "Nov", "16", "2025-11-16T12:00:00Z"),
            ("2027-01-01T00:00:10Z", "Dec", "31", "2026-12-31T12:00:00Z"),
            ("2026-03-01T00:00:00Z", "Feb", "29", "2024-02-29T12:00:00Z"),
        ] {
            let found = calendar(reference).yearless(month, day, "12:00:00");
            assert_eq!(at(found), expected);
        }
        let calendar = calendar("2026-11-16T12:00:00Z");
        assert_eq!(calendar.yearless("Feb", "30", "12:00:00"), None);
        assert_eq!(calendar.yearless("Nov", "1", "25:00:00"), None);
    }

    #[test]
    fn the_forms_of_a_full_stamp_mean_the_same() {
        let calendar = calendar("2030-01-01T00:00:00Z");
        for stamp in [
            "2026-11-16T13:00:00+0100",
            "2026-11-16T13:00:00+01:00",
            "2026-11-16T12:00:00.000000+00:00",
            "2026-11-16T12:00:00,000000+00:00",
            "2026-11-16T12:00:00Z",
            "2026-11-16T12:00:00",
        ] {
            assert_eq!(at(calendar.iso(stamp)), "2026-11-16T12:00:00Z", "{stamp}");
        }
        assert_eq!(
            at(calendar.with_year("Mon Nov 16 12:00:00 2026")),
            "2026-11-16T12:00:00Z"
        );
        assert_eq!(calendar.iso("2026-11-16"), None);
        assert_eq!(calendar.iso("Throttled"), None);
    }

    #[test]
    fn seconds_since_boot_keep_their_fraction() {
        assert_eq!(since_boot("12.000345"), Some(Duration::new(12, 345_000)));
        for stamp in ["12", "12.", ".5", "1.2.3", "-1.0", "+0.000001", "drm"] {
            assert_eq!(since_boot(stamp), None, "{stamp}");
        }
    }
}
