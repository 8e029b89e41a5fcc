//! Messages on standard input and output. A message says how long it is before it comes; one that claims to be longer
//! than any text of an editor ends the session instead of taking the memory.

use lsp_server::{Connection, Message};
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, spawn};

const LONGEST: u64 = 128 << 20;
const LONGEST_LINE: u64 = 1 << 12;
const MOST_LINES: usize = 32;

pub struct Threads {
    reader: JoinHandle<()>,
    writer: JoinHandle<io::Result<()>>,
    /// Why no more messages are read.
    trouble: Arc<OnceLock<String>>,
}

impl Threads {
    /// Why the reader gave up, if it did.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    /// Waits for both. To be called after the connection was dropped.
    pub fn join(self) -> io::Result<()> {
        let panicked = || io::Error::other("a thread panicked");
        self.reader.join().map_err(|_| panicked())?;
        self.writer.join().unwrap_or_else(|_| Err(panicked()))?;
        match self.trouble.get() {
            Some(trouble) => Err(io::Error::other(trouble.clone())),
            None => Ok(()),
        }
    }
}

pub fn stdio() -> (Connection, Threads) {
    let (server, Connection { sender, receiver }) = Connection::memory();
    let trouble = Arc::new(OnceLock::new());
    let reader_trouble = Arc::clone(&trouble);
    let reader = spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let message = match read(&mut stdin) {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(error) => {
                    // Before the channel closes, which the server takes for the end of the editor.
                    let _ = reader_trouble.set(error.to_string());
                    break;
                }
            };
            let is_exit = matches!(&message, Message::Notification(word) if word.method == "exit");
            if sender.send(message).is_err() || is_exit {
                break;
            }
        }
    });
    let writer = spawn(move || {
        let mut stdout = io::stdout().lock();
        for message in receiver {
            message.write(&mut stdout)?;
            stdout.flush()?;
        }
        Ok(())
    });
    let threads = Threads {
        reader,
        writer,
        trouble,
    };
    (server, threads)
}

/// None at the end of the input.
fn read(from: &mut impl BufRead) -> io::Result<Option<Message>> {
    let mut length = None;
    for number in 0..MOST_LINES {
        let mut line = Vec::new();
        from.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() && number == 0 {
            return Ok(None);
        }
        let line = line
            .strip_suffix(b"\r\n")
            .ok_or_else(|| invalid("a header line does not end"))?;
        if line.is_empty() {
            let length = length.ok_or_else(|| invalid("a message has no Content-Length"))?;
            return body(from, length).map(Some);
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

fn body(from: &mut impl BufRead, length: u64) -> io::Result<Message> {
    if length > LONGEST {
        let longest = LONGEST >> 20;
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
            let read = read(&mut input).unwrap().unwrap();
            assert!(
                matches!(&read, Message::Notification(word) if word.method == method),
                "{read:?}"
            );
        }
        assert!(read(&mut input).unwrap().is_none());
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
            assert!(read(&mut &input[..]).is_err());
        }
    }
}
