//! Where the threads of a trainer were when it made no more steps: what Python's `faulthandler` wrote into the
//! run's folder, each time the guard asked. Read without trust.

use crate::traceback::{Frame, find_last};
use antifreeze_sense::regular_file;
use antifreeze_text::sanitize;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The end of each file is read; a dump of many threads takes some kilobytes.
const LONGEST: u64 = 256 << 10;
/// How a dump begins that was written in a crash.
const FATAL: &[u8] = b"Fatal Python error: ";
/// So many that agree show that it stands still.
const ENOUGH: usize = 3;

#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// As they were written, of all processes.
    pub text: Vec<u8>,
    /// The process that told most.
    pub pid: Option<u32>,
    /// Of its main thread, the newest last; each the innermost frame first.
    mains: Vec<Vec<Call>>,
    /// All threads of all processes, as they were last seen.
    pub threads: Vec<Thread>,
}

/// One thread when it was last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub pid: u32,
    pub is_main: bool,
    /// The innermost frame first, without those of antifreeze.
    pub stack: Vec<Call>,
}

/// A frame, and the function that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub frame: Frame,
    pub function: String,
}

impl Stacks {
    /// From a run's folder. What cannot be read was not written.
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
            let text = end_of(&path).unwrap_or_default();
            if !text.is_empty() {
                stacks.take(pid, &text);
            }
        }
        stacks
    }

    /// Of one process.
    pub fn of(pid: u32, text: &[u8]) -> Stacks {
        let mut stacks = Stacks::default();
        stacks.take(pid, text);
        stacks
    }

    /// What is in a file; of several processes the one that told most speaks.
    fn take(&mut self, pid: u32, text: &[u8]) {
        let mains = mains(text);
        if mains.len() > self.mains.len() {
            self.pid = Some(pid);
            self.mains = mains;
        }
        self.threads.extend(last_dump(pid, text));
        // Which process it is stands nowhere in what the interpreter writes.
        self.text
            .extend_from_slice(format!("Process {pid}\n\n").as_bytes());
        self.text.extend_from_slice(text);
    }

    /// With every text in it changed.
    pub fn changed(&self, change: impl Fn(&str) -> String) -> Stacks {
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

    /// Where it stood each of the last times that it was asked, innermost first, if that is one place.
    pub fn standing(&self) -> Option<&[Call]> {
        let last = self.mains.last()?;
        let lately = self.mains.iter().rev().take(ENOUGH);
        let is_one = self.mains.len() >= ENOUGH && lately.clone().all(|stack| stack == last);
        is_one.then_some(last.as_slice())
    }

    /// What the interpreter said when it crashed, and where it was then.
    pub fn crash(&self) -> Option<(String, Vec<Call>)> {
        let at = find_last(&self.text, FATAL)?;
        let text = self.text.get(at..)?;
        let said = text.split(|byte| *byte == b'\n').next()?;
        let stack = mains(text).into_iter().next().unwrap_or_default();
        Some((sanitize::escape(said), stack))
    }

    /// The script's own function that it was in each of the last times, wherever in it.
    pub fn within(&self) -> Option<&Call> {
        let own = |stack: &'_ Vec<Call>| stack.iter().position(|call| call.frame.is_users());
        let last = self.mains.last()?;
        let call = last.get(own(last)?)?;
        let is_same = |stack: &Vec<Call>| {
            own(stack)
                .and_then(|index| stack.get(index))
                .is_some_and(|other| {
                    other.function == call.function && other.frame.file == call.frame.file
                })
        };
        let lately = self.mains.iter().rev().take(ENOUGH);
        (self.mains.len() >= ENOUGH && lately.clone().all(is_same)).then_some(call)
    }
}

/// The innermost frame of the script itself.
pub fn own(stack: &[Call]) -> Option<&Call> {
    stack.iter().find(|call| call.frame.is_users())
}

/// Of a file, at most so much that a person would read it.
pub(crate) fn end_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = regular_file::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text)?;
    Ok(text)
}

/// All threads of the last dump, which ends with the main one. A thread that runs nothing but antifreeze is none of
/// the script's.
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

/// The stacks of the thread that the signal reached: the main one.
fn mains(text: &[u8]) -> Vec<Vec<Call>> {
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
            // A handler of the shim is on the stack only because it was asked.
            && !call.is_ours()
        {
            stack.push(call);
        }
    }
    // The first may have been cut.
    found.retain(|stack| !stack.is_empty());
    found
}

impl Call {
    /// A frame of antifreeze itself, which never says why a run hangs.
    fn is_ours(&self) -> bool {
        const OURS: [&[u8]; 3] = [
            b"/library/antifreeze/",
            b"/antifreeze/_shim/",
            b"/antifreeze/_stub/",
        ];
        OURS.iter()
            .any(|part| find_last(&self.frame.file, part).is_some())
    }

    /// `  File "train.py", line 14 in step`.
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
        Stacks::of(7, text.as_bytes())
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
    fn three_that_agree_show_where_it_stands() {
        assert!(stacks(&WAITS.repeat(2)).standing().is_none());
        let stacks = stacks(&WAITS.repeat(3));
        let stack = stacks.standing().unwrap();
        assert_eq!(stack[0].function, "wait");
        let own = own(stack).unwrap();
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
        assert_eq!(stacks.standing().unwrap()[0].function, "wait");
        let threads: Vec<_> = stacks
            .threads
            .iter()
            .map(|thread| (thread.is_main, thread.stack.len()))
            .collect();
        assert_eq!(threads, [(false, 2), (true, 4)]);
    }

    #[test]
    fn one_that_moves_within_a_function_is_told_from_one_that_stands() {
        let moves: String = (1..4)
            .map(|line| WAITS.replace("line 320", &format!("line {line}")))
            .collect();
        let stacks = stacks(&moves);
        assert!(stacks.standing().is_none());
        assert_eq!(stacks.within().unwrap().function, "next_batch");
    }

    #[test]
    fn a_crash_tells_what_it_was_and_where() {
        assert!(stacks(WAITS).crash().is_none());
        let text = format!("{WAITS}\nFatal Python error: Segmentation fault\n\n{WAITS}");
        let (said, stack) = stacks(&text).crash().unwrap();
        assert_eq!(said, "Fatal Python error: Segmentation fault");
        assert_eq!(own(&stack).unwrap().frame.line, 12);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let stacks = Stacks::of(7, &bytes);
            stacks.standing();
            stacks.within();
            stacks.crash();
        }
    }
}
