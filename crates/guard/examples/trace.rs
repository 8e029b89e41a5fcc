//! Turns the record of a run into a trace that the policy's tests replay.
//!
//! `cargo run -p antifreeze-guard --example trace -- RUN_FOLDER [ALLOWED_SWAP_BYTES] > NAME.trace`
//!
//! The folder is that of one run, as `antifreeze` leaves it under `runs/`. What swap was
//! allowed is not in a record, so that it has to be said. The stride comes from samples that
//! are further apart than the guard's looks, and so may be larger than the guard knew it.

use antifreeze_guard::policy::Motion;
use antifreeze_guard::room::MemoryBounds;
use antifreeze_guard::stride::Stride;
use antifreeze_record::Record;
use antifreeze_record::event::{Event, EventKind};
use antifreeze_sense::{Pid, Sample};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use trace_fields::FIELDS;

#[path = "../testing/trace_fields.rs"]
mod trace_fields;

const USAGE: &str = "trace RUN_FOLDER [ALLOWED_SWAP_BYTES]";
/// A field that is as in the line before.
const SAME: &str = ".";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match print_trace(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trace: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_trace(arguments: &[OsString]) -> io::Result<()> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, USAGE);
    let (folder, allow_swap) = match arguments {
        [folder] => (folder, 0),
        [folder, swap] => {
            let swap = swap.to_str().and_then(|text| text.parse().ok());
            (folder, swap.ok_or_else(wrong)?)
        }
        _ => return Err(wrong()),
    };
    let record = Record::open(Path::new(folder))?;
    let bounds = bounds(&record, allow_swap).ok_or_else(|| {
        let message = "the record has no start of a guard, and so no terms; give a run that began";
        io::Error::new(io::ErrorKind::InvalidData, message)
    })?;
    let mut out = io::stdout().lock();
    let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    writeln!(
        out,
        "# samples of a run, to replay: ms motion stride_kb {}",
        names.join(" ")
    )?;
    writeln!(
        out,
        "terms {} {} {}",
        bounds.reserve,
        or_none(bounds.budget),
        bounds.allow_swap
    )?;
    Tracer::new(&record).run(&record, &mut out)
}

/// What was agreed for the run, as the guard fitted it to the machine.
fn bounds(record: &Record, allow_swap: u64) -> Option<MemoryBounds> {
    record.events().find_map(|event| match event.kind {
        EventKind::Started {
            reserve, budget, ..
        } => Some(MemoryBounds {
            reserve,
            budget,
            allow_swap,
        }),
        _ => None,
    })
}

/// What has to be remembered from one sample to the next.
struct Tracer {
    start: u64,
    motion: Motion,
    stride: Stride,
    /// What each process had mapped, by its identity.
    mapped: HashMap<(Pid, u64), u64>,
    before: Vec<String>,
}

impl Tracer {
    fn new(record: &Record) -> Tracer {
        Tracer {
            start: record
                .sample_stamps()
                .next()
                .map_or(0, |stamp| stamp.monotonic_ns),
            motion: Motion::Running,
            stride: Stride::default(),
            mapped: HashMap::new(),
            before: Vec::new(),
        }
    }

    fn run(&mut self, record: &Record, out: &mut impl Write) -> io::Result<()> {
        let mut events = record.events().peekable();
        for sample in record.samples() {
            let earlier = |event: &Event| event.at.monotonic_ns <= sample.at.monotonic_ns;
            while let Some(event) = events.next_if(earlier) {
                self.apply_event(&event, out)?;
            }
            self.see(sample, out)?;
        }
        for event in events {
            self.apply_event(&event, out)?;
        }
        Ok(())
    }

    fn apply_event(&mut self, event: &Event, out: &mut impl Write) -> io::Result<()> {
        match event.kind {
            EventKind::Paused { .. } => self.motion = Motion::Paused,
            EventKind::UserStopped => self.motion = Motion::StoppedByUser,
            EventKind::Resumed { .. } | EventKind::UserContinued => self.motion = Motion::Running,
            EventKind::RequestRefused { .. } => {
                writeln!(out, "{} walled", self.millis(event.at.monotonic_ns))?
            }
            _ => {}
        }
        Ok(())
    }

    fn see(&mut self, mut sample: Sample, out: &mut impl Write) -> io::Result<()> {
        let now = sample.at.monotonic_ns;
        let mut values = vec![
            name(self.motion).to_string(),
            (self.stride.bytes(now) >> 10).to_string(),
        ];
        values.extend(FIELDS.iter().map(|field| {
            let value = (field.place)(&mut sample).value();
            or_none(value.map(|value| value / field.unit))
        }));
        let mut line = vec![self.millis(now).to_string()];
        line.extend(values.iter().enumerate().map(|(index, value)| {
            let same = self.before.get(index) == Some(value);
            if same {
                SAME.to_string()
            } else {
                value.clone()
            }
        }));
        while line.last().is_some_and(|word| word == SAME) {
            line.pop();
        }
        writeln!(out, "{}", line.join(" "))?;
        self.before = values;
        // After the line, as the guard decides first and moves the wall then.
        self.measure_strides(&sample);
        Ok(())
    }

    fn measure_strides(&mut self, sample: &Sample) {
        for process in sample.processes.as_slice() {
            let Some(mapped) = process.vm_data.value() else {
                continue;
            };
            let before = self.mapped.insert((process.pid, process.started), mapped);
            let growth = before.map_or(0, |before| mapped.saturating_sub(before));
            self.stride.observe(sample.at.monotonic_ns, growth);
        }
    }

    fn millis(&self, at: u64) -> u64 {
        at.saturating_sub(self.start) / 1_000_000
    }
}

fn name(motion: Motion) -> &'static str {
    match motion {
        Motion::Running => "running",
        Motion::Paused => "paused",
        Motion::StoppedByUser => "held",
    }
}

fn or_none(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_string(), |value| value.to_string())
}
