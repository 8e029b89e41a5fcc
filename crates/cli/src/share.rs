//! `antifreeze explain --share`: writes one file to share with others, with secrets removed.

use crate::output::{print, replace, write_named};
use crate::report::Report;
use antifreeze_text::{TermStyle, sanitize};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name of a bundle has at most this many characters of the run's name.
const MAX_NAME_CHARS: usize = 64;

/// Writes the bundle to the given path, or to the current folder, and prints what it contains.
pub fn bundle(report: &Report, path: Option<PathBuf>, style: &TermStyle) -> Result<(), String> {
    let name = match report.name() {
        "" => "antifreeze".into(),
        run => format!("antifreeze-{}", file_name(run)),
    };
    // Another user may have put a link there under our name.
    let write_to = match path {
        Some(_) => write_named,
        None => replace,
    };
    let path = path.unwrap_or_else(|| format!("{name}.tar.gz").into());
    let parts = [
        ("report.html", report.html(style).into_bytes()),
        ("verdict.json", report.json().into_bytes()),
        ("output.txt", report.output().to_vec()),
    ];
    write_to(&path, &archive(&name, &parts).map_err(failed(&path))?).map_err(failed(&path))?;
    let shown = sanitize::escape(path.as_os_str().as_bytes());
    print(format!(
        "wrote {shown}: the report, the verdict and the last output.\n\
         Tokens, keys, passwords in addresses, and names of people and of this machine were removed where \
         they were recognized; read it before you share it.\n"
    ))
}

/// The run's name as a part of a file name. A record from elsewhere may have any name.
fn file_name(run: &str) -> String {
    let is_usual = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    let usual = |character| if is_usual(character) { character } else { '-' };
    run.chars().map(usual).take(MAX_NAME_CHARS).collect()
}

fn failed(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("writing {}: {error}", path.display())
}

fn archive(name: &str, parts: &[(&str, Vec<u8>)]) -> io::Result<Vec<u8>> {
    let mut bundle = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (part, content) in parts {
        let mut head = tar::Header::new_gnu();
        head.set_size(content.len() as u64);
        head.set_mode(0o644);
        bundle.append_data(&mut head, format!("{name}/{part}"), content.as_slice())?;
    }
    bundle.into_inner()?.finish()
}
