//! Encodes the head of a record: a group of numbers, then texts.

use super::wire::{Reader, Writer};
use super::{put_stamp, take_stamp};
use crate::head::RecordHead;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Encodes a head and returns how many bytes of `out` were used; 0 when it is too small.
pub(crate) fn encode_head(head: &RecordHead, out: &mut [u8]) -> usize {
    let (pieces, cut) = command_that_fits(head);
    let folder = head.folder.as_os_str().as_bytes();
    let mut writer = Writer::new(out);
    put_stamp(&mut writer, head.start);
    writer.number(head.schema.into());
    writer.number(head.total);
    writer.number(head.reserve);
    writer.optional(head.budget);
    writer.number((head.truncated || cut).into());
    writer.bytes(&head.boot);
    writer.text(run_that_fits(&head.run).as_bytes());
    writer.text(
        folder
            .get(folder.len().saturating_sub(RecordHead::MAX_FOLDER_BYTES)..)
            .unwrap_or(folder),
    );
    writer.number(pieces.clone().count() as u64);
    for piece in pieces {
        writer.text(piece);
    }
    writer.finish()
}

pub(crate) fn decode_head(bytes: &[u8]) -> Option<RecordHead> {
    let mut reader = Reader::new(bytes);
    let start = take_stamp(&mut reader)?;
    let schema = reader.number()?.try_into().ok()?;
    let total = reader.number()?;
    let reserve = reader.number()?;
    let budget = reader.optional()?;
    let truncated = reader.number()? != 0;
    let boot = reader.array()?;
    let run = String::from_utf8_lossy(reader.text()?).into_owned();
    let folder = Path::new(OsStr::from_bytes(reader.text()?)).to_path_buf();
    let pieces = reader.number()?;
    let mut command = Vec::new();
    for _ in 0..pieces {
        command.push(OsStr::from_bytes(reader.text()?).to_os_string());
    }
    Some(RecordHead {
        schema,
        run,
        boot,
        start,
        total,
        reserve,
        budget,
        folder,
        command,
        truncated,
    })
}

/// The start of the name that fits, cut between characters.
fn run_that_fits(run: &str) -> &str {
    let ends = run.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends
        .take_while(|&end| end <= RecordHead::MAX_RUN_BYTES)
        .last()
        .unwrap_or(0);
    run.get(..end).unwrap_or_default()
}

/// The first words of the command that fit together, and whether some did not. A word that does not fit is left out
/// whole, because half a path would be a wrong path.
fn command_that_fits(head: &RecordHead) -> (impl Iterator<Item = &[u8]> + Clone, bool) {
    let mut used = 0;
    let fitting = head.command.iter().take_while(|piece| {
        // Each word takes two bytes more at most, for its length.
        used += piece.len() + 2;
        used <= RecordHead::MAX_COMMAND_BYTES
    });
    let count = fitting.count();
    let pieces = head
        .command
        .iter()
        .take(count)
        .map(|piece| piece.as_bytes());
    (pieces, count < head.command.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_sense::Stamp;
    use std::ffi::OsString;

    fn head() -> RecordHead {
        RecordHead {
            schema: crate::SCHEMA,
            run: "2026-01-02-calm-otter".into(),
            boot: [7; 16],
            start: Stamp {
                monotonic_ns: 5,
                realtime_ns: u64::MAX,
            },
            total: 64 << 30,
            reserve: 2 << 30,
            budget: Some(0),
            folder: "/home/someone/net".into(),
            command: vec![
                "python".into(),
                "train.py".into(),
                OsStr::from_bytes(b"\xff").into(),
            ],
            truncated: false,
        }
    }

    fn there_and_back(head: &RecordHead) -> RecordHead {
        let mut out = [0; crate::frame::MAX_PAYLOAD];
        let len = encode_head(head, &mut out);
        assert_ne!(len, 0);
        decode_head(&out[..len]).unwrap()
    }

    #[test]
    fn a_head_comes_back_with_any_bytes_in_its_command() {
        assert_eq!(there_and_back(&head()), head());
    }

    #[test]
    fn a_long_command_keeps_its_first_pieces_and_says_so() {
        let long: OsString = "x".repeat(2000).into();
        let head = RecordHead {
            command: vec!["python".into(), long.clone(), long],
            ..head()
        };
        let back = there_and_back(&head);
        assert_eq!(back.command, head.command[..2]);
        assert!(back.truncated);
    }

    #[test]
    fn the_largest_head_fits_into_a_frame() {
        let back = there_and_back(&RecordHead {
            run: "é".repeat(100),
            folder: "/long".repeat(2000).into(),
            command: vec!["y".repeat(500).into(); 100],
            total: u64::MAX,
            reserve: u64::MAX,
            budget: Some(u64::MAX),
            ..head()
        });
        assert_eq!(back.run, "é".repeat(16));
        assert!(back.folder.ends_with("long/long"));
    }
}
