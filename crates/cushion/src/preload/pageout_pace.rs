//! Computes how much is paged out at a time: what the disk writes within 20 to 80 ms, so that a read of another program
//! does not wait long behind it. Pure.

const FIRST_PIECE: u64 = 1 << 20;
const MIN_PIECE: u64 = 1 << 18;
const MAX_PIECE: u64 = 32 << 20;
const SHORT_NS: u64 = 20_000_000;
const LONG_NS: u64 = 80_000_000;

pub struct Pace {
    piece: u64,
}

impl Pace {
    pub const fn new() -> Self {
        Self { piece: FIRST_PIECE }
    }

    /// The size of the next piece.
    pub fn piece(&self) -> u64 {
        self.piece
    }

    /// Learns how long a piece of `bytes` took to reach the disk. A part of a piece says nothing of a whole one that
    /// would have taken longer.
    pub fn learn(&mut self, bytes: u64, took_ns: u64) {
        if took_ns > LONG_NS {
            self.piece = (self.piece / 2).max(MIN_PIECE);
        } else if took_ns < SHORT_NS && bytes == self.piece {
            self.piece = (self.piece * 2).min(MAX_PIECE);
        }
    }
}

/// The number of bytes that are being written to disks, from `/proc/meminfo`.
pub fn writeback_bytes(meminfo: &[u8]) -> Option<u64> {
    let line = meminfo
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Writeback:"))?;
    let digits = line.trim_ascii().split(|byte| *byte == b' ').next()?;
    let kilobytes = digits.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })?;
    (!digits.is_empty()).then(|| kilobytes.saturating_mul(1024))
}
