//! Writes to standard output, prints errors, and replaces files atomically.

use antifreeze_text::sanitize;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes to standard output; a reader that went away is no error.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), String> {
    match io::stdout().lock().write_all(text.as_ref()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Prints an error. A message may contain names of files and values of settings, which another user may have written:
/// no control sequence in it reaches the terminal. A closed standard error is ignored.
pub fn complain(message: &str) {
    let shown: Vec<String> = sanitize::code_lines(message).collect();
    let _ = writeln!(io::stderr().lock(), "antifreeze: {}", shown.join("\n"));
}

/// Replaces a file atomically, by writing it under another name first. The folder may be another user's: links
/// in it are replaced and never followed.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut aside = tempfile::Builder::new()
        .prefix(".antifreeze-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    aside.write_all(content)?;
    aside.as_file().sync_all()?;
    aside.persist(path)?;
    Ok(())
}

/// Writes to a path that the user has named: a pipe or a device is written to, anything else is replaced.
pub fn write_named(path: &Path, content: &[u8]) -> io::Result<()> {
    match path.metadata() {
        Ok(about) if !about.is_file() && !about.is_dir() => {
            let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
            file.write_all(content)
        }
        _ => replace(path, content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_replaced_and_a_device_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "theirs").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"ours").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"theirs");
        assert_eq!(std::fs::read(&link).unwrap(), b"ours");
        let null = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        write_named(&null, b"ours").unwrap();
        assert!(null.symlink_metadata().unwrap().is_symlink());
    }
}
