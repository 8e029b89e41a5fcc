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
//! another one is told as well. A module whose name people give to their own files, or that is in the traceback's paths,
//! is taken for one's own, looked for in the wrong place. Any other error of an import is called likely, but for those that the script's own
//! files make: a relative import, a circle.
//!
//! ## What to do
//!
//! Install it into the Python that runs the script:
//!
//! ```sh
//! python -m pip install x
//! ```
//!
//! or, if it is a file of the project, start the script from the project's folder. A file of one's own with the name of a
//! package hides the package.

use antifreeze_text::layout::cut;
use antifreeze_text::sanitize;
use super::{Finding, Found, library_not_mapped};
use crate::case::Case;
use antifreeze_text::signal::Exit;
use crate::traceback::Frame;
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
    if library_not_mapped::said(case).is_some() {
        return Finding::Nothing;
    }
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
        return Finding::Found(of_module(case, module));
    } else if error.contains("cannot open shared object file") {
        (0.9, "install the library, or reinstall the package that needs it", None)
    } else if BUILT_FOR_ANOTHER.iter().any(|words| error.contains(words)) {
        let paste = Some("python -m pip check".into());
        (0.85, "two packages were not built for each other: install versions that fit together", paste)
    } else if asks_to_install(error) {
        (0.85, "install what the error names into the Python that runs the script", None)
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

/// It says that something is missing, and how to install it.
fn asks_to_install(error: &str) -> bool {
    let lower = error.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    has(&["pip install", "pip3 install", "conda install", "apt install", "apt-get install"])
        && has(&["not installed", "is required", "requires", "not found", "missing", "could not import", "no module"])
}

/// A module that is not there: a package that is not installed, a part that another version of it has, or a file of
/// one's own that is looked for in the wrong place.
fn of_module(case: &Case<'_>, named: &str) -> Found {
    let (module, is_hidden) = match named.split_once("'; '") {
        Some((module, rest)) => (module, rest.ends_with("is not a package")),
        None => (named, false),
    };
    let top = module.split('.').next().unwrap_or(module);
    let found = |confidence| Found::new(case, confidence, cut(case.error(), 160), "").at(case.location());
    if is_hidden {
        let text = format!("a file `{top}.py` of your own is found before the package `{top}`: give it another name");
        return found(0.85).remedy(text, Some(format!("python -c \"import {top}; print({top}.__file__)\"")));
    }
    if is_own(case, top) {
        let text = format!(
            "`{top}` is most likely a file or folder of the project: start the script from the project's folder, or name it"
        );
        return found(0.75).remedy(text, Some("PYTHONPATH=. python train.py".into()));
    }
    // Of a package that is not there at all, Python names the package.
    if module.contains('.') {
        let text = format!("`{top}` is installed and has no `{module}`: the code that asks for it is for another version");
        return found(0.95).remedy(text, Some(format!("python -m pip show {}", package(top))));
    }
    let install = format!("python -m pip install {}", package(top));
    found(0.95).remedy("install it into the Python that runs the script", Some(install))
}

/// A name that people give to their own files, or one that is in the paths of the traceback: a package of that name
/// would be a stranger's.
fn is_own(case: &Case<'_>, top: &str) -> bool {
    const COMMON: [&str; 46] = [
        "utils", "util", "helpers", "helper", "common", "core", "lib", "libs", "src", "tools", "scripts", "modules",
        "module", "models", "model", "net", "nets", "network", "networks", "layers", "blocks", "backbone", "losses",
        "loss", "metrics", "data", "dataset", "dataloader", "dataloaders", "loader", "loaders",
        "preprocess", "transforms", "augmentations", "config", "configs", "cfg", "settings", "options", "opts", "args",
        "train", "trainer", "engine", "test", "eval",
    ];
    let is_there = |line: &str| {
        let file = line.trim_start().strip_prefix("File \"").and_then(|rest| rest.split_once('"'));
        file.is_some_and(|(path, _)| {
            let frame = Frame { file: path.as_bytes().to_vec(), line: 0 };
            let mut parts = path.split(['/', '\\']).map(|part| part.strip_suffix(".py").unwrap_or(part));
            frame.is_users() && parts.any(|part| part == top)
        })
    };
    COMMON.contains(&top) || case.printed.ending().any(is_there)
}

/// The script's own files do not fit together.
fn is_of_script(error: &str) -> bool {
    // `cannot import name 'Trainer' from 'model' (/home/ada/model.py)`.
    let from_own = error.rsplit_once(" (").and_then(|(_, path)| path.strip_suffix(".py)")).is_some_and(|path| {
        let frame = Frame { file: path.as_bytes().to_vec(), line: 0 };
        frame.is_users()
    });
    from_own || ["circular import", "relative import"].iter().any(|words| error.contains(words))
}

/// `python3: No module named x`, `bash: torchrun: command not found`.
fn by_shell(case: &Case<'_>) -> Option<Found> {
    if !case.went_wrong() {
        return None;
    }
    if let Some((line, most)) = case.said(&["cannot open shared object file"]) {
        let found = Found::new(case, f64::min(0.85, most), cut(&line, 160), "");
        return Some(found.remedy("install the library, or reinstall the package that needs it", None));
    }
    let named = |line: &str| -> Option<(String, String)> {
        if let Some((program, module)) = line.split_once(": No module named ") {
            let is_python = program.rsplit('/').next()?.starts_with("python");
            let top = module.trim_matches(['\'', '"', ' ']).split('.').next()?;
            return (is_python && !is_own(case, top)).then(|| (line.to_owned(), package(top).to_owned()));
        }
        // dash tells the number of the line, and says less.
        let by_dash = || {
            let before = line.strip_suffix(": not found")?;
            let (place, _) = before.rsplit_once(": ")?;
            let (_, number) = place.rsplit_once(": ")?;
            number.parse::<u32>().is_ok().then_some(before)
        };
        let before = line.strip_suffix(": command not found").or_else(by_dash)?;
        let program = before.rsplit(": ").next()?;
        (!program.contains(' ')).then(|| (line.to_owned(), owner(program).to_owned()))
    };
    let Some((line, package)) = case.printed.ending().map(str::trim).filter_map(named).next_back() else {
        let program = sanitize::escape(case.facts.command.first()?.as_bytes());
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
