//! # shm-exhausted
//!
//! `/dev/shm` is full: workers hand batches over through shared memory, and there was no room for the next.
//!
//! ## How it looks
//!
//! `Bus error`, `unable to write to file </torch_…>`, `No space left on device`, or a training that stands still
//! without a word. Containers have 64 MB of it unless they are given more.
//!
//! ## How it is told
//!
//! Less than 2 % of `/dev/shm` was free at the last look, or the output says so; a bus error makes it likelier, and
//! is all that tells where there is only the output.
//!
//! ## What to do
//!
//! ```sh
//! docker run --shm-size=8g …
//! mount -o remount,size=8G /dev/shm
//! ```
//!
//! or fewer workers, or `torch.multiprocessing.set_sharing_strategy("file_system")`.

use antifreeze_text::{signal, units};
use super::disk_full::{says_full, share_free};
use super::{Finding, Found};
use crate::case::Case;

/// Below this share it counts as full.
pub(super) const FULL: f64 = 0.02;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    let (said, most) = told(case).map_or((None, 1.0), |(line, most)| (Some(line), most));
    let bus_error = case.signal() == Some(signal::BUS);
    let free = case.last().and_then(|last| share_free(last.shm));
    let (confidence, summary) = match (free, &said) {
        (Some((share, free)), _) if share < FULL => {
            let is_told = bus_error || said.is_some() || says_full(case);
            let confidence = match (is_told, said.is_some()) {
                (_, true) => 0.9,
                (true, _) => 0.75,
                _ => 0.5,
            };
            (
                confidence,
                format!("{} were free in /dev/shm", units::bytes(free)),
            )
        }
        (_, Some(said)) => (f64::min(0.9, most), said.clone()),
        (Some((_, free)), None) => {
            return Finding::RuledOut(format!("{} free in /dev/shm", units::bytes(free)));
        }
        (None, None) if bus_error => {
            (0.65, "a bus error: in a training most often a full /dev/shm".into())
        }
        (None, None) => return Finding::Nothing,
    };
    Finding::Found(Found::new(case, confidence, summary, "shm.free").remedy(
        "fewer DataLoader workers, or more shared memory for the container (docker run --shm-size)",
        Some("num_workers=0".into()),
    ))
}

/// In the output's own words.
pub(super) fn said(case: &Case<'_>) -> Option<String> {
    told(case).map(|(line, _)| line)
}

fn told(case: &Case<'_>) -> Option<(String, f64)> {
    const PLAIN: [&str; 7] = [
        "insufficient shared memory (shm)",
        "out of shared memory",
        "unable to write to file </torch_",
        "unable to allocate shared memory(shm)",
        "error while attempting to allocate shared memory",
        "Error while creating shared memory segment",
        "failed to extend /dev/shm/",
    ];
    // Full is full, wherever it is: the name tells.
    let by_name = || {
        let full = case.said(&["No space left on device"])?;
        let is_shared = ["/dev/shm", "shared memory", "</torch_"].iter().any(|name| full.0.contains(name));
        is_shared.then_some(full)
    };
    case.said(&PLAIN).or_else(by_name)
}
