//! `antifreeze check`: lints training code, without running it, for what will freeze the machine.

use crate::args::CheckArguments;
use crate::config::Settings;
use crate::gpu_memory;
use crate::output::complain;
use crate::output::print;
use crate::run;
use crate::term_style::terminal_style;
use antifreeze_check::check_file::{self, CheckOptions, FileReport, FixMode};
use antifreeze_check::find_files::{self, FoundFiles};
use antifreeze_check::render::{self, Format};
use antifreeze_check::settings::{RuleFlags, RuleSelection};
use antifreeze_check::{parallel, rule_names, rules, source};
use antifreeze_lint::finding::Safety;
use antifreeze_lint::target_machine::TargetMachine;
use antifreeze_text::TermStyle;
use std::path::{Path, PathBuf};

const CLEAN: u8 = 0;
const FOUND: u8 = 1;
const FAILED: u8 = 2;

/// Runs the subcommand and returns its exit status.
pub fn check(arguments: CheckArguments) -> u8 {
    let done = match &arguments.explain {
        Some(name) => explain(name).map(|()| CLEAN),
        None if arguments.lsp => serve(&arguments).map(|()| CLEAN),
        None => check_files(arguments),
    };
    done.unwrap_or_else(|message| {
        complain(&message);
        FAILED
    })
}

fn explain(name: &str) -> Result<(), String> {
    let style = terminal_style(rustix::stdio::stdout());
    match (name, rules::find_rule(name)) {
        ("", _) => print(render::rule_list(&style)),
        (_, Some(rule)) => print(render::rule_page(rule, &style)),
        (_, None) => Err(rule_names::unknown_rule(name).to_string()),
    }
}

fn serve(arguments: &CheckArguments) -> Result<(), String> {
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let project = OpenProject {
        arguments,
        target: target_machine(arguments, &folder),
        folder,
    };
    std::panic::set_hook(Box::new(|_| ()));
    // On a thread of the crew, for a text may be deep.
    let served = parallel::map_items(&[()], |()| antifreeze_lsp::serve(&project))
        .map_err(|error| format!("starting a thread: {error}"))?;
    let served: Result<(), antifreeze_lsp::ServerError> = served.into_iter().collect();
    served.map_err(|error| error.to_string())
}

/// Checks the documents that an editor has open, with these flags and the configuration files around them.
struct OpenProject<'a> {
    arguments: &'a CheckArguments,
    target: TargetMachine,
    folder: PathBuf,
}

impl antifreeze_lsp::Project for OpenProject<'_> {
    fn target_machine(&self) -> TargetMachine {
        self.target
    }

    fn rule_selection(&self, file: &Path) -> Option<RuleSelection> {
        let folder = file.parent().filter(|parent| parent.is_absolute());
        selection(self.arguments, folder.unwrap_or(&self.folder)).ok()
    }
}

fn check_files(arguments: CheckArguments) -> Result<u8, String> {
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let fixes = fixes(&arguments)?;
    let selection = selection(&arguments, &folder)?;
    let options = CheckOptions {
        selection: &selection,
        target: target_machine(&arguments, &folder),
        fixes,
    };
    // A panic is told as the trouble of the file it was in.
    std::panic::set_hook(Box::new(|_| ()));
    if is_standard_input(&arguments)? {
        return standard_input(&arguments, &options);
    }
    let here = [PathBuf::from(".")];
    let paths = match arguments.paths.as_slice() {
        [] => &here,
        paths => paths,
    };
    let FoundFiles { paths, errors } =
        find_files::find_files(paths, |path| selection.excludes(path));
    if paths.is_empty() && errors.is_empty() {
        complain(&no_files(&arguments.paths));
    }
    for error in &errors {
        complain(&error.to_string());
    }
    let reports = parallel::map_items(&paths, |path| check_file::check_file(path, &options))
        .map_err(|error| format!("starting threads: {error}"))?;
    let style = terminal_style(rustix::stdio::stdout());
    say(&reports, arguments.output_format.into(), fixes, &style)?;
    Ok(match status(&reports) {
        _ if !errors.is_empty() => FAILED,
        status => status,
    })
}

fn no_files(asked: &[PathBuf]) -> String {
    let asked: Vec<String> = asked.iter().map(|path| render::escape_path(path)).collect();
    let place = match asked.as_slice() {
        [] => "this folder".to_owned(),
        asked => asked.join(", "),
    };
    format!("no Python files or notebooks in {place}; nothing was checked")
}

fn fixes(arguments: &CheckArguments) -> Result<FixMode, String> {
    let safety = match arguments.unsafe_fixes {
        true => Safety::Unsafe,
        false => Safety::Safe,
    };
    match (arguments.fix, arguments.diff) {
        (true, _) => Ok(FixMode::Apply(safety)),
        (_, true) => Ok(FixMode::Preview(safety)),
        _ if arguments.unsafe_fixes => {
            Err("--unsafe-fixes says which fixes to make; add --fix or --diff".to_owned())
        }
        _ => Ok(FixMode::Off),
    }
}

fn selection(arguments: &CheckArguments, folder: &Path) -> Result<RuleSelection, String> {
    let flags = RuleFlags {
        select: arguments.select.clone(),
        ignore: arguments.ignore.clone(),
        preview: arguments.preview,
    };
    // First without the file, so that a mistake is laid at the right door.
    antifreeze_check::settings::Settings::default()
        .resolve(&flags, folder)
        .map_err(|error| error.to_string())?;
    selection_in(folder, &flags)
}

/// The rules that its configuration and these flags enable in a folder.
pub fn selection_in(folder: &Path, flags: &RuleFlags) -> Result<RuleSelection, String> {
    let (settings, file) = Settings::read(folder)?.check();
    let home = file.as_deref().and_then(Path::parent).unwrap_or(folder);
    settings.resolve(flags, home).map_err(|message| {
        let file = file.as_deref().unwrap_or(folder);
        format!("{}: {message}", file.display())
    })
}

/// The number of CPU cores that this process may use.
pub fn cores() -> Option<u32> {
    let cores = std::thread::available_parallelism().ok()?;
    u32::try_from(cores.get()).ok()
}

/// The machine on which the code will run: this one, unless flags describe another.
fn target_machine(arguments: &CheckArguments, folder: &Path) -> TargetMachine {
    let memory =
        || Some(run::memory_of(&run::read_first_sample(folder))).filter(|memory| *memory > 0);
    TargetMachine {
        ram_bytes: arguments.ram.or_else(memory),
        vram_bytes: arguments.vram.or_else(gpu_memory::read_largest),
        cores: arguments.cores.or_else(cores),
    }
}

fn is_standard_input(arguments: &CheckArguments) -> Result<bool, String> {
    match arguments.paths.as_slice() {
        [] => Ok(arguments.stdin_filename.is_some()),
        [only] if only.as_os_str() == "-" => Ok(true),
        paths if paths.iter().any(|path| path.as_os_str() == "-") => {
            Err("- is standard input, which cannot be checked together with files".to_owned())
        }
        _ => Ok(false),
    }
}

fn standard_input(arguments: &CheckArguments, options: &CheckOptions) -> Result<u8, String> {
    let name = arguments.stdin_filename.clone();
    let name = name.unwrap_or_else(|| PathBuf::from("-"));
    let bytes = source::read_bounded(std::io::stdin().lock(), &name)
        .map_err(|error| format!("standard input {error}"))?;
    let mut reports = parallel::map_items(&[()], |()| {
        check_file::check_bytes(bytes.clone(), &name, options)
    })
    .map_err(|error| format!("starting a thread: {error}"))?;
    let FixMode::Apply(_) = options.fixes else {
        let style = terminal_style(rustix::stdio::stdout());
        say(
            &reports,
            arguments.output_format.into(),
            options.fixes,
            &style,
        )?;
        return Ok(status(&reports));
    };
    // The fixed text takes standard output, so the findings go beside it.
    let change = reports.first_mut().and_then(|report| report.change.take());
    print(change.map_or(bytes, |change| change.after))?;
    let style = terminal_style(rustix::stdio::stderr());
    print_errors(&reports);
    eprint!(
        "{}",
        render::findings(arguments.output_format.into(), &reports, &style)
    );
    if let Some(summary) = render::summary(&reports, options.fixes) {
        eprintln!("{summary}");
    }
    Ok(status(&reports))
}

fn say(
    reports: &[FileReport],
    format: Format,
    fixes: FixMode,
    style: &TermStyle,
) -> Result<(), String> {
    print_errors(reports);
    let summary = render::summary(reports, fixes);
    if let FixMode::Preview(_) = fixes {
        print(render::diff(reports))?;
        if let Some(summary) = summary {
            eprintln!("antifreeze: {summary}");
        }
        return Ok(());
    }
    print(render::findings(format, reports, style))?;
    match summary {
        _ if format != Format::Full => Ok(()),
        Some(summary) => print(summary + "\n"),
        None if reports.iter().all(|report| report.errors.is_empty()) => match reports.len() {
            0 => Ok(()),
            1 => print("no problems found in 1 file\n"),
            count => print(format!("no problems found in {count} files\n")),
        },
        None => Ok(()),
    }
}

fn print_errors(reports: &[FileReport]) {
    for report in reports {
        let errors = report.errors.iter().map(ToString::to_string);
        for message in errors.chain(report.notes.iter().cloned()) {
            complain(&format!("{} {message}", render::escape_path(&report.path)));
        }
    }
}

/// What only would be fixed is still there.
fn status(reports: &[FileReport]) -> u8 {
    let is_found = |report: &FileReport| !report.findings.is_empty() || report.change.is_some();
    if reports.iter().any(|report| !report.errors.is_empty()) {
        FAILED
    } else if reports.iter().any(is_found) {
        FOUND
    } else {
        CLEAN
    }
}
