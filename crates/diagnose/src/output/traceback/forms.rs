//! Tracebacks that the interpreter does not write in its usual form: those of notebooks, Rich's boxes, and syntax errors,
//! which have no heading.

use super::{Frame, Traceback};
use crate::output::lines::Lines;

/// Parses a frame: `Cell In[3], line 2`, `File /w/net.py:7, in forward(x)`, `│ /w/net.py:7 in forward │`.
pub(super) fn frame(line: &str) -> Option<Frame> {
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

/// Parses a syntax error: `  File "train.py", line 3`, the line, a mark below it, `SyntaxError: …`.
pub(crate) fn syntax_error(lines: &Lines, since: usize) -> Option<Traceback> {
    const KINDS: [&str; 3] = ["SyntaxError: ", "IndentationError: ", "TabError: "];
    let mut lines = lines.since(since).rev();
    let error = lines.find(|line| KINDS.iter().any(|kind| line.text.starts_with(kind)))?;
    let frame = lines
        .take(3)
        .find_map(|line| Frame::parse(line.text.as_bytes()))?;
    Some(Traceback {
        frame: Some(frame),
        error: error.text.to_owned(),
        ..Traceback::default()
    })
}
