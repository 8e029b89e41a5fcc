//! How the output should look: how wide, in which alphabet, in which time zone, in colour
//! or not. Colour decorates and never carries meaning; a terminal that knows only ASCII
//! loses prettiness and nothing else.

use jiff::tz::TimeZone;
use std::path::{Path, PathBuf};
use unicode_width::UnicodeWidthStr;

use antifreeze_diagnose::safe;
use antifreeze_diagnose::time::timestamp;
use antifreeze_sense::Stamp;
use std::os::unix::ffi::OsStrExt;

/// The characters a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    #[default]
    Unicode,
    Ascii,
}

impl Glyphs {
    /// The text in these characters. Ours are replaced one by one, so widths stay; a
    /// stranger's are escaped.
    pub fn render(self, text: String) -> String {
        if self == Glyphs::Unicode || text.is_ascii() {
            return text;
        }
        let mut plain = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                '─' | '·' => plain.push('-'),
                '…' => plain.push('~'),
                '°' => plain.push(' '),
                '▁' => plain.push('_'),
                '▂' => plain.push('.'),
                '▃' => plain.push('-'),
                '▄' => plain.push('='),
                '▅' => plain.push('+'),
                '▆' => plain.push('o'),
                '▇' => plain.push('O'),
                '█' => plain.push('#'),
                '░' => plain.push('.'),
                _ if character.is_ascii() => plain.push(character),
                _ => plain.extend(character.escape_unicode()),
            }
        }
        plain
    }
}

/// What the reader's screen wants.
#[derive(Clone, Debug)]
pub struct Look {
    pub width: usize,
    pub colour: bool,
    pub glyphs: Glyphs,
    pub zone: TimeZone,
    /// Paths below it are shown with `~`.
    pub home: Option<PathBuf>,
}

impl Default for Look {
    fn default() -> Look {
        Look {
            width: 80,
            colour: false,
            glyphs: Glyphs::Unicode,
            zone: TimeZone::UTC,
            home: None,
        }
    }
}

impl Look {
    pub fn path(&self, path: &Path) -> String {
        match self
            .home
            .as_deref()
            .and_then(|home| path.strip_prefix(home).ok())
        {
            Some(below) => format!("~/{}", safe::shown(below.as_os_str().as_bytes())),
            None => safe::shown(path.as_os_str().as_bytes()),
        }
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.painted("2", text)
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.into()
        }
    }

    /// "02:13:07".
    pub(crate) fn clock(&self, at: Stamp) -> String {
        self.formatted(at, "%H:%M:%S")
    }

    /// "11-15 02:13:07", for runs of more than a day.
    pub(crate) fn day_and_clock(&self, at: Stamp) -> String {
        self.formatted(at, "%m-%d %H:%M:%S")
    }

    /// "2026-11-15 02:13".
    pub(crate) fn date(&self, at: Stamp) -> String {
        self.formatted(at, "%Y-%m-%d %H:%M")
    }

    /// "Europe/Berlin"; the distance from UTC where the zone has no name.
    pub(crate) fn zone_name(&self, at: Stamp) -> String {
        self.formatted(at, "%:Q")
    }

    fn formatted(&self, at: Stamp, pattern: &str) -> String {
        // strftime's Display fails only on patterns that need what a zoned time lacks.
        timestamp(at).map_or_else(
            || "?".into(),
            |time| {
                time.to_zoned(self.zone.clone())
                    .strftime(pattern)
                    .to_string()
            },
        )
    }
}

/// The values as a row of small columns, the largest touching the top.
pub(crate) fn sparkline(values: &[u64], top: u64) -> String {
    const COLUMNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let last = COLUMNS.len() - 1;
    values
        .iter()
        .map(|value| {
            let share = *value as f64 / top.max(1) as f64;
            let level = (share * last as f64).round() as usize;
            COLUMNS.get(level).copied().unwrap_or('█')
        })
        .collect()
}

/// A bar of `width` cells, filled to the share.
pub(crate) fn bar(share: f64, width: usize) -> String {
    let filled = ((share.clamp(0.0, 1.0) * width as f64).round() as usize).min(width);
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

/// Filled with blanks to this many columns.
pub(crate) fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Lines of at most `width` columns, broken between words. A word longer than that, such
/// as a path, stays whole: broken, it could not be copied.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_sign_of_ours_has_an_ascii_form_of_the_same_width() {
        let ours = "── a · b… ▁▂▃▄▅▆▇█░";
        let plain = Glyphs::Ascii.render(ours.into());
        assert!(plain.is_ascii());
        assert_eq!(plain.width(), ours.width());
        assert_eq!(Glyphs::Unicode.render(ours.into()), ours);
        assert_eq!(Glyphs::Ascii.render("é".into()), "\\u{e9}");
    }

    #[test]
    fn a_sparkline_rises_with_its_values() {
        assert_eq!(sparkline(&[0, 1, 2, 3, 4, 5, 6, 7], 7), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[9], 3), "█");
        assert_eq!(sparkline(&[0, 0], 0), "▁▁");
    }

    #[test]
    fn a_bar_never_overflows() {
        assert_eq!(bar(0.5, 4), "██░░");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(bar(f64::NAN, 4), "░░░░");
    }

    #[test]
    fn times_are_shown_in_the_readers_zone() {
        let at = Stamp {
            monotonic: 0,
            realtime: 1_794_766_387_000_000_000,
        };
        let mut look = Look::default();
        assert_eq!(look.date(at), "2026-11-15 18:13");
        look.zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(look.clock(at), "20:13:07");
    }

    #[test]
    fn a_home_folder_is_a_tilde() {
        let look = Look {
            home: Some("/home/ada".into()),
            ..Look::default()
        };
        assert_eq!(look.path(Path::new("/home/ada/runs/7f3a")), "~/runs/7f3a");
        assert_eq!(look.path(Path::new("/var/runs")), "/var/runs");
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word(text in "[a-zé ]{0,80}", width in 1usize..30) {
            let lines = wrapped(&text, width);
            let words: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(lines.join(" "), words.join(" "));
            for line in lines {
                prop_assert!(line.width() <= width || !line.contains(' '), "{}", line);
            }
        }
    }
}
