//! Replaces a file's content atomically and keeps its owner and permissions.

use crate::error::FileError;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// Replaces a file that still has the content `old`. Symbolic links are followed and stay links.
pub fn replace_file(path: &Path, old: &[u8], new: &[u8]) -> Result<(), FileError> {
    try_replace(path, old, new).map_err(FileError::Write)
}

fn try_replace(path: &Path, old: &[u8], new: &[u8]) -> io::Result<()> {
    let target = path.canonicalize()?;
    let about = fs::metadata(&target)?;
    if about.permissions().readonly() {
        return Err(io::Error::other("it is read-only"));
    }
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = target.with_file_name(format!(".{name}.antifreeze-{}", std::process::id()));
    let written = (|| {
        let mut file = File::create_new(&beside)?;
        file.write_all(new)?;
        // Only root can change the owner; for other users the file becomes their own.
        let _ = fchown(&file, Some(about.uid()), Some(about.gid()));
        file.set_permissions(about.permissions())?;
        file.sync_all()?;
        if fs::read(&target)? != old {
            return Err(io::Error::other("it was changed in the meantime"));
        }
        fs::rename(&beside, &target)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_keeps_its_permissions_and_a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        let link = folder.path().join("link.py");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
        symlink("a.py", &link).unwrap();
        replace_file(&link, b"old", b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o751);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_changed_or_is_protected_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        fs::write(&path, "other").unwrap();
        let message = replace_file(&path, b"old", b"new").unwrap_err().to_string();
        assert!(message.contains("meantime"), "{message}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(
            replace_file(&path, b"other", b"new")
                .unwrap_err()
                .to_string()
                .contains("read-only")
        );
        assert_eq!(fs::read(&path).unwrap(), b"other");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
