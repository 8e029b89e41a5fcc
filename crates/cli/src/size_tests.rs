use super::*;
use proptest::prelude::*;

#[test]
fn sizes_are_read_as_people_write_them() {
    for (text, bytes) in [
        ("4G", 4_000_000_000),
        ("4GB", 4_000_000_000),
        ("4gb", 4_000_000_000),
        ("1.5GB", 1_500_000_000),
        ("512m", 512_000_000),
        (" 512 MB ", 512_000_000),
        ("2 GiB", 2 << 30),
        ("2Gi", 2 << 30),
        ("800MiB", 800 << 20),
        ("0.5TB", 500_000_000_000),
        ("100B", 100),
        ("1_000_000", 1_000_000),
        ("8000000000", 8_000_000_000),
        ("8000000000.0", 8_000_000_000),
        ("0", 0),
        ("0GB", 0),
    ] {
        assert_eq!(text.parse(), Ok(Size::Bytes(bytes)), "{text}");
    }
    for (text, share) in [("10%", 0.1), ("12.5 %", 0.125), ("100%", 1.0), ("0%", 0.0)] {
        assert_eq!(text.parse(), Ok(Size::Share(share)), "{text}");
    }
}

#[test]
fn a_mistake_is_answered_with_the_size_that_was_meant() {
    for (text, message) in [
        (
            "4",
            "`4` has no unit and would mean 4 bytes; did you mean 4GB, or 4MB?",
        ),
        (
            "1.5",
            "`1.5` has no unit and would mean 1.5 bytes; did you mean 1.5GB, or 1.5MB?",
        ),
        (
            "8192",
            "`8192` has no unit and would mean 8192 bytes; did you mean 8192MB?",
        ),
        ("10GBs", "`10GBs` is not a size; did you mean 10GB?"),
        ("4 gigs", "`4 gigs` is not a size; did you mean 4GB?"),
        ("4 GiBs", "`4 GiBs` is not a size; did you mean 4GiB?"),
        ("4,5GB", "`4,5GB` is not a size; did you mean 4.5GB?"),
        ("1,000MB", "`1,000MB` is not a size; did you mean 1000MB?"),
        ("50percent", "`50percent` is not a size; did you mean 50%?"),
        ("1e9", "`1e9` is not a size; did you mean 1GB?"),
        ("2.5E+9", "`2.5E+9` is not a size; did you mean 2.5GB?"),
        (
            "150%",
            "`150%` is more than all of the memory; write at most 100%, such as 80%, or a size such as 8GB",
        ),
        ("-5", "`-5` is negative; did you mean 5GB?"),
        ("-5MB", "`-5MB` is negative; did you mean 5MB?"),
        (
            "",
            "the size is empty; write one such as 8GB, 512MB or 8GiB",
        ),
        (
            "  ",
            "the size is empty; write one such as 8GB, 512MB or 8GiB",
        ),
        (
            "--verbose",
            "a size is missing before `--verbose`; write one such as 8GB",
        ),
        (
            "lots",
            "`lots` is not a size; write a number and a unit, such as 8GB, 512MB or 8GiB",
        ),
        (
            "4X",
            "`4X` is not a size; write a number and a unit, such as 8GB, 512MB or 8GiB",
        ),
        (
            "1..5G",
            "`1..5G` is not a size; write a number and a unit, such as 8GB, 512MB or 8GiB",
        ),
        (
            "9999999TB",
            "`9999999TB` is more than any machine has; write a size such as 8GB",
        ),
        (
            "4\u{1b}[2J",
            "`4\\u{1b}[2J` is not a size; write a number and a unit, such as 8GB, 512MB or 8GiB",
        ),
    ] {
        assert_eq!(text.parse::<Size>(), Err(message.to_owned()), "{text:?}");
    }
}

#[test]
fn a_budget_is_a_size_or_a_percentage_and_never_nothing() {
    assert_eq!(budget("8G"), Ok(Size::Bytes(8_000_000_000)));
    assert_eq!(budget("50%"), Ok(Size::Share(0.5)));
    for (text, message) in [
        (
            "0",
            "`0` leaves the command no memory; write a size such as 8GB, or no budget at all",
        ),
        (
            "0%",
            "`0%` leaves the command no memory; write a size such as 8GB, or no budget at all",
        ),
        (
            "4kB",
            "`4kB` is 4 kB, less than any program needs; write a size such as 8GB or 512MB",
        ),
    ] {
        assert_eq!(budget(text), Err(message.to_owned()));
    }
}

#[test]
fn where_a_size_is_needed_a_percentage_is_refused() {
    assert_eq!(bytes("0"), Ok(0));
    assert_eq!(
        bytes("10%"),
        Err("`10%` is a percentage, and a size is needed here, such as 8GB".to_owned())
    );
    assert_eq!(
        memory("0"),
        Err("a machine's memory is never 0; write a size such as 16GB".to_owned())
    );
}

#[test]
fn the_default_reserve_fits_laptops_and_servers() {
    let gb = |n: u64| n * 1_000_000_000;
    assert_eq!(default_reserve(512_000_000), 51_200_000);
    assert_eq!(default_reserve(gb(16)), 1_600_000_000);
    assert_eq!(default_reserve(gb(64)), 2_880_000_000);
    assert_eq!(default_reserve(gb(1000)), gb(16));
}

/// Every unit with its factor.
const UNITS: [(&str, u64); 17] = [
    ("B", 1),
    ("k", 1_000),
    ("kB", 1_000),
    ("M", 1_000_000),
    ("MB", 1_000_000),
    ("G", 1_000_000_000),
    ("GB", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("TB", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("KiB", 1 << 10),
    ("Mi", 1 << 20),
    ("MiB", 1 << 20),
    ("Gi", 1 << 30),
    ("GiB", 1 << 30),
    ("Ti", 1 << 40),
    ("TiB", 1 << 40),
];

proptest! {
    #[test]
    fn a_whole_number_with_a_unit_is_exactly_its_product(
        number in 0u64..900_000,
        (unit, factor) in prop::sample::select(&UNITS),
        blanks in " {0,3}",
        is_upper in any::<bool>(),
    ) {
        let unit = if is_upper { unit.to_ascii_uppercase() } else { unit.to_ascii_lowercase() };
        prop_assert_eq!(
            format!("{number}{blanks}{unit}").parse(),
            Ok(Size::Bytes(number * factor))
        );
    }

    #[test]
    fn bytes_without_a_unit_are_taken_from_a_million_on(number in 1u64..=MAX_BYTES) {
        let parsed = number.to_string().parse();
        if number < MIN_WITHOUT_UNIT {
            prop_assert!(parsed.is_err());
        } else {
            prop_assert_eq!(parsed, Ok(Size::Bytes(number)));
        }
    }

    #[test]
    fn a_percentage_is_a_share_of_the_whole(percent in 0u32..=100, whole in 0u64..=1 << 50) {
        let size: Size = format!("{percent}%").parse().unwrap();
        let exact = u128::from(whole) * u128::from(percent) / 100;
        prop_assert!(size.bytes_of(whole).abs_diff(exact as u64) <= 1 + whole / (1 << 50));
    }

    #[test]
    fn more_than_all_of_the_memory_is_refused(percent in 101u64..) {
        let text = format!("{percent}%");
        prop_assert!(text.parse::<Size>().is_err());
    }

    #[test]
    fn what_antifreeze_prints_can_be_pasted(bytes in MIN_BUDGET..=MAX_BYTES / 2) {
        let printed = units::bytes(bytes);
        for text in [printed.replace(' ', ""), printed] {
            let size = budget(&text).unwrap().bytes_of(0);
            // Two digits of it are printed at least.
            prop_assert!(size.abs_diff(bytes) <= bytes / 19, "{text} is {size}");
        }
    }

    #[test]
    fn any_text_is_a_size_in_range_or_an_error_with_an_example(text in "\\PC{0,12}|[-+0-9.,eE_ ]{0,8}[a-zA-Z%]{0,6}") {
        for parsed in [text.parse(), budget(&text), bytes(&text).map(Size::Bytes)] {
            match parsed {
                Ok(Size::Bytes(bytes)) => prop_assert!(bytes <= MAX_BYTES),
                Ok(Size::Share(share)) => prop_assert!((0.0..=1.0).contains(&share)),
                Err(message) => prop_assert!(["GB", "MB", "kB", "TB", "iB", "mean"].iter().any(|unit| message.contains(unit)), "{message}"),
            }
        }
    }

    #[test]
    fn what_is_suggested_is_accepted(text in "-?[0-9]{1,3}([.,][0-9]{1,3})?(e[0-9]{1,2})? ?(GBs|gigs|mb|MiBs|percent|bytes|x|G|)") {
        if let Err(message) = text.parse::<Size>()
            && let Some((_, meant)) = message.split_once("did you mean ")
        {
            let first = meant.split([',', '?']).next().unwrap();
            prop_assert!(first.parse::<Size>().is_ok(), "{message}");
        }
    }
}
