//! Messages on standard input and output. A message that claims to be longer than any text in an
//! editor ends the session instead of exhausting memory.

use lsp_server::{Connection, Message};
use std::io::{self, BufRead, Read, Write};
use std::thread::{JoinHandle, spawn};

const MAX_MESSAGE_BYTES: u64 = 128 << 20;
const MAX_HEADER_LINE_BYTES: u64 = 1 << 12;
const MAX_HEADER_LINES: usize = 32;

pub struct IoThreads {
    reader: JoinHandle<io::Result<()>>,
    writer: JoinHandle<io::Result<()>>,
}

impl IoThreads {
    /// Waits for both threads. The connection must be dropped before.
    pub fn join(self) -> io::Result<()> {
        for thread in [self.reader, self.writer] {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))?;
        }
        Ok(())
    }
}

pub fn connect_stdio() -> (Connection, IoThreads) {
    let (server, Connection { sender, receiver }) = Connection::memory();
    let reader = spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Some(message) = read_message(&mut stdin)? {
            let is_exit = matches!(&message, Message::Notification(word) if word.method == "exit");
            if sender.send(message).is_err() || is_exit {
                break;
            }
        }
        Ok(())
    });
    let writer = spawn(move || {
        let mut stdout = io::stdout().lock();
        for message in receiver {
            message.write(&mut stdout)?;
            stdout.flush()?;
        }
        Ok(())
    });
    (server, IoThreads { reader, writer })
}

/// Reads a message. Returns `None` at the end of the input.
fn read_message(from: &mut impl BufRead) -> io::Result<Option<Message>> {
    let mut length = None;
    for number in 0..MAX_HEADER_LINES {
        let mut line = Vec::new();
        from.take(MAX_HEADER_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        let line = line
            .strip_suffix(b"\r\n")
            .ok_or_else(|| invalid("a header line does not end"))?;
        if line.is_empty() {
            let length = length.ok_or_else(|| invalid("a message has no Content-Length"))?;
            return read_body(from, length).map(Some);
        }
        let line = str::from_utf8(line).map_err(|_| invalid("a header is not text"))?;
        let (name, value) = line
            .split_once(": ")
            .ok_or_else(|| invalid("a header has no value"))?;
        if name.eq_ignore_ascii_case("Content-Length") {
            let value = value.parse::<u64>();
            length = Some(value.map_err(|_| invalid("Content-Length is not a number"))?);
        }
    }
    Err(invalid("a message has too many headers"))
}

fn read_body(from: &mut impl BufRead, length: u64) -> io::Result<Message> {
    if length > MAX_MESSAGE_BYTES {
        let longest = MAX_MESSAGE_BYTES >> 20;
        return Err(invalid(&format!("a message is longer than {longest} MiB")));
    }
    let mut text = Vec::new();
    from.take(length).read_to_end(&mut text)?;
    if (text.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&text)?)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Vec<u8> {
        format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
    }

    #[test]
    fn messages_come_one_after_the_other() {
        let word = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let both = [
            message(word),
            b"content-length: 33\r\nContent-Type: x\r\n\r\n".to_vec(),
            br#"{"jsonrpc":"2.0","method":"exit"}"#.to_vec(),
        ]
        .concat();
        let mut input = both.as_slice();
        for method in ["initialized", "exit"] {
            let read = read_message(&mut input).unwrap().unwrap();
            assert!(
                matches!(&read, Message::Notification(word) if word.method == method),
                "{read:?}"
            );
        }
        assert!(read_message(&mut input).unwrap().is_none());
    }

    #[test]
    fn what_is_too_long_or_no_message_is_an_error_and_takes_no_memory() {
        let endless = [b'a'; 10_000];
        for input in [
            &b"Content-Length: 9223372036854775807\r\n\r\n{}"[..],
            b"Content-Length: 99999999999999999999999\r\n\r\n{}",
            b"Content-Length: 200000000\r\n\r\n{}",
            b"Content-Length: 100000000\r\n\r\n{}",
            b"Content-Length: -1\r\n\r\n{}",
            b"Content-Length: 2\r\n\r\n{}",
            b"Content-Length: 2\n\n{}",
            b"\r\n{}",
            b"Content-Length",
            &b"X: y\r\n".repeat(100),
            &endless,
        ] {
            assert!(read_message(&mut &input[..]).is_err());
        }
    }
}
