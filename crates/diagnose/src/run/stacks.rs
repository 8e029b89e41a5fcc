//! The stacks of a trainer's threads while it made no steps: what Python's `faulthandler` wrote into the run's folder each
//! time the guard asked. The files are not trusted.

use crate::output::traceback::{Frame, find_last};
use antifreeze_sense::regular_file;
use antifreeze_text::sanitize;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// So much of the end of each file is read. A dump of many threads takes some kilobytes.
const MAX_BYTES: u64 = 256 << 10;
/// Total size of all dumps that are read. A folder from another machine may contain any number.
const MAX_TOTAL_BYTES: usize = 8 << 20;
/// The beginning of a dump that was written in a crash.
const FATAL: &[u8] = b"Fatal Python error: ";
/// So many equal dumps in a row show that a thread does not move.
const MIN_EQUAL_DUMPS: usize = 3;

/// The stacks of all processes of a run.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The dumps of all processes as they were written.
    pub text: Vec<u8>,
    /// The process with the most dumps.
    pub pid: Option<u32>,
    /// The stacks of its main thread, oldest first, each with the innermost frame first.
    mains: Vec<Vec<Call>>,
    /// All threads of all processes in their last dumps.
    pub threads: Vec<Thread>,
}

/// A thread in the last dump of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Whether it is the main thread.
    pub is_main: bool,
    /// Its frames, innermost first, without those of antifreeze.
    pub stack: Vec<Call>,
}

/// A frame with its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// File and line.
    pub frame: Frame,
    /// The name of the function.
    pub function: String,
}

impl Stacks {
    /// Reads the stacks in a run's folder; files that cannot be read are skipped.
    pub fn read(folder: &Path) -> Stacks {
        let mut stacks = Stacks::default();
        let Ok(entries) = std::fs::read_dir(folder) else {
            return stacks;
        };
        let pid = |path: &Path| {
            path.file_name()?
                .to_str()?
                .strip_prefix("stacks-")?
                .parse()
                .ok()
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut files: Vec<(u32, _)> = paths.filter_map(|path| Some((pid(&path)?, path))).collect();
        files.sort();
        for (pid, path) in files {
            if stacks.text.len() >= MAX_TOTAL_BYTES {
                break;
            }
            let text = read_tail(&path).unwrap_or_default();
            if !text.is_empty() {
                stacks.add_process(pid, &text);
            }
        }
        stacks
    }

    /// Parses the dumps of one process.
    pub fn parse(pid: u32, text: &[u8]) -> Stacks {
        let mut stacks = Stacks::default();
        stacks.add_process(pid, text);
        stacks
    }

    /// Adds the dumps of a process. The main thread is that of the process with the most dumps.
    fn add_process(&mut self, pid: u32, text: &[u8]) {
        let mains = main_stacks(text);
        if mains.len() > self.mains.len() {
            self.pid = Some(pid);
            self.mains = mains;
        }
        self.threads.extend(last_dump(pid, text));
        // The interpreter does not write the PID.
        self.text
            .extend_from_slice(format!("Process {pid}\n\n").as_bytes());
        self.text.extend_from_slice(text);
    }

    /// The stacks with every text in them changed.
    pub fn map_text(&self, change: impl Fn(&str) -> String) -> Stacks {
        let lossy = |bytes: &[u8]| change(&String::from_utf8_lossy(bytes)).into_bytes();
        let lines: Vec<Vec<u8>> = self.text.split(|byte| *byte == b'\n').map(lossy).collect();
        let call = |call: &Call| Call {
            frame: Frame {
                file: lossy(&call.frame.file),
                line: call.frame.line,
            },
            function: change(&call.function),
        };
        let mains = self
            .mains
            .iter()
            .map(|stack| stack.iter().map(call).collect());
        Stacks {
            text: lines.join(&b'\n'),
            pid: self.pid,
            mains: mains.collect(),
            threads: self
                .threads
                .iter()
                .map(|thread| Thread {
                    stack: thread.stack.iter().map(call).collect(),
                    ..*thread
                })
                .collect(),
        }
    }

    /// The stack of the main thread, if it was the same in each of the last dumps.
    pub fn repeated_stack(&self) -> Option<&[Call]> {
        let last = self.mains.last()?;
        let lately = self.mains.iter().rev().take(MIN_EQUAL_DUMPS);
        let is_one =
            self.mains.len() >= MIN_EQUAL_DUMPS && lately.clone().all(|stack| stack == last);
        is_one.then_some(last.as_slice())
    }

    /// The message of the interpreter when it crashed, and the stack at that time.
    pub fn crash(&self) -> Option<(String, Vec<Call>)> {
        let at = find_last(&self.text, FATAL)?;
        let text = self.text.get(at..)?;
        let said = text.split(|byte| *byte == b'\n').next()?;
        let stack = main_stacks(text).into_iter().next().unwrap_or_default();
        Some((sanitize::escape(said), stack))
    }

    /// The function of the script that the main thread was in, if it was the same in each of the last dumps.
    pub fn repeated_function(&self) -> Option<&Call> {
        let user_call = |stack: &'_ Vec<Call>| stack.iter().position(|call| call.frame.is_users());
        let last = self.mains.last()?;
        let call = last.get(user_call(last)?)?;
        let is_same = |stack: &Vec<Call>| {
            user_call(stack)
                .and_then(|index| stack.get(index))
                .is_some_and(|other| {
                    other.function == call.function && other.frame.file == call.frame.file
                })
        };
        let lately = self.mains.iter().rev().take(MIN_EQUAL_DUMPS);
        (self.mains.len() >= MIN_EQUAL_DUMPS && lately.clone().all(is_same)).then_some(call)
    }
}

/// The innermost frame in the user's own code.
pub fn innermost_user_call(stack: &[Call]) -> Option<&Call> {
    stack.iter().find(|call| call.frame.is_users())
}

/// Reads the end of a file, up to 256 KiB.
pub(crate) fn read_tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = regular_file::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_BYTES)))?;
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

/// All threads of the last dump, which ends with the main thread. A thread that runs only antifreeze is left out.
fn last_dump(pid: u32, text: &[u8]) -> Vec<Thread> {
    let mut threads: Vec<Thread> = Vec::new();
    let mut is_open = false;
    for line in text.split(|byte| *byte == b'\n') {
        let is_main = line.starts_with(b"Current thread ");
        if is_main || line.starts_with(b"Thread ") {
            if threads.last().is_some_and(|thread| thread.is_main) {
                threads.clear();
            }
            is_open = true;
            threads.push(Thread {
                pid,
                is_main,
                stack: Vec::new(),
            });
        } else if line.is_empty() {
            is_open = false;
        } else if let (true, Some(thread), Some(call)) =
            (is_open, threads.last_mut(), Call::parse(line))
            && !call.is_ours()
        {
            thread.stack.push(call);
        }
    }
    threads.retain(|thread| !thread.stack.is_empty());
    threads
}

/// The stacks of the main thread, which handles the signal, in all dumps.
fn main_stacks(text: &[u8]) -> Vec<Vec<Call>> {
    let mut found: Vec<Vec<Call>> = Vec::new();
    let mut is_main = false;
    for line in text.split(|byte| *byte == b'\n') {
        if line.starts_with(b"Current thread ") {
            is_main = true;
            found.push(Vec::new());
        } else if line.starts_with(b"Thread ") || line.is_empty() {
            is_main = false;
        } else if let (true, Some(stack), Some(call)) =
            (is_main, found.last_mut(), Call::parse(line))
            // The shim's handler is on the stack only because of the request.
            && !call.is_ours()
        {
            stack.push(call);
        }
    }
    // The first dump may be cut off.
    found.retain(|stack| !stack.is_empty());
    found
}

impl Call {
    /// Whether it is a frame of antifreeze itself, which is never the reason for a hang.
    fn is_ours(&self) -> bool {
        const OURS: [&[u8]; 3] = [
            b"/library/antifreeze/",
            b"/antifreeze/_shim/",
            b"/antifreeze/_stub/",
        ];
        OURS.iter()
            .any(|part| find_last(&self.frame.file, part).is_some())
    }

    /// Parses `  File "train.py", line 14 in step`.
    fn parse(line: &[u8]) -> Option<Call> {
        let frame = Frame::parse(line)?;
        let at = line.windows(4).rposition(|window| window == b" in ")?;
        let function = String::from_utf8_lossy(line.get(at + 4..)?)
            .trim()
            .to_owned();
        Some(Call { frame, function })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stacks(text: &str) -> Stacks {
        Stacks::parse(7, text.as_bytes())
    }

    const WAITS: &str = "Thread 0x00007f01 (most recent call first):
  File \"/usr/lib/python3.11/threading.py\", line 320 in wait
  File \"other.py\", line 3 in run

Current thread 0x00007f02 (most recent call first):
  File \"/usr/lib/python3.11/threading.py\", line 320 in wait
  File \"/usr/lib/python3.11/queue.py\", line 171 in get
  File \"train.py\", line 12 in next_batch
  File \"train.py\", line 30 in <module>
";

    #[test]
    fn three_equal_dumps_show_a_thread_that_does_not_move() {
        assert!(stacks(&WAITS.repeat(2)).repeated_stack().is_none());
        let stacks = stacks(&WAITS.repeat(3));
        let stack = stacks.repeated_stack().unwrap();
        assert_eq!(stack[0].function, "wait");
        let own = innermost_user_call(stack).unwrap();
        assert_eq!((own.function.as_str(), own.frame.line), ("next_batch", 12));
    }

    #[test]
    fn frames_of_antifreeze_are_never_blamed() {
        let ours = WAITS.replace(
            "Current thread 0x00007f02 (most recent call first):\n",
            "Current thread 0x00007f02 (most recent call first):
  File \"/home/a/.local/state/antifreeze/library/antifreeze/0a1b/antifreeze/_shim/holders.py\", line 9 in look
  File \"/work/python/antifreeze/_shim/trainer.py\", line 7 in _is_told\n",
        );
        let stacks = stacks(&ours.repeat(3));
        assert_eq!(stacks.repeated_stack().unwrap()[0].function, "wait");
        let threads: Vec<_> = stacks
            .threads
            .iter()
            .map(|thread| (thread.is_main, thread.stack.len()))
            .collect();
        assert_eq!(threads, [(false, 2), (true, 4)]);
    }

    #[test]
    fn a_thread_that_moves_within_a_function_is_distinguished_from_one_that_does_not_move() {
        let moves: String = (1..4)
            .map(|line| WAITS.replace("line 320", &format!("line {line}")))
            .collect();
        let stacks = stacks(&moves);
        assert!(stacks.repeated_stack().is_none());
        assert_eq!(stacks.repeated_function().unwrap().function, "next_batch");
    }

    #[test]
    fn a_crash_has_a_message_and_a_stack() {
        assert!(stacks(WAITS).crash().is_none());
        let text = format!("{WAITS}\nFatal Python error: Segmentation fault\n\n{WAITS}");
        let (said, stack) = stacks(&text).crash().unwrap();
        assert_eq!(said, "Fatal Python error: Segmentation fault");
        assert_eq!(innermost_user_call(&stack).unwrap().frame.line, 12);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let stacks = Stacks::parse(7, &bytes);
            stacks.repeated_stack();
            stacks.repeated_function();
            stacks.crash();
        }
    }
}
