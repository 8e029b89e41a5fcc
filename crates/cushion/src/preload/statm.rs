//! Reads the numbers of `/proc/self/statm` that concern limits. Pure.

/// Pages of data and stack, the sixth number. The kernel counts only the data against the limit, so this is too high by
/// the main stack; it is ten times as fast to read as `VmData` in `status`.
pub fn data_pages(statm: &[u8]) -> Option<u64> {
    number(statm, 5)
}

/// Pages of address space, which `RLIMIT_AS` limits.
pub fn all_pages(statm: &[u8]) -> Option<u64> {
    number(statm, 0)
}

fn number(statm: &[u8], place: usize) -> Option<u64> {
    let field = statm.split(|b| b.is_ascii_whitespace()).nth(place)?;
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}
