//! What the policy knows: the recent moments, and what was done so far.

use antifreeze_record::event::{Rung, Trigger};
use core::time::Duration;

/// How many inputs are remembered.
pub const HISTORY_INPUTS: usize = 256;

/// The tightest bound on the memory of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// The machine's memory, less the reserve.
    #[default]
    Machine,
    /// A container's or cgroup's limit above us, less the reserve.
    Cgroup,
    /// The budget the user gave.
    Budget,
}

/// Whether the tree runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Motion {
    #[default]
    Running,
    /// The guard paused it.
    Paused,
    /// The user stopped it (Ctrl-Z, kill -STOP). The guard never continues it.
    StoppedByUser,
}

/// One sample, reduced to what decisions need. Bytes unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyInput {
    /// Monotonic nanoseconds.
    pub at: u64,
    /// Bytes the tree may still take before it reaches the tightest bound; negative beyond it.
    pub room: i64,
    /// The part between the wall and the bound that the cushion may hand out: the bound is exceeded only beyond both.
    pub kept_back: u64,
    pub bound: Bound,
    /// The size of that bound: the machine's memory, the cgroup's limit, or the budget.
    pub total: u64,
    /// What the machine (or the cgroup above us, if tighter) can still give, reserve included.
    pub available: u64,
    /// Memory kept free for the user.
    pub reserve: u64,
    /// Memory that would become free if the tree ended.
    pub footprint: u64,
    /// Memory used by all other processes: total of the machine − available − footprint.
    pub others: u64,
    /// The largest growth of one process's VmData between two samples in the last seconds.
    pub stride: u64,
    /// Counters since boot, in pages; None if the kernel does not report them.
    pub swapped_in: Option<u64>,
    pub swapped_out: Option<u64>,
    /// Free swap, where the pages of a paused tree can go.
    pub swap_free: Option<u64>,
    /// Memory whose content is in swap as well, of any process: the kernel frees it without a write.
    pub swap_cached: u64,
    /// Direct and kswapd reclaim, pages scanned since boot.
    pub scanned: Option<u64>,
    /// PSI memory full, microseconds since boot.
    pub stalled_us: Option<u64>,
    pub shm_free: Option<u64>,
    pub disk_free: Option<u64>,
    /// Swap used by the tree beyond what it was allowed.
    pub swap_beyond: u64,
    /// Steps that the trainers report; None if no process reports training.
    pub steps: Option<u32>,
    pub motion: Motion,
}

/// The state of the last requested save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Save {
    #[default]
    None,
    Asked {
        at: u64,
    },
    Done {
        at: u64,
    },
    Missed {
        at: u64,
    },
}

/// What the guard has done so far. The executor writes it; the policy reads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Acts {
    pub rung: Rung,
    /// When this rung was entered.
    pub since: u64,
    pub save: Save,
    /// How long a save takes, measured on earlier saves; an estimate before the first.
    pub save_time: Duration,
    pub braked_at: Option<u64>,
    pub paused_at: Option<u64>,
    pub resumed_at: Option<u64>,
    /// When the user ran `antifreeze resume`.
    pub resume_asked_at: Option<u64>,
    pub stop_sent_at: Option<u64>,
    /// Available memory when the stop was sent: a further fall shortens the deadline.
    pub available_at_stop: u64,
    /// The footprint at that time: a tree that continues to grow does not mean to end.
    pub footprint_at_stop: Option<u64>,
    pub kill_sent_at: Option<u64>,
    /// Requests refused at the wall so far, and when the last was.
    pub walled: u32,
    pub walled_at: Option<u64>,
}

/// The configuration of the policy. `can_save` and `dies_at_wall` are set for each decision; the rest stays the same
/// during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The guard sets limits.
    pub wall: bool,
    /// The trainer can be asked to save.
    pub can_save: bool,
    /// The trainer cannot survive a refused request (TensorFlow): stop it before the wall.
    pub dies_at_wall: bool,
    /// It was not started by us and lives for more than this training, such as the kernel of a notebook. It is
    /// interrupted instead of ended, and may continue.
    pub attached: bool,
    /// All swap is in memory (zram): writing pages there frees little.
    pub swap_is_memory: bool,
    /// A paused tree is written to swap, at the pace of its disk.
    pub pages_out: bool,
    /// How long a pause may last.
    pub pause_deadline: Duration,
    /// Between SIGTERM and SIGKILL.
    pub stop_deadline: Duration,
}

/// What should be done now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    pub rung: Rung,
    pub trigger: Trigger,
    pub forecast: Option<Forecast>,
    /// Time until the next sample.
    pub pace: Duration,
    /// A paused tree should go to swap now.
    pub page_out: bool,
}

/// When the tree will reach its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Time until the tree reaches its bound at this growth.
    pub time: Duration,
    /// Growth of the footprint, bytes a second.
    pub growth: f64,
    /// 0 to 1: how well a straight line fits the recent past.
    pub confidence: f64,
}

/// The recent inputs, oldest first, and what was done.
#[derive(Clone)]
pub struct History {
    inputs: [PolicyInput; HISTORY_INPUTS],
    next: usize,
    len: usize,
    pub acts: Acts,
}

impl History {
    pub fn new() -> History {
        History {
            inputs: [PolicyInput::default(); HISTORY_INPUTS],
            next: 0,
            len: 0,
            acts: Acts::default(),
        }
    }

    pub fn push(&mut self, input: PolicyInput) {
        self.inputs[self.next] = input;
        self.next = (self.next + 1) % HISTORY_INPUTS;
        self.len = (self.len + 1).min(HISTORY_INPUTS);
    }

    pub fn last(&self) -> Option<&PolicyInput> {
        self.iter().next_back()
    }

    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &PolicyInput> + Clone {
        let start = (self.next + HISTORY_INPUTS - self.len) % HISTORY_INPUTS;
        (0..self.len).map(move |i| &self.inputs[(start + i) % HISTORY_INPUTS])
    }

    /// The inputs of the last `window` nanoseconds, newest first. An input that is later than its successor is skipped,
    /// so times never rise.
    pub fn recent(&self, window: u64) -> impl Iterator<Item = &PolicyInput> + Clone {
        let now = self.last().map_or(0, |input| input.at);
        let from = now.saturating_sub(window);
        let mut after = now;
        self.iter()
            .rev()
            .filter(move |input| {
                let ordered = input.at <= after;
                if ordered {
                    after = input.at;
                }
                ordered
            })
            .take_while(move |input| input.at >= from)
    }
}

impl Default for History {
    fn default() -> Self {
        History::new()
    }
}

impl Default for Acts {
    fn default() -> Self {
        Acts {
            rung: Rung::Calm,
            since: 0,
            save: Save::None,
            save_time: Duration::from_secs(5),
            braked_at: None,
            paused_at: None,
            resumed_at: None,
            resume_asked_at: None,
            stop_sent_at: None,
            available_at_stop: 0,
            footprint_at_stop: None,
            kill_sent_at: None,
            walled: 0,
            walled_at: None,
        }
    }
}
