//! Packs a reading into one number. Sizes that are whole pages, as nearly all are, are stored in pages.

use super::wire::{Reader, unzigzag, zigzag};
use antifreeze_sense::{Reading, Reason};

/// The unit of a reading, which decides how it is packed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Unit {
    Count,
    Bytes,
}
use Unit::{Bytes, Count};

/// One field of a group: its unit and its value.
pub(super) type Field<'a> = (Unit, &'a mut Reading<u64>);

const PAGE_BYTES: i64 = 4096;

/// Packs a reading: a missing value as its reason with the lowest bit set, and otherwise the distance from `near`, in
/// pages or, with the next bit set, in bytes.
pub(super) fn pack(unit: Unit, reading: Reading<u64>, near: u64) -> u128 {
    match reading {
        Reading::Unavailable(reason) => (reason as u128) << 1 | 1,
        Reading::Value(value) => {
            // Wrapping on both sides: every pair of numbers has a distance, and none overflows.
            let distance = value.wrapping_sub(near) as i64;
            match unit {
                Count => u128::from(zigzag(distance)) << 1,
                Bytes if distance % PAGE_BYTES == 0 => {
                    u128::from(zigzag(distance / PAGE_BYTES)) << 2
                }
                Bytes => u128::from(zigzag(distance)) << 2 | 2,
            }
        }
    }
}

/// Reverses [`pack`].
pub(super) fn unpack(unit: Unit, packed: u128, near: u64) -> Option<Reading<u64>> {
    if packed & 1 == 1 {
        let code = u8::try_from(packed >> 1).unwrap_or(u8::MAX);
        return Some(Reading::Unavailable(Reason::from_code(code)));
    }
    let tag_bits = if unit == Count { 1 } else { 2 };
    let distance = unzigzag(u64::try_from(packed >> tag_bits).ok()?);
    let in_pages = unit == Bytes && packed & 2 == 0;
    let distance = if in_pages {
        distance.wrapping_mul(PAGE_BYTES)
    } else {
        distance
    };
    Some(Reading::Value(near.wrapping_add_signed(distance)))
}

/// Reads a group of which `stored` fields were written: the fields that this reader knows; the rest is skipped.
pub(super) fn take_readings(
    reader: &mut Reader,
    stored: u64,
    fields: &mut [Field],
    mut unpack: impl FnMut(Unit, u128, usize) -> Option<Reading<u64>>,
) -> Option<()> {
    for (place, (unit, reading)) in fields.iter_mut().enumerate() {
        **reading = if (place as u64) < stored {
            unpack(*unit, reader.tagged()?, place)?
        } else {
            Reading::Unavailable(Reason::NotRecorded)
        };
    }
    for _ in fields.len() as u64..stored {
        reader.tagged()?;
    }
    Some(())
}
