//! # batch-too-large
//!
//! One request for memory is larger than what is left: a batch, a layer or an array that cannot fit.
//!
//! ## How it looks
//!
//! The run fails at once, or at the first batch of a new kind: evaluation, a longer sequence, the last layer.
//! The error names a number of bytes.
//!
//! ## How it is told
//!
//! A single request was refused that is at least a quarter of all that was held. A leak's last request is small
//! beside what it holds.
//!
//! ## What to do
//!
//! Ask for less at once, and sum gradients over several batches, so that the training stays the same:
//!
//! ```python
//! for number, (x, y) in enumerate(loader):          # batch_size halved
//!     loss = criterion(model(x), y) / 2
//!     loss.backward()
//!     if number % 2 == 1:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```

use super::{Finding, Found, container_limit};
use crate::case::Case;
use crate::units;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some(refusal) = case
        .large_request()
        .filter(|_| case.was_short_of_memory())
    else {
        return Finding::Nothing;
    };
    let summary = format!(
        "asked for {} at once while it held {}",
        units::bytes(refusal.bytes),
        units::bytes(refusal.footprint)
    );
    // Without growth before it there is little else that it can be.
    let confidence = match case.fills_up() {
        Some(_) if case.was_served(refusal) => 0.4,
        // It may be small enough for the machine.
        _ if container_limit::is_near(case) => 0.5,
        None if case.tells_of_memory() => 0.85,
        _ => 0.6,
    };
    let found = Found::new(case, confidence, summary, "tree.footprint").at(case.location());
    let room = case.facts.may_use().saturating_sub(refusal.footprint);
    let fits = fitting(case, refusal.bytes, room);
    Finding::Found(match fits {
        Some((batch, parts)) => found.remedy(
            format!("a batch of {batch}, with gradients summed over {parts} of them, would have fitted"),
            Some(format!("batch_size = {batch}; accumulation_steps = {parts}")),
        ),
        None => found.remedy(
            "ask for less at once: a smaller batch, with gradients summed over two of them",
            Some("batch_size //= 2".into()),
        ),
    })
}

/// The largest power-of-two part of the batch whose requests have room, and how many make up the whole.
fn fitting(case: &Case<'_>, asked: u64, room: u64) -> Option<(u64, u64)> {
    let batch = case.facts.told.hello.as_ref()?.batch?;
    let mut parts = 2;
    // What else a step takes is not known: half of the room is left to it.
    while asked / parts > room / 2 {
        parts *= 2;
        if parts > batch {
            return None;
        }
    }
    let size = batch / parts;
    (size > 0).then_some((size, parts))
}
