//! The arithmetic of the library, compiled into the test.

use proptest::prelude::*;

#[path = "../../src/preload/share.rs"]
mod share;
#[path = "../../src/preload/statm.rs"]
mod statm;

use share::share;
use statm::data_pages;

use crate::MB;

#[test]
fn shares_halve_down_to_the_floor() {
    let shares: Vec<_> = (1..=5).map(|birth| share(400 * MB, birth) / MB).collect();
    assert_eq!(shares, [200, 100, 50, 32, 32]);
    assert_eq!(share(40 * MB, 9), 10 * MB);
    assert_eq!(share(0, 1), 0);
}

proptest! {
    #[test]
    fn births_together_overdraw_by_no_more_than_their_floors(headroom: u64, births in 1..300_u32) {
        let sum: u128 = (1..=births).map(|birth| u128::from(share(headroom, birth))).sum();
        let floors = u128::from(births) * u128::from((32 * MB).min(headroom / 4));
        prop_assert!(sum <= u128::from(headroom) + floors);
    }

    #[test]
    fn a_share_is_part_of_the_headroom_and_later_ones_are_not_larger(
        headroom: u64,
        birth in 0..u32::MAX,
    ) {
        prop_assert!(share(headroom, birth) <= headroom);
        prop_assert!(share(headroom, birth + 1) <= share(headroom, birth));
    }

    #[test]
    fn the_sixth_number_is_the_data(fields in prop::array::uniform7(any::<u64>())) {
        let line = fields.map(|field| field.to_string()).join(" ") + "\n";
        prop_assert_eq!(data_pages(line.as_bytes()), Some(fields[5]));
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes: Vec<u8>) {
        let _ = data_pages(&bytes);
    }
}

#[test]
fn a_short_or_strange_line_has_no_data() {
    for line in [
        "",
        "1 2 3 4 5",
        "1 2 3 4 5 ",
        "1 2 3 4 5 x 7",
        "1 2 3 4 5 99999999999999999999 7",
    ] {
        assert_eq!(data_pages(line.as_bytes()), None, "{line:?}");
    }
}
