//! The verdict on a run: how it ended, why, and what to do. Its serialized form is the format of `verdict.json` and
//! `--json`, which other programs rely on. A value that is not known is null, never 0.

pub mod ending;
mod lint_evidence;
mod missing_evidence;
pub mod phrases;
pub mod place;
mod ranking;

pub use lint_evidence::LintFinding;

use crate::causes::{self, CauseKind};
use crate::output::PrintedOutput;
use crate::run::evidence::RunEvidence;
use crate::run::facts::{Facts, RunState};
use crate::run::summary::RunSummary;
use crate::time::timestamp;
use antifreeze_sense::{Phase, Stamp};
use antifreeze_text::signal::Exit;
use serde::{Deserialize, Serialize};

/// The version of the format.
pub const SCHEMA: u32 = 1;

/// How a run ended, why, and what to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// [`SCHEMA`] of the version that wrote it.
    pub schema: u32,
    /// The name of the run.
    pub run: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// How the run ended.
    pub end: End,
    /// Why it ended or was slow, most likely cause first.
    pub causes: Vec<Cause>,
    /// What it was not.
    pub ruled_out: Vec<RuledOut>,
    /// Evidence that was not available and could have told more.
    #[serde(default)]
    pub unseen: Vec<String>,
    /// Peak use of memory.
    pub peak: PeakUse,
    /// Training steps.
    pub steps: Steps,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The kind of end.
    pub kind: EndKind,
    /// When it ended, as RFC 3339; null while the run lasts, and where no clock was reliable.
    pub at: Option<String>,
    /// The exit code, where it exited.
    pub exit_code: Option<u32>,
    /// The signal that killed it.
    pub signal: Option<u32>,
    /// A description that continues "ended …".
    pub detail: String,
}

/// The kinds of ends of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// It succeeded.
    Finished,
    /// It exited with an error code, and no error was printed.
    Failed,
    /// An uncaught error ended it.
    Exception,
    /// A request for memory was refused, and that ended it.
    Walled,
    /// antifreeze stopped it.
    Stopped,
    /// The kernel killed it because memory ran out.
    OomKilled,
    /// A signal from outside ended it.
    Killed,
    /// It crashed.
    Crashed,
    /// It hung.
    Hung,
    /// The machine went down under it.
    MachineDied,
    /// It is still running.
    Running,
    /// An attached process was still running when antifreeze detached.
    Detached,
    /// An attached process ended, and only its parent knows the exit status.
    Exited,
    /// How it ended is not known. Stands also for kinds of newer versions.
    #[serde(other)]
    Unknown,
}

impl EndKind {
    /// The word for it in `verdict.json`.
    pub fn word(self) -> &'static str {
        match self {
            EndKind::Finished => "finished",
            EndKind::Failed => "failed",
            EndKind::Exception => "exception",
            EndKind::Walled => "walled",
            EndKind::Stopped => "stopped",
            EndKind::OomKilled => "oom-killed",
            EndKind::Killed => "killed",
            EndKind::Crashed => "crashed",
            EndKind::Hung => "hung",
            EndKind::MachineDied => "machine-died",
            EndKind::Running => "running",
            EndKind::Detached => "detached",
            EndKind::Exited => "exited",
            EndKind::Unknown => "unknown",
        }
    }
}

/// The code of a cause. Everything else about a cause is declared in its file in `causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Code {
    MemoryLeak,
    BatchTooLarge,
    DatasetInMemory,
    LoaderMemory,
    ShmExhausted,
    SwapThrash,
    ContainerLimit,
    LibraryNotMapped,
    OtherProcess,
    VramExhausted,
    VramLeak,
    VramSpill,
    InputBound,
    SlowStorage,
    DiskFull,
    CpuOversubscribed,
    Deadlock,
    InfiniteLoop,
    GpuDriverMismatch,
    GpuFault,
    GpuLost,
    ThermalThrottle,
    PowerLimit,
    MachineReset,
    KernelPanic,
    HardwareError,
    NumericNan,
    NumericDivergence,
    UserException,
    NativeCrash,
    MissingDependency,
    DeviceMismatch,
    DistributedFailure,
    KilledExternally,
    /// A cause that only a newer version knows.
    #[serde(other)]
    Unknown,
}

impl Code {
    /// The declaration of the cause; None for [`Code::Unknown`].
    pub fn kind(self) -> Option<&'static CauseKind> {
        causes::ALL.iter().copied().find(|kind| kind.code == self)
    }

    /// The title of the cause in plain words.
    pub fn title(self) -> &'static str {
        self.kind()
            .map_or("a cause that this version does not know", |kind| kind.title)
    }

    /// The word for it in `verdict.json`.
    pub fn word(self) -> &'static str {
        self.kind().map_or("unknown", |kind| kind.word)
    }
}

/// A cause that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    /// Which cause it is.
    pub code: Code,
    /// How sure it is, from 0 to 1.
    pub confidence: f64,
    /// What was found, in a sentence.
    pub summary: String,
    /// The line of the script that it is about.
    pub location: Option<Location>,
    /// What supports it.
    pub evidence: Vec<Evidence>,
    /// What to do, best first.
    pub remedies: Vec<Remedy>,
}

/// A line of the script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The file, relative to the folder of the run.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The variable or function, where one is known.
    pub name: Option<String>,
}

impl Location {
    /// The location as text: "train.py:12", or "cell 3, line 6".
    pub fn place(&self) -> String {
        place::format_place(&self.file, self.line)
    }
}

/// A piece of evidence for a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was seen.
    pub text: String,
    /// The recorded series that shows it.
    pub series: Option<String>,
    /// The beginning of the time in which it was seen.
    pub from: Option<String>,
    /// The end of that time.
    pub to: Option<String>,
}

/// Something to do about a cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// What to do, in words.
    pub text: String,
    /// Code or a command to paste.
    pub code: Option<String>,
    /// The documentation page with more about it.
    pub docs: Option<String>,
    /// The changes to the script that make up `code`. All remedies of one cause that have changes belong together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// A change to a file of the script, as the file was during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The file to change.
    pub file: String,
    /// How to change it.
    pub action: Action,
    /// The first line that it is about, from 1.
    pub line: u32,
    /// The last line that it is about.
    pub last_line: u32,
    /// These lines as they were during the run, without the indentation of the first. The edit does not apply to a file
    /// in which they differ.
    #[serde(default)]
    pub before: String,
    /// The new code, to be indented like `line`. Empty where the lines are to be removed.
    pub code: String,
    /// Imports that `code` needs and the file lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
}

/// How an [`Edit`] changes a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// `code` replaces the lines `line` to `last_line`.
    Replace,
    /// `code` is inserted before `line`.
    InsertBefore,
    /// `code` is inserted after `last_line`.
    InsertAfter,
}

/// A cause that was ruled out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledOut {
    /// Which cause it is.
    pub code: Code,
    /// Why it was not that.
    pub why: String,
}

/// Peak use of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakUse {
    /// Memory of the run's processes.
    pub tree_bytes: Option<u64>,
    /// Memory of the GPUs.
    pub vram_bytes: Option<u64>,
    /// Swap used by the run's processes.
    pub swap_bytes: Option<u64>,
}

/// Training steps; null where no steps were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    /// How many were made.
    pub count: Option<u64>,
    /// How many were made in a second.
    pub per_second: Option<f64>,
    /// The share of the time in which the training waited for data.
    pub input_bound: Option<f64>,
}

impl Verdict {
    /// Reaches the verdict on a run.
    pub fn reach(facts: &Facts, summary: &RunSummary) -> Verdict {
        let is_output_only = facts.state == RunState::OnlyPrinted;
        let mut printed = PrintedOutput::parse(&facts.last_output, is_output_only);
        let exit = summary.end.map(|end| Exit::from_status(end.status));
        if exit.is_some_and(|exit| causes::was_caught(exit, &printed.doubt)) {
            printed.set_aside();
        }
        // Lines of the kernel that were pasted into the output count like lines of its log.
        let mut with_pasted = None;
        if is_output_only {
            let pasted = printed.kernel_log();
            if !pasted.is_empty() {
                let facts = with_pasted.insert(facts.clone());
                facts.log.incidents.extend(pasted);
            }
        }
        let facts = with_pasted.as_ref().unwrap_or(facts);
        let mut end = ending::determine_end(facts, summary, &printed);
        let evidence = RunEvidence {
            facts,
            summary,
            end: end.kind,
            printed: &printed,
        };
        let (causes, ruled_out) = ranking::rank_causes(&evidence);
        let is_quiet = is_output_only && printed.is_quiet();
        if end.kind == EndKind::Unknown && is_quiet && causes.is_empty() {
            end.detail.push_str("; nothing in it looks wrong");
        }
        Verdict {
            schema: SCHEMA,
            run: facts.run.clone(),
            command: facts
                .command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            end,
            causes,
            ruled_out,
            unseen: missing_evidence::list(&evidence),
            peak: PeakUse {
                tree_bytes: summary.peak.as_ref().map(|peak| peak.footprint),
                vram_bytes: summary.gpus.peak.map(|peak| peak.used),
                swap_bytes: summary.peak_swap,
            },
            steps: Steps::from_summary(summary),
        }
    }
}

impl Steps {
    fn from_summary(summary: &RunSummary) -> Steps {
        let Some(count) = summary.steps else {
            return Steps::default();
        };
        let seconds = summary.phases.time().as_secs_f64();
        Steps {
            count: Some(count),
            per_second: (seconds > 0.0).then(|| count as f64 / seconds),
            input_bound: summary.phases.share(Phase::Data),
        }
    }
}

/// Formats a time as `verdict.json` has it.
pub fn format_timestamp(at: Stamp) -> Option<String> {
    timestamp(at).map(|time| format!("{time:.3}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_that_json_uses() {
        for kind in [
            EndKind::Finished,
            EndKind::Failed,
            EndKind::Exception,
            EndKind::Walled,
            EndKind::Stopped,
            EndKind::OomKilled,
            EndKind::Killed,
            EndKind::Crashed,
            EndKind::Hung,
            EndKind::MachineDied,
            EndKind::Running,
            EndKind::Detached,
            EndKind::Exited,
            EndKind::Unknown,
        ] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
    }

    #[test]
    fn every_cause_has_the_word_that_json_uses() {
        for kind in causes::ALL {
            let code = kind.code;
            assert_eq!(serde_json::to_value(code).unwrap(), code.word());
        }
    }

    #[test]
    fn the_documented_example_is_read() {
        let example = r#"{"schema":1,"run":"7f3a","command":["python"],
          "end":{"kind":"walled","at":"2026-01-01T00:00:00Z","exit_code":1,"signal":null,"detail":"x"},
          "causes":[{"code":"memory-leak","confidence":0.94,"summary":"x",
            "location":{"file":"train.py","line":12,"name":"history"},
            "evidence":[{"text":"x","series":"tree.anon","from":"a","to":"b"}],
            "remedies":[{"text":"x","code":"y","docs":"causes/memory-leak"}]}],
          "ruled_out":[{"code":"gpu-fault","why":"no Xid in the kernel log"}],
          "peak":{"tree_bytes":0,"vram_bytes":null,"swap_bytes":0},
          "steps":{"count":0,"per_second":0.0,"input_bound":0.0}}"#;
        let verdict: Verdict = serde_json::from_str(example).unwrap();
        assert_eq!(verdict.end.kind, EndKind::Walled);
        assert_eq!(verdict.causes[0].code, Code::MemoryLeak);
        assert_eq!(verdict.ruled_out[0].code, Code::GpuFault);
    }
}
