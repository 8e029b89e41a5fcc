//! One line of a log: who said it, when, and the bare text. The stamp and the sender before
//! it differ with the tool that wrote the log; whatever looks like none of them is text.
//! Any bytes are read: the text is cut to a sane length and safe to print.

use super::clock::{self, Calendar};
use super::scan;
use antifreeze_text::sanitize;
use jiff::Timestamp;
use std::time::Duration;

/// The kernel's own records are at most about a thousand bytes.
const LONGEST: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// On the clock that stands still while the machine sleeps.
    pub since_boot: Option<Duration>,
    pub at: Option<Timestamp>,
    pub source: Source,
    /// Safe to print; and so is every name taken from it.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Kernel,
    /// The name it goes by in the log; empty where a sender is there but cannot be told.
    Program(String),
}

impl Line {
    /// None for a line that says nothing, or only adds a property to the one before it.
    pub(super) fn parse(raw: &[u8], calendar: &Calendar) -> Option<Line> {
        let raw = raw.get(..LONGEST).unwrap_or(raw);
        if raw.is_empty() || is_property(raw) {
            return None;
        }
        let line = Line::kmsg(raw)
            .or_else(|| Line::json(raw))
            .unwrap_or_else(|| {
                let text = safe_text(raw.trim_ascii());
                Line::stamped(without_level(&text), calendar)
            });
        (!line.text.is_empty()).then_some(line)
    }

    /// `6,1234,5678901,-;text`: level and facility, number, microseconds since boot.
    fn kmsg(raw: &[u8]) -> Option<Line> {
        let end = raw.iter().take(80).position(|byte| *byte == b';')?;
        let (header, text) = (raw.get(..end)?, raw.get(end + 1..)?);
        let mut fields = std::str::from_utf8(header).ok()?.split(',');
        let mut next = || fields.next()?.parse::<u64>().ok();
        let (priority, _, micros) = (next()?, next()?, next()?);
        let text = safe_text(unescaped(text).trim_ascii());
        // The kernel lets nobody else write as facility 0.
        let (source, text) = match priority >> 3 {
            0 => (Source::Kernel, text.as_str()),
            _ => sender(&text).unwrap_or((Source::Program(String::new()), &text)),
        };
        Some(Line {
            since_boot: Some(Duration::from_micros(micros)),
            at: None,
            source,
            text: text.into(),
        })
    }

    /// An entry of the journal as `journalctl -o json` writes it. Fields that begin with an underscore are journald's
    /// own: no program can pass for the kernel there.
    fn json(raw: &[u8]) -> Option<Line> {
        #[derive(serde::Deserialize)]
        struct Entry {
            #[serde(rename = "MESSAGE")]
            message: String,
            #[serde(rename = "_TRANSPORT")]
            transport: Option<String>,
            #[serde(rename = "SYSLOG_IDENTIFIER")]
            identifier: Option<String>,
            #[serde(rename = "__REALTIME_TIMESTAMP")]
            micros: Option<String>,
        }
        let entry: Entry = raw
            .starts_with(b"{")
            .then(|| serde_json::from_slice(raw).ok())??;
        let source = match entry.transport.as_deref() {
            Some("kernel") => Source::Kernel,
            _ => Source::Program(safe_text(entry.identifier.unwrap_or_default().as_bytes())),
        };
        let micros = entry.micros.and_then(|micros| micros.parse().ok());
        Some(Line {
            since_boot: None,
            at: micros.and_then(|micros| Timestamp::from_microsecond(micros).ok()),
            source,
            text: safe_text(entry.message.trim().as_bytes()),
        })
    }

    fn stamped(text: &str, calendar: &Calendar) -> Line {
        Line::bracketed(text, calendar)
            .or_else(|| Line::dated(text, calendar))
            .unwrap_or_else(|| Line::from_ring(None, None, text))
    }

    /// `[  123.456789] text` or `[Mon Nov 16 12:00:00 2026] text`.
    fn bracketed(text: &str, calendar: &Calendar) -> Option<Line> {
        let (stamp, rest) = text.strip_prefix('[')?.split_once(']')?;
        let stamp = stamp.trim();
        let since_boot = clock::since_boot(stamp);
        let at = calendar.with_year(stamp);
        let elapsed = stamp.strip_prefix('+').and_then(clock::since_boot);
        if since_boot.is_none() && at.is_none() && elapsed.is_none() {
            return None;
        }
        let rest = without_caller(rest.trim_start());
        Some(Line::from_ring(since_boot, at, rest))
    }

    /// `Nov 16 12:00:00 host kernel: text` or `2026-11-16T12:00:00+0000 host kernel: text`.
    fn dated(text: &str, calendar: &Calendar) -> Option<Line> {
        let (first, rest) = word(text);
        if let Some(at) = calendar.iso(first) {
            // Only dmesg writes a comma, and it names no sender.
            return Some(match first.contains(',') {
                true => Line::from_ring(None, Some(at), rest),
                false => Line::from_daemon(Some(at), rest),
            });
        }
        // `Mon 2026-11-16 12:00:00 UTC host kernel: text`; only the machine's own zone is known by its name.
        let (date, after) = word(rest);
        let (time, after) = word(after);
        if date.len() == 10
            && clock::is_time(time)
            && calendar.iso(&format!("{date}T{time}")).is_some()
        {
            let (zone, rest) = word(after);
            let stamp = match zone {
                "UTC" | "GMT" => format!("{date}T{time}Z"),
                _ => format!("{date}T{time}"),
            };
            return Some(Line::from_daemon(calendar.iso(&stamp), rest));
        }
        // The month may be in any language; then the moment is not known.
        let ((day, rest), month) = (word(rest), first);
        let (time, rest) = word(rest);
        let is_day = day.len() <= 2 && !day.is_empty() && day.bytes().all(|b| b.is_ascii_digit());
        if !is_day || !clock::is_time(time) {
            return None;
        }
        Some(Line::from_daemon(calendar.yearless(month, day, time), rest))
    }

    /// From the kernel's own buffer, where a sender is named only by programs that write to it,
    /// and where the host stands before it in one format: `host kernel: text`.
    fn from_ring(since_boot: Option<Duration>, at: Option<Timestamp>, text: &str) -> Line {
        let after_host = || sender(word(text).1);
        let (source, text) = sender(text)
            .or_else(after_host)
            .unwrap_or((Source::Kernel, text));
        Line {
            since_boot,
            at,
            source,
            text: text.into(),
        }
    }

    /// From a log daemon, which names every sender, mostly after the host.
    fn from_daemon(at: Option<Timestamp>, text: &str) -> Line {
        let (first, rest) = word(text);
        let (second, after) = word(rest);
        let (source, text) = match (tag(first), tag(second)) {
            (Some(source), _) => (source, rest),
            (None, Some(source)) => (source, after),
            (None, None) => (Source::Program(String::new()), text),
        };
        // Older log daemons leave the kernel's own stamp in place.
        let stamp = text.strip_prefix('[').and_then(|text| text.split_once(']'));
        let stamp = stamp.filter(|_| source == Source::Kernel);
        let since_boot = stamp.and_then(|(stamp, _)| clock::since_boot(stamp.trim()));
        let text = match (since_boot, stamp) {
            (Some(_), Some((_, rest))) => without_caller(rest.trim_start()),
            _ => text,
        };
        Line {
            since_boot,
            at,
            source,
            text: text.into(),
        }
    }
}

/// ` SUBSYSTEM=pci`, which /dev/kmsg adds below a record.
fn is_property(raw: &[u8]) -> bool {
    let Some(rest) = raw.strip_prefix(b" ") else {
        return false;
    };
    let key = rest
        .iter()
        .take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_');
    let length = key.count();
    length > 0 && rest.get(length) == Some(&b'=')
}

/// /dev/kmsg writes what is not plain as `\x0a`; a line break within a record becomes a space.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let code = rest.strip_prefix(b"\\x").and_then(|code| code.get(..2));
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            plain.push(if byte == b'\n' { b' ' } else { byte });
            rest = rest.get(4..).unwrap_or_default();
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    plain
}

fn safe_text(bytes: &[u8]) -> String {
    // Nearly every line is plain; the rest takes the slow way.
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) => text.into(),
        _ => sanitize::escape(bytes),
    }
}

/// The first word and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    (first, rest.trim_start())
}

/// `<6>` stands before each line of a crash dump; `dmesg -x` writes `kern  :err   : `.
fn without_level(text: &str) -> &str {
    if let Some(rest) = text
        .strip_prefix("kern ")
        .and_then(|rest| rest.trim_start().strip_prefix(':'))
    {
        let level = rest.split_once(": [").filter(|(level, _)| level.len() <= 8);
        if let Some((level, _)) = level {
            return rest.get(level.len() + 2..).unwrap_or(rest);
        }
    }
    let rest = text.strip_prefix('<').and_then(scan::number);
    rest.and_then(|(_, rest)| rest.strip_prefix('>'))
        .unwrap_or(text)
}

/// `[    T1]` or `[   C0]`: the thread or processor, where the kernel was built to tell.
fn without_caller(text: &str) -> &str {
    let caller = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    match caller {
        Some((caller, rest))
            if caller
                .trim()
                .strip_prefix(['T', 'C'])
                .is_some_and(is_number) =>
        {
            rest.trim_start()
        }
        _ => text,
    }
}

fn is_number(text: &str) -> bool {
    scan::pid(text).is_some()
}

/// `kernel:`, `earlyoom[123]:` or `earlyoom:`.
fn tag(word: &str) -> Option<Source> {
    let name = word.strip_suffix(':')?;
    let name = scan::named_pid(name).map_or(name, |(name, _)| name);
    match name {
        "" => None,
        "kernel" => Some(Source::Kernel),
        name => Some(Source::Program(name.into())),
    }
}

/// The sender before a text that may have none. The kernel's own drivers begin their lines with
/// `nvme nvme0: ` too, so only `kernel: `, a process number, or a known guard makes a sender;
/// `python3[4242]: segfault at` is the kernel's own word.
fn sender(text: &str) -> Option<(Source, &str)> {
    const GUARDS: [&str; 6] = [
        "earlyoom:",
        "nohang:",
        "slurmstepd:",
        "slurmd:",
        "systemd-oomd:",
        "kubelet:",
    ];
    let (first, rest) = word(text);
    let told = first == "kernel:" || first.ends_with("]:") || GUARDS.contains(&first);
    if !told || rest.starts_with("segfault at ") {
        return None;
    }
    // "[Hardware Error]:" ends so too, but holds no number.
    let named = first.strip_suffix(':').and_then(scan::named_pid);
    if first.ends_with("]:") && named.is_none_or(|(name, _)| name.is_empty()) {
        return None;
    }
    Some((tag(first)?, rest))
}

#[cfg(test)]
mod tests;
