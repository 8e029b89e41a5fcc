//! Converts UTF-16 output, as PowerShell and some editors save it, to UTF-8.

/// Converts UTF-16 to UTF-8; other bytes stay as they are. UTF-16 is recognized by its byte order mark, or where that was
/// cut off by zeros in every other byte.
pub(crate) fn to_utf8(output: Vec<u8>) -> Vec<u8> {
    let decoded = |bytes: &[u8], each: fn([u8; 2]) -> u16| -> Vec<u8> {
        let units = bytes.chunks_exact(2).map(|pair| each([pair[0], pair[1]]));
        let text =
            char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER));
        text.collect::<String>().into_bytes()
    };
    match output.as_slice() {
        [0xff, 0xfe, rest @ ..] => decoded(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decoded(rest, u16::from_be_bytes),
        bytes => match count_zeros(bytes) {
            (few, many) if is_utf16(few, many, bytes) => decoded(bytes, u16::from_le_bytes),
            (many, few) if is_utf16(few, many, bytes) => decoded(bytes, u16::from_be_bytes),
            _ => output,
        },
    }
}

/// So many bytes at the beginning are examined.
const SAMPLE_BYTES: usize = 4096;

/// The number of zeros at even and at odd positions.
fn count_zeros(bytes: &[u8]) -> (usize, usize) {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let of = |first: usize| {
        let every = sample.iter().skip(first).step_by(2);
        every.filter(|byte| **byte == 0).count()
    };
    (of(0), of(1))
}

fn is_utf16(few: usize, many: usize, bytes: &[u8]) -> bool {
    let pairs = bytes.len().min(SAMPLE_BYTES) / 2;
    pairs >= 8 && many * 3 >= pairs && few * 50 <= pairs
}
