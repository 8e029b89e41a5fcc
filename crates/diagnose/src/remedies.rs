//! What to do about a cause: a short text, and a line to paste where one helps.

use crate::facts::Facts;
use crate::safe;
use crate::shim::{How, Suspect};
use crate::verdict::{Code, Location, Remedy};
use std::os::unix::ffi::OsStrExt;

pub(crate) fn for_cause(code: Code, facts: &Facts) -> Vec<Remedy> {
    let (text, paste): (&str, Option<String>) = match code {
        Code::MemoryLeak => (
            "look for a list or a sum that keeps the tensors of every step; keep plain numbers instead",
            Some("losses.append(loss.item())".into()),
        ),
        Code::DatasetInMemory => (
            "read samples when they are needed instead of all at once",
            Some("data = np.load(path, mmap_mode=\"r\")".into()),
        ),
        Code::BatchTooLarge => (
            "ask for less at once: a smaller batch, with gradients summed over two of them",
            Some("batch_size //= 2".into()),
        ),
        Code::OtherProcess => (
            "close other programs that hold much memory, or train when they are idle",
            None,
        ),
        Code::ShmExhausted => (
            "fewer DataLoader workers, or more shared memory for the container (docker run --shm-size)",
            Some("num_workers=0".into()),
        ),
        Code::DiskFull => (
            "free some space; the largest folders:",
            Some(largest_folders(facts)),
        ),
        Code::ContainerLimit => (
            "give the container more memory, or the run a smaller batch",
            None,
        ),
        Code::NumericNan => (
            "look for a division, a logarithm or a root of what may be 0; a smaller learning rate, or clipped gradients",
            Some("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)".into()),
        ),
        Code::NumericDivergence => (
            "a smaller learning rate, a warm-up, or clipped gradients",
            Some("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)".into()),
        ),
        Code::NativeCrash => (
            "let Python tell where it crashed:",
            Some(format!(
                "PYTHONFAULTHANDLER=1 antifreeze run -- {}",
                facts.command_line()
            )),
        ),
        Code::SwapThrash
        | Code::ThermalThrottle
        | Code::UserException
        | Code::KilledExternally
        | Code::Unknown => return Vec::new(),
    };
    let word = serde_json::to_value(code).ok();
    let docs = word
        .as_ref()
        .and_then(|word| word.as_str())
        .map(|word| format!("causes/{word}"));
    vec![Remedy {
        text: text.into(),
        code: paste,
        docs,
    }]
}

/// Where the name is known that fills the memory, and the line.
pub(crate) fn for_holder(
    code: Code,
    suspect: &Suspect<'_>,
    place: Option<&Location>,
) -> Option<Remedy> {
    let Location { file, line, .. } = place?;
    let name = safe::shown(suspect.holder.name.as_bytes());
    let (text, paste) = match (code, suspect.how) {
        (Code::MemoryLeak, How::Graphs) => (
            format!("keep the value at {file}:{line}, not the tensor with its graph"),
            "loss.item()".into(),
        ),
        (Code::MemoryLeak, _) => (
            format!("let go of what is old, or keep numbers instead of tensors, at {file}:{line}"),
            format!("{name} = collections.deque(maxlen=100)"),
        ),
        _ => return None,
    };
    Some(Remedy {
        text,
        code: Some(paste),
        docs: Some("causes/memory-leak".into()),
    })
}

fn largest_folders(facts: &Facts) -> String {
    let folder = match facts.folder.as_os_str().as_bytes() {
        b"" => ".".into(),
        _ => safe::command(&[facts.folder.clone().into_os_string()]),
    };
    format!("du -xh --max-depth=2 {folder} | sort -h | tail")
}
