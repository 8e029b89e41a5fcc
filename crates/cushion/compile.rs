//! How the preload library is compiled: plain rustc, no cargo, so that a build script can do
//! it and embed the result. For `#[path]` in build scripts and tests.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Stands in for libdl while linking. Before glibc 2.34 `dlsym` lives there, and later ones
/// keep an empty library of the name, so that needing it loads everywhere; but which of the
/// two the build machine has, if any, must not show in the result.
const LIBDL: &str = "#![no_std]\n\
    #[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n";

/// Compiles `preload.rs` in `source_dir` to the shared library `out`.
///
/// Nothing is linked against the C library, so no symbol carries a version: the dynamic
/// linker binds each to what the process has.
pub fn compile(source_dir: &Path, out: &Path) -> Result<(), String> {
    let mut name = out
        .file_name()
        .map(OsString::from)
        .ok_or("the output needs a file name")?;
    name.push(".libs");
    let stubs = out.with_file_name(name);
    fs::create_dir_all(&stubs).map_err(|e| format!("cannot make {}: {e}", stubs.display()))?;
    let libdl = stubs.join("libdl.so.2");
    let stub_source = stubs.join("libdl.rs");
    let result = fs::write(&stub_source, LIBDL)
        .map_err(|e| format!("cannot write {}: {e}", stub_source.display()))
        .and_then(|()| {
            rustc(
                &stub_source,
                &libdl,
                &["-Clink-arg=-Wl,-soname,libdl.so.2".into()],
            )
        })
        .and_then(|()| {
            let mut needed = OsString::from("-Clink-arg=");
            needed.push(&libdl);
            let needed = ["-Clink-arg=-Wl,--no-as-needed".into(), needed];
            rustc(&source_dir.join("preload.rs"), out, &needed)
        });
    // What is left behind lies in a build folder and harms nobody.
    let _ = fs::remove_dir_all(&stubs);
    result
}

fn rustc(source: &Path, out: &Path, link_args: &[OsString]) -> Result<(), String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(&rustc);
    command
        .args(["--edition", "2024", "--crate-type", "cdylib", "-O"])
        .args(["-Cpanic=abort", "-Ccodegen-units=1", "-Cstrip=symbols"])
        .args(["-Clink-arg=-nostartfiles", "-Clink-arg=-Wl,-z,noexecstack"])
        .args(link_args)
        .arg("-o")
        .arg(out)
        .arg(source)
        .stdin(Stdio::null());
    if let Some(target) = foreign_target(env::var("TARGET").ok(), env::var("HOST").ok()) {
        command.args(["--target", &target]);
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut argument = OsString::from("-Clinker=");
        argument.push(linker);
        command.arg(argument);
    }
    let output = command
        .output()
        .map_err(|e| format!("cannot run {}: {e}", rustc.to_string_lossy()))?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?} failed ({}):\n{errors}", output.status))
}

/// What to pass as `--target`. A binary linked against musl still guards trainers that run
/// on glibc, and rustc makes no shared library for musl by default.
fn foreign_target(target: Option<String>, host: Option<String>) -> Option<String> {
    let target = target?.replace("-musl", "-gnu");
    (host.as_ref() != Some(&target)).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::foreign_target;

    #[test]
    fn only_another_machine_or_system_is_named_as_target() {
        let (gnu, musl) = ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl");
        let arm = "aarch64-unknown-linux-gnu";
        let cases = [
            (None, Some(gnu), None),
            (Some(gnu), Some(gnu), None),
            (Some(musl), Some(gnu), None),
            (Some(arm), Some(gnu), Some(arm)),
            (Some(gnu), Some(musl), Some(gnu)),
        ];
        for (target, host, expected) in cases {
            let found = foreign_target(target.map(Into::into), host.map(Into::into));
            assert_eq!(found.as_deref(), expected, "{target:?} on {host:?}");
        }
    }
}
