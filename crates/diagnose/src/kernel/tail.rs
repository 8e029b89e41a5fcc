//! The end of a stream or file, in bounded memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// So much of a log is read.
pub const LIMIT: usize = 16 << 20;
/// At most so much is skipped of a file without a known length.
const ENDLESS: u64 = 256 << 20;

/// Keeps the end of a stream.
pub struct Tail {
    bytes: Vec<u8>,
    limit: usize,
    dropped: bool,
}

impl Tail {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Tail {
        Tail {
            bytes: Vec::new(),
            limit,
            dropped: false,
        }
    }

    /// Adds bytes.
    pub fn push(&mut self, more: &[u8]) {
        self.bytes.extend_from_slice(more);
        // Seldom, so that every byte is moved at most once on average.
        if self.bytes.len() >= self.limit.saturating_mul(2) {
            self.shorten();
        }
    }

    /// The end, without a first line that was cut.
    pub fn finish(mut self) -> Vec<u8> {
        self.shorten();
        if self.dropped {
            drop_first_line(&mut self.bytes);
        }
        self.bytes
    }

    fn shorten(&mut self) {
        let surplus = self.bytes.len().saturating_sub(self.limit);
        self.dropped |= surplus > 0;
        self.bytes.drain(..surplus);
    }
}

fn drop_first_line(bytes: &mut Vec<u8>) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    bytes.drain(..end.map_or(bytes.len(), |end| end + 1));
}

/// Reads the end of a file.
pub fn read_file(mut file: File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let limit = u64::try_from(LIMIT).unwrap_or(u64::MAX);
    let skips = length.saturating_sub(limit);
    if skips > 0 {
        file.seek(SeekFrom::Start(skips))?;
    }
    let mut tail = Tail::new(LIMIT);
    tail.dropped = skips > 0;
    let mut left = file.take(ENDLESS);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match left.read(&mut buffer) {
            Ok(0) => return Ok(tail.finish()),
            Ok(count) => tail.push(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_the_end_are_kept() {
        for (pushes, kept) in [
            (&["one\ntwo\n"][..], "one\ntwo\n"),
            (&["one\n", "two\n", "three\n", "four\n"], "four\n"),
            (&["a line without an end"], ""),
            (&[], ""),
        ] {
            let mut tail = Tail::new(9);
            for more in pushes {
                tail.push(more.as_bytes());
            }
            assert_eq!(String::from_utf8(tail.finish()).unwrap(), kept);
        }
    }

    #[test]
    fn an_endless_file_comes_to_an_end() {
        let zeros = read_file(File::open("/dev/zero").unwrap()).unwrap();
        assert!(zeros.len() <= LIMIT);
    }
}
