//! Sizes of memory as people write them: `4GB`, `1.5G`, `512MB`, `8GiB`, or a percentage such as `10%`.
//!
//! This is the only parser of sizes: flags, `ANTIFREEZE_*` variables, settings files and the Python package (which
//! passes its sizes on as flags) all use it. Its promises:
//!
//! - `kB`, `MB`, `GB`, `TB`, `PB` are powers of ten (1 GB = 10⁹ bytes); `KiB`, `MiB`, `GiB`, `TiB`, `PiB` are powers
//!   of two (1 GiB = 2³⁰ bytes). `K`, `M`, `G`, `T`, `P` mean `kB`, `MB`, `GB`, `TB`, `PB`, and `Gi` means `GiB`. Case
//!   does not matter.
//! - A number without a unit is a count of bytes, and at least a million of them: `--budget 4` is a mistake.
//! - A percentage is at most 100 %.
//! - An error names the text, says what is wrong with it, and shows a size that would have been accepted.

use antifreeze_text::{sanitize, units};
use std::str::FromStr;

/// The help text for the flags that take a size.
pub const UNITS_HELP: &str = "\
Sizes: 8GB or 8G (10^9 bytes each), 512MB or 512M (10^6), 8GiB (2^30), 512MiB (2^20).
Percentages, for --budget and --reserve: 50% of the machine's memory, or of the container's.";

/// A number without a unit must be at least this: less is a forgotten unit.
const MIN_WITHOUT_UNIT: u64 = 1_000_000;
/// The smallest budget: no program starts with less.
const MIN_BUDGET: u64 = 1_000_000;
/// More than any machine has, and small enough for sums of several.
const MAX_BYTES: u64 = 1_000_000_000_000_000_000;

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Size {
    Bytes(u64),
    /// A share of the machine's memory, 0 to 1.
    Share(f64),
}

impl Size {
    pub fn bytes_of(self, whole: u64) -> u64 {
        match self {
            Size::Bytes(bytes) => bytes,
            Size::Share(share) => (whole as f64 * share) as u64,
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        parse(text.trim()).map_err(|fault| fault.explain(text.trim()))
    }
}

/// Parses the memory that a command may use: a size or a percentage above 0.
pub fn budget(text: &str) -> Result<Size, String> {
    let size = text.parse()?;
    let shown = sanitize::escape(text.trim().as_bytes());
    match size {
        Size::Bytes(0) | Size::Share(0.0) => Err(format!(
            "`{shown}` leaves the command no memory; write a size such as 8GB, or no budget at all"
        )),
        Size::Bytes(bytes @ ..MIN_BUDGET) => Err(format!(
            "`{shown}` is {}, less than any program needs; write a size such as 8GB or 512MB",
            units::bytes(bytes)
        )),
        size => Ok(size),
    }
}

/// Parses a size that may be 0; a percentage is an error.
pub fn bytes(text: &str) -> Result<u64, String> {
    match text.parse()? {
        Size::Bytes(bytes) => Ok(bytes),
        Size::Share(_) => Err(format!(
            "`{}` is a percentage, and a size is needed here, such as 8GB",
            sanitize::escape(text.trim().as_bytes())
        )),
    }
}

/// Parses the memory of a machine: a size above 0.
pub fn memory(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|bytes| match bytes {
        0 => Err("a machine's memory is never 0; write a size such as 16GB".to_owned()),
        bytes => Ok(bytes),
    })
}

/// What is wrong with a size.
enum Fault {
    Empty,
    /// There is a flag in place of the size.
    IsFlag,
    Negative,
    NoNumber,
    NoUnit,
    Exponent,
    UnknownUnit,
    AboveAll,
    TooLarge,
}

fn parse(text: &str) -> Result<Size, Fault> {
    if text.is_empty() {
        return Err(Fault::Empty);
    }
    if let Some(rest) = text.strip_prefix('-') {
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        return Err(if is_number {
            Fault::Negative
        } else {
            Fault::IsFlag
        });
    }
    let (number, unit) = split(text);
    let unit = unit.trim_start();
    let factor = match unit.to_ascii_lowercase().as_str() {
        "%" => return share(number),
        "" => {
            let bytes = multiply(number, 1)?;
            let is_plain = bytes == 0 || bytes >= MIN_WITHOUT_UNIT;
            return if is_plain {
                Ok(Size::Bytes(bytes))
            } else {
                Err(Fault::NoUnit)
            };
        }
        "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "p" | "pb" => 1_000_000_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        "pi" | "pib" => 1 << 50,
        _ if has_exponent(text) => return Err(Fault::Exponent),
        _ => {
            multiply(number, 1)?;
            return Err(Fault::UnknownUnit);
        }
    };
    multiply(number, factor).map(Size::Bytes)
}

/// Splits a text into the digits at its beginning and the rest.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    text.split_at(end)
}

fn share(number: &str) -> Result<Size, Fault> {
    let percent = fraction(number)?;
    if percent > 100.0 {
        return Err(Fault::AboveAll);
    }
    Ok(Size::Share(percent / 100.0))
}

fn multiply(number: &str, factor: u64) -> Result<u64, Fault> {
    let digits = number.replace('_', "");
    let bytes = match digits.parse::<u128>() {
        Ok(whole) => whole.checked_mul(u128::from(factor)),
        // A fraction, or more digits than any size has.
        Err(_) => {
            let bytes = fraction(number)? * factor as f64;
            (bytes <= MAX_BYTES as f64).then_some(bytes as u128)
        }
    };
    bytes
        .and_then(|bytes| u64::try_from(bytes).ok())
        .filter(|bytes| *bytes <= MAX_BYTES)
        .ok_or(Fault::TooLarge)
}

fn fraction(number: &str) -> Result<f64, Fault> {
    let digits = number.replace('_', "");
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Fault::NoNumber);
    }
    digits.parse().map_err(|_| Fault::NoNumber)
}

/// `1e9`, as programs write numbers.
fn has_exponent(text: &str) -> bool {
    text.contains(['e', 'E'])
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || "eE+-.".contains(c))
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

impl Fault {
    fn explain(&self, text: &str) -> String {
        let shown = sanitize::escape(text.as_bytes());
        match self {
            Fault::Empty => "the size is empty; write one such as 8GB, 512MB or 8GiB".to_owned(),
            Fault::IsFlag => format!("a size is missing before `{shown}`; write one such as 8GB"),
            Fault::Negative => match suggest_size(text.trim_start_matches('-')) {
                Some(size) => format!("`{shown}` is negative; did you mean {size}?"),
                None => format!("`{shown}` is negative; write a size such as 8GB"),
            },
            Fault::NoUnit => no_unit(&shown, text),
            Fault::AboveAll => format!(
                "`{shown}` is more than all of the memory; write at most 100%, such as 80%, or a size such as 8GB"
            ),
            Fault::TooLarge => {
                format!("`{shown}` is more than any machine has; write a size such as 8GB")
            }
            Fault::Exponent => match exponent_written_out(text) {
                Some(size) => format!("`{shown}` is not a size; did you mean {size}?"),
                None => not_a_size(&shown),
            },
            Fault::NoNumber | Fault::UnknownUnit => match suggest_size(text) {
                Some(size) => format!("`{shown}` is not a size; did you mean {size}?"),
                None => not_a_size(&shown),
            },
        }
    }
}

fn not_a_size(shown: &str) -> String {
    format!("`{shown}` is not a size; write a number and a unit, such as 8GB, 512MB or 8GiB")
}

fn no_unit(shown: &str, text: &str) -> String {
    // People count GPUs and laptops in gigabytes up to here, and in megabytes above it.
    let in_gigabytes = fraction(text).is_ok_and(|number| number < 256.0);
    let number = text.trim();
    let size = if in_gigabytes {
        format!("{number}GB, or {number}MB")
    } else {
        format!("{number}MB")
    };
    format!("`{shown}` has no unit and would mean {number} bytes; did you mean {size}?")
}

fn exponent_written_out(text: &str) -> Option<String> {
    let bytes = text.parse::<f64>().ok()?;
    let in_range = (MIN_WITHOUT_UNIT as f64..=MAX_BYTES as f64).contains(&bytes);
    in_range.then(|| units::bytes(bytes as u64).replace(' ', ""))
}

/// The size that was probably meant by a text with a small mistake, in a form that is accepted.
fn suggest_size(text: &str) -> Option<String> {
    let text = decimal_comma(text);
    let (number, unit) = split(&text);
    let unit = unit.trim().trim_end_matches('.').to_ascii_lowercase();
    let unit = match unit.as_str() {
        "percent" | "pct" | "per cent" => "%",
        "byte" | "bytes" => "B",
        "kilobyte" | "kilobytes" | "kbs" => "kB",
        "meg" | "megs" | "megabyte" | "megabytes" | "mbs" | "mo" => "MB",
        "gig" | "gigs" | "giga" | "gigabyte" | "gigabytes" | "gbs" | "gs" | "go" | "bg" => "GB",
        "terabyte" | "terabytes" | "tbs" | "to" => "TB",
        "mebibyte" | "mebibytes" | "mibs" => "MiB",
        "gibibyte" | "gibibytes" | "gibs" => "GiB",
        "" => "GB",
        "%" => "%",
        "kb" | "k" => "kB",
        "mb" | "m" => "MB",
        "gb" | "g" => "GB",
        "tb" | "t" => "TB",
        "mib" | "mi" => "MiB",
        "gib" | "gi" => "GiB",
        _ => return None,
    };
    let size = format!("{number}{unit}");
    parse(&size).is_ok().then_some(size)
}

/// `4,5` as `4.5`, and `1,000` as `1000`.
fn decimal_comma(text: &str) -> String {
    let Some((before, after)) = text.split_once(',') else {
        return text.to_owned();
    };
    let digits = after.chars().take_while(char::is_ascii_digit).count();
    match digits {
        3 => format!("{before}{after}"),
        _ => format!("{before}.{after}"),
    }
}

/// The default reserve: a tenth of a laptop's memory, less
/// than a tenth on a large server, and always enough for a shell and an editor.
pub fn default_reserve(total: u64) -> u64 {
    const MB: u64 = 1_000_000;
    const GB: u64 = 1000 * MB;
    let tenth = total / 10;
    let grows_slowly = 2 * GB + total.saturating_sub(20 * GB) / 50;
    tenth.min(grows_slowly).clamp(48 * MB, 16 * GB)
}

#[cfg(test)]
#[path = "size_tests.rs"]
mod tests;
