//! Any files under the names of a run's files: regular ones with any content, pipes, devices, links, folders, and files
//! without an end. Reading the run and all that is said of it neither waits, nor fails, nor reads without bound.

#![no_main]

use antifreeze_diagnose::{ReadContext, Run};
use antifreeze_record::{Record, output_tail};
use libfuzzer_sys::fuzz_target;
use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const NAMES: [&str; 18] = [
    "record.0",
    "record.1",
    "record.2",
    "record.3",
    "output",
    "errors",
    "guard",
    "terms.json",
    "verdict.json",
    "shim-7.jsonl",
    "shim-8.jsonl",
    "stacks-7",
    "stacks-8",
    "waits",
    "saves",
    "saves/step-3.pt",
    "saves/step-4.weights.h5",
    "saves/step-5.json",
];
const TARGETS: [&str; 5] = [
    "/dev/zero",
    "/dev/full",
    "/proc/self/fd",
    "output",
    "nowhere",
];

fuzz_target!(|bytes: &[u8]| {
    let folder = Folder::new();
    let mut rest = bytes;
    while let [name, kind, low, high, content @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high]));
        let (content, others) = content.split_at(length.min(content.len()));
        let path = folder.0.join(NAMES[usize::from(*name) % NAMES.len()]);
        if path.parent() != Some(&folder.0) {
            let _ = fs::create_dir(folder.0.join("saves"));
        }
        if fs::symlink_metadata(&path).is_err() {
            make(&path, *kind, content);
        }
        rest = others;
    }
    let mut last_output = output_tail::read(&folder.0.join("output")).unwrap_or_default();
    last_output.extend(output_tail::read(&folder.0.join("errors")).unwrap_or_default());
    let context = ReadContext {
        boot: [1; 16],
        guarded: bytes.first() == Some(&1),
        is_here: true,
    };
    let Ok(run) = Run::open(&folder.0, last_output, context) else {
        return;
    };
    let style = antifreeze_view::TermStyle::default();
    antifreeze_view::explain(&run, &style);
    antifreeze_view::show(&run.verdict, &run.facts, &run.summary, [], &style);
    let record = Record::open(&folder.0).ok();
    let samples = record.iter().flat_map(Record::samples);
    antifreeze_view::report(&run, samples, &style);
});

/// A file that seems to be a terabyte long: a record of it is read up to its longest length, so it is rare.
const ENDLESS: u8 = 255;

fn make(path: &Path, kind: u8, content: &[u8]) {
    // One that cannot be made is missing, which is a case as well.
    let _ = match kind {
        ENDLESS => fs::write(path, content)
            .and_then(|()| File::options().write(true).open(path)?.set_len(1 << 40)),
        _ => make_usual(path, kind, content),
    };
}

fn make_usual(path: &Path, kind: u8, content: &[u8]) -> io::Result<()> {
    match kind % 16 {
        0 => {
            let name = CString::new(path.as_os_str().as_encoded_bytes())
                .expect("no NUL in a path of ours");
            // SAFETY: the name ends with a NUL.
            unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
            Ok(())
        }
        1 => symlink(TARGETS[content.len() % TARGETS.len()], path),
        2 => fs::create_dir(path),
        3 => symlink(path, path),
        _ => fs::write(path, content),
    }
}

/// A folder in memory, of this process.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let path = Path::new("/dev/shm").join(format!("antifreeze-fuzz-{}", std::process::id()));
        // Left by a process that had the same number and crashed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("room in /dev/shm");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
