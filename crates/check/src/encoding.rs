//! Decodes a script by its byte order mark, its coding comment (PEP 263) or as UTF-8. Encoding the
//! text again gives exactly the same bytes.

use crate::error::FileError;
use std::borrow::Cow;

/// The encoding of a script, used to write it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16 { big_endian: bool },
    Named(&'static encoding_rs::Encoding),
}

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Decodes bytes to text without the byte order mark.
pub fn decode(bytes: Vec<u8>) -> Result<(String, Encoding), FileError> {
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(rest, false),
        [0xfe, 0xff, rest @ ..] => utf16(rest, true),
        _ if memchr::memchr(0, &bytes).is_some() => Err(FileError::NotText),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest.to_vec(), Encoding::Utf8WithMark),
        _ => match cookie(&bytes).map(|name| (name, known(name))) {
            None => utf8(bytes, Encoding::Utf8),
            Some((_, Some(encoding))) if encoding == encoding_rs::UTF_8 => {
                utf8(bytes, Encoding::Utf8)
            }
            Some((_, Some(encoding))) => named(&bytes, encoding),
            // Pure ASCII reads the same in any encoding that was meant.
            Some((_, None)) if bytes.is_ascii() => utf8(bytes, Encoding::Utf8),
            Some((name, None)) => Err(FileError::UnknownEncoding(name.to_owned())),
        },
    }
}

impl Encoding {
    /// Encodes a text.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, FileError> {
        Ok(match self {
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf8WithMark => [UTF8_MARK, text.as_bytes()].concat(),
            Encoding::Utf16 { big_endian } => {
                let units = std::iter::once(0xfeff).chain(text.encode_utf16());
                let bytes = |unit: u16| match big_endian {
                    true => unit.to_be_bytes(),
                    false => unit.to_le_bytes(),
                };
                units.flat_map(bytes).collect()
            }
            Encoding::Named(encoding) => match encoding.encode(text) {
                (bytes, _, false) => bytes.into_owned(),
                _ => return Err(FileError::Unencodable(encoding.name())),
            },
        })
    }
}

fn utf8(bytes: Vec<u8>, encoding: Encoding) -> Result<(String, Encoding), FileError> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to());
        let line = 1 + memchr::memchr_iter(b'\n', good.unwrap_or_default()).count();
        FileError::NotUtf8 { line }
    })?;
    Ok((text, encoding))
}

fn utf16(bytes: &[u8], big_endian: bool) -> Result<(String, Encoding), FileError> {
    let encoding = match big_endian {
        true => encoding_rs::UTF_16BE,
        false => encoding_rs::UTF_16LE,
    };
    let text = decoded(bytes, encoding)?;
    if memchr::memchr(0, text.as_bytes()).is_some() {
        return Err(FileError::NotText);
    }
    Ok((text.into_owned(), Encoding::Utf16 { big_endian }))
}

fn named(
    bytes: &[u8],
    encoding: &'static encoding_rs::Encoding,
) -> Result<(String, Encoding), FileError> {
    let text = decoded(bytes, encoding)?;
    Ok((text.into_owned(), Encoding::Named(encoding)))
}

fn decoded<'a>(
    bytes: &'a [u8],
    encoding: &'static encoding_rs::Encoding,
) -> Result<Cow<'a, str>, FileError> {
    match encoding.decode_without_bom_handling(bytes) {
        (text, false) => Ok(text),
        _ => Err(FileError::InvalidEncoding(encoding.name())),
    }
}

/// Returns the encoding named in one of the first two lines, by Python's rules: the second line
/// counts only after a comment or an empty line.
fn cookie(bytes: &[u8]) -> Option<&str> {
    let mut lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let first = lines.next()?.trim_ascii_start();
    if let Some(name) = cookie_of(first) {
        return Some(name);
    }
    if !first.is_empty() && !first.starts_with(b"#") {
        return None;
    }
    let second = match lines.next()? {
        b"" if bytes.get(first.len()..)?.starts_with(b"\r\n") => lines.next()?,
        line => line,
    };
    cookie_of(second.trim_ascii_start())
}

fn cookie_of(line: &[u8]) -> Option<&str> {
    let comment = line.strip_prefix(b"#")?;
    let mut positions = memchr::memmem::find_iter(comment, b"coding");
    positions.find_map(|at| {
        let rest = comment.get(at + b"coding".len()..)?;
        let value = rest
            .strip_prefix(b":")
            .or_else(|| rest.strip_prefix(b"="))?
            .trim_ascii_start();
        let length = value
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
            .count();
        let name = std::str::from_utf8(value.get(..length)?).ok()?;
        (!name.is_empty()).then_some(name)
    })
}

/// Returns the encoding for one of Python's names, which are less strict than the web's.
fn known(name: &str) -> Option<&'static encoding_rs::Encoding> {
    let dashed = name.to_ascii_lowercase().replace('_', "-");
    let label = match dashed.as_str() {
        "utf-8-sig" | "u8" | "utf" | "ascii" | "us-ascii" => "utf-8",
        name if name.starts_with("utf-8-") => "utf-8", // such as utf-8-unix of Emacs
        "latin-1" | "iso-latin-1" | "8859" | "cp819" => "latin1",
        name if name.starts_with("latin-1-") => "latin1",
        "cp932" | "ms932" | "shift-jis" => "shift_jis",
        "cp936" => "gbk",
        "cp949" => "euc-kr",
        "cp950" => "big5",
        "mac-roman" => "macintosh",
        other => other,
    };
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes())?;
    // A file whose coding comment could be read is not in UTF-16.
    let is_wide = encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE;
    (!is_wide && encoding != encoding_rs::REPLACEMENT).then_some(encoding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(bytes: &[u8]) -> String {
        let (text, encoding) = decode(bytes.to_vec()).unwrap();
        assert_eq!(encoding.encode(&text).unwrap(), bytes, "{text}");
        text
    }

    #[test]
    fn text_is_found_under_marks_and_coding_comments() {
        for (bytes, expected) in [
            (&b"x = 1\n"[..], "x = 1\n"),
            ("é".as_bytes(), "é"),
            (b"\xef\xbb\xbfx", "x"),
            (b"\xff\xfex\0\xe9\0", "xé"),
            (b"\xfe\xff\0x\0\xe9", "xé"),
            (b"# coding: latin-1\n# \xe9", "# coding: latin-1\n# é"),
            (
                b"#!/x\n# -*- coding: iso-8859-15 -*-\n# \xa4",
                "#!/x\n# -*- coding: iso-8859-15 -*-\n# €",
            ),
            (
                b"#!/x\r\n# vim: fileencoding=cp1251\r\n# \xef",
                "#!/x\r\n# vim: fileencoding=cp1251\r\n# п",
            ),
            (
                b"# coding=shift_jis\n# \x82\xa0",
                "# coding=shift_jis\n# あ",
            ),
            (b"# coding: utf_8\n# \xc3\xa9", "# coding: utf_8\n# é"),
            (b"# coding: klingon\nx", "# coding: klingon\nx"),
            (b"", ""),
        ] {
            assert_eq!(text_of(bytes), expected);
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_the_reason() {
        for (bytes, reason) in [
            (&b"\x7fELF\0\0"[..], "NUL"),
            (b"x = 1\n# \xe9\n", "line 2"),
            (b"x = 1\n# coding: latin-1\n# \xe9", "not UTF-8"),
            (b"# coding: klingon\n# \xe9", "klingon"),
            (b"# coding: shift_jis\n# \xff", "shift_jis"),
            (b"\xff\xfe\0\xd8", "utf-16"),
        ] {
            let message = decode(bytes.to_vec()).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn a_character_the_encoding_lacks_is_not_written() {
        let (_, encoding) = decode(b"# coding: latin-1\n".to_vec()).unwrap();
        assert!(encoding.encode("€ is cp1252's, あ is not").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes: Vec<u8>) {
            let _ = decode(bytes);
        }
    }
}
