//! Numbers as people read them: bytes in powers of ten, durations in at most two units, percentages with a space.
//! Never more digits than a reader would act on.

use std::time::Duration;

const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];

/// A number of bytes: "13.9 GB", "41 MB", "512 kB".
pub fn bytes(count: u64) -> String {
    let (number, unit) = scaled(count);
    format!("{number} {unit}")
}

/// A part of a whole: "13.9 of 15.4 GB". Both units where they differ: "41 MB of 13.9 GB".
pub fn bytes_of(part: u64, whole: u64) -> String {
    let (number, unit) = scaled(part);
    let (whole_number, whole_unit) = scaled(whole);
    if unit == whole_unit {
        format!("{number} of {whole_number} {unit}")
    } else {
        format!("{number} {unit} of {whole_number} {whole_unit}")
    }
}

/// A growth rate, to stand after "grows": "41 MB a second", "2.5 GB an hour". The unit of time is the shortest in
/// which the number is not tiny.
pub fn growth_rate(bytes_per_second: f64) -> String {
    let rate = bytes_per_second.max(0.0);
    let (factor, time) = if rate >= 1e6 {
        (1.0, "a second")
    } else if rate * 60.0 >= 1e6 {
        (60.0, "a minute")
    } else {
        (3600.0, "an hour")
    };
    format!("{} {time}", bytes((rate * factor) as u64))
}

fn scaled(count: u64) -> (String, &'static str) {
    let mut value = count as f64;
    let mut units = UNITS.iter();
    let mut unit = units.next().copied().unwrap_or("B");
    // 999.6 MB would be rounded to 1000 MB; it becomes 1 GB.
    while rounded(value, unit) >= 1000.0 {
        let Some(next) = units.next() else { break };
        value /= 1000.0;
        unit = next;
    }
    let number = rounded(value, unit);
    (format!("{number}"), unit)
}

fn rounded(value: f64, unit: &str) -> f64 {
    let tenths = match unit {
        "B" => false,
        "kB" | "MB" => value < 9.95,
        _ => value < 99.95,
    };
    if tenths {
        (value * 10.0).round() / 10.0
    } else {
        value.round()
    }
}

/// A duration: "12 ms", "0.1 s", "42 s", "4 min 12 s", "3 h 02 min", "2 days 4 h".
pub fn duration(time: Duration) -> String {
    let millis = time.as_millis();
    if millis == 0 {
        return "0 s".into();
    }
    if millis < 100 {
        return format!("{millis} ms");
    }
    if millis < 9_950 {
        return format!("{:.1} s", time.as_secs_f64());
    }
    let mut seconds = (millis + 500) / 1000;
    if seconds >= 3600 {
        seconds = (seconds + 30) / 60 * 60;
    }
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => pair(minutes, "min", seconds % 60, "s"),
        3600..172_800 => pair(hours, "h", minutes % 60, "min"),
        _ => format!("{} days {} h", hours / 24, hours % 24),
    }
}

fn pair(large: u128, large_unit: &str, small: u128, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small:02} {small_unit}")
    }
}

/// A forecast duration, rounded more coarsely the longer it is, since no forecast is good to the second.
pub fn rough_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let step = match seconds {
        0..20 => 1,
        20..60 => 5,
        60..600 => 10,
        600..3600 => 60,
        _ => 600,
    };
    let rounded = (seconds + step / 2) / step * step;
    match rounded {
        0 | 1 => "a second".into(),
        2..60 => format!("{rounded} s"),
        _ => duration(Duration::from_secs(rounded)),
    }
}

/// A share (0 to 1) as a percentage: "94 %".
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share.clamp(0.0, 1.0) * 100.0)
}

/// A number of things: "1 request", "12 requests".
pub fn count(number: u64, singular: &str) -> String {
    if number == 1 {
        format!("1 {singular}")
    } else {
        format!("{number} {singular}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_said_in_the_unit_people_use() {
        for (count, said) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1 kB"),
            (1_540, "1.5 kB"),
            (512_000, "512 kB"),
            (999_499, "999 kB"),
            (999_501, "1 MB"),
            (9_949_999, "9.9 MB"),
            (9_950_001, "10 MB"),
            (41_943_040, "42 MB"),
            (999_600_000, "1 GB"),
            (1_500_000_000, "1.5 GB"),
            (13_912_345_678, "13.9 GB"),
            (8_000_000_000, "8 GB"),
            (137_438_953_472, "137 GB"),
            (2_199_023_255_552, "2.2 TB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(bytes(count), said, "{count}");
        }
    }

    #[test]
    fn a_part_shares_the_unit_of_its_whole_where_it_can() {
        assert_eq!(bytes_of(3_200_000_000, 13_900_000_000), "3.2 of 13.9 GB");
        assert_eq!(bytes_of(41_000_000, 13_900_000_000), "41 MB of 13.9 GB");
    }

    #[test]
    fn growth_is_said_over_a_time_in_which_it_is_visible() {
        assert_eq!(growth_rate(41e6), "41 MB a second");
        assert_eq!(growth_rate(100e3), "6 MB a minute");
        assert_eq!(growth_rate(1e3), "3.6 MB an hour");
        assert_eq!(growth_rate(-5.0), "0 B an hour");
    }

    #[test]
    fn durations_are_said_in_two_units_at_most() {
        for (millis, said) in [
            (0, "0 s"),
            (12, "12 ms"),
            (100, "0.1 s"),
            (1_240, "1.2 s"),
            (9_949, "9.9 s"),
            (9_950, "10 s"),
            (59_499, "59 s"),
            (59_500, "1 min"),
            (62_000, "1 min 02 s"),
            (252_000, "4 min 12 s"),
            (3_600_000, "1 h"),
            (10_919_000, "3 h 02 min"),
            (10_920_000, "3 h 02 min"),
            (172_800_000, "2 days 0 h"),
            (360_000_000, "4 days 4 h"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), said, "{millis}");
        }
    }

    #[test]
    fn a_forecast_is_rounded_to_what_it_can_promise() {
        for (seconds, said) in [
            (0, "a second"),
            (7, "7 s"),
            (43, "45 s"),
            (58, "1 min"),
            (133, "2 min 10 s"),
            (1_000, "17 min"),
            (5_000, "1 h 20 min"),
        ] {
            assert_eq!(
                rough_duration(Duration::from_secs(seconds)),
                said,
                "{seconds}"
            );
        }
    }

    #[test]
    fn percent_stays_between_none_and_all() {
        assert_eq!(percent(0.94), "94 %");
        assert_eq!(percent(-1.0), "0 %");
        assert_eq!(percent(7.0), "100 %");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(count(1, "request"), "1 request");
        assert_eq!(count(12, "request"), "12 requests");
    }
}
