//! # missing-dependency
//!
//! A package or library that the script needs is not installed, or not where this Python looks.
//!
//! ## Symptoms
//!
//! `ModuleNotFoundError: No module named 'x'`, `ImportError: libcudart.so.12: cannot open shared object file`,
//! `undefined symbol`, `torchrun: command not found`.
//!
//! ## How it is detected
//!
//! By the error that ended the script, or the last line of a shell. A library that was built for another version of its
//! dependency counts as well. A module with a name that people give to their own files, or that is in the paths of the
//! traceback, is taken for a file of the project that was looked for in the wrong place. Other import errors are
//! likely, except for those that the script's own files cause: a relative or a circular import.
//!
//! ## What to do
//!
//! Install it into the Python that runs the script:
//!
//! ```sh
//! python -m pip install x
//! ```
//!
//! or, if it is a file of the project, start the script from the project's folder. A file of your own with the name of
//! a package hides the package.

use super::{CauseKind, Finding, Found, Role, library_not_mapped};
use crate::output::traceback::Frame;
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;
use antifreeze_text::sanitize;
use antifreeze_text::signal::Exit;
use std::os::unix::ffi::OsStrExt;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::MissingDependency,
    word: "missing-dependency",
    title: "missing package or library",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("missing_dependency.rs"),
    detect,
};

/// The exit code of shells for a command that was not found.
const COMMAND_NOT_FOUND: u32 = 127;

/// Errors of packages that are binary incompatible.
const INCOMPATIBLE: [&str; 4] = [
    "undefined symbol",
    "' not found (required by ",
    "may indicate binary incompatibility",
    "was compiled using NumPy 1.x cannot be run in",
];

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if library_not_mapped::loader_message(evidence).is_some() {
        return Finding::Nothing;
    }
    let error = evidence.error();
    if error.is_empty()
        && let Some(found) = from_shell_report(evidence)
    {
        return Finding::Found(found);
    }
    let module = error
        .strip_prefix("ModuleNotFoundError: No module named ")
        // A library that imports its parts lazily repeats the error.
        .or_else(|| {
            error
                .strip_prefix("RuntimeError: Failed to import ")?
                .split_once(": No module named ")
                .map(|(_, name)| name)
        })
        .map(|name| name.trim_matches(['\'', '"', ' ', '.']));
    let (confidence, remedy, paste) = if let Some(module) = module {
        return Finding::Found(from_module(evidence, module));
    } else if error.contains("cannot open shared object file") {
        (
            0.9,
            "install the library, or reinstall the package that needs it",
            None,
        )
    } else if INCOMPATIBLE.iter().any(|words| error.contains(words)) {
        let paste = Some("python -m pip check".into());
        (
            0.85,
            "two packages are binary incompatible: install versions that match",
            paste,
        )
    } else if asks_to_install(error) {
        (
            0.85,
            "install what the error names into the Python that runs the script",
            None,
        )
    } else if error.starts_with("ImportError: ") && !is_caused_by_script(error) {
        (
            0.75,
            "two packages do not match: check their versions",
            Some("python -m pip check".into()),
        )
    } else {
        return Finding::Nothing;
    };
    Finding::Found(
        Found::new(evidence, confidence, cut(error, 160), "")
            .at_location(evidence.error_location())
            .with_remedy(remedy, paste),
    )
}

/// Whether an error says that something is missing, and how to install it.
fn asks_to_install(error: &str) -> bool {
    let lower = error.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|words| lower.contains(words));
    has(&[
        "pip install",
        "pip3 install",
        "conda install",
        "apt install",
        "apt-get install",
    ]) && has(&[
        "not installed",
        "is required",
        "requires",
        "not found",
        "missing",
        "could not import",
        "no module",
    ])
}

/// A missing module: a package that is not installed, a part of another version of a package, or a file of the project
/// that is looked for in the wrong place.
fn from_module(evidence: &RunEvidence<'_>, named: &str) -> Found {
    let (module, is_hidden) = match named.split_once("'; '") {
        Some((module, rest)) => (module, rest.ends_with("is not a package")),
        None => (named, false),
    };
    let top = module.split('.').next().unwrap_or(module);
    let found = |confidence| {
        Found::new(evidence, confidence, cut(evidence.error(), 160), "")
            .at_location(evidence.error_location())
    };
    if is_hidden {
        let text = format!("your own file `{top}.py` hides the package `{top}`: rename it");
        return found(0.85).with_remedy(
            text,
            Some(format!("python -c \"import {top}; print({top}.__file__)\"")),
        );
    }
    if is_of_project(evidence, top) {
        let text = format!(
            "`{top}` is most likely a file or folder of the project: start the script from the project's folder, or set PYTHONPATH"
        );
        return found(0.75).with_remedy(text, Some("PYTHONPATH=. python train.py".into()));
    }
    // For a package that is missing as a whole, Python names the package.
    if module.contains('.') {
        let text = format!(
            "`{top}` is installed and has no `{module}`: the code needs another version of it"
        );
        return found(0.95).with_remedy(
            text,
            Some(format!("python -m pip show {}", package_of_module(top))),
        );
    }
    let install = format!("python -m pip install {}", package_of_module(top));
    found(0.95).with_remedy(
        "install it into the Python that runs the script",
        Some(install),
    )
}

/// Whether a module is likely a file of the project: people use that name for their own files, or it is in the paths of
/// the traceback.
fn is_of_project(evidence: &RunEvidence<'_>, top: &str) -> bool {
    const COMMON: [&str; 46] = [
        "utils",
        "util",
        "helpers",
        "helper",
        "common",
        "core",
        "lib",
        "libs",
        "src",
        "tools",
        "scripts",
        "modules",
        "module",
        "models",
        "model",
        "net",
        "nets",
        "network",
        "networks",
        "layers",
        "blocks",
        "backbone",
        "losses",
        "loss",
        "metrics",
        "data",
        "dataset",
        "dataloader",
        "dataloaders",
        "loader",
        "loaders",
        "preprocess",
        "transforms",
        "augmentations",
        "config",
        "configs",
        "cfg",
        "settings",
        "options",
        "opts",
        "args",
        "train",
        "trainer",
        "engine",
        "test",
        "eval",
    ];
    let is_there = |line: &str| {
        let file = line
            .trim_start()
            .strip_prefix("File \"")
            .and_then(|rest| rest.split_once('"'));
        file.is_some_and(|(path, _)| {
            let frame = Frame {
                file: path.as_bytes().to_vec(),
                line: 0,
            };
            let mut parts = path
                .split(['/', '\\'])
                .map(|part| part.strip_suffix(".py").unwrap_or(part));
            frame.is_users() && parts.any(|part| part == top)
        })
    };
    COMMON.contains(&top) || evidence.printed.ending().any(is_there)
}

/// Whether an import error is caused by the script's own files.
fn is_caused_by_script(error: &str) -> bool {
    // `cannot import name 'Trainer' from 'model' (/home/ada/model.py)`.
    let from_own = error
        .rsplit_once(" (")
        .and_then(|(_, path)| path.strip_suffix(".py)"))
        .is_some_and(|path| {
            let frame = Frame {
                file: path.as_bytes().to_vec(),
                line: 0,
            };
            frame.is_users()
        });
    from_own
        || ["circular import", "relative import"]
            .iter()
            .any(|words| error.contains(words))
}

/// Python or a shell reports it in its last line: `python3: No module named x`, `bash: torchrun: command not found`.
fn from_shell_report(evidence: &RunEvidence<'_>) -> Option<Found> {
    if !evidence.went_wrong() {
        return None;
    }
    if let Some((line, most)) =
        evidence.find_line_with_confidence(&["cannot open shared object file"])
    {
        let found = Found::new(evidence, f64::min(0.85, most), cut(&line, 160), "");
        return Some(found.with_remedy(
            "install the library, or reinstall the package that needs it",
            None,
        ));
    }
    let named = |line: &str| -> Option<(String, String)> {
        if let Some((program, module)) = line.split_once(": No module named ") {
            let is_python = program.rsplit('/').next()?.starts_with("python");
            let top = module.trim_matches(['\'', '"', ' ']).split('.').next()?;
            return (is_python && !is_of_project(evidence, top))
                .then(|| (line.to_owned(), package_of_module(top).to_owned()));
        }
        // dash prints the line number, and a shorter message.
        let by_dash = || {
            let before = line.strip_suffix(": not found")?;
            let (place, _) = before.rsplit_once(": ")?;
            let (_, number) = place.rsplit_once(": ")?;
            number.parse::<u32>().is_ok().then_some(before)
        };
        let before = line.strip_suffix(": command not found").or_else(by_dash)?;
        let program = before.rsplit(": ").next()?;
        (!program.contains(' ')).then(|| (line.to_owned(), package_of_command(program).to_owned()))
    };
    let Some((line, package)) = evidence
        .printed
        .ending()
        .map(str::trim)
        .filter_map(named)
        .next_back()
    else {
        let program = sanitize::escape(evidence.facts.command.first()?.as_bytes());
        let summary = format!(
            "exit code {COMMAND_NOT_FOUND}: `{program}`, or a command in it, was not found"
        );
        let is_it = evidence.exit() == Some(Exit::Code(COMMAND_NOT_FOUND));
        return is_it.then(|| Found::new(evidence, 0.75, summary, ""));
    };
    let found = Found::new(evidence, 0.85, cut(&line, 160), "");
    let install = format!("python -m pip install {package}");
    Some(found.with_remedy(
        "install it into the Python that runs the script, or activate its environment",
        Some(install),
    ))
}

/// The package that has a command.
fn package_of_command(program: &str) -> &str {
    match program {
        "torchrun" => "torch",
        other => other,
    }
}

/// The package of a module, where it has another name.
fn package_of_module(module: &str) -> &str {
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
