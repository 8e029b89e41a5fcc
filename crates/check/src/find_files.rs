//! Finds the files to check. Folders are walked without what git ignores, hidden files, and
//! installed or built code. A named file is always checked.

use crate::error::FindError;
use ignore::{WalkBuilder, WalkState};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Folders with installed or generated code.
const SKIPPED_FOLDERS: [&str; 10] = [
    ".git",
    ".venv",
    "venv",
    "node_modules",
    "site-packages",
    "__pycache__",
    "__pypackages__",
    "build",
    "_build",
    "dist",
];

/// The files found for the arguments.
#[derive(Debug, Default)]
pub struct FoundFiles {
    /// The paths, sorted and without duplicates.
    pub paths: Vec<PathBuf>,
    /// What could not be read, and why.
    pub errors: Vec<FindError>,
}

/// Finds the files of these arguments. Excluded files are skipped unless they are named.
pub fn find_files(arguments: &[PathBuf], is_excluded: impl Fn(&Path) -> bool + Sync) -> FoundFiles {
    let mut files = FoundFiles::default();
    for argument in arguments {
        match std::fs::metadata(argument) {
            Ok(about) if about.is_dir() => walk(argument, &is_excluded, &mut files),
            Ok(_) => files.paths.push(argument.clone()),
            Err(error) => files
                .errors
                .push(FindError::Argument(argument.clone(), error)),
        }
    }
    for path in &mut files.paths {
        if let Ok(plain) = path.strip_prefix(".") {
            *path = plain.to_owned();
        }
    }
    files.paths.sort_unstable();
    if arguments.len() > 1 {
        let mut seen = HashSet::new();
        files.paths.retain(|path| seen.insert(resolved(path)));
    }
    files
}

fn walk(folder: &Path, is_excluded: &(impl Fn(&Path) -> bool + Sync), files: &mut FoundFiles) {
    // Naming a folder with installed code means that it should be checked, although git ignores it.
    let is_inside = resolved(folder).ancestors().any(is_installed);
    let found = Mutex::new(files);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    // Excluded folders are not entered. The walker's own filter cannot be used because it must be
    // `'static`.
    let walker = WalkBuilder::new(folder)
        .standard_filters(!is_inside)
        .require_git(false)
        .threads(cores)
        .build_parallel();
    walker.run(|| {
        Box::new(|entry| {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    if let Ok(mut found) = found.lock() {
                        found.errors.push(FindError::Walk(error));
                    }
                    return WalkState::Continue;
                }
            };
            let path = entry.path();
            let kind = entry.file_type();
            let is_folder = kind.is_some_and(|kind| kind.is_dir());
            if entry.depth() > 0
                && ((is_folder && !is_inside && is_skipped(path)) || is_excluded(path))
            {
                return WalkState::Skip;
            }
            let is_file = kind.is_some_and(|kind| kind.is_file());
            if is_file
                && is_python(path)
                && let Ok(mut found) = found.lock()
            {
                found.paths.push(entry.into_path());
            }
            WalkState::Continue
        })
    });
}

fn is_skipped(folder: &Path) -> bool {
    is_called(folder, &SKIPPED_FOLDERS) || is_installed(folder)
}

/// A Python environment is recognized by its file, whatever its name.
fn is_installed(folder: &Path) -> bool {
    is_called(folder, &["site-packages", "node_modules"]) || folder.join("pyvenv.cfg").exists()
}

fn is_called(folder: &Path, names: &[&str]) -> bool {
    folder
        .file_name()
        .is_some_and(|own| names.iter().any(|name| own == *name))
}

fn is_python(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "py" || extension == "ipynb")
}

/// Resolves links, so that two paths to one file are equal.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize()
        .unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    fn found(folder: &Path, arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<_> = arguments.iter().map(|name| folder.join(name)).collect();
        let files = find_files(&arguments, |path| path.ends_with("excluded"));
        assert!(files.errors.is_empty(), "{:?}", files.errors);
        let name = |path: &PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
        files.paths.iter().map(name).collect()
    }

    #[test]
    fn folders_are_walked_without_what_is_skipped() {
        let folder = folder(&[
            "b.py",
            "a.py",
            "n.ipynb",
            "a.pyi",
            "a.txt",
            "sub/c.py",
            "venv/x.py",
            ".hidden/x.py",
            "lib/site-packages/x.py",
            "build/x.py",
            "excluded/x.py",
            "ignored/x.py",
            "my/x.py",
            "my/pyvenv.cfg",
        ]);
        std::fs::write(folder.path().join(".gitignore"), "ignored/\n").unwrap();
        let found = found(folder.path(), &[""]);
        assert_eq!(found, ["a.py", "b.py", "n.ipynb", "sub/c.py"]);
    }

    #[test]
    fn who_names_it_gets_it_once() {
        let folder = folder(&["venv/pyvenv.cfg", "venv/lib/build/a.py", "script", "a.py"]);
        std::fs::write(folder.path().join("venv/.gitignore"), "*\n").unwrap();
        assert_eq!(found(folder.path(), &["venv"]), ["venv/lib/build/a.py"]);
        assert_eq!(
            found(folder.path(), &["a.py", "script", "", "./a.py"]),
            ["a.py", "script"]
        );
    }

    #[test]
    fn a_project_below_a_folder_of_such_a_name_is_walked_as_any_other() {
        let folder = folder(&["build/project/a.py", "build/project/dist/b.py"]);
        assert_eq!(
            found(folder.path(), &["build/project"]),
            ["build/project/a.py"]
        );
    }

    #[test]
    fn what_is_not_there_is_said_and_the_rest_goes_on() {
        let folder = folder(&["a.py"]);
        let files = find_files(&[folder.path().join("b.py"), folder.path().into()], |_| {
            false
        });
        assert_eq!(files.paths.len(), 1);
        assert!(files.errors[0].to_string().contains("b.py: No such file"));
    }
}
