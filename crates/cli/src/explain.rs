//! `antifreeze explain`: prints why a run ended, and writes its report or a bundle to share.

use crate::args::ExplainArguments;
use crate::output::{print, replace, write_named};
use crate::report::Report;
use crate::share;
use crate::store::{Run, Store};
use crate::term_style::terminal_style;
use antifreeze_diagnose::kernel::{Boot, Log, from_file, gather};
use antifreeze_diagnose::redact::{Redactor, machine_name};
use antifreeze_diagnose::{RunState, causes};
use antifreeze_sense::regular_file;
use antifreeze_view::labelled;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// At most this much of a log is read, from its end.
const MAX_LOG_BYTES: u64 = 8 << 20;

pub fn explain(arguments: ExplainArguments) -> Result<(), String> {
    if let Some(code) = arguments.cause {
        return cause(&code);
    }
    let given = match &arguments.kernel_log {
        Some(path) => {
            Some(from_file(path).map_err(|error| format!("reading {}: {error}", path.display()))?)
        }
        None => None,
    };
    let mut unexplained = None;
    let (report, own_page) = match &arguments.log {
        Some(path) => (
            Report::from_output(read_log(path)?, given.unwrap_or_default()),
            None,
        ),
        None => {
            let run = find(arguments.run.as_deref())?;
            if arguments.run.is_none() {
                unexplained = died_before(&run);
            }
            run.wait_until_written();
            let report = Report::read_with(&run, |since, boot| {
                given.unwrap_or_else(|| own_log(since, boot))
            })?;
            (report.linked(), Some(run.folder.join("report.html")))
        }
    };
    let style = terminal_style(rustix::stdio::stdout());
    if let Some(page) = &arguments.html {
        write_named(page, report.html(&style).as_bytes())
            .map_err(|error| format!("writing {}: {error}", page.display()))?;
    }
    if let Some(path) = arguments.share {
        let report = report.redacted(
            &share_redactor().ok_or("the patterns that find secrets could not be compiled")?,
        );
        return share::bundle(&report, path, &style);
    }
    if arguments.json {
        return print(report.json());
    }
    // A folder that is not ours to write to is explained all the same.
    let page = arguments.html.or_else(|| {
        own_page.filter(|page| {
            is_in_own_folder(page) && replace(page, report.html(&style).as_bytes()).is_ok()
        })
    });
    let told = report.explain(&style);
    let told = match unexplained {
        Some(run) => format!(
            "antifreeze: the machine died during an earlier run: antifreeze explain {}\n{told}",
            run.id
        ),
        None => told,
    };
    print(match page {
        Some(page) => told + "\n" + &labelled("report", &style.path(&page), &style) + "\n",
        None => told + "\n",
    })
}

/// Whether the folder of a file is this user's. The page of a run holds what this user may read of the machine, which is
/// not for the owner of another folder.
fn is_in_own_folder(page: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let folder = page.parent().and_then(|folder| folder.metadata().ok());
    folder.is_some_and(|folder| folder.uid() == own)
}

/// The redactor for text that leaves this machine.
fn share_redactor() -> Option<Redactor> {
    let home = std::env::var("HOME").ok();
    let user = std::env::var("USER")
        .or_else(|_| std::env::var("LOGNAME"))
        .ok();
    Redactor::new(home.as_deref(), user.as_deref(), machine_name().as_deref())
}

/// This machine's kernel log of the boot in which a run ended.
fn own_log(since: RunState, boot: [u8; 16]) -> Log {
    match since {
        RunState::Rebooted => gather(Boot::Past(boot), Path::new("/")),
        RunState::StillGuarded | RunState::GuardGone => gather(Boot::This, Path::new("/")),
        RunState::Elsewhere | RunState::OnlyPrinted => Log::default(),
    }
}

/// Finds a run by its folder, which may be from another machine, or by its id.
fn find(name: Option<&str>) -> Result<Run, String> {
    if let Some(folder) = name.map(Path::new).filter(|path| path.is_dir()) {
        return Ok(Run::at(folder));
    }
    Store::locate()?.find(name)
}

/// The last earlier run during which the machine died, if it was not explained yet. Most others
/// leave a verdict.
fn died_before(run: &Run) -> Option<Run> {
    let mut earlier = Store::locate().ok()?.runs();
    earlier.retain(|other| other.id < run.id);
    earlier.into_iter().rev().find(|run| {
        let lacks = |name| !run.folder.join(name).exists();
        lacks("verdict.json")
            && lacks("report.html")
            && Report::read(run).is_ok_and(|report| report.machine_died())
    })
}

fn read_log(path: &Path) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        if path == Path::new("-") {
            if regular_file::is_endless(io::stdin())? {
                return Err(io::Error::other("it is a device"));
            }
            return last_of(io::stdin().lock());
        }
        let mut file = regular_file::open_named(path)?;
        // A pipe, as a shell's <(…) is one, has neither a length nor a place to go to.
        let about = file.metadata()?;
        if !about.is_file() {
            return last_of(file);
        }
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(about.len().saturating_sub(MAX_LOG_BYTES)))?;
        file.take(MAX_LOG_BYTES).read_to_end(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| format!("reading {}: {error}", path.display()))
}

/// Reads the end of a file of any length.
fn last_of(mut source: impl Read) -> io::Result<Vec<u8>> {
    let longest = MAX_LOG_BYTES as usize;
    let mut text = Vec::new();
    while source.by_ref().take(MAX_LOG_BYTES).read_to_end(&mut text)? > 0 {
        text.drain(..text.len().saturating_sub(longest));
    }
    Ok(text)
}

fn cause(code: &str) -> Result<(), String> {
    if code.is_empty() {
        let line = |kind: &&causes::CauseKind| format!("{:20} {}\n", kind.word, kind.title);
        return print(causes::ALL.iter().map(line).collect::<String>());
    }
    let kind = causes::cause_by_word(code)
        .ok_or_else(|| format!("no cause `{code}`; all of them: antifreeze explain --cause"))?;
    print(kind.page())
}
