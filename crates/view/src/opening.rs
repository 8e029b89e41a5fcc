//! The line before the run: the command, the memory it may use, and the protections that are on.

use antifreeze_diagnose::Facts;
use antifreeze_text::layout::cut;
use antifreeze_text::{Glyphs, units};

/// The widest a command may be in the opening line: the numbers behind it must be seen.
const COMMAND_COLUMNS: usize = 60;

/// The means there are on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    pub wall: Wall,
    pub brake: Brake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wall {
    On,
    /// The kernel's limit stands alone, without the preload library.
    WithoutCushion,
    /// Some processes of the run belong to another user.
    Partial,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brake {
    OwnCgroup,
    Off,
}

/// "guarding python train.py · may use 13.9 GB, 1.5 GB kept for you · wall on, …".
pub fn opening(facts: &Facts, means: Means, glyphs: Glyphs) -> String {
    let wall = match means.wall {
        Wall::On => "wall on",
        Wall::WithoutCushion => "wall on (no cushion)",
        Wall::Partial => "wall partly on",
        Wall::Off => "wall off",
    };
    let brake = match means.brake {
        Brake::OwnCgroup => "brake on (own cgroup)",
        Brake::Off => "brake off",
    };
    let command = cut(&facts.command_line(), COMMAND_COLUMNS);
    glyphs.render(format!(
        "guarding {command} · {} · {wall}, {brake}",
        allowance(facts)
    ))
}

fn allowance(facts: &Facts) -> String {
    let may_use = units::bytes(facts.usable_memory());
    if facts.binding_budget().is_some() {
        return format!("may use {may_use} (budget)");
    }
    let swap = match facts.swap {
        0 => String::new(),
        swap => format!(" ({} of it swap)", units::bytes(swap)),
    };
    let container = match facts.container {
        None => String::new(),
        Some(limit) => format!(" in a container with {}", units::bytes(limit)),
    };
    format!(
        "may use {may_use}{swap}{container}, {} kept for you",
        units::bytes(facts.reserve)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn facts() -> Facts {
        Facts {
            command: ["python", "train.py"].map(OsString::from).into(),
            total: 15_400_000_000,
            reserve: 1_500_000_000,
            ..Facts::default()
        }
    }

    fn line(facts: &Facts, wall: Wall, brake: Brake) -> String {
        opening(facts, Means { wall, brake }, Glyphs::Unicode)
    }

    #[test]
    fn the_opening_tells_what_is_guarded_and_how() {
        assert_eq!(
            line(&facts(), Wall::On, Brake::OwnCgroup),
            "guarding python train.py · may use 13.9 GB, 1.5 GB kept for you · wall on, brake on (own cgroup)"
        );
        assert_eq!(
            line(&facts(), Wall::Off, Brake::Off),
            "guarding python train.py · may use 13.9 GB, 1.5 GB kept for you · wall off, brake off"
        );
        assert!(line(&facts(), Wall::Partial, Brake::Off).ends_with("wall partly on, brake off"));
        assert!(line(&facts(), Wall::WithoutCushion, Brake::Off).contains("wall on (no cushion)"));
    }

    #[test]
    fn the_opening_names_the_bound_that_holds() {
        let budget = Facts {
            budget: Some(400_000_000),
            ..facts()
        };
        assert!(line(&budget, Wall::On, Brake::Off).contains("· may use 400 MB (budget) ·"));
        let swap = Facts {
            swap: 1_000_000_000,
            ..facts()
        };
        assert!(
            line(&swap, Wall::On, Brake::Off).contains("may use 14.9 GB (1 GB of it swap), 1.5 GB")
        );
        let container = Facts {
            container: Some(8_000_000_000),
            ..facts()
        };
        assert!(
            line(&container, Wall::On, Brake::Off)
                .contains("may use 6.5 GB in a container with 8 GB, 1.5 GB kept for you")
        );
    }

    #[test]
    fn a_hostile_or_endless_command_stays_one_short_line() {
        let facts = Facts {
            command: vec!["a\u{1b}[2J\n".into(), "b".repeat(9_999).into()],
            ..facts()
        };
        let line = line(&facts, Wall::On, Brake::Off);
        assert!(
            line.len() < 200 && !line.contains(['\n', '\u{1b}']),
            "{line}"
        );
    }

    #[test]
    fn the_opening_survives_a_terminal_without_unicode() {
        let means = Means {
            wall: Wall::On,
            brake: Brake::Off,
        };
        assert!(opening(&facts(), means, Glyphs::Ascii).is_ascii());
    }
}
