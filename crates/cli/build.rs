//! Builds what is embedded in the binary: the guard (a small executable of its own), the cushion (a preload library), and
//! the list of the Python files.
//!
//! Stable cargo has no artifact dependencies, so the guard is built by a second cargo with
//! a target folder of its own (the outer one's is locked), in the profile made for it.

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../cushion/compile.rs"]
mod compile;

fn main() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let crates = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    for room in ["cushion", "guard", "ipc", "record", "sense"] {
        println!(
            "cargo::rerun-if-changed={}",
            crates.join(room).join("src").display()
        );
        println!(
            "cargo::rerun-if-changed={}",
            crates.join(room).join("Cargo.toml").display()
        );
    }
    println!(
        "cargo::rerun-if-changed={}",
        crates.join("cushion/compile.rs").display()
    );
    println!(
        "cargo::rerun-if-changed={}",
        crates.join("../Cargo.toml").display()
    );

    let package = crates.join("../python/antifreeze");
    println!("cargo::rerun-if-changed={}", package.display());
    write_python_list(&package, &out.join("python_files.rs"))?;

    compile::compile(&crates.join("cushion/src"), &out.join("cushion.so"))?;
    build_guard(&crates.join("guard/Cargo.toml"), &out)
}

/// Writes the Rust expression of all Python files of the package: `&[(path in the shim's folder, content), ...]`. The stub
/// goes to a folder of its own, because that folder stands on `PYTHONPATH`.
fn write_python_list(package: &Path, list: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    add_python_files(package, &mut files)
        .map_err(|error| format!("reading {}: {error}", package.display()))?;
    files.sort();
    let mut text = String::from("&[\n");
    for path in files {
        let name = path
            .strip_prefix(package)
            .map_err(|error| error.to_string())?;
        let target = match name.strip_prefix("_stub") {
            Ok(name) => Path::new("stub").join(name),
            Err(_) => Path::new("library/antifreeze").join(name),
        };
        let path = path
            .canonicalize()
            .map_err(|error| format!("resolving {}: {error}", path.display()))?;
        text += &format!("    ({target:?}, include_str!({path:?})),\n");
    }
    text += "]\n";
    std::fs::write(list, text).map_err(|error| format!("writing {}: {error}", list.display()))
}

fn add_python_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_python_files(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
    Ok(())
}

fn build_guard(manifest: &Path, out: &Path) -> Result<(), String> {
    let target = variable("TARGET")?;
    let folder = out.join("guard-target");
    // A static guard is smaller and starts faster; where the C library has no static
    // half (package glibc-static on some systems), a dynamic one does.
    let built = cargo_build(manifest, &folder, &target, "-Ctarget-feature=+crt-static")
        .or_else(|_| cargo_build(manifest, &folder, &target, ""))?;
    std::fs::copy(&built, out.join("antifreeze-guard"))
        .map(|_| ())
        .map_err(|error| format!("copying {}: {error}", built.display()))
}

fn cargo_build(
    manifest: &Path,
    folder: &Path,
    target: &str,
    flags: &str,
) -> Result<PathBuf, String> {
    let output = Command::new(variable("CARGO")?)
        .args([
            "build",
            "--quiet",
            "--profile",
            "guard",
            "--bin",
            "antifreeze-guard",
        ])
        .args(["--target", target, "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTFLAGS")
        .output()
        .map_err(|error| format!("starting cargo for the guard: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "building the guard:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(folder.join(target).join("guard").join("antifreeze-guard"))
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set: this runs under cargo"))
}
