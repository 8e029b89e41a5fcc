//! Small readers of text that the patterns of the log are built from. A number counts only
//! where all of it is there: "79," is 79, "79x" and "99999999999" are nothing.

use antifreeze_sense::Pid;

/// The number the text begins with, and what follows it.
pub fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    let ends = !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    ends.then_some((number.parse().ok()?, rest))
}

/// The number right after the first `mark`.
pub fn number_after(text: &str, mark: &str) -> Option<u32> {
    let (_, rest) = text.split_once(mark)?;
    Some(number(rest)?.0)
}

pub fn pid(text: &str) -> Option<Pid> {
    let (number, rest) = number(text)?;
    rest.is_empty().then_some(Pid(number))
}

/// What stands between the first `open` and the first `close` after it.
pub fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// `python3[4242]`: a name may hold brackets itself, the number is in the last pair.
pub fn named_pid(text: &str) -> Option<(&str, Pid)> {
    let (name, number) = text.strip_suffix(']')?.rsplit_once('[')?;
    Some((name, pid(number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_only_whole() {
        for (text, found) in [
            ("79, pid=1", Some((79, ", pid=1"))),
            ("79", Some((79, ""))),
            ("79x", None),
            ("7_9", None),
            ("99999999999", None),
            ("+7", None),
            ("", None),
        ] {
            assert_eq!(number(text), found, "{text}");
        }
    }

    #[test]
    fn a_name_may_hold_brackets() {
        assert_eq!(named_pid("kworker/[0][12]"), Some(("kworker/[0]", Pid(12))));
        assert_eq!(named_pid("python3[12"), None);
        assert_eq!(named_pid("python3[1 2]"), None);
    }
}
