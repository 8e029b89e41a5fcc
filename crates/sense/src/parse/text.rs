//! Splits lines and fields and parses numbers as the kernel prints them.

use crate::{Reading, Reason};

/// The value of a line that is missing.
pub const ABSENT: Reading<u64> = Reading::Unavailable(Reason::Absent);

/// Iterates over the complete lines, without their newlines.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = bytes.iter().rposition(|&b| b == b'\n');
    end.and_then(|end| bytes.get(..end))
        .into_iter()
        .flat_map(|whole| whole.split(|&b| b == b'\n'))
}

/// Iterates over the words of a line, which any number of blanks separate.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\n'))
        .filter(|word| !word.is_empty())
}

/// Splits a line at its first separator.
pub fn split_at_byte(line: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|&b| b == separator)?;
    Some((line.get(..at)?, line.get(at + 1..)?))
}

/// Parses a decimal number with nothing around it.
pub fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &b| {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a hexadecimal number with nothing around it.
pub fn parse_hexadecimal(digits: &[u8]) -> Option<u64> {
    let digits = core::str::from_utf8(digits).ok()?;
    let plain = !digits.starts_with('+');
    plain.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Parses a number with blanks around it.
pub fn padded_number(rest: &[u8]) -> Reading<u64> {
    value_or_malformed(parse_decimal(rest.trim_ascii()))
}

/// Parses a number of kibibytes with blanks around it, and returns bytes.
pub fn padded_kibibytes(rest: &[u8]) -> Reading<u64> {
    value_or_malformed(
        rest.trim_ascii()
            .strip_suffix(b" kB")
            .and_then(parse_decimal)
            .and_then(|kib| kib.checked_mul(1024)),
    )
}

/// A value that the line must have.
pub fn value_or_malformed(value: Option<u64>) -> Reading<u64> {
    match value {
        Some(value) => Reading::Value(value),
        None => Reading::Unavailable(Reason::Malformed),
    }
}
