//! # missing-dependency
//!
//! A package or a library that the script needs is not installed, or not where this Python looks.
//!
//! ## How it looks
//!
//! `ModuleNotFoundError: No module named 'x'`, `ImportError: libcudart.so.12: cannot open shared object file`,
//! `undefined symbol`, `torchrun: command not found`.
//!
//! ## How it is told
//!
//! By the error that ended the script, or a shell's last word. A library that was built for another version of
//! another one is told as well. Any other error of an import is called likely, but for those that the script's own
//! files make: a relative import, a circle.
//!
//! ## What to do
//!
//! Install it into the Python that runs the script:
//!
//! ```sh
//! python -m pip install x
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::safe;
use crate::signal::Exit;
use crate::words::cut;
use std::os::unix::ffi::OsStrExt;

/// What shells end with when there is no such command.
const NOT_FOUND: u32 = 127;

/// Two packages that were not built for each other.
const BUILT_FOR_ANOTHER: [&str; 4] = [
    "undefined symbol",
    "' not found (required by ",
    "may indicate binary incompatibility",
    "was compiled using NumPy 1.x cannot be run in",
];

pub(super) fn look(case: &Case<'_>) -> Finding {
    let error = case.error();
    if error.is_empty() && let Some(found) = by_shell(case) {
        return Finding::Found(found);
    }
    let module = error
        .strip_prefix("ModuleNotFoundError: No module named ")
        // A library that imports its parts when they are needed repeats what it met.
        .or_else(|| error.strip_prefix("RuntimeError: Failed to import ")?.split_once(": No module named ").map(|(_, name)| name))
        .map(|name| name.trim_matches(['\'', '"', ' ', '.']));
    let (confidence, remedy, paste) = if let Some(module) = module {
        let top = module.split('.').next().unwrap_or(module);
        let install = format!("python -m pip install {}", package(top));
        (0.95, "install it into the Python that runs the script", Some(install))
    } else if error.contains("cannot open shared object file") {
        (0.9, "install the library, or reinstall the package that needs it", None)
    } else if BUILT_FOR_ANOTHER.iter().any(|words| error.contains(words)) {
        let paste = Some("python -m pip check".into());
        (0.85, "two packages were not built for each other: install versions that fit together", paste)
    } else if error.starts_with("ImportError: ") && !is_of_script(error) {
        (0.75, "two packages do not fit together: look at their versions", Some("python -m pip check".into()))
    } else {
        return Finding::Nothing;
    };
    Finding::Found(
        Found::new(case, confidence, cut(error, 160), "")
            .at(case.location())
            .remedy(remedy, paste),
    )
}

/// The script's own files do not fit together.
fn is_of_script(error: &str) -> bool {
    ["circular import", "relative import"].iter().any(|words| error.contains(words))
}

/// `python3: No module named x`, `bash: torchrun: command not found`.
fn by_shell(case: &Case<'_>) -> Option<Found> {
    if !case.went_wrong() {
        return None;
    }
    let named = |line: &str| -> Option<(String, String)> {
        if let Some((program, module)) = line.split_once(": No module named ") {
            let is_python = program.rsplit('/').next()?.starts_with("python");
            let top = module.trim_matches(['\'', '"', ' ']).split('.').next()?;
            return is_python.then(|| (line.to_owned(), package(top).to_owned()));
        }
        let before = line.strip_suffix(": command not found")?;
        let program = before.rsplit(": ").next()?;
        (!program.contains(' ')).then(|| (line.to_owned(), owner(program).to_owned()))
    };
    let Some((line, package)) = case.printed.ending().map(str::trim).filter_map(named).next_back() else {
        let program = safe::shown(case.facts.command.first()?.as_bytes());
        let summary = format!("exit code {NOT_FOUND}: `{program}`, or a command in it, was not found");
        let is_it = case.exit() == Some(Exit::Code(NOT_FOUND));
        return is_it.then(|| Found::new(case, 0.75, summary, ""));
    };
    let found = Found::new(case, 0.85, cut(&line, 160), "");
    let install = format!("python -m pip install {package}");
    Some(found.remedy("install it into the Python that runs the script, or activate its environment", Some(install)))
}

/// The package that a command comes with.
fn owner(program: &str) -> &str {
    match program {
        "torchrun" => "torch",
        other => other,
    }
}

/// Whose name is another than that of its module.
fn package(module: &str) -> &str {
    match module {
        "cv2" => "opencv-python",
        "sklearn" => "scikit-learn",
        "PIL" => "pillow",
        "yaml" => "pyyaml",
        "skimage" => "scikit-image",
        "bs4" => "beautifulsoup4",
        "pytorch_lightning" => "pytorch-lightning",
        other => other,
    }
}
