//! The writer: the thread that writes frames to the disk, where one write may take seconds in a storm. The deciding
//! thread hands frames over and never waits for them.

use crate::counting;
use antifreeze_ipc::relay::copy_tail;
use antifreeze_ipc::shared::Shared;
use antifreeze_record::{Consumer, LevelSizes, OutputTail, RecordHead, RecordWriter, output_tail};
use antifreeze_sense::clock::monotonic_ns;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// Output of the trainer is made durable this often,
const TAIL_INTERVAL: Duration = Duration::from_secs(1);
/// and checked for this often while there is none. Every sample causes a check as well.
const IDLE_TAIL_INTERVAL: Duration = Duration::from_secs(10);
/// A failed write is retried after this long.
const RETRY_AFTER_NS: u64 = 5_000_000_000;

/// The files that keep the end of the output: standard output (with standard error, if both go to the same place), and
/// standard error alone.
pub const TAILS: [&str; 2] = ["output", "errors"];

/// The errno of the last write, or 0, for the deciding thread.
#[derive(Default)]
pub struct Trouble(AtomicU32);

impl Trouble {
    pub fn errno(&self) -> u32 {
        self.0.load(Acquire)
    }

    fn set(&self, result: &io::Result<()>) {
        let errno = match result {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO) as u32,
        };
        self.0.store(errno, Release);
    }
}

pub struct Writer {
    pub folder: PathBuf,
    pub head: RecordHead,
    /// Continue the record of a guard that died.
    pub again: bool,
    pub frames: Consumer,
    pub shared: Shared,
}

impl Writer {
    /// Writes until the deciding thread is done and everything is durable.
    pub fn run(mut self, trouble: &Trouble) {
        let mut log = None;
        let mut tails = [None, None];
        let mut retry_at = 0;
        let mut kept = 0;
        counting::start_is_over();
        loop {
            if log.is_none() && monotonic_ns() >= retry_at {
                match counting::starting(|| self.open()) {
                    Ok(opened) => log = Some(opened),
                    Err(error) => {
                        trouble.set(&Err(error));
                        retry_at = monotonic_ns() + RETRY_AFTER_NS;
                    }
                }
            }
            self.frames.drain(|kind, payload| {
                if let Some(log) = &mut log {
                    log.append(kind, payload);
                }
            });
            // Read before the tails are kept: later output is kept the next time.
            let printed = self.printed();
            // After the drain: a frame that comes later wakes this thread again.
            let finished = self.frames.is_finished();
            if let Some(log) = &mut log
                && (monotonic_ns() >= retry_at || finished)
            {
                let result = log.sync().and_then(|()| self.keep_tails(&mut tails));
                if result.is_err() {
                    retry_at = monotonic_ns() + RETRY_AFTER_NS;
                }
                trouble.set(&result);
            }
            if finished {
                return;
            }
            let is_silent = printed == kept && retry_at <= monotonic_ns();
            kept = printed;
            self.frames.wait(if is_silent {
                IDLE_TAIL_INTERVAL
            } else {
                TAIL_INTERVAL
            });
        }
    }

    fn open(&self) -> io::Result<RecordWriter> {
        if self.again {
            RecordWriter::continue_existing(&self.folder, LevelSizes::default(), &self.head)
        } else {
            RecordWriter::create(&self.folder, LevelSizes::default(), &self.head)
        }
    }

    /// Bytes that the trainer has printed.
    fn printed(&self) -> u64 {
        let filled = (0..TAILS.len()).map(|stream| self.shared.output(stream).filled.load(Acquire));
        filled.fold(0, u64::wrapping_add)
    }

    fn keep_tails(&self, tails: &mut [Option<OutputTail>; 2]) -> io::Result<()> {
        for (stream, (tail, name)) in tails.iter_mut().zip(TAILS).enumerate() {
            let output = self.shared.output(stream);
            let filled = output.filled.load(Acquire);
            if filled == 0 {
                continue;
            }
            let tail = match tail {
                Some(tail) => tail,
                None => {
                    let begin = || OutputTail::create(&self.folder.join(name));
                    tail.insert(counting::starting(begin)?)
                }
            };
            tail.update(filled, |offset, out| copy_tail(output, offset, out))?;
        }
        Ok(())
    }
}

/// Keeps output that was read after the guard had written its last tail: the front may read it later than that.
pub fn complete_tails(folder: &Path, shared: Shared) -> io::Result<()> {
    for (stream, name) in TAILS.iter().enumerate() {
        let output = shared.output(stream);
        let filled = output.filled.load(Acquire);
        let path = folder.join(name);
        if filled > output_tail::recorded_len(&path).unwrap_or(0) {
            let copy = |offset, out: &mut [u8]| copy_tail(output, offset, out);
            OutputTail::create(&path)?.update(filled, copy)?;
        }
    }
    Ok(())
}

/// Writes the PID of this guard, and the descriptors of its page and state, into the run's folder, for `antifreeze
/// resume` and for anyone who checks whether the run is alive.
pub fn announce(folder: &Path, [page, state]: [i32; 2]) -> io::Result<()> {
    let stat = std::fs::read("/proc/self/stat")?;
    let started = antifreeze_sense::parse::process_stat(&stat).map_or(0, |stat| stat.started);
    let text = format!("{} {started} {page} {state}\n", std::process::id());
    std::fs::write(folder.join("guard"), text)
}
