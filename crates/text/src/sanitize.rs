//! Untrusted bytes (process names, paths, commands, output) made safe to print. Escaped text cannot move the cursor,
//! change a colour, reverse the text or end a line. A quoted command means to the shell what it meant to us.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// The bytes as text, with control characters, invisible characters and invalid UTF-8 as escapes.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_plain(character) {
                text.push(character);
            } else {
                text.extend(character.escape_debug());
            }
        }
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The lines of code that a person may copy: escaped as by [`escape`], but with the indentation kept, tabs included.
pub fn code_lines(code: &str) -> impl Iterator<Item = String> {
    code.split('\n').map(|line| {
        let code = line.trim_start_matches([' ', '\t']);
        let indent = line.strip_suffix(code).unwrap_or_default();
        format!("{indent}{}", escape(code.as_bytes()))
    })
}

/// The last component of a path, escaped.
pub fn file_name(path: &[u8]) -> String {
    escape(
        path.rsplit(|byte| *byte == b'/')
            .find(|part| !part.is_empty())
            .unwrap_or(path),
    )
}

/// The lines of a program's output as a terminal would leave them on the screen, each escaped.
pub fn visible_lines(output: &[u8]) -> impl DoubleEndedIterator<Item = String> {
    output.split(|byte| *byte == b'\n').map(visible_line)
}

/// One line of output as a terminal would leave it on the screen, escaped: without colours, and without what a
/// carriage return or backspaces overwrote.
pub fn visible_line(line: &[u8]) -> String {
    let mut plain = strip_colours(after_carriage_return(line));
    if plain.contains(&BACKSPACE) {
        plain = apply_backspaces(&plain);
    }
    escape(&plain)
}

const BACKSPACE: u8 = 8;

/// Removes what backspaces erase: older progress bars go back by as many characters as they drew.
fn apply_backspaces(line: &[u8]) -> Vec<u8> {
    let mut left: Vec<u8> = Vec::with_capacity(line.len());
    for byte in line {
        if *byte != BACKSPACE {
            left.push(*byte);
            continue;
        }
        // Removes all bytes of one character.
        while left.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
    }
    left
}

/// The part of a line after its last carriage return: what a progress bar drew last.
pub fn after_carriage_return(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.rsplit(|byte| *byte == b'\r').next().unwrap_or(line)
}

/// Removes the escape sequences that set colours (SGR) and keeps all others.
pub fn strip_colours(line: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"\x1b[") {
            let length = after
                .iter()
                .take_while(|b| b.is_ascii_digit() || **b == b';')
                .count();
            if let Some(b"m") = after.get(length..length + 1) {
                rest = after.get(length + 1..).unwrap_or_default();
                continue;
            }
        }
        plain.push(byte);
        rest = tail;
    }
    plain
}

/// Whether a character is neither a control character nor one that hides or reorders its neighbours.
fn is_plain(character: char) -> bool {
    !character.is_control()
        && !matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A command line, quoted so that a shell splits it into the same arguments.
pub fn shell_command(pieces: &[OsString]) -> String {
    let mut words = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.iter().enumerate() {
        words.push(shell_word(piece.as_bytes(), index == 0));
    }
    words.join(" ")
}

fn shell_word(piece: &[u8], is_program: bool) -> String {
    let bare = |byte: &u8| {
        // A first word of the form NAME=value would set a variable and not name a program.
        byte.is_ascii_alphanumeric()
            || b"_@%+:,./-".contains(byte)
            || (*byte == b'=' && !is_program)
    };
    match std::str::from_utf8(piece) {
        Ok(text) if !piece.is_empty() && piece.iter().all(bare) => text.into(),
        Ok(text) if text.chars().all(is_plain) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => ansi_c_quoted(piece),
    }
}

fn ansi_c_quoted(piece: &[u8]) -> String {
    let mut text = String::from("$'");
    for chunk in piece.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' | '\'' => text.extend(['\\', character]),
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                _ if is_plain(character) => text.push(character),
                _ => push_hex(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        push_hex(&mut text, chunk.invalid());
    }
    text.push('\'');
    text
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        for (bytes, text) in [
            (&b"python3.12"[..], "python3.12"),
            (b"\x1b[2Jgone", r"\u{1b}[2Jgone"),
            (b"two\nlines\r", r"two\nlines\r"),
            (b"bad\xff\xfe", r"bad\xff\xfe"),
            ("früh".as_bytes(), "früh"),
            ("a\u{202e}b".as_bytes(), r"a\u{202e}b"),
            ("c1\u{9b}31m".as_bytes(), r"c1\u{9b}31m"),
        ] {
            assert_eq!(escape(bytes), text);
        }
    }

    #[test]
    fn code_keeps_its_lines_and_their_indentation_and_nothing_else_that_a_terminal_would_obey() {
        let lines = |code| code_lines(code).collect::<Vec<_>>();
        assert_eq!(
            lines("    kept.append(x)\n    del kept[:-5]"),
            ["    kept.append(x)", "    del kept[:-5]"]
        );
        assert_eq!(
            lines("\tx = 'a\tb'\r\n\x1b[2J"),
            ["\tx = 'a\\tb'\\r", "\\u{1b}[2J"]
        );
    }

    #[test]
    fn a_file_name_is_the_last_part_of_its_path() {
        assert_eq!(file_name(b"/data/runs/checkpoint.pt"), "checkpoint.pt");
        assert_eq!(file_name(b"checkpoint/"), "checkpoint");
        assert_eq!(file_name(b""), "");
    }

    #[test]
    fn a_progress_bar_leaves_only_what_was_drawn_last() {
        let output = b"10%\r20%\r30%\nloss \x1b[31m1.8\x1b[0m\r\n";
        assert_eq!(
            visible_lines(output).collect::<Vec<_>>(),
            ["30%", "loss 1.8", ""]
        );
        let output = "1/9 é\u{8}\u{8}\u{8}\u{8}\u{8}\u{8}2/9 e".as_bytes();
        assert_eq!(visible_lines(output).collect::<Vec<_>>(), ["2/9 e"]);
    }

    #[test]
    fn plain_commands_stay_as_they_were_typed() {
        let pieces = ["python", "train.py", "--lr=0.1"].map(OsString::from);
        assert_eq!(shell_command(&pieces), "python train.py --lr=0.1");
        let pieces = ["A=1", "two words", "it's", ""].map(OsString::from);
        assert_eq!(shell_command(&pieces), r"'A=1' 'two words' 'it'\''s' ''");
    }

    proptest! {
        #[test]
        fn no_escaped_text_can_drive_a_terminal(bytes: Vec<u8>) {
            prop_assert!(escape(&bytes).chars().all(is_plain));
            prop_assert!(visible_lines(&bytes).all(|line| line.chars().all(is_plain)));
        }

        #[test]
        fn a_quoted_command_is_one_line(pieces: Vec<Vec<u8>>) {
            let pieces: Vec<_> = pieces.into_iter().map(OsString::from_vec).collect();
            prop_assert!(shell_command(&pieces).chars().all(is_plain));
        }
    }

    #[test]
    fn the_shell_reads_a_quoted_command_back_as_the_same_pieces() {
        let pieces: Vec<OsString> = [
            &b"printf"[..],
            b"%s\\0",
            b"two words",
            b"it's $HOME `id` \"q\" \\",
            b"line\nbreak\ttab",
            b"\x1b[31m\xff9\xfe",
            "\u{202e}'früh".as_bytes(),
            b"A=1",
            b"~",
            b"*",
            b"",
        ]
        .iter()
        .map(|piece| OsString::from_vec(piece.to_vec()))
        .collect();
        let output = Command::new("bash")
            .arg("-c")
            .arg(shell_command(&pieces))
            .output()
            .unwrap();
        let read: Vec<_> = output.stdout.split(|byte| *byte == 0).collect();
        let expected: Vec<_> = pieces[2..].iter().map(|piece| piece.as_bytes()).collect();
        assert_eq!(read[..read.len() - 1], expected);
    }
}
