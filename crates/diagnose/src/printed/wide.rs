//! Texts of two bytes for each character.

/// What PowerShell and some editors save: two bytes for each character. A mark at the beginning tells; where it was cut
/// off, the letters that people use most have a zero in every other byte.
pub(crate) fn as_utf8(output: Vec<u8>) -> Vec<u8> {
    let decoded = |bytes: &[u8], each: fn([u8; 2]) -> u16| -> Vec<u8> {
        let units = bytes.chunks_exact(2).map(|pair| each([pair[0], pair[1]]));
        let text =
            char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER));
        text.collect::<String>().into_bytes()
    };
    match output.as_slice() {
        [0xff, 0xfe, rest @ ..] => decoded(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decoded(rest, u16::from_be_bytes),
        bytes => match zeros(bytes) {
            (few, many) if is_wide(few, many, bytes) => decoded(bytes, u16::from_le_bytes),
            (many, few) if is_wide(few, many, bytes) => decoded(bytes, u16::from_be_bytes),
            _ => output,
        },
    }
}

/// Of a text's beginning.
const SAMPLE: usize = 4096;

/// How many bytes are 0 of those at even places, and at odd ones.
fn zeros(bytes: &[u8]) -> (usize, usize) {
    let sample = bytes.get(..SAMPLE).unwrap_or(bytes);
    let of = |first: usize| {
        let every = sample.iter().skip(first).step_by(2);
        every.filter(|byte| **byte == 0).count()
    };
    (of(0), of(1))
}

fn is_wide(few: usize, many: usize, bytes: &[u8]) -> bool {
    let pairs = bytes.len().min(SAMPLE) / 2;
    pairs >= 8 && many * 3 >= pairs && few * 50 <= pairs
}
