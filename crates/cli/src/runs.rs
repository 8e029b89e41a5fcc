//! `antifreeze runs`, `runs show`, `runs prune` and `resume`: lists, shows and removes runs, and resumes a paused
//! one.

use crate::args::{RunsAction, RunsArguments};
use crate::output::print;
use crate::report::Report;
use crate::store::Store;
use crate::term_style::terminal_style;
use antifreeze_view::table;
use std::sync::atomic::Ordering::Release;

pub fn runs(arguments: RunsArguments) -> Result<(), String> {
    let store = Store::locate()?;
    match arguments.action {
        None => list(&store, arguments.json),
        Some(RunsAction::Show { run, json }) => {
            let run = store.find(run.as_deref())?;
            run.wait_until_written();
            let report = Report::read(&run)?.linked();
            let style = terminal_style(rustix::stdio::stdout());
            print(if json {
                report.json()
            } else {
                report.show(&style) + "\n"
            })
        }
        Some(RunsAction::Prune { keep }) => {
            let removed = store.prune(keep);
            print(format!(
                "removed {removed} of {} runs\n",
                removed + store.runs().len()
            ))
        }
    }
}

fn list(store: &Store, json: bool) -> Result<(), String> {
    let rows: Vec<_> = store
        .runs()
        .iter()
        .rev()
        .filter_map(|run| Report::read(run).ok())
        .map(|report| report.row())
        .collect();
    if json {
        let lines = rows
            .iter()
            .filter_map(|row| serde_json::to_string(row).ok());
        return print(lines.map(|line| line + "\n").collect::<String>());
    }
    print(table(&rows, &terminal_style(rustix::stdio::stdout())) + "\n")
}

/// Lets a paused run go on.
pub fn resume(name: Option<&str>) -> Result<(), String> {
    let store = Store::locate()?;
    let run = store.find(name)?;
    let guardian = run
        .guardian()
        .ok_or_else(|| format!("run {} is not running", run.id))?;
    let shared = guardian
        .page()
        .map_err(|message| format!("run {}: {message}", run.id))?;
    if !Report::read(&run).is_ok_and(|report| report.is_paused()) {
        return print(format!("run {} is not paused\n", run.id));
    }
    shared.head().resume_requests.fetch_add(1, Release);
    shared.kick();
    print(format!("run {} goes on\n", run.id))
}
