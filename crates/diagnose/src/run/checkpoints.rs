//! The checkpoints of a run that the shim saved in its saves folder.
//!
//! The shim gives a checkpoint its final name only after it was written, flushed to the disk and read back
//! (`python/antifreeze/_shim/checkpoints.py` describes the folder). So what is found here is complete; what was deleted
//! or cut short since is left out. Checkpoints of different kinds never replace each other.

use antifreeze_sense::regular_file;
use serde::Deserialize;
use std::fs::Metadata;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A pointer file is read up to this many bytes.
const MAX_POINTER_BYTES: u64 = 64 << 10;
/// The end record of a ZIP archive lies within this many bytes of its end.
const ZIP_END_BYTES: u64 = (64 << 10) + 22;

/// The framework that can load a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The shim's own: `antifreeze.resume` loads it.
    Torch,
    Lightning,
    /// A whole Keras model.
    Keras,
    /// The shim's own for Keras: `antifreeze.resume` loads it.
    KerasWeights,
    Transformers,
    /// What the script's own function saved.
    Script,
}

impl Kind {
    fn from_suffix(suffix: &str) -> Option<Kind> {
        match suffix {
            "pt" => Some(Kind::Torch),
            "ckpt" => Some(Kind::Lightning),
            "keras" => Some(Kind::Keras),
            "weights.h5" => Some(Kind::KerasWeights),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub kind: Kind,
    /// Training steps that were done when it was written.
    pub step: u64,
    pub path: PathBuf,
    /// None of a folder.
    pub bytes: Option<u64>,
    /// When it was written, by the file system's clock.
    pub written: SystemTime,
}

#[derive(Deserialize)]
struct Pointer {
    kind: Kind,
    path: PathBuf,
}

impl Checkpoint {
    /// The newest checkpoint of these kinds, by the time it was written: a script may train a second model from
    /// step 0.
    pub fn newest<'a>(checkpoints: &'a [Checkpoint], kinds: &[Kind]) -> Option<&'a Checkpoint> {
        let of_kind = |one: &&Checkpoint| kinds.is_empty() || kinds.contains(&one.kind);
        checkpoints
            .iter()
            .filter(of_kind)
            .max_by_key(|one| (one.written, one.step))
    }
}

/// The complete checkpoints in a saves folder; none where there is no folder.
pub fn scan(folder: &Path) -> Vec<Checkpoint> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| read_entry(&entry.path()))
        .collect()
}

fn read_entry(path: &Path) -> Option<Checkpoint> {
    let name = path.file_name()?.to_str()?;
    let (step, suffix) = name.strip_prefix("step-")?.split_once('.')?;
    let step = step.parse().ok()?;
    let written = path.metadata().ok()?.modified().ok()?;
    let (kind, path) = match Kind::from_suffix(suffix) {
        Some(kind) => (kind, path.to_owned()),
        None => {
            let pointer = read_pointer(path, suffix)?;
            (pointer.kind, pointer.path)
        }
    };
    let data = path.metadata().ok()?;
    is_complete(kind, &path, &data).then(|| Checkpoint {
        kind,
        step,
        bytes: data.is_file().then_some(data.len()),
        path,
        written,
    })
}

fn read_pointer(path: &Path, suffix: &str) -> Option<Pointer> {
    suffix.strip_suffix(".json")?;
    let mut text = Vec::new();
    let file = regular_file::open(path).ok()?;
    file.take(MAX_POINTER_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Whether it ends as a checkpoint of its kind does. Its content was read back when it was written, and is once more
/// when it is loaded.
fn is_complete(kind: Kind, path: &Path, data: &Metadata) -> bool {
    if data.is_dir() {
        return match kind {
            Kind::Transformers => path.join("trainer_state.json").is_file(),
            _ => std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()),
        };
    }
    match kind {
        Kind::Torch | Kind::Lightning | Kind::Keras => ends_as_zip(path, data.len()),
        Kind::KerasWeights | Kind::Script => data.len() > 0,
        Kind::Transformers => false,
    }
}

fn ends_as_zip(path: &Path, length: u64) -> bool {
    let end = || -> std::io::Result<Vec<u8>> {
        let mut file = regular_file::open(path)?;
        file.seek(SeekFrom::Start(length.saturating_sub(ZIP_END_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(ZIP_END_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    end().is_ok_and(|bytes| bytes.windows(4).any(|four| four == b"PK\x05\x06"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The least that ends as an archive does.
    pub(crate) const ZIP: &[u8] = b"PK\x03\x04 and so on PK\x05\x06 0123456789abcdef";

    fn names(folder: &Path) -> Vec<(Kind, u64)> {
        let mut found: Vec<_> = scan(folder)
            .iter()
            .map(|one| (one.kind, one.step))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn complete_checkpoints_are_found_with_their_kind_and_step() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, content) in [
            ("step-12.pt", ZIP),
            ("step-900.ckpt", ZIP),
            ("step-3.weights.h5", b"\x89HDF"),
            ("step-4.keras", &ZIP[..9]),
            ("step-5.ckpt", b""),
            (".77-step-13.pt", ZIP),
            ("step-x.pt", ZIP),
            ("notes.txt", b"x"),
        ] {
            std::fs::write(at(name), content).unwrap();
        }
        let expected = [
            (Kind::Torch, 12),
            (Kind::Lightning, 900),
            (Kind::KerasWeights, 3),
        ];
        assert_eq!(names(folder.path()), expected);
        assert_eq!(scan(&at("nowhere")), []);
    }

    #[test]
    fn a_pointer_counts_as_long_as_what_it_names_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = folder.path().join("checkpoint-40");
        let pointer =
            serde_json::json!({"antifreeze": 1, "kind": "transformers", "path": checkpoint});
        let at = folder.path().join("step-40.transformers.json");
        std::fs::write(&at, pointer.to_string()).unwrap();
        assert_eq!(names(folder.path()), []);
        std::fs::create_dir(&checkpoint).unwrap();
        assert_eq!(names(folder.path()), [], "half written");
        std::fs::write(checkpoint.join("trainer_state.json"), "{}").unwrap();
        assert_eq!(names(folder.path()), [(Kind::Transformers, 40)]);
        std::fs::write(&at, "{ half a poi").unwrap();
        assert_eq!(names(folder.path()), []);
    }

    #[test]
    fn the_newest_is_the_one_that_was_written_last() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, second| {
            let file = std::fs::File::create(folder.path().join(name)).unwrap();
            std::io::Write::write_all(&mut &file, ZIP).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second))
                .unwrap();
        };
        write("step-500.ckpt", 1);
        write("step-10.ckpt", 2);
        write("step-700.pt", 3);
        let found = scan(folder.path());
        let step = |kinds: &[Kind]| Checkpoint::newest(&found, kinds).map(|one| one.step);
        assert_eq!(step(&[Kind::Lightning]), Some(10));
        assert_eq!(step(&[]), Some(700));
        assert_eq!(step(&[Kind::Keras]), None);
    }
}
