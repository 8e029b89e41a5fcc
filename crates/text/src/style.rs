//! The style of a terminal: its width, its characters, its time zone, and whether it shows colour. Colour decorates
//! and never carries meaning. On a terminal that can show only ASCII the output is less pretty and says the same.

use crate::sanitize;
use jiff::{Timestamp, tz::TimeZone};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The characters that a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Glyphs {
    /// All characters.
    #[default]
    Unicode,
    /// Only ASCII.
    Ascii,
}

impl Glyphs {
    /// Replaces what the terminal cannot show. Our own symbols become one ASCII character each, so widths stay the
    /// same; all other characters are escaped.
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

/// How to format text for one terminal.
#[derive(Clone, Debug)]
pub struct TermStyle {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether escape sequences for bold, dim and colour are written.
    pub colour: bool,
    /// The characters that the terminal can show.
    pub glyphs: Glyphs,
    /// The time zone of the reader.
    pub zone: TimeZone,
    /// The home folder; paths below it are shown with `~`.
    pub home: Option<PathBuf>,
}

impl Default for TermStyle {
    fn default() -> TermStyle {
        TermStyle {
            width: 80,
            colour: false,
            glyphs: Glyphs::Unicode,
            zone: TimeZone::UTC,
            home: None,
        }
    }
}

impl TermStyle {
    /// The path, escaped, with `~` for the home folder.
    pub fn path(&self, path: &Path) -> String {
        match self
            .home
            .as_deref()
            .and_then(|home| path.strip_prefix(home).ok())
        {
            Some(below) => format!("~/{}", sanitize::escape(below.as_os_str().as_bytes())),
            None => sanitize::escape(path.as_os_str().as_bytes()),
        }
    }

    /// Dim text, where colour is on.
    pub fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Bold text, where colour is on.
    pub fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Text with the given SGR code ("1;31"), where colour is on.
    pub fn paint(&self, sgr_code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{sgr_code}m{text}\x1b[0m")
        } else {
            text.into()
        }
    }

    /// The time of day: "02:13:07". "?" where the time is not known, as in all functions below.
    pub fn clock(&self, time: Option<Timestamp>) -> String {
        self.format_time(time, "%H:%M:%S")
    }

    /// Day and time, for runs of more than a day: "11-15 02:13:07".
    pub fn day_and_clock(&self, time: Option<Timestamp>) -> String {
        self.format_time(time, "%m-%d %H:%M:%S")
    }

    /// Date and time: "2026-11-15 02:13".
    pub fn date(&self, time: Option<Timestamp>) -> String {
        self.format_time(time, "%Y-%m-%d %H:%M")
    }

    /// The name of the time zone, "Europe/Berlin", or its offset from UTC where it has no name.
    pub fn zone_name(&self, time: Option<Timestamp>) -> String {
        self.format_time(time, "%:Q")
    }

    fn format_time(&self, time: Option<Timestamp>, pattern: &str) -> String {
        // Formatting fails only on patterns that need what a zoned time does not have.
        time.map_or_else(
            || "?".into(),
            |time| {
                time.to_zoned(self.zone.clone())
                    .strftime(pattern)
                    .to_string()
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn every_symbol_of_ours_has_an_ascii_form_of_the_same_width() {
        let ours = "── a · b… ▁▂▃▄▅▆▇█░";
        let plain = Glyphs::Ascii.render(ours.into());
        assert!(plain.is_ascii());
        assert_eq!(plain.width(), ours.width());
        assert_eq!(Glyphs::Unicode.render(ours.into()), ours);
        assert_eq!(Glyphs::Ascii.render("é".into()), "\\u{e9}");
    }

    #[test]
    fn times_are_shown_in_the_readers_zone() {
        let at = Timestamp::from_second(1_794_766_387).ok();
        let mut style = TermStyle::default();
        assert_eq!(style.date(at), "2026-11-15 18:13");
        style.zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(style.clock(at), "20:13:07");
        assert_eq!(style.clock(None), "?");
    }

    #[test]
    fn a_home_folder_is_a_tilde() {
        let style = TermStyle {
            home: Some("/home/ada".into()),
            ..TermStyle::default()
        };
        assert_eq!(style.path(Path::new("/home/ada/runs/7f3a")), "~/runs/7f3a");
        assert_eq!(style.path(Path::new("/var/runs")), "/var/runs");
    }
}
