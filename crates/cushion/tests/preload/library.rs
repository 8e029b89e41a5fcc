//! What the tests compile: the preload library, and the C programs they put it into.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../compile.rs"]
mod compile;

/// The library as built from the sources of this checkout.
pub fn cushion() -> PathBuf {
    let sources = root().join("src");
    let mut inputs = files_in(&sources);
    inputs.extend(files_in(&sources.join("preload")));
    inputs.push(root().join("compile.rs"));
    built_once("libcushion.so", &inputs, |out| {
        compile::compile(&sources, out)
    })
}

/// `tests/subjects/{name}.c`, compiled with `arguments`.
pub fn subject(name: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    let source = root().join("tests/subjects").join(format!("{name}.c"));
    let label = format!("{name}{}", arguments.concat());
    try_built_once(&label, std::slice::from_ref(&source), |out| {
        compile_c(&source, out, arguments)
    })
}

/// The same, linked against what lies in `folder`, and put there.
pub fn linked_subject(name: &str, folder: &Path, arguments: &[&str]) -> Result<PathBuf, String> {
    let source = root().join("tests/subjects").join(format!("{name}.c"));
    let out = folder.join(name);
    compile_c(&source, &out, arguments).map(|()| out)
}

fn compile_c(source: &Path, out: &Path, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-pthread", "-o"])
        .args([out, source])
        .args(arguments)
        .output()
        .map_err(|e| format!("cc: {e}"))?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success().then_some(()).ok_or(errors)
}

pub fn script(name: &str) -> PathBuf {
    root().join("tests/subjects").join(name)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn built_once(
    label: &str,
    inputs: &[PathBuf],
    build: impl Fn(&Path) -> Result<(), String>,
) -> PathBuf {
    try_built_once(label, inputs, build).unwrap_or_else(|error| panic!("{error}"))
}

/// Each test may be a process of its own, so what was built is found by what went into it.
fn try_built_once(
    label: &str,
    inputs: &[PathBuf],
    build: impl Fn(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        fs::read(input).unwrap().hash(&mut hasher);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let built = folder.join(format!("{:016x}-{label}", hasher.finish()));
    if !built.exists() {
        let fresh = folder.join(format!("{}-{label}", std::process::id()));
        build(&fresh)?;
        fs::rename(&fresh, &built).unwrap();
    }
    Ok(built)
}

#[test]
fn the_library_binds_to_no_version_of_the_c_library() {
    let bytes = fs::read(cushion()).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"GLIBC_"));
    assert!(bytes.windows(10).any(|window| window == b"libdl.so.2"));
}

#[test]
fn a_compile_error_is_told() {
    let empty = tempfile::tempdir().unwrap();
    let error = compile::compile(empty.path(), &empty.path().join("out.so")).unwrap_err();
    assert!(error.contains("preload.rs"), "{error}");
}
