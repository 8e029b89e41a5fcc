//! The verdict: how a run ended, why, and what to do. Its shape is what `verdict.json` and
//! `--json` promise to other programs. What is not known is null, never 0.

use crate::case::Case;
use crate::facts::{Facts, Since};
use crate::printed::Printed;
use crate::story::Story;
use crate::time::timestamp;
use crate::{detect, ending, unseen};
use antifreeze_sense::{Phase, Stamp};
use antifreeze_text::signal::Exit;
use serde::{Deserialize, Serialize};

pub const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub schema: u32,
    pub run: String,
    pub command: Vec<String>,
    pub end: End,
    /// Most likely first.
    pub causes: Vec<Cause>,
    pub ruled_out: Vec<RuledOut>,
    /// What could not be seen, and might have told more.
    #[serde(default)]
    pub unseen: Vec<String>,
    pub peak: PeakUse,
    pub steps: Steps,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub kind: EndKind,
    /// RFC 3339; null while it runs and where no clock could be believed.
    pub at: Option<String>,
    pub exit_code: Option<u32>,
    pub signal: Option<u32>,
    /// To be read after "ended".
    pub detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    Finished,
    Failed,
    Exception,
    Walled,
    Stopped,
    OomKilled,
    Killed,
    Crashed,
    Hung,
    MachineDied,
    Running,
    /// An attached process lived on when it was guarded no more.
    Detached,
    /// An attached process ended, and how is known to its parent alone.
    Exited,
    /// Also what a newer writer may say.
    #[serde(other)]
    Unknown,
}

impl EndKind {
    /// The word that `verdict.json` uses.
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

/// What ends a run or slows it down. Each has a file in `detect` and a page in docs/causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// What a newer writer found.
    #[serde(other)]
    Unknown,
}

impl Code {
    /// In plain words.
    pub fn title(self) -> &'static str {
        match self {
            Code::MemoryLeak => "memory leak",
            Code::BatchTooLarge => "one request too large",
            Code::DatasetInMemory => "dataset held in memory",
            Code::LoaderMemory => "memory of the data loader",
            Code::ShmExhausted => "shared memory full",
            Code::SwapThrash => "out of memory",
            Code::ContainerLimit => "container limit",
            Code::LibraryNotMapped => "no room to load a library",
            Code::OtherProcess => "other programs",
            Code::VramExhausted => "out of GPU memory",
            Code::VramLeak => "GPU memory leak",
            Code::VramSpill => "GPU memory that spills over",
            Code::InputBound => "waiting for data",
            Code::SlowStorage => "slow storage",
            Code::DiskFull => "disk full",
            Code::CpuOversubscribed => "more work than cores",
            Code::Deadlock => "deadlock",
            Code::InfiniteLoop => "a loop that does not end",
            Code::GpuDriverMismatch => "GPU driver that does not fit",
            Code::GpuFault => "GPU fault",
            Code::GpuLost => "GPU lost",
            Code::ThermalThrottle => "overheating",
            Code::PowerLimit => "power limit",
            Code::MachineReset => "power cut, reset or hang of the machine",
            Code::KernelPanic => "kernel panic",
            Code::HardwareError => "hardware error",
            Code::NumericNan => "values that are no numbers",
            Code::NumericDivergence => "training that runs away",
            Code::UserException => "an error in the script",
            Code::NativeCrash => "a crash in native code",
            Code::MissingDependency => "something is not installed",
            Code::DeviceMismatch => "tensors on different devices",
            Code::DistributedFailure => "one of several processes failed",
            Code::KilledExternally => "ended from outside",
            Code::Unknown => "something this version does not know",
        }
    }

    /// The word that `verdict.json` uses.
    pub fn word(self) -> &'static str {
        match self {
            Code::MemoryLeak => "memory-leak",
            Code::BatchTooLarge => "batch-too-large",
            Code::DatasetInMemory => "dataset-in-memory",
            Code::LoaderMemory => "loader-memory",
            Code::ShmExhausted => "shm-exhausted",
            Code::SwapThrash => "swap-thrash",
            Code::ContainerLimit => "container-limit",
            Code::LibraryNotMapped => "library-not-mapped",
            Code::OtherProcess => "other-process",
            Code::VramExhausted => "vram-exhausted",
            Code::VramLeak => "vram-leak",
            Code::VramSpill => "vram-spill",
            Code::InputBound => "input-bound",
            Code::SlowStorage => "slow-storage",
            Code::DiskFull => "disk-full",
            Code::CpuOversubscribed => "cpu-oversubscribed",
            Code::Deadlock => "deadlock",
            Code::InfiniteLoop => "infinite-loop",
            Code::GpuDriverMismatch => "gpu-driver-mismatch",
            Code::GpuFault => "gpu-fault",
            Code::GpuLost => "gpu-lost",
            Code::ThermalThrottle => "thermal-throttle",
            Code::PowerLimit => "power-limit",
            Code::MachineReset => "machine-reset",
            Code::KernelPanic => "kernel-panic",
            Code::HardwareError => "hardware-error",
            Code::NumericNan => "numeric-nan",
            Code::NumericDivergence => "numeric-divergence",
            Code::UserException => "user-exception",
            Code::NativeCrash => "native-crash",
            Code::MissingDependency => "missing-dependency",
            Code::DeviceMismatch => "device-mismatch",
            Code::DistributedFailure => "distributed-failure",
            Code::KilledExternally => "killed-externally",
            Code::Unknown => "unknown",
        }
    }

    /// Slow, and well otherwise.
    pub fn is_about_speed(self) -> bool {
        matches!(
            self,
            Code::InputBound | Code::SlowStorage | Code::CpuOversubscribed | Code::VramSpill
        )
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cause {
    pub code: Code,
    /// 0 to 1.
    pub confidence: f64,
    pub summary: String,
    pub location: Option<Location>,
    pub evidence: Vec<Evidence>,
    pub remedies: Vec<Remedy>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub file: String,
    pub line: u32,
    /// The variable or function, where one is known.
    pub name: Option<String>,
}

impl Location {
    /// "train.py:12", or "cell 3, line 6".
    pub fn place(&self) -> String {
        crate::ending::place_of(&self.file, self.line)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    pub text: String,
    pub series: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    pub text: String,
    /// To paste.
    pub code: Option<String>,
    /// The page that tells more.
    pub docs: Option<String>,
    /// The changes to the script that make up `code`. Of one cause all remedies that have some belong together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// A change to a file of the script, as it was during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub file: String,
    pub action: Action,
    /// The first and the last line that it is about, from 1.
    pub line: u32,
    pub last_line: u32,
    /// These lines as they were during the run, without the indentation of the first. Where the file has others now, the
    /// edit does not apply.
    #[serde(default)]
    pub before: String,
    /// Without indentation: that of `line` belongs before it. Empty where the lines are to go.
    pub code: String,
    /// Lines that the file lacks and `code` needs, for its beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// `code` takes the place of `line` to `last_line`.
    Replace,
    /// `code` is a new line before `line`.
    InsertBefore,
    /// `code` is a new line after `last_line`.
    InsertAfter,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuledOut {
    pub code: Code,
    pub why: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakUse {
    pub tree_bytes: Option<u64>,
    pub vram_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
}

/// Null until the trainer's steps are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Steps {
    pub count: Option<u64>,
    pub per_second: Option<f64>,
    pub input_bound: Option<f64>,
}

impl Verdict {
    pub fn reach(facts: &Facts, story: &Story) -> Verdict {
        let mut printed = Printed::read(&facts.last_output, facts.since == Since::OnlyPrinted);
        let exit = story.end.map(|end| Exit::from_status(end.status));
        if exit.is_some_and(|exit| detect::was_caught(exit, &printed.doubt)) {
            printed.set_aside();
        }
        // Lines of the kernel count where they stand in the output, as those of its log do.
        let mut with_pasted = None;
        if facts.since == Since::OnlyPrinted {
            let pasted = printed.kernel_log();
            if !pasted.is_empty() {
                let facts = with_pasted.insert(facts.clone());
                facts.log.incidents.extend(pasted);
            }
        }
        let facts = with_pasted.as_ref().unwrap_or(facts);
        let mut end = ending::judge(facts, story, &printed);
        let case = Case {
            facts,
            story,
            end: end.kind,
            printed: &printed,
        };
        let (causes, ruled_out) = detect::weigh_chain(&case);
        let is_quiet = facts.since == Since::OnlyPrinted && printed.is_quiet();
        if end.kind == EndKind::Unknown && is_quiet && causes.is_empty() {
            end.detail.push_str("; nothing wrong is in it");
        }
        Verdict {
            schema: SCHEMA,
            run: facts.run.clone(),
            command: facts
                .command
                .iter()
                .map(|piece| piece.to_string_lossy().into_owned())
                .collect(),
            end,
            causes,
            ruled_out,
            unseen: unseen::of(&case),
            peak: PeakUse {
                tree_bytes: story.peak.as_ref().map(|peak| peak.footprint),
                vram_bytes: story.cards.peak.map(|peak| peak.used),
                swap_bytes: story.peak_swap,
            },
            steps: Steps::of(story),
        }
    }
}

impl Steps {
    fn of(story: &Story) -> Steps {
        let Some(count) = story.steps else {
            return Steps::default();
        };
        let seconds = story.phases.time().as_secs_f64();
        Steps {
            count: Some(count),
            per_second: (seconds > 0.0).then(|| count as f64 / seconds),
            input_bound: story.phases.share(Phase::Data),
        }
    }
}

/// As `verdict.json` writes times.
pub fn written(at: Stamp) -> Option<String> {
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
    fn every_cause_that_is_looked_for_has_the_word_that_json_uses() {
        for detector in detect::ALL {
            let code = detector.code;
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
