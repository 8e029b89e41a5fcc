//! Names of places in the user's code as a report shows them: files relative to the folder of the run, and notebook
//! cells by their numbers.

use crate::run::facts::Facts;
use antifreeze_text::sanitize;
use std::os::unix::ffi::OsStrExt;

/// Formats a line of a user's file: "train.py:12", or "cell 3, line 6".
pub fn user_place(file: &[u8], line: u32, facts: &Facts) -> String {
    format_place(&user_file(file, facts), line)
}

/// Formats a line of a file that [`user_file`] has named.
pub fn format_place(file: &str, line: u32) -> String {
    let is_cell = file == UNNUMBERED_CELL
        || file
            .strip_prefix("cell ")
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    match is_cell {
        true => format!("{file}, line {line}"),
        false => format!("{file}:{line}"),
    }
}

/// The name of a notebook cell whose number is not known.
const UNNUMBERED_CELL: &str = "a cell";

/// Names a notebook cell, from the temporary file name that IPython gives its code.
fn cell_name(file: &[u8], facts: &Facts) -> Option<String> {
    let file = std::str::from_utf8(file).ok()?;
    if let Some(number) = facts.shim.cells.get(file) {
        return Some(format!("cell {number}"));
    }
    // "Cell In[3]" in a traceback and "<ipython-input-3-0123abcd>" contain the number.
    if let Some(rest) = file.strip_prefix("Cell In") {
        let number = rest.trim_start().strip_prefix('[')?.strip_suffix(']')?;
        return Some(format!("cell {}", number.parse::<u64>().ok()?));
    }
    if let Some(rest) = file.strip_prefix("<ipython-input-") {
        let number = rest.split('-').next()?;
        return Some(format!("cell {}", number.parse::<u64>().ok()?));
    }
    let (folder, name) = file.rsplit_once('/')?;
    let kernel = folder.rsplit('/').next()?.strip_prefix("ipykernel_")?;
    let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits(kernel) && is_digits(name.strip_suffix(".py")?)).then(|| UNNUMBERED_CELL.to_owned())
}

/// Names a user's file relative to the run's folder, or by its notebook cell.
pub fn user_file(file: &[u8], facts: &Facts) -> String {
    if let Some(cell) = cell_name(file, facts) {
        return cell;
    }
    let folder = facts.folder.as_os_str().as_bytes();
    let below = file.strip_prefix(folder).filter(|_| !folder.is_empty());
    sanitize::escape(
        below
            .and_then(|rest| rest.strip_prefix(b"/"))
            .unwrap_or(file),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_notebooks_are_named_by_their_number() {
        let line = br#"{"what":"cell","t":1,"file":"/tmp/ipykernel_12/345.py","number":3}"#;
        let facts = Facts {
            shim: crate::shim::ShimReport::parse(line),
            folder: "/home/a".into(),
            ..Facts::default()
        };
        for (file, place) in [
            ("/tmp/ipykernel_12/345.py", "cell 3, line 6"),
            ("/tmp/ipykernel_12/346.py", "a cell, line 6"),
            ("<ipython-input-7-ab12>", "cell 7, line 6"),
            ("Cell In[7]", "cell 7, line 6"),
            ("Cell In [7]", "cell 7, line 6"),
            ("/home/a/train.py", "train.py:6"),
            ("/tmp/ipykernel_12/mine.py", "/tmp/ipykernel_12/mine.py:6"),
        ] {
            assert_eq!(user_place(file.as_bytes(), 6, &facts), place);
        }
    }

    #[test]
    fn files_are_named_from_where_the_run_was_started() {
        let facts = Facts {
            folder: "/home/ada".into(),
            ..Facts::default()
        };
        assert_eq!(user_file(b"/home/ada/src/train.py", &facts), "src/train.py");
        assert_eq!(
            user_file(b"/home/adam/train.py", &facts),
            "/home/adam/train.py"
        );
        assert_eq!(user_file(b"/x.py", &Facts::default()), "/x.py");
    }
}
