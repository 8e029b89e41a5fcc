//! Folders that code is loaded from. A user who can write to one runs code as its reader, so a folder is used only if
//! no user but its owner and root can change what is in it, or replace it.
//!
//! Checked on every use: the folder and every folder above it belongs to this user or to root, and no other user may
//! write to it; links on the way belong to them too. A sticky folder (`/tmp`) may stand above, because a user cannot rename there what belongs to another. The
//! folder itself belongs to this user. The umask does not matter: modes are set explicitly.

use std::fs::{DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Makes the folder where it is missing. Returns its path without links, or an error where another user could write
/// to it.
pub fn open(folder: &Path) -> io::Result<PathBuf> {
    let user = User::this();
    // Before anything is made there: a link of another user would decide where.
    for part in folder.ancestors() {
        let link = part.symlink_metadata().ok().filter(Metadata::is_symlink);
        if link.is_some_and(|link| !user.trusts_owner(&About::from(&link))) {
            return Err(refused(part));
        }
    }
    if let Some(above) = folder.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(above)?;
        // Before the mode of anything is set there: where another user could replace it, it would be that of another file.
        user.check(&above.canonicalize()?)?;
    }
    let mode = mode();
    match DirBuilder::new().mode(mode).create(folder) {
        Ok(()) => std::fs::set_permissions(folder, Permissions::from_mode(mode))?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let folder = folder.canonicalize()?;
    if let Some(above) = folder.parent() {
        user.check(above)?;
    }
    if !user.owns_alone(&About::from(&folder.symlink_metadata()?)) {
        return Err(refused(&folder));
    }
    Ok(folder)
}

/// Root's trainers may switch to another user, who has to read the code as well.
pub fn mode() -> u32 {
    if rustix::process::geteuid().is_root() {
        0o755
    } else {
        0o700
    }
}

/// Whether the file or folder belongs to this user, and no other user may write to it. A link is none of both.
pub fn is_own(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|about| !about.is_symlink() && User::this().owns_alone(&About::from(&about)))
}

/// Whether a file or folder is there and belongs neither to this user nor to root.
pub fn belongs_to_another_user(path: &Path) -> bool {
    let user = User::this();
    path.metadata()
        .is_ok_and(|about| !user.trusts_owner(&About::from(&about)))
}

fn refused(path: &Path) -> io::Error {
    let text = format!("another user may write to {}", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

struct About {
    uid: u32,
    gid: u32,
    mode: u32,
}

impl From<&Metadata> for About {
    fn from(about: &Metadata) -> About {
        About {
            uid: about.uid(),
            gid: about.gid(),
            mode: about.mode(),
        }
    }
}

impl User {
    fn this() -> User {
        User {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    fn owns_alone(self, about: &About) -> bool {
        about.uid == self.uid && !self.is_open_to_others(about)
    }

    /// Refuses a folder in which another user could replace something, or which another user could replace. The path has
    /// no links.
    fn check(self, folder: &Path) -> io::Result<()> {
        for part in folder.ancestors() {
            if !self.trusts_above(&About::from(&part.metadata()?)) {
                return Err(refused(part));
            }
        }
        Ok(())
    }

    fn trusts_above(self, about: &About) -> bool {
        let is_sticky = about.mode & 0o1000 != 0;
        self.trusts_owner(about) && (is_sticky || !self.is_open_to_others(about))
    }

    fn trusts_owner(self, about: &About) -> bool {
        about.uid == 0 || about.uid == self.uid
    }

    fn is_open_to_others(self, about: &About) -> bool {
        // Many systems give each user a group of the same number, and a umask that lets this group write.
        let is_private_group = about.gid == self.gid && self.gid == self.uid;
        about.mode & 0o002 != 0 || (about.mode & 0o020 != 0 && !is_private_group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(uid: u32, gid: u32, mode: u32) -> About {
        About { uid, gid, mode }
    }

    const ADA: User = User {
        uid: 1000,
        gid: 1000,
    };

    #[test]
    fn only_what_nobody_else_can_write_to_is_ones_own() {
        assert!(ADA.owns_alone(&about(1000, 1000, 0o700)));
        assert!(ADA.owns_alone(&about(1000, 1000, 0o775)));
        assert!(!ADA.owns_alone(&about(1000, 100, 0o775)), "a shared group");
        assert!(!ADA.owns_alone(&about(1000, 1000, 0o777)));
        assert!(!ADA.owns_alone(&about(1000, 1000, 0o1777)));
        assert!(!ADA.owns_alone(&about(1001, 1000, 0o700)));
        assert!(!ADA.owns_alone(&about(0, 0, 0o755)));
        let in_shared_group = User { gid: 100, ..ADA };
        assert!(!in_shared_group.owns_alone(&about(1000, 100, 0o775)));
    }

    #[test]
    fn a_sticky_folder_and_those_of_root_may_stand_above() {
        assert!(ADA.trusts_above(&about(0, 0, 0o755)));
        assert!(ADA.trusts_above(&about(0, 0, 0o1777)));
        assert!(!ADA.trusts_above(&about(0, 0, 0o777)));
        assert!(!ADA.trusts_above(&about(1001, 1001, 0o755)));
    }

    #[test]
    fn a_folder_that_others_can_write_to_or_replace_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/lib");
        assert_eq!(open(&path).unwrap(), path.canonicalize().unwrap());
        assert_eq!(path.metadata().unwrap().mode() & 0o777, mode());
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        set(&path, 0o777);
        assert!(open(&path).is_err());
        set(&path, 0o700);
        let above = path.parent().unwrap();
        set(above, 0o777);
        assert!(open(&path).is_err());
        set(above, 0o1777);
        assert!(open(&path).is_ok());
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(open(&link.join("lib")).is_err(), "it leads nowhere");
        std::fs::create_dir(&target).unwrap();
        assert!(open(&link.join("lib")).is_ok());
        if !rustix::process::geteuid().is_root() {
            return;
        }
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        std::fs::remove_dir(target.join("lib")).unwrap();
        assert!(open(&link.join("lib")).is_err());
        assert!(!target.join("lib").exists());
    }
}
