//! Writes and reads numbers and bytes at a cursor. Numbers are variable-length integers with seven bits a byte, the low
//! bits first, in at most ten bytes: 64 bits, and the tag bits that readings have below them.

const MAX_VARINT_BYTES: u32 = 10;

/// Maps signed to unsigned numbers (zigzag), so that numbers near zero stay short.
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Reverses [`zigzag`].
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Writes into a fixed buffer and notes when something did not fit.
pub(crate) struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
    overflow: bool,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut [u8]) -> Writer<'a> {
        Writer {
            out,
            len: 0,
            overflow: false,
        }
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.out.get_mut(self.len..self.len + bytes.len()) {
            Some(room) if !self.overflow => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            _ => self.overflow = true,
        }
    }

    /// Writes a number below 2^70.
    pub fn tagged(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.bytes(&[value as u8 | 0x80]);
            value >>= 7;
        }
        self.bytes(&[value as u8]);
    }

    pub fn number(&mut self, value: u64) {
        self.tagged(value.into());
    }

    pub fn signed(&mut self, value: i64) {
        self.number(zigzag(value));
    }

    /// Writes 0 for `None`, and otherwise the number plus one.
    pub fn optional(&mut self, value: Option<u64>) {
        self.tagged(value.map_or(0, |value| u128::from(value) + 1));
    }

    /// Writes the length of the text, then its bytes.
    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes(text);
    }

    /// Returns how many bytes were written; 0 when the buffer was too small for all of them.
    pub fn finish(self) -> usize {
        if self.overflow { 0 } else { self.len }
    }
}

/// Reads what [`Writer`] wrote. Its methods return `None` where the bytes end too early or are malformed.
#[derive(Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    pub fn tagged(&mut self) -> Option<u128> {
        let mut value = 0;
        for place in 0..MAX_VARINT_BYTES {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u128::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn number(&mut self) -> Option<u64> {
        self.tagged()?.try_into().ok()
    }

    pub fn signed(&mut self) -> Option<i64> {
        self.number().map(unzigzag)
    }

    pub fn optional(&mut self) -> Option<Option<u64>> {
        match self.tagged()? {
            0 => Some(None),
            value => u64::try_from(value - 1).ok().map(Some),
        }
    }

    pub fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.number()?;
        self.bytes(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, optional: Option<u64>, text: Vec<u8>) {
            let mut out = [0; 1024];
            let mut writer = Writer::new(&mut out);
            writer.number(number);
            writer.signed(signed);
            writer.optional(optional);
            writer.text(&text);
            let len = writer.finish();
            let mut reader = Reader::new(&out[..len]);
            prop_assert_eq!(reader.number(), Some(number));
            prop_assert_eq!(reader.signed(), Some(signed));
            prop_assert_eq!(reader.optional(), Some(optional));
            prop_assert_eq!(reader.text(), Some(&text[..]));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn what_does_not_fit_is_told_and_not_cut() {
        let mut out = [0; 4];
        let mut writer = Writer::new(&mut out);
        writer.text(b"four");
        writer.number(1);
        assert_eq!(writer.finish(), 0);
    }

    #[test]
    fn a_number_without_an_end_is_none() {
        assert_eq!(Reader::new(&[0xff; 32]).number(), None);
        assert_eq!(Reader::new(&[0x80]).number(), None);
    }
}
