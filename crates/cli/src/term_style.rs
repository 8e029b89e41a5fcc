//! Detects the style of the terminal that a stream writes to.

use antifreeze_text::{Glyphs, TermStyle};
use rustix::fd::AsFd;

/// Finds out how to format text for this stream.
pub fn terminal_style(stream: impl AsFd) -> TermStyle {
    let terminal = rustix::termios::isatty(&stream);
    let width = rustix::termios::tcgetwinsize(&stream)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(100);
    TermStyle {
        width,
        colour: terminal
            && unset("NO_COLOR")
            && std::env::var_os("TERM").is_some_and(|t| t != "dumb"),
        glyphs: glyphs(),
        zone: jiff::tz::TimeZone::system(),
        home: std::env::var_os("HOME").map(Into::into),
    }
}

fn unset(name: &str) -> bool {
    std::env::var_os(name).is_none_or(|value| value.is_empty())
}

/// The locale's alphabet: the first of these variables that is set decides.
fn glyphs() -> Glyphs {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_default()
        .to_ascii_lowercase();
    if locale.contains("utf-8") || locale.contains("utf8") {
        Glyphs::Unicode
    } else {
        Glyphs::Ascii
    }
}
