//! The status line of `--live`: the current state of the run, in one line that always fits the terminal.

use crate::sentence::rung_name;
use antifreeze_diagnose::Facts;
use antifreeze_diagnose::time::between;
use antifreeze_record::event::Rung;
use antifreeze_sense::Sample;
use antifreeze_text::layout::{bar, cut};
use antifreeze_text::{TermStyle, units};
use unicode_width::UnicodeWidthStr;

const BAR_COLUMNS: usize = 12;
const TICKS_PER_SECOND: f64 = 100.0;

/// The bytes that the process tree may still allocate before it reaches its tightest limit.
pub fn room(sample: &Sample, facts: &Facts) -> Option<u64> {
    let machine = sample.memory.available.value();
    let cgroup = sample.cgroup.limit_available.value();
    let free = [machine, cgroup].into_iter().flatten().min();
    let free = free.map(|free| {
        free.saturating_sub(facts.reserve)
            .saturating_add(facts.swap)
    });
    let footprint = sample.tree.footprint.value();
    let budget = facts
        .budget
        .zip(footprint)
        .map(|(budget, used)| budget.saturating_sub(used));
    [free, budget].into_iter().flatten().min()
}

/// Renders the status line from the latest sample; the one before it gives the rates. Parts that do not
/// fit are left out, the least important first. It has no line break and no colour.
pub fn status(
    before: Option<&Sample>,
    now: &Sample,
    rung: Rung,
    facts: &Facts,
    style: &TermStyle,
) -> String {
    let room = room(now, facts);
    // In the order of the line; the number says who stays longest.
    let parts: Vec<(u8, String)> = [
        memory(now, room).map(|text| (0, text)),
        fill(now, room).map(|text| (3, text)),
        cpu(before, now).map(|text| (4, text)),
        room.map(|room| (2, format!("room {}", units::bytes(room)))),
        Some((1, rung_name(rung).into())),
        Some((5, units::duration(between(facts.started, now.at)))),
    ]
    .into_iter()
    .flatten()
    .collect();

    let line = (0..=5u8)
        .rev()
        .map(|last| joined(&parts, last))
        .find(|line| line.width() <= style.width)
        .unwrap_or_else(|| cut(&joined(&parts, 0), style.width));
    style.glyphs.render(line)
}

fn joined(parts: &[(u8, String)], last: u8) -> String {
    let kept: Vec<&str> = parts
        .iter()
        .filter(|(rank, _)| *rank <= last)
        .map(|(_, text)| text.as_str())
        .collect();
    kept.join("  ")
}

fn memory(now: &Sample, room: Option<u64>) -> Option<String> {
    let used = now.tree.footprint.value()?;
    Some(match room {
        Some(room) => units::bytes_of(used, used.saturating_add(room)),
        None => units::bytes(used),
    })
}

fn fill(now: &Sample, room: Option<u64>) -> Option<String> {
    let used = now.tree.footprint.value()? as f64;
    Some(bar(used / (used + room? as f64).max(1.0), BAR_COLUMNS))
}

/// The number of cores that the process tree kept busy between two samples.
fn cpu(before: Option<&Sample>, now: &Sample) -> Option<String> {
    let before = before?;
    let ticks = now
        .tree
        .cpu
        .value()?
        .saturating_sub(before.tree.cpu.value()?);
    let seconds = between(before.at, now.at).as_secs_f64();
    if seconds <= 0.0 {
        return None;
    }
    let busy = ticks as f64 / TICKS_PER_SECOND / seconds;
    Some(match now.cpu.core_count {
        0 => format!("{busy:.1} cores busy"),
        cores => format!("{busy:.1} of {cores} cores"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_sense::{Reading, Stamp};

    fn sample(seconds: u64, footprint: u64, available: u64, ticks: u64) -> Sample {
        let mut sample = Sample {
            at: Stamp {
                monotonic_ns: seconds * 1_000_000_000,
                realtime_ns: 0,
            },
            ..Sample::default()
        };
        sample.tree.footprint = Reading::Value(footprint);
        sample.tree.cpu = Reading::Value(ticks);
        sample.memory.available = Reading::Value(available);
        sample.cpu.core_count = 8;
        sample
    }

    fn facts() -> Facts {
        Facts {
            total: 15_400_000_000,
            reserve: 1_500_000_000,
            ..Facts::default()
        }
    }

    fn line(width: usize) -> String {
        let before = sample(250, 9_000_000_000, 6_400_000_000, 1_000);
        let now = sample(252, 9_100_000_000, 6_300_000_000, 1_680);
        status(
            Some(&before),
            &now,
            Rung::Watch,
            &facts(),
            &TermStyle {
                width,
                ..TermStyle::default()
            },
        )
    }

    #[test]
    fn the_line_tells_memory_cpu_room_rung_and_time() {
        assert_eq!(
            line(80),
            "9.1 of 13.9 GB  ████████░░░░  3.4 of 8 cores  room 4.8 GB  watch  4 min 12 s"
        );
    }

    #[test]
    fn the_line_always_fits() {
        assert_eq!(line(60), "9.1 of 13.9 GB  ████████░░░░  room 4.8 GB  watch");
        assert_eq!(line(24), "9.1 of 13.9 GB  watch");
        for width in 0..90 {
            assert!(line(width).width() <= width, "{width}");
        }
    }

    #[test]
    fn the_tightest_bound_gives_the_room() {
        let mut now = sample(0, 300, 6_300_000_000, 0);
        assert_eq!(room(&now, &facts()), Some(4_800_000_000));
        assert_eq!(
            room(
                &now,
                &Facts {
                    budget: Some(400),
                    ..facts()
                }
            ),
            Some(100)
        );
        now.cgroup.limit_available = Reading::Value(1_600_000_000);
        assert_eq!(room(&now, &facts()), Some(100_000_000));
    }

    #[test]
    fn what_was_not_read_is_left_out() {
        let line = status(
            None,
            &Sample::default(),
            Rung::Calm,
            &facts(),
            &TermStyle::default(),
        );
        assert_eq!(line, "calm  0 s");
    }
}
