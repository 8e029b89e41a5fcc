//! The arguments of the guard: one of `name=value` words, then the folder of the run, then the command.

use std::fmt::Write as _;
use std::os::fd::RawFd;

/// The interval timers of setitimer(2), real, virtual and profiling, each with the time left and the interval in
/// microseconds; 0 where a timer is not set.
pub type Timers = [[u64; 2]; 3];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardArgs {
    /// The page that the tree sees as well, the state of the run, and the eventfd that wakes the front.
    pub page: RawFd,
    pub state: RawFd,
    pub wake: RawFd,
    /// A pipe that closes when the front ends.
    pub front_lives: RawFd,
    /// Where the output of the trainer is read from, and where it goes, in case the front dies. -1 if there is no such
    /// stream.
    pub read: [RawFd; 2],
    pub pass: [RawFd; 2],
    /// The pipes of the relays, which show how far a relay had come when it died ([`crate::relay`]).
    pub intake_read: [RawFd; 2],
    pub intake_write: [RawFd; 2],
    pub outlet_read: [RawFd; 2],
    pub outlet_write: [RawFd; 2],
    /// The standard output and error of the trainer; -1 for its own.
    pub give: [RawFd; 2],
    /// The PID of a trainer that is already running, for a guard that replaces a dead one.
    pub adopt: u32,
    /// The PID of a process to attach to; 0 if we start the command.
    pub attach: u32,
    /// Its start time in clock ticks since boot, so that another process with the same PID is left alone.
    pub attach_started: u64,
    pub reserve: u64,
    /// 0: none.
    pub budget: u64,
    pub allow_swap: u64,
    pub wall: bool,
    /// 0: none.
    pub checkpoint_signal: u32,
    /// Added to the trainer's nice value.
    pub nice: i32,
    /// One bit for each standard stream that is closed for the trainer.
    pub closed_streams: u32,
    /// 1 if the trainer is started with SIGPIPE ignored.
    pub ignore_sigpipe: u32,
    /// The signals that are blocked when the trainer starts, as a kernel signal set. The guard itself is started with
    /// all signals blocked, so that none ends it before it ignores them.
    pub signal_mask: u64,
    /// The timers of the caller, which the trainer inherits.
    pub timers: Timers,
    pub pause_deadline_s: u64,
    pub stop_deadline_s: u64,
    /// The preload library; empty if there is none.
    pub preload: String,
    pub run_id: String,
}

macro_rules! numbers {
    ($self:ident, $f:ident) => {
        $f!(page);
        $f!(state);
        $f!(wake);
        $f!(front_lives);
        $f!(adopt);
        $f!(attach);
        $f!(attach_started);
        $f!(reserve);
        $f!(budget);
        $f!(allow_swap);
        $f!(checkpoint_signal);
        $f!(nice);
        $f!(closed_streams);
        $f!(ignore_sigpipe);
        $f!(signal_mask);
        $f!(pause_deadline_s);
        $f!(stop_deadline_s);
    };
}

impl GuardArgs {
    /// Descriptors that the front hands over for the lifetime of the guard; -1 for a missing one.
    pub fn kept_descriptors(&self) -> impl Iterator<Item = RawFd> {
        let pairs = [
            self.read,
            self.pass,
            self.intake_read,
            self.intake_write,
            self.outlet_read,
            self.outlet_write,
        ];
        [self.page, self.state, self.wake, self.front_lives]
            .into_iter()
            .chain(pairs.into_iter().flatten())
    }

    pub fn to_argument(&self) -> String {
        let mut text = String::new();
        macro_rules! put {
            ($name:ident) => {
                let _ = write!(text, "{}={} ", stringify!($name), self.$name);
            };
        }
        numbers!(self, put);
        for (name, pair) in [
            ("read", self.read),
            ("pass", self.pass),
            ("intake_read", self.intake_read),
            ("intake_write", self.intake_write),
            ("outlet_read", self.outlet_read),
            ("outlet_write", self.outlet_write),
            ("give", self.give),
        ] {
            let _ = write!(text, "{name}={},{} ", pair[0], pair[1]);
        }
        let [real, virtual_, profiling] =
            self.timers.map(|[left, every]| format!("{left},{every}"));
        let _ = write!(text, "timers={real},{virtual_},{profiling} ");
        let _ = write!(text, "wall={} ", self.wall);
        let _ = write!(text, "run_id={} ", self.run_id);
        // The last word, up to the end: a path may hold spaces.
        let _ = write!(text, "preload={}", self.preload);
        text
    }

    /// None if the argument was not written by `to_argument`.
    pub fn parse(argument: &str) -> Option<GuardArgs> {
        let (words, preload) = argument.split_once("preload=")?;
        let mut args = GuardArgs {
            preload: preload.to_owned(),
            ..GuardArgs::default()
        };
        for word in words.split_ascii_whitespace() {
            let (name, value) = word.split_once('=')?;
            macro_rules! take {
                ($field:ident) => {
                    if name == stringify!($field) {
                        args.$field = value.parse().ok()?;
                    }
                };
            }
            numbers!(args, take);
            take!(wall);
            take!(run_id);
            if name == "timers" {
                let mut numbers = value.split(',').map(str::parse);
                for number in args.timers.as_flattened_mut() {
                    *number = numbers.next()?.ok()?;
                }
            }
            let pair = match name {
                "read" => &mut args.read,
                "pass" => &mut args.pass,
                "intake_read" => &mut args.intake_read,
                "intake_write" => &mut args.intake_write,
                "outlet_read" => &mut args.outlet_read,
                "outlet_write" => &mut args.outlet_write,
                "give" => &mut args.give,
                _ => continue,
            };
            let (first, second) = value.split_once(',')?;
            *pair = [first.parse().ok()?, second.parse().ok()?];
        }
        Some(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_command_line() {
        let args = GuardArgs {
            page: 5,
            state: 12,
            wake: 6,
            front_lives: 11,
            read: [7, -1],
            pass: [8, -1],
            intake_read: [12, -1],
            intake_write: [13, -1],
            outlet_read: [14, -1],
            outlet_write: [15, -1],
            give: [9, 10],
            adopt: 4321,
            attach: 4322,
            attach_started: 987_654_321,
            reserve: 1 << 40,
            budget: 0,
            allow_swap: 17,
            wall: true,
            checkpoint_signal: 10,
            nice: 10,
            closed_streams: 5,
            ignore_sigpipe: 1,
            signal_mask: 1 << 63 | 1 << 14,
            timers: [[1, 2], [3, 0], [0, 4]],
            pause_deadline_s: 60,
            stop_deadline_s: 10,
            preload: "/a folder/with preload= in it/cushion.so".to_owned(),
            run_id: "20260102-0304-ab".to_owned(),
        };
        assert_eq!(GuardArgs::parse(&args.to_argument()), Some(args));
    }

    #[test]
    fn a_strange_argument_is_refused() {
        assert_eq!(GuardArgs::parse(""), None);
        assert_eq!(GuardArgs::parse("page=x preload="), None);
        assert_eq!(GuardArgs::parse("read=1 preload="), None);
    }
}
