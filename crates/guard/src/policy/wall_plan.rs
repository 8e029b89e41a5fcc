//! Computes the wall: the RLIMIT_DATA soft limit of every process of the tree.
//!
//! The limit is what a process has mapped plus what the tree may still take. It is never below what is mapped already
//! and never above what the program chose itself. The hard limit is not changed.

use super::history::Bound;
use super::wall::WallState;

/// Slack that is never charged to a program: importing torch maps about 480 MB untouched, 400 MB of them library data.
const FORGIVEN_SLACK_BYTES: u64 = 512 << 20;
/// Limits this close to each other count as equal, which saves a system call.
const MIN_LIMIT_CHANGE_BYTES: u64 = 1 << 20;
/// One part in this many of threatened head-room goes to processes that do not grow.
const IDLE_PART: u64 = 8;
/// Each of many processes is promised this much, so that small requests need not be asked for.
const MIN_SHARE_BYTES: u64 = 16 << 20;
/// What an allocator takes from the kernel beyond a request.
const ALLOCATOR_SPARE_BYTES: u64 = 1 << 20;

/// What the tree as a whole uses and may still take, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallRoom {
    /// Whether limits are set at all.
    pub wall: bool,
    pub room: i64,
    pub bound: Bound,
    /// The size of that bound.
    pub total: u64,
    pub reserve: u64,
    pub footprint: u64,
    /// The largest footprint of the run.
    pub peak: u64,
    /// The room shrinks because the tree grows, not because others do.
    pub tree_grows: bool,
    /// The tree was paused recently and has to run now, whatever the room.
    pub resumed: bool,
    /// Swap used by the tree beyond what it was allowed.
    pub swap_beyond: u64,
    /// It was asked to save or to end; what that takes is not refused.
    pub leaving: bool,
    /// What every process without a cushion gets beyond its share.
    pub handed_out: u64,
}

impl WallRoom {
    /// What a steady tree may take back up to its own peak without room: others took the memory, and failing the next
    /// step of an innocent tree helps nobody. At most half the reserve; beyond that the ladder pauses the tree. A
    /// budget is not shared with others.
    fn returning(&self) -> u64 {
        let deepest = match self.bound {
            Bound::Budget => return 0,
            // Where no pause is possible, a stop comes next, at a quarter of the reserve.
            Bound::Machine | Bound::Cgroup if self.resumed => -signed(self.reserve / 4 * 3),
            Bound::Machine | Bound::Cgroup => -signed(self.reserve / 2),
        };
        if self.tree_grows || self.room <= deepest {
            0
        } else {
            self.peak.saturating_sub(self.footprint)
        }
    }

    /// What the tree may take. Memory that was pushed to swap is no room for more growth.
    fn left(&self) -> i64 {
        let swapped = if self.tree_grows { self.swap_beyond } else { 0 };
        self.room
            .saturating_sub(signed(swapped))
            .saturating_add(self.lent())
    }

    /// What was used already is gone: handed out again at every tick, it would make the wall useless.
    fn still_handed_out(&self) -> u64 {
        let taken = u64::try_from(self.left().saturating_neg()).unwrap_or(0);
        self.handed_out.saturating_sub(taken)
    }

    /// What a program may have mapped without touching it. If it is filled after all, half the reserve is still there;
    /// a budget may be exceeded by a quarter without harm.
    fn forgiven(&self) -> u64 {
        FORGIVEN_SLACK_BYTES.min(match self.bound {
            Bound::Budget => self.total / 4,
            Bound::Machine | Bound::Cgroup => self.reserve / 2,
        })
    }

    /// What a tree that saves or ends may borrow: part of the reserve, or a little more than the budget.
    fn lent(&self) -> i64 {
        let part = match self.bound {
            Bound::Budget => self.total / 32,
            Bound::Machine | Bound::Cgroup => self.reserve / 4,
        };
        if self.leaving { signed(part) } else { 0 }
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// One process to place a limit on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    pub state: WallState,
    /// The size of a request that waits for an answer; 0 when none does.
    pub wants: u64,
    /// It has a working cushion, which asks before a request fails.
    pub asks: bool,
    /// What it may take without asking, by its present limit; 0 while it waits for an answer.
    pub open: u64,
    /// Data mapped from files, mostly of libraries; almost none of it is ever written to. For a fork, only what it
    /// mapped itself.
    pub files: u64,
}

/// The result of [`plan`] besides the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// Head-room left for processes that did not ask.
    pub left: u64,
    /// What was granted lies within the present limits of other processes, which may have taken it since they were
    /// read. That is known only after they have the limits of this plan.
    pub contested: bool,
}

/// Computes the limit of each process: `limits[i]` for `candidates[i]`, None if the present limit needs no change.
pub fn plan(room: &WallRoom, candidates: &[Candidate], limits: &mut [Option<u64>]) -> Planned {
    limits.fill(None);
    if !room.wall {
        return Planned::default();
    }
    let shares = Shares::new(room, candidates);
    // Requests are answered in order, each from what the ones before left: one tick may answer many and must not
    // promise the same memory twice.
    let alone = candidates.iter().filter(|asker| asker.wants > 0).count() == 1;
    let mut left = shares.pool;
    for (limit, candidate) in limits.iter_mut().zip(candidates) {
        let Candidate { state, wants, .. } = candidate;
        let grant = wants.saturating_add(ALLOCATOR_SPARE_BYTES);
        if *wants > 0 && grant <= left {
            left -= grant;
            let share = if alone {
                grant.max(shares.head_room(candidate))
            } else {
                grant
            };
            *limit = Some(shares.limit(state, share));
        }
    }
    let untouched = left == shares.pool;
    let not_granted = limits
        .iter()
        .zip(candidates)
        .filter(|(limit, _)| limit.is_none());
    let (mut sharing, mut open) = (0u64, 0u64);
    for (_, other) in not_granted.filter(|(_, other)| other.asks) {
        sharing += 1;
        open = open.saturating_add(other.open);
    }
    let contested = !untouched && open > left;
    let of_left = left.checked_div(sharing).unwrap_or(0);
    for (limit, candidate) in limits.iter_mut().zip(candidates) {
        let state = &candidate.state;
        if limit.is_none() {
            let share = shares.head_room(candidate);
            let share = match (untouched, candidate.asks) {
                (true, _) => share,
                (false, true) => share.min(of_left),
                (false, false) => share.min(left),
            };
            let planned = shares.limit(state, share);
            // While memory is freed, mapped and used memory are not of the same time. A process that cannot ask keeps
            // the limit that it had at the last tick.
            let least = match state.limit() {
                Some(stands) if state.shrank() && !candidate.asks => stands,
                _ => 0,
            };
            *limit = match contested {
                true => Some(planned.max(least)),
                false => changed(state, planned.max(least)),
            };
        }
    }
    Planned {
        left: left.min(shares.head),
        contested,
    }
}

/// How the head-room is given out.
struct Shares {
    /// What the tree may take beyond what it has.
    head: u64,
    /// The same, including what it may take back up to its own peak.
    pool: u64,
    growth: u64,
    /// How many processes share the head-room because they can ask for more.
    asking: u64,
    idle: u64,
    /// The growth of two more ticks like the last would use up the pool.
    threatened: bool,
    /// What each process gets beyond its share.
    handed_out: u64,
}

impl Shares {
    fn new(room: &WallRoom, candidates: &[Candidate]) -> Shares {
        let sum = |value: fn(&WallState) -> u64| {
            candidates
                .iter()
                .fold(0u64, |sum, Candidate { state, .. }| {
                    sum.saturating_add(value(state))
                })
        };
        let forgiven = room.forgiven();
        let charged = candidates.iter().fold(0u64, |sum, candidate| {
            let known = candidate.files.saturating_add(forgiven / 2);
            let allowance = match candidate.state.is_forgiven() {
                true => known.max(forgiven),
                false => candidate.files,
            };
            let state = &candidate.state;
            let slack = state.recent_slack();
            let slack = slack.saturating_sub(state.reserved_lately());
            let slack = match room.bound {
                Bound::Budget => slack,
                Bound::Machine | Bound::Cgroup => slack.saturating_sub(state.zeroed_lately()),
            };
            sum.saturating_add(slack.saturating_sub(allowance))
        });
        let head = u64::try_from(room.left())
            .unwrap_or(0)
            .saturating_sub(charged);
        let pool = head.max(room.returning());
        let growth = sum(WallState::growth);
        Shares {
            head,
            pool,
            growth,
            asking: candidates.iter().filter(|candidate| candidate.asks).count() as u64,
            idle: sum(|state| u64::from(state.growth() == 0)),
            threatened: growth > 0 && growth.saturating_mul(2) >= pool,
            handed_out: room.still_handed_out(),
        }
    }

    fn limit(&self, state: &WallState, share: u64) -> u64 {
        limit_with(state, share.saturating_add(self.handed_out))
    }

    /// What one process may take without asking. Processes that ask share it: six that were each promised all of it
    /// could take it six times at once. Processes that cannot ask get all of it until their growth could use it up
    /// before the next tick: divided by their number, a main process among sixteen idle loaders would fail at a
    /// seventeenth.
    fn head_room(&self, candidate: &Candidate) -> u64 {
        let state = &candidate.state;
        let to_high_water = state.high_water().saturating_sub(state.vm_data());
        if candidate.asks && self.asking > 1 {
            let share = (self.head / self.asking)
                .max(MIN_SHARE_BYTES)
                .min(self.head);
            return share.max(to_high_water.min(self.pool));
        }
        if !self.threatened {
            return self.head.max(to_high_water.min(self.pool));
        }
        let for_idle = if self.idle > 0 {
            self.pool / IDLE_PART
        } else {
            0
        };
        if state.growth() == 0 {
            return for_idle.checked_div(self.idle).unwrap_or(0);
        }
        let for_growers = u128::from(self.pool - for_idle);
        let share = for_growers * u128::from(state.growth()) / u128::from(self.growth.max(1));
        u64::try_from(share).unwrap_or(self.pool)
    }
}

/// The limit that leaves a process no head-room, apart from what it was opened for.
pub fn closed(state: &WallState) -> u64 {
    limit_with(state, 0)
}

fn limit_with(state: &WallState, share: u64) -> u64 {
    let vm_data = state.vm_data();
    let wanted = vm_data.saturating_add(share);
    let opened = wanted.max(state.opened().unwrap_or(0));
    // The program's own limit applies as long as it does not go below what is mapped.
    opened.min(state.chosen().unwrap_or(u64::MAX)).max(vm_data)
}

/// The new limit, or None if the present one suffices.
fn changed(state: &WallState, limit: u64) -> Option<u64> {
    let Some(stands) = state.limit() else {
        return Some(limit);
    };
    let tighter = limit < stands - stands / 100;
    let will_do =
        stands.abs_diff(limit) <= MIN_LIMIT_CHANGE_BYTES && !tighter && stands >= state.vm_data();
    (!will_do).then_some(limit)
}
