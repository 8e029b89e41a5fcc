//! What git leaves out of a folder, or a person by `.ignore`, and hidden files. The files that say so may be anybody's: only
//! regular ones of a bounded length are read, because a pipe of such a name would block the walk, and a device has no end.

use antifreeze_sense::regular_file;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Longer files are not ignore files that a person wrote.
const MAX_BYTES: usize = 256 << 10;

/// The rules of every folder that was asked about, and of those above it.
pub struct Ignored {
    folders: Mutex<HashMap<PathBuf, Arc<Rules>>>,
    /// The user's own, for all repositories.
    global: Gitignore,
}

struct Rules {
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// Git's rules of folders above do not hold below.
    is_repository: bool,
    above: Option<Arc<Rules>>,
}

impl Ignored {
    pub fn new() -> Ignored {
        let global = gitconfig_excludes_path().map(|path| rules_of(Path::new(""), &path));
        Ignored {
            folders: Mutex::default(),
            global: global.unwrap_or_else(Gitignore::empty),
        }
    }

    /// Whether it is left out. The path has no links and is absolute.
    pub fn is_ignored(&self, path: &Path, is_folder: bool) -> bool {
        let rules = path.parent().map(|folder| self.rules(folder));
        let mut found = [Match::None, Match::None, Match::None];
        let mut is_outside = false;
        let mut next = rules.as_deref();
        while let Some(rules) = next {
            let kinds = [&rules.ignore, &rules.git, &rules.exclude];
            for (number, (found, kind)) in found.iter_mut().zip(kinds).enumerate() {
                if found.is_none() && (number == 0 || !is_outside) {
                    *found = kind.matched(path, is_folder).map(|_| ());
                }
            }
            is_outside |= rules.is_repository;
            next = rules.above.as_deref();
        }
        let [ignore, git, exclude] = found;
        let global = || self.global.matched(path, is_folder).map(|_| ());
        match ignore.or(git).or(exclude).or(global()) {
            Match::Ignore(()) => true,
            Match::Whitelist(()) => false,
            Match::None => path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b".")),
        }
    }

    fn rules(&self, folder: &Path) -> Arc<Rules> {
        let known = || {
            let folders = self.folders.lock();
            folders
                .unwrap_or_else(PoisonError::into_inner)
                .get(folder)
                .cloned()
        };
        if let Some(rules) = known() {
            return rules;
        }
        let rules = Arc::new(Rules {
            ignore: rules_of(folder, &folder.join(".ignore")),
            git: rules_of(folder, &folder.join(".gitignore")),
            exclude: rules_of(folder, &repository(folder).join("info/exclude")),
            is_repository: folder.join(".git").exists(),
            above: folder.parent().map(|above| self.rules(above)),
        });
        let folders = self.folders.lock();
        folders
            .unwrap_or_else(PoisonError::into_inner)
            .insert(folder.to_owned(), Arc::clone(&rules));
        rules
    }
}

/// Where the repository of a folder is. A working tree has a file that says so, and there is one that names what all
/// working trees share.
fn repository(folder: &Path) -> PathBuf {
    let git = folder.join(".git");
    let Some(tree) = text_of(&git) else {
        return git;
    };
    let Some(tree) = tree.trim().strip_prefix("gitdir: ") else {
        return git;
    };
    let tree = folder.join(tree);
    match text_of(&tree.join("commondir")) {
        Some(shared) => tree.join(shared.trim()),
        None => tree,
    }
}

/// The rules in a file, for what is in the folder.
fn rules_of(folder: &Path, file: &Path) -> Gitignore {
    let Some(text) = text_of(file) else {
        return Gitignore::empty();
    };
    let mut rules = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern leaves nothing out.
        let _ = rules.add_line(None, line);
    }
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

fn text_of(file: &Path) -> Option<String> {
    let bytes = regular_file::read(file).ok()?;
    (bytes.len() <= MAX_BYTES).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn the_nearest_rule_holds_and_those_of_another_repository_do_not() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        create_dir_all(top.join("repository/.git/info")).unwrap();
        create_dir_all(top.join("repository/below")).unwrap();
        write(top.join(".gitignore"), "far.py\n").unwrap();
        write(top.join(".ignore"), "every.py\n").unwrap();
        write(
            top.join("repository/.gitignore"),
            "\u{feff}*.py\n!.kept.py\nout/\n",
        )
        .unwrap();
        write(top.join("repository/.git/info/exclude"), "excluded.*\n").unwrap();
        write(top.join("repository/below/.gitignore"), "!near.py\n").unwrap();
        let ignored = Ignored::new();
        for (path, is_folder, expected) in [
            ("far.py", false, true),
            ("near.py", false, false),
            (".hidden.py", false, true),
            ("every.py", false, true),
            ("repository/a.py", false, true),
            ("repository/.kept.py", false, false),
            ("repository/far.ipynb", false, false),
            ("repository/excluded.ipynb", false, true),
            ("repository/out", true, true),
            ("repository/out", false, false),
            ("repository/below/near.py", false, false),
            ("repository/below/other.py", false, true),
            ("repository/below/every.py", false, true),
        ] {
            let found = ignored.is_ignored(&top.join(path), is_folder);
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn a_working_tree_has_the_exclusions_of_its_repository() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let tree = top.join("repository/worktrees/tree");
        create_dir_all(&tree).unwrap();
        create_dir_all(top.join("repository/info")).unwrap();
        create_dir_all(top.join("tree")).unwrap();
        write(top.join("repository/info/exclude"), "excluded.py\n").unwrap();
        write(tree.join("commondir"), "../..\n").unwrap();
        let pointer = format!("gitdir: {}\n", tree.display());
        write(top.join("tree/.git"), pointer).unwrap();
        let ignored = Ignored::new();
        assert!(ignored.is_ignored(&top.join("tree/excluded.py"), false));
        assert!(!ignored.is_ignored(&top.join("tree/a.py"), false));
    }
}
