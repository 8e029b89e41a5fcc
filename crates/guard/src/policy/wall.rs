//! Keeps what the wall knows about one process, and interprets a limit that was changed.
//!
//! The limit counts what a process has mapped (VmData); the machine only notices what it has touched. The difference,
//! the slack, is mostly harmless: libraries, stacks, arenas. Only recent slack is charged, because it may be about to
//! be filled.

/// Length of each of the two buckets over which slack is remembered.
const BUCKET_NS: u64 = 15_000_000_000;
/// What a thread maps for its stack.
const THREAD_STACK_BYTES: u64 = 8 << 20;
/// Zeroed memory counts as used as far as it will be filled within this time, the least the ladder needs to act.
const FILLED_SECONDS: u64 = 4;
/// A younger process may still be receiving the limit it was born with, so an unknown limit is not yet a choice of the
/// program.
const YOUNG_NS: u64 = 300_000_000;

/// What the cushion of a process reports about its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLimit {
    /// The soft limit that the process set itself last; 0 if it never did.
    pub limit: u64,
    /// The landing strip is open.
    pub landed: bool,
}

/// What a limit found on a process means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallSign {
    /// It is unchanged.
    None,
    /// A request was refused and the strip was opened.
    Landed,
    /// Small requests or thread starts drew on the reserve.
    DrewSmall,
    /// The program or another process chose a different limit.
    Foreign,
}

/// Compares the limit found with the one that was set.
pub fn detect(found: u64, set: u64, own: OwnLimit) -> WallSign {
    if found == set {
        return WallSign::None;
    }
    // The cushion may raise its limit between the two readings, but never lower it.
    let by_cushion = own.limit == found || (found > set && own.limit > found);
    match (by_cushion, own.landed) {
        (true, true) => WallSign::Landed,
        (true, false) => WallSign::DrewSmall,
        (false, _) => WallSign::Foreign,
    }
}

/// A rising total, and how much it rose over the two buckets.
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

    /// Starts a new bucket. Nothing was seen in the one before unless `continues`.
    fn next_bucket(&mut self, continues: bool) {
        let [current, before] = &mut self.at_start;
        *before = if continues { *current } else { self.total };
        *current = self.total;
    }
}

/// A limit that the process raised itself, by its strip or its small reserve, and what it had mapped then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    vm_data: u64,
    limit: u64,
    strip: u64,
}

/// What the wall knows about one process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallState {
    first_seen: Option<u64>,
    last_seen: u64,
    vm_data: u64,
    /// Bytes of files that were reported: in all, since the last sample, and before it but not yet mapped in it.
    files: u64,
    files_new: u64,
    files_awaited: u64,
    /// How far the limit may have moved for files and libraries since the last sample.
    moved_for_files: u64,
    reserved: Lately,
    zeroed: Lately,
    high_water: u64,
    growth: u64,
    shrank: bool,
    slack: u64,
    /// Resident memory and swap at the last sample of another time, and the growth per second since.
    held: u64,
    filled_a_second: u64,
    /// The least slack of the present bucket and of the one before.
    floors: [Option<u64>; 2],
    bucket_since: u64,
    set: Option<u64>,
    opening: Option<Opening>,
    chosen: Option<u64>,
    forked: bool,
}

impl WallState {
    /// The state of a fork that runs the same program: the limit that its parent chose applies to it too, and the slack
    /// it was born with belongs to the parent.
    pub fn child_of(parent: &WallState) -> WallState {
        WallState {
            chosen: parent.chosen,
            floors: [Some(parent.slack), None],
            forked: true,
            ..WallState::default()
        }
    }

    /// Whether slack is forgiven: a program that starts maps its libraries. A fork has them already and uses what it
    /// maps.
    pub fn is_forgiven(&self) -> bool {
        !self.forked
    }

    /// Whether it was forked just now and may be about to take the head-room it got at birth.
    pub fn is_new_born(&self) -> bool {
        self.forked && self.young()
    }

    /// Records the bytes of files mapped for private writing that the cushion has reported, each before it was mapped.
    /// They do not count as growth.
    pub fn exclude_file_growth(&mut self, files: u64) {
        self.files_new = files.saturating_sub(self.files);
        self.files = files;
    }

    /// Records how much the cushion has reported as reserved and as allocated zeroed.
    pub fn exclude_untouched(&mut self, reserved: u64, zeroed: u64) {
        self.reserved.total = reserved;
        self.zeroed.total = zeroed;
    }

    /// Records one sample of the process. A second sample of the same time continues the first.
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
        // Closing the strip while the error handler still runs on it made Python segfault. Moving the limit also renews
        // the small reserve, which a leak would use up bit by bit.
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

    /// Records the soft limit found on the process, and what its cushion reports. `strip` is the size of a landing
    /// strip, `small` that of the reserve for small requests.
    pub fn notice(&mut self, found: u64, own: OwnLimit, strip: u64, small: u64) -> WallSign {
        let Some(set) = self.set else {
            return WallSign::None;
        };
        let mut sign = detect(found, set, own);
        if sign == WallSign::Foreign && self.young() {
            sign = WallSign::None;
        }
        // Raised by the size of a file and not drawn: none of it may be used for anything else.
        let of_files = found.saturating_sub(set) <= self.moved_for_files;
        if self.moved_for_files > 0
            && of_files
            && matches!(sign, WallSign::DrewSmall | WallSign::Foreign)
        {
            sign = WallSign::None;
        }
        match sign {
            WallSign::Landed | WallSign::DrewSmall => {
                // A limit that was raised to load a library may be found before the cushion reports why. The cushion
                // hands out at most strip and reserve, so no more than that stays open.
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

    /// What the limit found on a process without a cushion means: the shim opens a strip as a cushion would.
    pub fn own_opening(&self, found: u64, strip: u64) -> OwnLimit {
        let opened = self
            .set
            .is_some_and(|set| found == set.saturating_add(strip));
        OwnLimit {
            limit: if opened { found } else { 0 },
            landed: opened,
        }
    }

    /// Remembers a limit that the program chose before the wall was set, such as `ulimit -d`.
    pub fn respect(&mut self, limit: u64) {
        self.chosen = Some(limit);
    }

    /// Remembers the limit that was set.
    pub fn placed(&mut self, limit: u64) {
        self.set = Some(limit);
    }

    /// Forgets the limit: the process has none now, and the next plan sets one.
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

    /// Growth of mapped memory between the last two samples.
    pub fn growth(&self) -> u64 {
        self.growth
    }

    /// Whether mapped memory has shrunk since the sample before.
    pub fn shrank(&self) -> bool {
        self.shrank
    }

    /// Slack that appeared within the last half minute.
    pub fn recent_slack(&self) -> u64 {
        let [current, before] = self.floors;
        let floor = match (current, before) {
            (Some(current), Some(before)) => current.min(before),
            (Some(floor), None) | (None, Some(floor)) => floor,
            (None, None) => self.slack,
        };
        self.slack.saturating_sub(floor)
    }

    /// How much of the recent slack was reserved and will not be filled.
    pub fn reserved_lately(&self) -> u64 {
        self.reserved.bytes()
    }

    /// How much of the recent slack was allocated zeroed, less what the process will fill of it in the next seconds at
    /// its present rate.
    pub fn zeroed_lately(&self) -> u64 {
        let soon = self.filled_a_second.saturating_mul(FILLED_SECONDS);
        self.zeroed.bytes().saturating_sub(soon)
    }

    /// The limit that was last set or found.
    pub fn limit(&self) -> Option<u64> {
        self.set
    }

    /// The limit must not fall below this while what it was raised for is in use.
    pub fn opened(&self) -> Option<u64> {
        self.opening.map(|opening| opening.limit)
    }

    /// Whether this many more bytes exceed the limit that the program chose itself; None if it chose none.
    pub fn beyond_chosen(&self, bytes: u64) -> Option<bool> {
        let chosen = self.chosen?;
        Some(self.vm_data.saturating_add(bytes) > chosen)
    }

    /// The limit that the program chose itself; ours is never above it.
    pub fn chosen(&self) -> Option<u64> {
        self.chosen
    }
}

/// A rate, from bytes and nanoseconds.
fn a_second(bytes: u64, nanoseconds: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / u128::from(nanoseconds.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}
