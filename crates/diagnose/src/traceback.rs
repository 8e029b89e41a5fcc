//! Finds the last Python traceback in what a run printed. The output is anyone's bytes,
//! cut anywhere, with progress bars, colours and rank prefixes in between: whatever is not
//! a traceback is passed over, and nothing panics.

use crate::safe;

const HEADING: &[u8] = b"Traceback (most recent call last):";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traceback {
    /// The innermost frame in the user's own code.
    pub frame: Option<Frame>,
    /// The last line, shown: "RuntimeError: …"; empty where the output was cut before it.
    pub error: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub file: Vec<u8>,
    pub line: u32,
}

impl Traceback {
    pub fn last_in(output: &[u8]) -> Option<Traceback> {
        let start = find_last(output, HEADING)?;
        let before = output.get(..start).unwrap_or_default();
        let line_start = before
            .iter()
            .rposition(|byte| matches!(byte, b'\n' | b'\r'))
            .map_or(0, |i| i + 1);
        // torchrun and its like put "[rank0]: " before every line.
        let prefix = before.get(line_start..).unwrap_or_default();
        let body = output.get(start + HEADING.len()..).unwrap_or_default();

        let mut traceback = Traceback {
            frame: None,
            error: String::new(),
        };
        for raw in body.split(|byte| *byte == b'\n').skip(1) {
            let drawn = safe::last_drawn(raw);
            let drawn = drawn.strip_prefix(prefix).unwrap_or(drawn);
            let line = safe::without_colour(drawn);
            if line.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                traceback.error = safe::shown(&line);
                break;
            }
            if let Some(frame) = Frame::parse(&line).filter(Frame::is_users) {
                traceback.frame = Some(frame);
            }
        }
        Some(traceback)
    }

    /// "RuntimeError", from the error line.
    pub fn kind(&self) -> &str {
        let end = self.error.find([':', ' ']).unwrap_or(self.error.len());
        self.error.get(..end).unwrap_or_default()
    }
}

impl Frame {
    /// `  File "train.py", line 14, in step`.
    pub(crate) fn parse(line: &[u8]) -> Option<Frame> {
        let rest = line.trim_ascii_start().strip_prefix(b"File \"")?;
        let middle = b"\", line ";
        let quote = find_last(rest, middle)?;
        let digits: String = rest
            .get(quote + middle.len()..)?
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .map(|byte| char::from(*byte))
            .collect();
        Some(Frame {
            file: rest.get(..quote)?.to_vec(),
            line: digits.parse().ok()?,
        })
    }

    /// Neither an installed package, nor the standard library, nor code without a file.
    pub(crate) fn is_users(&self) -> bool {
        const OTHERS: [&[u8]; 4] = [
            b"/site-packages/",
            b"/dist-packages/",
            b"/lib/python3",
            // What `antifreeze run` puts into scripts.
            b"/library/antifreeze/",
        ];
        !self.file.starts_with(b"<")
            && OTHERS
                .iter()
                .all(|part| find_last(&self.file, part).is_none())
    }
}

/// Words with which frameworks say that memory was refused.
pub fn tells_of_memory(text: &str) -> bool {
    const WORDS: [&str; 8] = [
        "MemoryError",
        "allocate memory",
        "Unable to allocate",
        "not enough memory",
        "RESOURCE_EXHAUSTED",
        "Out of memory",
        "out of memory",
        "bad_alloc",
    ];
    WORDS.iter().any(|word| text.contains(word))
}

pub(crate) fn find_last(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .rposition(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(output: &str) -> (Option<(String, u32)>, String) {
        let traceback = Traceback::last_in(output.as_bytes()).unwrap();
        let frame = traceback
            .frame
            .map(|frame| (String::from_utf8(frame.file).unwrap(), frame.line));
        (frame, traceback.error)
    }

    #[test]
    fn the_innermost_frame_of_the_user_is_the_place() {
        let output = r#"epoch 1  12%|##        |
Traceback (most recent call last):
  File "/home/ada/train.py", line 30, in <module>
    main()
  File "/home/ada/train.py", line 14, in main
    outputs.append(model(x))
  File "/usr/lib/python3/dist-packages/torch/nn/module.py", line 1501, in _call
  File "/opt/py/lib/python3.12/site-packages/torch/linear.py", line 9, in forward
  File "/usr/lib/python3.12/contextlib.py", line 81, in inner
  File "<string>", line 3, in run
RuntimeError: can't allocate memory
"#;
        assert_eq!(
            found(output),
            (
                Some(("/home/ada/train.py".into(), 14)),
                "RuntimeError: can't allocate memory".into()
            )
        );
    }

    #[test]
    fn of_chained_errors_the_last_counts() {
        let output = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"b.py\", line 2, in g\nValueError: no\n";
        assert_eq!(
            found(output),
            (Some(("b.py".into(), 2)), "ValueError: no".into())
        );
    }

    #[test]
    fn rank_prefixes_carriage_returns_and_colours_do_not_hide_it() {
        let output = "10%\r[rank0]: Traceback (most recent call last):\r\n[rank0]:   File \"t.py\", line 7, in f\r\n[rank0]:     x()\r\n[rank0]: \u{1b}[1;31mMemoryError\u{1b}[0m\r\n";
        assert_eq!(
            found(output),
            (Some(("t.py".into(), 7)), "MemoryError".into())
        );
    }

    #[test]
    fn a_traceback_cut_short_gives_what_is_there() {
        assert_eq!(
            found("Traceback (most recent call last):"),
            (None, String::new())
        );
        assert_eq!(
            found("Traceback (most recent call last):\n  File \"t.py\", line 7, in f\n"),
            (Some(("t.py".into(), 7)), String::new())
        );
        assert_eq!(Traceback::last_in(b"Traceback: not one"), None);
    }

    #[test]
    fn the_kind_is_the_word_before_the_message() {
        let traceback = |error: &str| Traceback {
            frame: None,
            error: error.into(),
        };
        assert_eq!(traceback("ValueError: bad shape").kind(), "ValueError");
        assert_eq!(traceback("KeyboardInterrupt").kind(), "KeyboardInterrupt");
        assert_eq!(traceback("").kind(), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(before: Vec<u8>, after: Vec<u8>, cut in 0usize..400) {
            let frame = b"\n  File \"t.py\", line 99999999999999999999, in f\n  File \"";
            let whole = [&before[..], HEADING, frame, &after[..], b"\", line 5\n", &before[..]].concat();
            let cut = cut.min(whole.len());
            let _ = Traceback::last_in(&whole[..cut]);
            let _ = Traceback::last_in(&whole[cut..]);
        }
    }
}
