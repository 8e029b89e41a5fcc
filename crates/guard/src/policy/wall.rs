//! What the wall remembers of one process, and what a changed limit means.
//!
//! The limit counts what a process has mapped (VmData); the machine feels what it has
//! touched. The difference, its slack, is mostly harmless: libraries, stacks, arenas. Only
//! slack that came lately is charged, because it may be about to be filled.

/// Length of one of the two buckets over which slack is remembered, nanoseconds.
const BUCKET_NS: u64 = 15_000_000_000;
/// What a thread maps for its stack.
const THREAD_STACK_BYTES: u64 = 8 << 20;
/// Zeroed memory counts as used as far as it will be filled within so many seconds: the ladder needs less time to act.
const FILLED_SECONDS: u64 = 4;
/// A process younger than this may still be taking the limit it was born with, so that a
/// limit other than ours is nobody's choice yet. Nanoseconds.
const YOUNG_NS: u64 = 300_000_000;

/// What the cushion inside a process says of its own limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLimit {
    /// The soft limit it gave itself last; 0 when it never did.
    pub limit: u64,
    /// The landing strip is open.
    pub landed: bool,
}

/// What the limit found on a process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallSign {
    /// It is as it was set.
    None,
    /// A request was refused and the strip was opened.
    Landed,
    /// Small requests or thread starts drew on the reserve.
    DrewSmall,
    /// The program itself, or somebody else, chose another limit.
    Foreign,
}

/// Compares the limit found with the one that was set.
pub fn detect(found: u64, set: u64, own: OwnLimit) -> WallSign {
    if found == set {
        return WallSign::None;
    }
    // The cushion may move on between the two readings, and only upwards.
    let by_cushion = own.limit == found || (found > set && own.limit > found);
    match (by_cushion, own.landed) {
        (true, true) => WallSign::Landed,
        (true, false) => WallSign::DrewSmall,
        (false, _) => WallSign::Foreign,
    }
}

/// A total that rises, and how much it has risen over the same two buckets as slack is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lately {
    total: u64,
    /// At the start of this bucket and of the one before.
    at_start: [u64; 2],
}

impl Lately {
    fn bytes(&self) -> u64 {
        self.total.saturating_sub(self.at_start[1])
    }

    /// A bucket is over, and nothing was seen in the one before unless `continues`.
    fn next_bucket(&mut self, continues: bool) {
        let [current, before] = &mut self.at_start;
        *before = if continues { *current } else { self.total };
        *current = self.total;
    }
}

/// A limit that the process raised itself, by its strip or its small reserve, and what it
/// had mapped then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    vm_data: u64,
    limit: u64,
    strip: u64,
}

/// One process as the wall knows it. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallState {
    first_seen: Option<u64>,
    last_seen: u64,
    vm_data: u64,
    /// Bytes of files that were told of: in all, since the last look, and before it but not seen at it.
    files: u64,
    files_new: u64,
    files_awaited: u64,
    /// How far the limit may have been moved for files and libraries since the last look.
    moved_for_files: u64,
    reserved: Lately,
    zeroed: Lately,
    high_water: u64,
    growth: u64,
    shrank: bool,
    slack: u64,
    /// What it held when it was last seen at another moment, and how much more a second since.
    held: u64,
    filled_a_second: u64,
    /// The least slack of this bucket and of the one before.
    floors: [Option<u64>; 2],
    bucket_since: u64,
    set: Option<u64>,
    opening: Option<Opening>,
    chosen: Option<u64>,
    forked: bool,
}

impl WallState {
    /// A process that was forked and runs the same program: what its parent chose for
    /// itself holds for it too, and the slack it was born with is its parent's.
    pub fn child_of(parent: &WallState) -> WallState {
        WallState {
            chosen: parent.chosen,
            floors: [Some(parent.slack), None],
            forked: true,
            ..WallState::default()
        }
    }

    /// Slack is forgiven to a program that starts: it maps its libraries. A fork has them
    /// already, and what it maps it means to use.
    pub fn is_forgiven(&self) -> bool {
        !self.forked
    }

    /// Forked a moment ago: it may be about to take what it was given at its birth.
    pub fn is_new_born(&self) -> bool {
        self.forked && self.young()
    }

    /// Takes in what the cushion has told of so far: bytes of files that were mapped to be written to privately,
    /// each a moment before it was mapped. They are no growth.
    pub fn exclude_file_growth(&mut self, files: u64) {
        self.files_new = files.saturating_sub(self.files);
        self.files = files;
    }

    /// Takes in how much the cushion says that was reserved and allocated zeroed so far.
    pub fn exclude_untouched(&mut self, reserved: u64, zeroed: u64) {
        self.reserved.total = reserved;
        self.zeroed.total = zeroed;
    }

    /// Takes in one look at the process. A second one of the same moment goes on with the first.
    pub fn observe(&mut self, now_ns: u64, vm_data: u64, rss_anon: u64, swap: u64, threads: u64) {
        let (grown, shrank) = match self.last_seen == now_ns {
            true => (self.growth, self.shrank),
            false => (0, false),
        };
        let mapped = vm_data.saturating_sub(self.vm_data);
        let of_files = mapped.min(self.files_new.saturating_add(self.files_awaited));
        self.files_awaited = self.files_new.saturating_sub(of_files);
        self.moved_for_files = of_files.max(self.files_new);
        self.growth = match self.first_seen {
            Some(_) => grown.saturating_add(mapped - of_files),
            None => 0,
        };
        self.shrank = shrank || vm_data < self.vm_data;
        let held = rss_anon.saturating_add(swap);
        let since = now_ns.saturating_sub(self.last_seen);
        if since > 0 {
            let filled = held.saturating_sub(self.held);
            self.filled_a_second = match self.first_seen {
                Some(_) => a_second(filled, since),
                None => 0,
            };
            self.held = held;
        }
        self.first_seen.get_or_insert(now_ns);
        self.last_seen = now_ns;
        self.vm_data = vm_data;
        self.high_water = self.high_water.max(vm_data);
        let stacks = threads.saturating_sub(1).saturating_mul(THREAD_STACK_BYTES);
        self.slack = vm_data
            .saturating_sub(rss_anon)
            .saturating_sub(swap)
            .saturating_sub(stacks);
        self.remember_slack(now_ns);
        // Closing the strip while the handler still runs on it made Python segfault, and
        // moving the limit renews the small reserve, which a leak would drink in sips.
        self.opening = self
            .opening
            .filter(|opening| vm_data.saturating_add(opening.strip / 2) >= opening.vm_data);
    }

    fn remember_slack(&mut self, now_ns: u64) {
        let [current, before] = &mut self.floors;
        if self.bucket_since == 0 {
            self.bucket_since = now_ns;
        }
        let age = now_ns.saturating_sub(self.bucket_since);
        if age >= BUCKET_NS {
            *before = if age < 2 * BUCKET_NS { *current } else { None };
            *current = None;
            self.bucket_since = now_ns;
            self.reserved.next_bucket(age < 2 * BUCKET_NS);
            self.zeroed.next_bucket(age < 2 * BUCKET_NS);
        }
        *current = Some(current.map_or(self.slack, |floor| floor.min(self.slack)));
    }

    /// Takes in the soft limit found on the process, and what its cushion says. `strip` is the size of a landing
    /// strip, and `small` that of the reserve for small requests.
    pub fn notice(&mut self, found: u64, own: OwnLimit, strip: u64, small: u64) -> WallSign {
        let Some(set) = self.set else {
            return WallSign::None;
        };
        let mut sign = detect(found, set, own);
        if sign == WallSign::Foreign && self.young() {
            sign = WallSign::None;
        }
        // Not drawn, but moved by the size of a file: nothing of it may be used for anything else.
        let of_files = found.saturating_sub(set) <= self.moved_for_files;
        if self.moved_for_files > 0
            && of_files
            && matches!(sign, WallSign::DrewSmall | WallSign::Foreign)
        {
            sign = WallSign::None;
        }
        match sign {
            WallSign::Landed | WallSign::DrewSmall => {
                // A limit that was raised to load a library may be found before the cushion says why. The cushion hands
                // out no more than strip and reserve, so no more than that stays open.
                let most = self.vm_data.saturating_add(strip).saturating_add(small);
                self.opening = Some(Opening {
                    vm_data: self.vm_data,
                    limit: found.min(most),
                    strip,
                });
            }
            WallSign::Foreign => self.chosen = Some(found),
            WallSign::None => {}
        }
        self.set = Some(found);
        sign
    }

    /// What a process without a cushion says by the limit that is found on it: the shim in its
    /// interpreter opens a strip as a cushion would.
    pub fn own_opening(&self, found: u64, strip: u64) -> OwnLimit {
        let opened = self
            .set
            .is_some_and(|set| found == set.saturating_add(strip));
        OwnLimit {
            limit: if opened { found } else { 0 },
            landed: opened,
        }
    }

    /// Remembers a limit the program had chosen before the wall stood, such as `ulimit -d`.
    pub fn respect(&mut self, limit: u64) {
        self.chosen = Some(limit);
    }

    /// Remembers the limit that was set.
    pub fn placed(&mut self, limit: u64) {
        self.set = Some(limit);
    }

    /// Forgets the limit that was set: the process has none now, and the next plan sets one.
    pub fn was_lifted(&mut self) {
        self.set = None;
    }

    fn young(&self) -> bool {
        self.first_seen
            .is_none_or(|first| self.last_seen.saturating_sub(first) < YOUNG_NS)
    }

    pub fn vm_data(&self) -> u64 {
        self.vm_data
    }

    /// The most it ever had mapped.
    pub fn high_water(&self) -> u64 {
        self.high_water
    }

    /// What it mapped more between the last two looks.
    pub fn growth(&self) -> u64 {
        self.growth
    }

    /// It has given some back since the look before.
    pub fn shrank(&self) -> bool {
        self.shrank
    }

    /// Slack that came within the last half minute.
    pub fn recent_slack(&self) -> u64 {
        let [current, before] = self.floors;
        let floor = match (current, before) {
            (Some(current), Some(before)) => current.min(before),
            (Some(floor), None) | (None, Some(floor)) => floor,
            (None, None) => self.slack,
        };
        self.slack.saturating_sub(floor)
    }

    /// How much of the recent slack was reserved and is not meant to be filled.
    pub fn reserved_lately(&self) -> u64 {
        self.reserved.bytes()
    }

    /// How much of the recent slack was allocated zeroed, less what the process would fill of it in the next seconds
    /// at the rate at which it has filled memory since the last look.
    pub fn zeroed_lately(&self) -> u64 {
        let soon = self.filled_a_second.saturating_mul(FILLED_SECONDS);
        self.zeroed.bytes().saturating_sub(soon)
    }

    /// The limit as it stands, as far as we know.
    pub fn limit(&self) -> Option<u64> {
        self.set
    }

    /// The limit must not fall below this while what it was opened for is in use.
    pub fn opened(&self) -> Option<u64> {
        self.opening.map(|opening| opening.limit)
    }

    /// Whether so many bytes more are beyond the limit that the program chose for itself, if it did.
    pub fn beyond_chosen(&self, bytes: u64) -> Option<bool> {
        let chosen = self.chosen?;
        Some(self.vm_data.saturating_add(bytes) > chosen)
    }

    /// The limit the program chose for itself; ours is never above it.
    pub fn chosen(&self) -> Option<u64> {
        self.chosen
    }
}

/// A rate, from bytes and nanoseconds.
fn a_second(bytes: u64, nanoseconds: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(nanoseconds.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
