//! `antifreeze run`: the front. It owns the terminal, forwards output and signals, prints events and gives the
//! verdict. If it dies, the guard continues without it.

mod alone;
pub mod attach;
pub mod attach_policy;
mod front;
mod group_signals;
mod guard_process;
mod hang_snapshot;
mod inherited;
mod notify;
mod outcome;
mod probe_process;
mod relays;
mod resume;
mod retry;
mod screen;
mod script;
mod settle;
mod signals;
mod streams;
mod target;

use crate::args::{RunArguments, Terms};
use crate::config::Settings;
use crate::output::complain;
use crate::size;
use crate::store::{Run, Store};
use crate::term_style::terminal_style;
use antifreeze_check::settings::RuleFlags;
use antifreeze_diagnose::{Facts, RestartDecision};
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_lint::target_machine::TargetMachine;
use antifreeze_sense::{MachineSensors, Sample};
use antifreeze_text::units;
use antifreeze_view::Detail;
use front::Front;
use resume::Source;
use retry::Restart;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A pause ends after this time, even if memory is still short.
const PAUSE_DEADLINE_S: u64 = 300;
/// With this niceness the person's program gets nine tenths of a core that both want.
const NICE: i32 = 10;
/// The time between asking the command to stop and killing it, enough for a large checkpoint.
const STOP_DEADLINE_S: u64 = 30;

/// The exit status if antifreeze itself failed.
pub const OWN_FAILURE: u8 = 125;

/// Runs the command and returns the exit status.
pub fn run(mut arguments: RunArguments) -> u8 {
    inherited::raise_limits();
    let mask = inherited::signal_mask();
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    match Settings::read(&folder) {
        Ok(settings) => settings.fill(&mut arguments),
        Err(message) => {
            complain(&message);
            return 2;
        }
    }
    let restart = Restart::take();
    let retries = restart
        .as_ref()
        .map_or(arguments.retries.unwrap_or(0), |restart| restart.left);
    let source = match source(&arguments, restart.as_ref(), &folder) {
        Ok(source) => source,
        Err(message) => {
            complain(&message);
            return 2;
        }
    };
    if let Some(reason) = alone::obstacle() {
        return alone::run(&arguments.command, mask, &reason);
    }
    let Prepared {
        store,
        notes,
        mut guard_args,
        facts,
        detail,
    } = match prepare(&arguments.terms, &folder, arguments.command.clone()) {
        Ok(prepared) => prepared,
        Err(message) => {
            complain(&message);
            return 2;
        }
    };
    guard_args.checkpoint_signal = arguments.checkpoint_signal.unwrap_or(0) as u32;
    guard_args.nice = arguments.nice.unwrap_or(NICE);
    guard_args.closed_streams = inherited::closed_streams();
    guard_args.ignore_sigpipe = inherited::ignored_sigpipe();
    let timers = inherited::take_timers();
    guard_args.timers = timers;
    guard_args.preload = store
        .as_ref()
        .filter(|_| guard_args.wall)
        .and_then(|store| crate::embed::cushion(&store.library_folders()))
        .map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default();
    if let Some(source) = &source {
        retry::set_variables(source.variables());
        source.note_in(&facts.record);
    }
    let run = facts.run.clone();
    let (total, budget) = (facts.total, facts.budget);
    let style = terminal_style(rustix::stdio::stderr());
    let shim = store
        .as_ref()
        .and_then(|store| crate::embed::shim(&store.library_folders()));
    let front = match Front::start(guard_args, facts, detail, style, arguments.live, shim) {
        Ok(front) => front,
        Err(message) => {
            inherited::put_back_timers(timers);
            return alone::run(&arguments.command, mask, &message);
        }
    };
    if let Some(source) = &source {
        front.say(&source.announcement());
    }
    if detail != Detail::Quiet {
        notes.iter().for_each(|note| front.say(note));
        look_at_script(
            &arguments,
            &folder,
            budget.map_or(total, |budget| budget.min(total)),
        )
        .iter()
        .for_each(|line| front.say(line));
    }
    // A restart takes the place of this process, and gives the command what this one was given.
    let closed = front.watch(arguments.json.as_deref(), retries == 0);
    if let Some(reason) = closed.not_started {
        inherited::put_back_timers(timers);
        return alone::run(&arguments.command, mask, &reason);
    }
    if let Some(store) = store {
        store.prune_as_usual();
    }
    if source.is_some() && !closed.can_resume && detail != Detail::Quiet {
        eprintln!(
            "antifreeze: nothing was resumed: the script did not call antifreeze.resume() or antifreeze.last_save()"
        );
    }
    match closed.again {
        RestartDecision::FromCheckpoint(save) if retries > 0 => {
            let left = retries - 1;
            complain(&format!("restarting from {save} ({left} more after this)"));
            let trouble = Restart { left, run }.start(closed.signal_mask);
            complain(&trouble);
        }
        RestartDecision::Useless(why) if retries > 0 => complain(&format!("not restarted: {why}")),
        _ => {}
    }
    if let Some(signal) = closed.signal {
        signals::end_by(signal);
    }
    closed.status
}

/// The run and checkpoint to continue from, if the run is to continue one.
fn source(
    arguments: &RunArguments,
    restart: Option<&Restart>,
    folder: &Path,
) -> Result<Option<Source>, String> {
    let name = match (restart, &arguments.resume) {
        (Some(restart), _) => Some(restart.run.as_str()),
        (None, Some(name)) => name.as_deref(),
        (None, None) => return Ok(None),
    };
    let store = Store::locate().map_err(|message| format!("--resume: {message}"))?;
    Source::find(&store, name, &arguments.command, folder).map(Some)
}

/// The settings of a run before its guard is started.
struct Prepared {
    store: Option<Store>,
    /// Warnings about settings that cannot be met, such as that there will be no record.
    notes: Vec<String>,
    guard_args: GuardArgs,
    facts: Facts,
    detail: Detail,
}

fn prepare(terms: &Terms, folder: &Path, command: Vec<OsString>) -> Result<Prepared, String> {
    let sample = read_first_sample(folder);
    let total = memory_of(&sample);
    let reserve = terms.reserve.map_or_else(
        || size::default_reserve(total),
        |reserve| reserve.bytes_of(total),
    );
    if reserve >= total && total > 0 {
        return Err(String::from(
            "--reserve keeps all of the memory; nothing is left for the command",
        ));
    }
    let available = sample.memory.available.value();
    let swap_free = sample.memory.swap_free.value().unwrap_or(0);
    let budget = terms.budget.map(|budget| budget.bytes_of(total));
    let (store, run, trouble) = run_folder();
    let mut notes: Vec<String> = trouble.into_iter().collect();
    if let Some(half) = available.map(|available| available / 2)
        && terms.reserve.is_some()
        && reserve > half
    {
        notes.push(format!(
            "--reserve {} is more than half of the memory that is available now; {} is kept for you",
            units::bytes(reserve),
            units::bytes(half)
        ));
    }
    let allow_swap = terms.allow_swap.unwrap_or(0);
    if allow_swap > swap_free {
        notes.push(match swap_free {
            0 => String::from("--allow-swap has no effect: there is no free swap"),
            free => format!("--allow-swap: only {} of swap is free", units::bytes(free)),
        });
    }
    let guard_args = GuardArgs {
        reserve,
        budget: budget.unwrap_or(0),
        allow_swap,
        wall: !terms.no_wall,
        pause_deadline_s: PAUSE_DEADLINE_S,
        stop_deadline_s: STOP_DEADLINE_S,
        run_id: run.id.clone(),
        ..GuardArgs::default()
    };
    let facts = Facts {
        run: run.id,
        record: run.folder,
        folder: folder.to_owned(),
        command,
        total,
        reserve,
        budget,
        swap: guard_args.allow_swap.min(swap_free),
        container: sample.cgroup.limit.value().filter(|limit| *limit < total),
        available,
        ..Facts::default()
    };
    let detail = match (terms.quiet, terms.verbose) {
        (true, _) => Detail::Quiet,
        (_, true) => Detail::Verbose,
        _ => Detail::Normal,
    };
    Ok(Prepared {
        store,
        notes,
        guard_args,
        facts,
        detail,
    })
}

/// The linter's warnings about the script, for this much memory: the machine's, or the budget. A
/// wrong configuration is reported by `antifreeze check` only.
fn look_at_script(arguments: &RunArguments, folder: &Path, memory: u64) -> Vec<String> {
    let Some(script) = script::script_of(&arguments.command, folder) else {
        return Vec::new();
    };
    let Ok(selection) = crate::check::selection_in(folder, &RuleFlags::default()) else {
        return Vec::new();
    };
    let target = TargetMachine {
        ram_bytes: Some(memory).filter(|ram| *ram > 0),
        vram_bytes: None,
        cores: crate::check::cores(),
    };
    script::warnings(&script, folder, &selection, target)
}

/// A folder for this run. Without one the run is guarded all the same, and the reason is
/// said.
fn run_folder() -> (Option<Store>, Run, Option<String>) {
    let nowhere = Run {
        is_here: true,
        id: String::from("unrecorded"),
        folder: PathBuf::new(),
    };
    match Store::locate() {
        Err(message) => (
            None,
            nowhere,
            Some(format!("no record of this run: {message}")),
        ),
        Ok(store) => match store.new_run() {
            Ok(run) => (Some(store), run, None),
            Err(error) => {
                let message = format!(
                    "no record of this run: {}: {error}. The run stays guarded.",
                    store.home().display()
                );
                (Some(store), nowhere, Some(message))
            }
        },
    }
}

pub fn read_first_sample(folder: &Path) -> Sample {
    let mut sample = Sample::default();
    MachineSensors::open(folder).read(&mut sample);
    let location = antifreeze_sense::cgroup::CgroupLocation::of_self();
    antifreeze_sense::cgroup::AncestorLimits::open(&location).read(&mut sample.cgroup);
    sample
}

/// The machine's memory, or the limit of this container.
pub fn memory_of(sample: &Sample) -> u64 {
    let machine = sample.memory.total.value().unwrap_or(0);
    sample
        .cgroup
        .limit
        .value()
        .map_or(machine, |limit| limit.min(machine))
}
