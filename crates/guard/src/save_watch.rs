//! Finds out whether a requested save is complete: a file that the tree held open for writing and then closed, or, if
//! the save was too quick to be seen, bytes that were written and then stopped.

use crate::slow_worker::Request;
use antifreeze_record::event::ShortText;
use antifreeze_sense::slow::visit_files_being_written;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, statat};
use std::ffi::CStr;
use std::mem::MaybeUninit;

const SECOND_NS: u64 = 1_000_000_000;
/// Bytes written without an open file in sight count after this long without more: such a save was too quick to be seen
/// open.
const QUIET_NS: u64 = SECOND_NS / 5;
/// A closed file may be renamed this much later, by a trainer of low CPU priority.
const RENAME_DELAY_NS: u64 = SECOND_NS / 10;
/// Fewer bytes are a line of output, not a save.
const MIN_SAVE_BYTES: u64 = 1024;

/// How many files that are always open for writing are remembered: logs, event files.
const MAX_USUAL_FILES: usize = 16;

/// Device and inode of a file, which identify it whatever its name.
pub type FileId = (u64, u64);

/// A completed save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Empty if no file was seen.
    pub file: ShortText,
    pub bytes: u64,
    /// When it was complete, monotonic.
    pub at: u64,
}

/// Watches one save after another.
#[derive(Default)]
pub struct SaveWatch {
    /// The time of the watched request; a new request starts over.
    asked: u64,
    file: Option<ShortText>,
    bytes: u64,
    open: bool,
    /// When the file was closed.
    closed_at: Option<u64>,
    /// Bytes that the tree had written when the save was requested, and most recently.
    written_then: u64,
    written: u64,
    quiet_since: u64,
    done: Option<Saved>,
    /// Bytes written at the last check before the request.
    written_before: Option<u64>,
    usual: [Option<ShortText>; MAX_USUAL_FILES],
    ignored: IgnoredFiles,
}

/// Files that are written to and are not saves.
#[derive(Clone, Copy, Default)]
pub struct IgnoredFiles {
    /// Where the output of the trainer goes.
    pub outputs: [Option<FileId>; 2],
    /// The folder of the run, which the shim writes to; empty if there is none.
    pub folder: &'static [u8],
}

impl IgnoredFiles {
    fn holds(&self, path: &[u8]) -> bool {
        let within = path
            .strip_prefix(self.folder)
            .filter(|_| !self.folder.is_empty());
        within.is_some_and(|name| name.starts_with(b"/"))
    }
}

impl SaveWatch {
    pub fn new(ignored: IgnoredFiles) -> SaveWatch {
        SaveWatch {
            ignored,
            ..SaveWatch::default()
        }
    }

    /// Records which files are being written while no save is requested.
    pub fn note_usual(&mut self, request: &Request, written: u64) {
        self.written_before = Some(written);
        self.usual = [None; MAX_USUAL_FILES];
        let mut places = self.usual.iter_mut();
        for pid in request.pids() {
            let _ = visit_files_being_written(pid, |path, _| {
                if let Some(place) = places.next() {
                    *place = Some(ShortText::new(path));
                }
            });
        }
    }

    /// Checks whether the save is complete; `written` is what the tree has written by now.
    pub fn check(&mut self, request: &Request, written: u64, now: u64) -> Option<Saved> {
        let asked = request.save_asked?;
        if asked != self.asked {
            *self = SaveWatch {
                asked,
                written_then: self.written_before.unwrap_or(written),
                quiet_since: now,
                usual: self.usual,
                ..SaveWatch::new(self.ignored)
            };
        }
        if self.done.is_none() {
            self.done = self.find_finished(request, written, now);
        }
        self.written_before = Some(written);
        self.done
    }

    fn find_finished(&mut self, request: &Request, written: u64, now: u64) -> Option<Saved> {
        let mut open = false;
        for pid in request.pids() {
            let _ = visit_files_being_written(pid, |path, size| {
                if self.ignored.holds(path) || self.usual.contains(&Some(ShortText::new(path))) {
                    return;
                }
                let same = self.file.is_some_and(|file| file == ShortText::new(path));
                if same || size >= self.bytes {
                    open = true;
                    self.file = Some(ShortText::new(path));
                    self.bytes = self.bytes.max(size);
                }
            });
        }
        let was_open = std::mem::replace(&mut self.open, open);
        if open {
            self.closed_at = None;
        } else if was_open {
            self.closed_at = Some(now);
        }
        if let Some(at) = self.closed_at {
            if now.saturating_sub(at) < RENAME_DELAY_NS {
                return None;
            }
            let file = self.file?;
            let (file, bytes) = place_of(&file, asked_at(now, self.asked), &self.ignored.outputs)?;
            return Some(Saved { file, bytes, at });
        }
        if written != self.written {
            self.written = written;
            self.quiet_since = now;
        }
        let written = written.saturating_sub(self.written_then);
        let quiet = now.saturating_sub(self.quiet_since) > QUIET_NS;
        (self.file.is_none() && written > MIN_SAVE_BYTES && quiet).then(|| {
            let newest = newest_in(c".", asked_at(now, self.asked), &self.ignored.outputs);
            let (file, bytes) = newest.unwrap_or((ShortText::new(b""), written));
            Saved {
                file,
                bytes,
                at: self.quiet_since,
            }
        })
    }
}

/// When the save was requested, in seconds since 1970, as in file times.
fn asked_at(now: u64, asked: u64) -> i64 {
    let seconds = (antifreeze_sense::clock::realtime_ns() / SECOND_NS) as i64;
    seconds - (now.saturating_sub(asked) / SECOND_NS) as i64 - 1
}

/// Where a written file is now: under its name, or, if it was renamed as careful saves are, the newest file of its
/// folder.
fn place_of(file: &ShortText, since: i64, outputs: &[Option<FileId>]) -> Option<(ShortText, u64)> {
    let mut path = [0u8; ShortText::MAX_BYTES + 1];
    let bytes = file.as_bytes();
    path[..bytes.len()].copy_from_slice(bytes);
    let whole = CStr::from_bytes_until_nul(&path).ok()?;
    if let Ok(stat) = statat(CWD, whole, AtFlags::empty()) {
        return Some((*file, stat.st_size as u64));
    }
    let folder_end = bytes.iter().rposition(|byte| *byte == b'/')?;
    path[folder_end.max(1)] = 0;
    newest_in(CStr::from_bytes_until_nul(&path).ok()?, since, outputs)
}

/// Name and size of the newest regular file of a folder that was written since then and is not output.
fn newest_in(folder: &CStr, since: i64, outputs: &[Option<FileId>]) -> Option<(ShortText, u64)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty()).ok()?;
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&folder, &mut space);
    let mut newest: Option<(i64, u64, ShortText, u64)> = None;
    while let Some(Ok(entry)) = entries.next() {
        let Ok(stat) = statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let stamp = (stat.st_mtime, stat.st_mtime_nsec);
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && !outputs.contains(&Some((stat.st_dev, stat.st_ino)));
        let newer = newest.is_none_or(|(second, nano, ..)| stamp > (second, nano));
        if regular && stamp.0 >= since && newer {
            let name = ShortText::new(entry.file_name().to_bytes());
            newest = Some((stamp.0, stamp.1, name, stat.st_size as u64));
        }
    }
    newest.map(|(_, _, name, bytes)| (name, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &std::path::Path) -> ShortText {
        use std::os::unix::ffi::OsStrExt;
        ShortText::new(path.as_os_str().as_bytes())
    }

    #[test]
    fn a_renamed_save_is_found_under_its_new_name() {
        let folder = tempfile::tempdir().unwrap();
        let aside = folder.path().join(".model.pt.tmp");
        let final_place = folder.path().join("model.pt");
        std::fs::write(folder.path().join("older.txt"), "x").unwrap();
        std::fs::write(&aside, [7; 5000]).unwrap();
        assert_eq!(place_of(&text(&aside), 0, &[]), Some((text(&aside), 5000)));
        std::fs::rename(&aside, &final_place).unwrap();
        assert_eq!(
            place_of(&text(&aside), 0, &[]),
            Some((ShortText::new(b"model.pt"), 5000))
        );
        assert_eq!(
            place_of(&text(&aside), i64::MAX, &[]),
            None,
            "nothing is that new"
        );
    }

    #[test]
    fn what_the_trainer_prints_to_is_no_save() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.txt");
        std::fs::write(&log, [7; 5000]).unwrap();
        let id = std::fs::metadata(&log)
            .map(|data| (data.dev(), data.ino()))
            .unwrap();
        let gone = text(&folder.path().join("gone"));
        assert_eq!(
            place_of(&gone, 0, &[]),
            Some((ShortText::new(b"log.txt"), 5000))
        );
        assert_eq!(place_of(&gone, 0, &[Some(id), None]), None);
    }

    #[test]
    fn what_is_written_to_the_runs_own_folder_is_no_save() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("run");
        std::fs::create_dir(&home).unwrap();
        let ignored = IgnoredFiles {
            folder: home.as_os_str().as_encoded_bytes().to_vec().leak(),
            ..IgnoredFiles::default()
        };
        let mut request = Request {
            save_asked: Some(10 * SECOND_NS),
            count: 1,
            ..Request::default()
        };
        request.named[0].0 = antifreeze_sense::Pid(std::process::id());
        let lands = |path: &std::path::Path| {
            let mut watch = SaveWatch::new(ignored);
            let file = std::fs::File::create(path).unwrap();
            file.set_len(5000).unwrap();
            assert_eq!(watch.check(&request, 0, 11 * SECOND_NS), None);
            drop(file);
            assert_eq!(
                watch.check(&request, 0, 12 * SECOND_NS),
                None,
                "its name may change"
            );
            let saved = watch.check(&request, 0, 13 * SECOND_NS);
            saved
                .inspect(|saved| assert_eq!(saved.at, 12 * SECOND_NS))
                .is_some()
        };
        assert!(lands(&folder.path().join("model.pt")));
        assert!(lands(&folder.path().join("running.pt")));
        assert!(!lands(&home.join("shim-7.jsonl")));
    }

    #[test]
    fn each_request_is_watched_anew() {
        let mut watch = SaveWatch::default();
        watch.note_usual(&Request::default(), 100);
        let first = Request {
            save_asked: Some(10 * SECOND_NS),
            ..Request::default()
        };
        assert_eq!(
            watch.check(&first, 5000, 11 * SECOND_NS),
            None,
            "it may still be writing"
        );
        let saved = watch
            .check(&first, 5000, 12 * SECOND_NS)
            .expect("it has been quiet for a second");
        assert_eq!(saved.at, 11 * SECOND_NS);
        let second = Request {
            save_asked: Some(20 * SECOND_NS),
            ..first
        };
        assert_eq!(
            watch.check(&second, 5000, 21 * SECOND_NS),
            None,
            "nothing was written since"
        );
        assert_eq!(watch.check(&second, 5000, 29 * SECOND_NS), None);
    }
}
