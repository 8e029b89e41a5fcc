//! Tracebacks that were not written by the interpreter itself: a notebook's, Rich's drawn box, and the error of a
//! script that could not even be read, which has no heading.

use super::{Frame, Traceback};
use crate::safe;

/// A page of code stands in between; further on it is somebody else's text.
const MOST_LINES: usize = 400;

/// A notebook names the error before the heading, Rich draws a box around it.
pub fn drawn(before: &[u8], body: &[u8]) -> Traceback {
    let before = safe::shown(&safe::without_colour(before));
    let kind = before.trim();
    // Some logs put a time before each line of it.
    let is_box = kind.contains(['╭', '┌', '─']);
    let mut traceback = Traceback::default();
    let mut is_open = true;
    for line in safe::lines(body).skip(1).take(MOST_LINES) {
        let is_error = match is_box {
            true => !is_open && !line.trim().is_empty(),
            false => !kind.is_empty() && line.starts_with(kind),
        };
        if is_error {
            traceback.error = line.trim_end().to_owned();
            break;
        }
        is_open = is_open && !line.contains(['╰', '└']);
        if let Some(frame) = frame(&line) {
            traceback.goes_through(frame);
        }
    }
    traceback
}

/// `Cell In[3], line 2`, `File /w/net.py:7, in forward(x)`, `│ /w/net.py:7 in forward │`.
fn frame(line: &str) -> Option<Frame> {
    let line = line.split_once('│').map_or(line, |(_, inside)| inside);
    let line = line.trim_matches(['│', '|', ' ']);
    let (file, rest) = match line.strip_prefix("Cell In") {
        Some(_) => line.split_once(", line ")?,
        None => {
            let place = line.strip_prefix("File ").unwrap_or(line);
            let (place, _) = place
                .split_once(", in ")
                .or_else(|| place.split_once(" in "))?;
            place
                .rsplit_once(':')
                .filter(|(file, _)| file.ends_with(".py"))?
        }
    };
    Some(Frame {
        file: file.as_bytes().to_vec(),
        line: rest.parse().ok()?,
    })
}

/// `  File "train.py", line 3`, the line, a mark below it, `SyntaxError: …`.
pub fn syntax_error(output: &[u8]) -> Option<Traceback> {
    const KINDS: [&str; 3] = ["SyntaxError: ", "IndentationError: ", "TabError: "];
    let lines: Vec<String> = safe::lines(output).collect();
    let at = lines
        .iter()
        .rposition(|line| KINDS.iter().any(|kind| line.starts_with(kind)))?;
    let above = lines.get(at.saturating_sub(3)..at)?;
    let frame = above
        .iter()
        .rev()
        .find_map(|line| Frame::parse(line.as_bytes()))?;
    Some(Traceback {
        frame: Some(frame),
        error: lines.get(at)?.clone(),
        doing: None,
    })
}
