//! Standard output.

use std::io::Write;

/// Writes to standard output; a reader that went away is no error.
pub fn print(text: impl AsRef<[u8]>) -> Result<(), String> {
    match std::io::stdout().lock().write_all(text.as_ref()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
