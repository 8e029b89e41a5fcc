//! What is looked for: one cause a file, whose head is its page in docs/causes. Each says what it found and
//! how sure it is, or why it was not that, or nothing. Where two causes look alike, both are named and
//! neither is called sure.

#[cfg(test)]
mod pages;
mod remedy;

pub(crate) use user_exception::{own_code, was_caught};

use crate::bearing::{self, Part};
use crate::case::Case;
use crate::facts::Since;
use crate::kernel::Incident;
use crate::traceback::Traceback;
use crate::verdict::{Cause, Code, EndKind, Evidence, Location, Remedy, RuledOut};
use antifreeze_text::layout::cut;

/// From here on a cause stands for the errors that it leads to.
const SURE: f64 = 0.75;
/// Of a line that is told as it is.
const LONGEST_LINE: usize = 160;

/// One cause that is looked for.
pub struct Detector {
    pub code: Code,
    /// The text of its file.
    source: &'static str,
    look: fn(&Case<'_>) -> Finding,
}

/// What came of looking.
pub(crate) enum Finding {
    /// Nothing speaks for it, and nothing against it.
    Nothing,
    /// Why it was not that.
    RuledOut(String),
    Found(Found),
}

/// A cause before it has its name.
pub(crate) struct Found {
    confidence: f64,
    summary: String,
    location: Option<Location>,
    evidence: Vec<Evidence>,
    remedies: Vec<Remedy>,
}

macro_rules! detectors {
    ($($code:ident: $file:ident),* $(,)?) => {
        $(mod $file;)*

        /// All of them, those that tell the most first.
        pub static ALL: &[Detector] = &[$(Detector {
            code: Code::$code,
            source: include_str!(concat!(stringify!($file), ".rs")),
            look: $file::look,
        }),*];
    };
}

detectors! {
    MemoryLeak: memory_leak,
    BatchTooLarge: batch_too_large,
    DatasetInMemory: dataset_in_memory,
    LoaderMemory: loader_memory,
    ShmExhausted: shm_exhausted,
    SwapThrash: swap_thrash,
    ContainerLimit: container_limit,
    LibraryNotMapped: library_not_mapped,
    OtherProcess: other_process,
    VramExhausted: vram_exhausted,
    VramLeak: vram_leak,
    VramSpill: vram_spill,
    InputBound: input_bound,
    SlowStorage: slow_storage,
    DiskFull: disk_full,
    CpuOversubscribed: cpu_oversubscribed,
    Deadlock: deadlock,
    InfiniteLoop: infinite_loop,
    GpuDriverMismatch: gpu_driver_mismatch,
    GpuFault: gpu_fault,
    GpuLost: gpu_lost,
    ThermalThrottle: thermal_throttle,
    PowerLimit: power_limit,
    MachineReset: machine_reset,
    KernelPanic: kernel_panic,
    HardwareError: hardware_error,
    NumericNan: numeric_nan,
    NumericDivergence: numeric_divergence,
    MissingDependency: missing_dependency,
    DeviceMismatch: device_mismatch,
    DistributedFailure: distributed_failure,
    UserException: user_exception,
    NativeCrash: native_crash,
    KilledExternally: killed_externally,
}

/// Of a chain of errors the other end may be the one that has a cause of its own.
pub(crate) fn weigh_chain(case: &Case<'_>) -> (Vec<Cause>, Vec<RuledOut>) {
    let found = weigh(case);
    let is_plain = |causes: &[Cause]| {
        causes
            .first()
            .is_none_or(|cause| is_how_it_shows(cause.code))
    };
    if case.end != EndKind::Exception || case.printed.chained.is_none() || !is_plain(&found.0) {
        return found;
    }
    let Some(printed) = case.printed.clone().turned() else {
        return found;
    };
    let turned = weigh(&Case {
        printed: &printed,
        ..*case
    });
    if is_plain(&turned.0) { found } else { turned }
}

/// Causes, most likely first, and what was ruled out.
fn weigh(case: &Case<'_>) -> (Vec<Cause>, Vec<RuledOut>) {
    let (mut causes, mut ruled_out) = (Vec::new(), Vec::new());
    for detector in ALL {
        let code = detector.code;
        match (detector.look)(case) {
            Finding::Nothing => {}
            Finding::RuledOut(why) => ruled_out.push(RuledOut { code, why }),
            Finding::Found(found) => causes.push(found.named(code)),
        }
    }
    let explained = causes
        .iter()
        .any(|cause| explains_the_end(cause.code, case) && cause.confidence >= SURE);
    causes.retain(|cause| !(explained && is_how_it_shows(cause.code)));
    give_way(&mut causes, case);
    // What it said last is told for want of anything better.
    let is_alone = causes.len() == 1;
    let is_last_word =
        |cause: &Cause| cause.code == Code::UserException && case.end == EndKind::Failed;
    causes.retain(|cause| is_alone || !is_last_word(cause));
    // Whoever asks why it ended is told that first.
    let is_aside = |cause: &Cause| cause.code.is_about_speed() && case.went_wrong();
    causes.sort_by(|a, b| {
        let by_sureness = b.confidence.total_cmp(&a.confidence);
        is_aside(a).cmp(&is_aside(b)).then(by_sureness)
    });
    say_remedies_once(&mut causes);
    (causes, ruled_out)
}

/// What a likelier cause offers already is not offered again.
fn say_remedies_once(causes: &mut [Cause]) {
    let mut known: Vec<Remedy> = Vec::new();
    for cause in causes {
        cause.remedies.retain(|remedy| {
            let is_same = |other: &Remedy| match remedy.edits.is_empty() {
                true => other.text == remedy.text,
                false => other.edits == remedy.edits,
            };
            let is_new = !known.iter().any(is_same);
            known.extend(is_new.then(|| remedy.clone()));
            is_new
        });
    }
}

/// An error of the script that another cause was found by is no better explanation than that.
fn give_way(causes: &mut [Cause], case: &Case<'_>) {
    /// A guess does not stand for it.
    const LIKELY: f64 = 0.5;
    /// Of the error; more of it may have been cut.
    const ENOUGH: usize = 80;
    let error: String = case.error().chars().take(ENOUGH).collect();
    if error.is_empty() {
        return;
    }
    // That there is no card says less than why.
    let lacks_card = case
        .printed
        .traceback
        .as_ref()
        .is_some_and(Traceback::lacks_card);
    let is_of_card = |code: Code| {
        matches!(
            code,
            Code::GpuDriverMismatch | Code::GpuLost | Code::GpuFault
        )
    };
    let is_by_error = |cause: &&Cause| {
        let is_told = cause.evidence.iter().any(|seen| seen.text.contains(&error));
        !is_how_it_shows(cause.code) && (is_told || lacks_card && is_of_card(cause.code))
    };
    let found = causes
        .iter()
        .filter(is_by_error)
        .map(|cause| cause.confidence);
    let Some(most) = found.filter(|sure| *sure >= LIKELY).reduce(f64::max) else {
        return;
    };
    for cause in causes
        .iter_mut()
        .filter(|cause| cause.code == Code::UserException)
    {
        cause.confidence = cause.confidence.min(most - 0.1);
    }
}

/// How an end looks, whatever led to it.
fn is_how_it_shows(code: Code) -> bool {
    matches!(
        code,
        Code::UserException | Code::NativeCrash | Code::KilledExternally | Code::MachineReset
    )
}

/// A script may go on with bad numbers, slowly, hot or with little memory, and end by something else.
fn explains_the_end(code: Code, case: &Case<'_>) -> bool {
    let is_of_memory = matches!(
        code,
        Code::MemoryLeak
            | Code::BatchTooLarge
            | Code::DatasetInMemory
            | Code::LoaderMemory
            | Code::SwapThrash
            | Code::ContainerLimit
            | Code::OtherProcess
    );
    let is_other = case.end == EndKind::Exception && !case.tells_of_memory();
    let is_bearable = matches!(
        code,
        Code::NumericDivergence | Code::ThermalThrottle | Code::PowerLimit
    ) || code == Code::NumericNan && !numeric_nan::is_raised(case);
    !(is_how_it_shows(code) || code.is_about_speed() || is_bearable || is_of_memory && is_other)
}

/// No step is made any more.
pub(crate) fn stands_still(case: &Case<'_>) -> bool {
    deadlock::stands_still(case).is_some()
}

impl Found {
    /// What was seen, and over which series; that it was so is the first evidence.
    pub fn new(case: &Case<'_>, confidence: f64, summary: String, series: &str) -> Found {
        let found = Found {
            confidence,
            summary: summary.clone(),
            location: None,
            evidence: Vec::new(),
            remedies: Vec::new(),
        };
        found.and(case, summary, series)
    }

    /// What a line of the system's log tells of a part that failed, where that explains such an end.
    pub fn failed(
        case: &Case<'_>,
        part: Part,
        confidence: f64,
        incident: &Incident,
    ) -> Option<Found> {
        let confidence = confidence.min(bearing::most(case, part, incident));
        (confidence > 0.0).then(|| Found::said(case, confidence, incident))
    }

    /// What a line of the system's log tells. A log of what was printed has no clock: whether that line is of its
    /// time nobody knows.
    pub fn said(case: &Case<'_>, confidence: f64, incident: &Incident) -> Found {
        let most = match (case.facts.since, case.end) {
            (Since::OnlyPrinted, EndKind::Unknown) => 0.75,
            _ => 1.0,
        };
        Found::new(
            case,
            confidence.min(most),
            cut(&incident.line.text, LONGEST_LINE),
            "kernel",
        )
    }

    /// More that speaks for it.
    pub fn and(mut self, case: &Case<'_>, text: String, series: &str) -> Found {
        let (from, to) = case.span();
        self.evidence.push(Evidence {
            text,
            series: (!series.is_empty()).then(|| series.into()),
            from,
            to,
        });
        self
    }

    pub fn at(mut self, location: Option<Location>) -> Found {
        self.location = location.or(self.location);
        self
    }

    /// "train.py:12".
    pub fn place(&self) -> Option<String> {
        self.location.as_ref().map(Location::place)
    }

    /// What to do, the best first; and what to paste, where that helps.
    pub fn remedy(mut self, text: impl Into<String>, code: Option<String>) -> Found {
        self.remedies.push(Remedy {
            text: text.into(),
            code,
            docs: None,
            edits: Vec::new(),
        });
        self
    }

    /// What to do, as a change to the script.
    pub fn remedy_by(mut self, remedy: Remedy) -> Found {
        self.remedies.push(remedy);
        self
    }

    fn named(mut self, code: Code) -> Cause {
        for remedy in &mut self.remedies {
            remedy.docs = Some(format!("causes/{}", code.word()));
        }
        Cause {
            code,
            confidence: self.confidence,
            summary: self.summary,
            location: self.location,
            evidence: self.evidence,
            remedies: self.remedies,
        }
    }
}

impl From<Option<Found>> for Finding {
    fn from(found: Option<Found>) -> Finding {
        found.map_or(Finding::Nothing, Finding::Found)
    }
}

impl Detector {
    /// What it is, how it is told, and the way out, from the head of its file.
    pub fn page(&self) -> String {
        let head = self
            .source
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line));
        head.map(|line| format!("{line}\n")).collect()
    }
}

/// Of a cause by its word.
pub fn detector(word: &str) -> Option<&'static Detector> {
    ALL.iter().find(|detector| detector.code.word() == word)
}
