//! Frames: each makes one sample or event recognisable among any bytes.
//!
//! | bytes | what |
//! |---|---|
//! | 2 | the marker `AF F1` |
//! | 2 | length of the payload, low byte first, as all numbers here |
//! | 1 | kind: 0 head, 1 sample, 2 event; readers skip others |
//! | 8 | sequence number; 0 for the head, and for no other frame |
//! | … | payload |
//! | 4 | CRC-32 of everything before it |
//!
//! A frame whose CRC is wrong never existed.

const MARKER: [u8; 2] = [0xaf, 0xf1];
pub(crate) const HEADER_BYTES: usize = 13;
const CRC_BYTES: usize = 4;

/// The longest payload. A larger length is damage, which bounds the search after damage.
pub const MAX_PAYLOAD: usize = 8 * 1024 - OVERHEAD;
/// The bytes of a frame besides its payload.
pub const OVERHEAD: usize = HEADER_BYTES + CRC_BYTES;
/// The longest frame.
pub const MAX_FRAME: usize = MAX_PAYLOAD + OVERHEAD;

/// The kind of the head's frame.
pub(crate) const HEAD: u8 = 0;

/// What is appended to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// A sample.
    Sample = 1,
    /// An event.
    Event = 2,
}

impl FrameKind {
    /// The kind with this number; `None` for the head, and for a kind that only a newer writer knows.
    pub fn from_code(code: u8) -> Option<FrameKind> {
        match code {
            1 => Some(FrameKind::Sample),
            2 => Some(FrameKind::Event),
            _ => None,
        }
    }
}

/// An intact frame within some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The number of its kind.
    pub kind: u8,
    /// Its sequence number.
    pub sequence: u64,
    /// The encoded sample, event or head.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// How many bytes the whole frame takes.
    pub fn size(&self) -> usize {
        self.payload.len() + OVERHEAD
    }
}

/// Writes a frame at the start of `out`; `None` when it is too small or the payload too long.
pub(crate) fn write(out: &mut [u8], kind: u8, sequence: u64, payload: &[u8]) -> Option<usize> {
    let length = u16::try_from(payload.len())
        .ok()
        .filter(|_| payload.len() <= MAX_PAYLOAD)?;
    let (body, rest) = out.split_at_mut_checked(HEADER_BYTES + payload.len())?;
    let checksum = rest.first_chunk_mut::<CRC_BYTES>()?;
    let (header, content) = body.split_first_chunk_mut::<HEADER_BYTES>()?;
    let [m0, m1] = MARKER;
    let [l0, l1] = length.to_le_bytes();
    let [s0, s1, s2, s3, s4, s5, s6, s7] = sequence.to_le_bytes();
    *header = [m0, m1, l0, l1, kind, s0, s1, s2, s3, s4, s5, s6, s7];
    content.copy_from_slice(payload);
    *checksum = crc32fast::hash(body).to_le_bytes();
    Some(payload.len() + OVERHEAD)
}

/// Parses the frame at the start of `bytes`; `None` when there is no intact one.
pub fn at_start(bytes: &[u8]) -> Option<Frame<'_>> {
    let frame = unchecked_at_start(bytes)?;
    let (body, rest) = bytes.split_at_checked(HEADER_BYTES + frame.payload.len())?;
    let stored = rest.first_chunk::<CRC_BYTES>()?;
    (crc32fast::hash(body).to_le_bytes() == *stored).then_some(frame)
}

/// Parses as [`at_start`] does, without the checksum, for frames that never left the memory of this process.
pub(crate) fn unchecked_at_start(bytes: &[u8]) -> Option<Frame<'_>> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let &[m0, m1, l0, l1, kind, s0, s1, s2, s3, s4, s5, s6, s7] = header;
    let length = usize::from(u16::from_le_bytes([l0, l1]));
    if [m0, m1] != MARKER || length > MAX_PAYLOAD {
        return None;
    }
    let payload = rest.get(..length)?;
    let sequence = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
    Some(Frame {
        kind,
        sequence,
        payload,
    })
}

/// Iterates over every intact frame in `bytes` with its offset, whatever lies between them.
pub fn scan(bytes: &[u8]) -> impl Iterator<Item = (usize, Frame<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(at..)?;
            if let Some(frame) = at_start(rest) {
                let found = at;
                at += frame.size();
                return Some((found, frame));
            }
            // The smallest step that can lead to a frame, so that damage never hides an intact one.
            let next = rest.iter().skip(1).position(|&byte| byte == MARKER[0])?;
            at += 1 + next;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for (sequence, payload) in payloads.iter().enumerate() {
            let mut out = [0; MAX_FRAME];
            let len = write(&mut out, 1, sequence as u64, payload).unwrap();
            bytes.extend_from_slice(&out[..len]);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn sequences(bytes: &[u8]) -> Vec<u64> {
        scan(bytes).map(|(_, frame)| frame.sequence).collect()
    }

    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        // Half of the bytes look like the beginning of a marker.
        let byte = prop_oneof![Just(0xafu8), Just(0xf1), any::<u8>(), any::<u8>()];
        prop::collection::vec(prop::collection::vec(byte, 0..60), 1..12)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn a_cut_costs_exactly_the_frames_behind_it(payloads in payloads(), cut: prop::sample::Index) {
            let (bytes, ends) = stream(&payloads);
            let cut = cut.index(bytes.len() + 1);
            let whole = ends.iter().filter(|&&end| end <= cut).count() as u64;
            prop_assert_eq!(sequences(&bytes[..cut]), (0..whole).collect::<Vec<_>>());
        }

        #[test]
        fn damage_costs_exactly_the_frames_it_touches(
            payloads in payloads(),
            from: prop::sample::Index,
            damage in prop::collection::vec(1u8.., 1..100),
        ) {
            let (mut bytes, ends) = stream(&payloads);
            let from = from.index(bytes.len());
            let to = (from + damage.len()).min(bytes.len());
            for (byte, change) in bytes[from..to].iter_mut().zip(&damage) {
                *byte ^= change;
            }
            let untouched: Vec<u64> = (0..ends.len())
                .filter(|&i| ends[i] <= from || (i > 0 && ends[i - 1] >= to))
                .map(|i| i as u64)
                .collect();
            prop_assert_eq!(sequences(&bytes), untouched);
        }

        #[test]
        fn bytes_spliced_in_cost_at_most_the_frame_they_split(
            payloads in payloads(),
            at: prop::sample::Index,
            splice: Vec<u8>,
        ) {
            let (mut bytes, ends) = stream(&payloads);
            let at = at.index(bytes.len());
            let split = ends.iter().position(|&end| end > at).unwrap();
            let start = split.checked_sub(1).map_or(0, |before| ends[before]);
            let frame = bytes[start..ends[split]].to_vec();
            bytes.splice(at..at, splice.iter().copied());
            // Bytes that are the same as those around them split nothing.
            let is_whole = bytes.windows(frame.len()).any(|window| window == frame);
            let expected: Vec<u64> = (0..ends.len())
                .filter(|&i| i != split || is_whole)
                .map(|i| i as u64)
                .collect();
            prop_assert_eq!(sequences(&bytes), expected);
        }

        #[test]
        fn any_bytes_are_scanned_without_a_frame_beyond_them(bytes: Vec<u8>) {
            for (at, frame) in scan(&bytes) {
                prop_assert!(at + frame.size() <= bytes.len());
            }
        }
    }

    #[test]
    fn a_payload_that_is_too_long_is_refused() {
        assert_eq!(
            write(&mut [0; 2 * MAX_FRAME], 1, 1, &[0; MAX_PAYLOAD + 1]),
            None
        );
        assert_eq!(write(&mut [0; 20], 1, 1, &[0; 4]), None);
        assert_eq!(write(&mut [0; 21], 1, 1, &[0; 4]), Some(21));
    }
}
