use super::*;
use proptest::prelude::*;

const MB: u64 = 1 << 20;

fn process(pid: u32, parent: u32, anon_mb: u64) -> Process {
    Process {
        pid: Pid(pid),
        parent: Pid(parent),
        started: u64::from(pid),
        state: b'S',
        rss_anon: Reading::Value(anon_mb * MB),
        rss_shmem: Reading::Value(0),
        swap: Reading::Value(0),
        threads: Reading::Value(1),
        ..Process::default()
    }
}

fn share(process: &Process, pss_mb: u64) -> ProcessShare {
    ProcessShare {
        pid: process.pid,
        started: process.started,
        held: process.rss_anon.value().unwrap(),
        pss: Pss {
            anon: pss_mb * MB,
            ..Pss::default()
        },
    }
}

/// The footprint in MB after each look.
fn seen(footprint: &mut Footprint, tree: &[Process]) -> u64 {
    let mut sample = Sample::default();
    footprint.update(tree.iter(), &mut sample);
    sample.tree.footprint.value().unwrap() / MB
}

#[test]
fn one_process_counts_what_it_holds_in_memory_and_swap() {
    let mut footprint = Footprint::new(8);
    let mut root = process(1, 0, 100);
    root.swap = Reading::Value(20 * MB);
    assert_eq!(seen(&mut footprint, &[root]), 120);
}

#[test]
fn memory_shared_by_five_forks_is_counted_once() {
    let mut footprint = Footprint::new(8);
    seen(&mut footprint, &[process(1, 0, 300)]);
    let tree: Vec<_> = [process(1, 0, 300)]
        .into_iter()
        .chain((2..6).map(|pid| process(pid, 1, 300)))
        .collect();
    assert_eq!(seen(&mut footprint, &tree), 300);
}

#[test]
fn what_a_forked_child_grows_counts_and_goes_with_it() {
    let mut footprint = Footprint::new(8);
    seen(&mut footprint, &[process(1, 0, 300)]);
    seen(&mut footprint, &[process(1, 0, 300), process(2, 1, 300)]);
    assert_eq!(
        seen(&mut footprint, &[process(1, 0, 300), process(2, 1, 350)]),
        350
    );
    assert_eq!(seen(&mut footprint, &[process(1, 0, 300)]), 300);
}

#[test]
fn memory_in_common_stays_when_the_parent_ends() {
    let mut footprint = Footprint::new(8);
    seen(&mut footprint, &[process(1, 0, 300)]);
    seen(
        &mut footprint,
        &[process(1, 0, 300), process(2, 1, 300), process(3, 1, 300)],
    );
    assert_eq!(
        seen(&mut footprint, &[process(2, 9, 300), process(3, 9, 300)]),
        300
    );
}

#[test]
fn a_grandchild_listed_before_its_parent_shares_all_the_same() {
    let mut footprint = Footprint::new(8);
    seen(&mut footprint, &[process(1, 0, 300)]);
    let tree = [process(3, 2, 300), process(2, 1, 300), process(1, 0, 300)];
    assert_eq!(seen(&mut footprint, &tree), 300);
}

#[test]
fn a_child_that_became_another_program_counts_what_it_then_has() {
    let mut footprint = Footprint::new(8);
    seen(&mut footprint, &[process(1, 0, 300)]);
    seen(&mut footprint, &[process(1, 0, 300), process(2, 1, 300)]);
    seen(&mut footprint, &[process(1, 0, 300), process(2, 1, 2)]);
    assert_eq!(
        seen(&mut footprint, &[process(1, 0, 300), process(2, 1, 80)]),
        380
    );
}

#[test]
fn a_child_first_seen_after_its_exec_counts_in_full() {
    let mut footprint = Footprint::new(8);
    seen(&mut footprint, &[process(1, 0, 300)]);
    assert_eq!(
        seen(&mut footprint, &[process(1, 0, 300), process(2, 1, 40)]),
        340
    );
}

#[test]
fn a_number_that_comes_back_is_another_process() {
    let mut footprint = Footprint::new(8);
    seen(&mut footprint, &[process(1, 0, 300), process(2, 1, 40)]);
    let mut other = process(2, 1, 90);
    other.started = 77;
    assert_eq!(seen(&mut footprint, &[process(1, 0, 300), other]), 390);
}

#[test]
fn a_correction_counts_copies_that_no_counter_showed() {
    let mut footprint = Footprint::new(8);
    let tree = [process(1, 0, 300), process(2, 1, 300)];
    seen(&mut footprint, &tree[..1]);
    assert_eq!(seen(&mut footprint, &tree), 300);
    // The child wrote to 200 of the 300 MB: 100 are still in common.
    footprint.apply_exact_shares(&[share(&tree[0], 250), share(&tree[1], 250)]);
    assert_eq!(seen(&mut footprint, &tree), 500);
}

#[test]
fn growth_since_a_correction_was_taken_is_kept() {
    let mut footprint = Footprint::new(8);
    let then = process(1, 0, 300);
    seen(&mut footprint, &[then]);
    seen(&mut footprint, &[process(1, 0, 340)]);
    footprint.apply_exact_shares(&[share(&then, 300)]);
    assert_eq!(seen(&mut footprint, &[process(1, 0, 340)]), 340);
}

#[test]
fn a_correction_that_names_a_process_ended_since_keeps_what_was_in_common() {
    let mut footprint = Footprint::new(8);
    let tree = [process(1, 0, 300), process(2, 1, 300)];
    seen(&mut footprint, &tree);
    seen(&mut footprint, &tree[..1]);
    footprint.apply_exact_shares(&[share(&tree[0], 150), share(&tree[1], 150)]);
    assert_eq!(seen(&mut footprint, &tree[..1]), 300);
}

#[test]
fn a_child_born_after_the_correction_was_taken_is_not_counted_twice() {
    let mut footprint = Footprint::new(8);
    let tree = [process(1, 0, 300), process(2, 1, 300)];
    seen(&mut footprint, &tree[..1]);
    seen(&mut footprint, &tree);
    footprint.apply_exact_shares(&[share(&tree[0], 300)]);
    assert_eq!(seen(&mut footprint, &tree), 300);
}

#[test]
fn a_zombie_holds_nothing() {
    let mut footprint = Footprint::new(8);
    let mut zombie = process(2, 1, 300);
    zombie.state = b'Z';
    assert_eq!(seen(&mut footprint, &[process(1, 0, 10), zombie]), 10);
}

#[test]
fn shared_memory_is_the_largest_mapping_until_the_exact_value_comes() {
    let mut footprint = Footprint::new(8);
    let mapping = |pid, mb| Process {
        rss_shmem: Reading::Value(mb * MB),
        ..process(pid, 0, 0)
    };
    let tree = [mapping(1, 40), mapping(2, 30)];
    let mut sample = Sample::default();
    footprint.update(tree.iter(), &mut sample);
    assert_eq!(sample.tree.shmem, Reading::Value(40 * MB));

    let exact = |process: &Process, mb| ProcessShare {
        pss: Pss {
            shmem: mb * MB,
            ..Pss::default()
        },
        ..share(process, 0)
    };
    footprint.apply_exact_shares(&[exact(&tree[0], 30), exact(&tree[1], 20)]);
    footprint.update([mapping(1, 45), mapping(2, 30)].iter(), &mut sample);
    assert_eq!(sample.tree.shmem, Reading::Value(55 * MB));
    assert_eq!(sample.tree.footprint, Reading::Value(55 * MB));
}

#[test]
fn the_own_cgroup_wins() {
    let mut footprint = Footprint::new(8);
    let mut sample = Sample::default();
    sample.cgroup.own_anon = Reading::Value(7 * MB);
    sample.cgroup.own_shmem = Reading::Value(2 * MB);
    sample.cgroup.own_swap = Reading::Value(MB);
    sample.tree.swap = Reading::Value(0);
    footprint.update([process(1, 0, 300)].iter(), &mut sample);
    assert_eq!(sample.tree.footprint, Reading::Value(10 * MB));
    assert_eq!(sample.tree.shmem, Reading::Value(2 * MB));
    assert_eq!(sample.tree.swap, Reading::Value(MB), "of shared memory");
}

#[test]
fn a_kernel_that_does_not_tell_gives_a_reason_and_not_zero() {
    let mut footprint = Footprint::new(8);
    let mut sample = Sample::default();
    let mut mute = process(1, 0, 0);
    mute.rss_anon = Reading::Unavailable(Reason::Absent);
    footprint.update([mute].iter(), &mut sample);
    assert_eq!(sample.tree.footprint, Reading::Unavailable(Reason::Absent));
}

/// The truth: which pages each process maps. A page divides evenly among up to ten.
const PAGE: u64 = 2520;

#[derive(Clone, Debug)]
enum Act {
    Touch(usize, u8),
    Fork(usize),
    /// Writes to pages it has in common and gets copies.
    Write(usize, u8),
    Exec(usize),
    Exit(usize),
    Correct,
}

#[derive(Default)]
struct Pages {
    next_page: u64,
    next_pid: u32,
    /// Number, parent, pages.
    living: Vec<(u32, u32, std::collections::BTreeSet<u64>)>,
    copied: u64,
}

impl Pages {
    fn apply(&mut self, act: &Act) {
        let count = self.living.len();
        match *act {
            Act::Touch(who, pages) if count > 0 => {
                for _ in 0..pages {
                    self.next_page += 1;
                    self.living[who % count].2.insert(self.next_page);
                }
            }
            Act::Fork(who) if count > 0 && count < 9 => {
                let (parent, _, pages) = self.living[who % count].clone();
                self.next_pid += 1;
                self.living.push((self.next_pid, parent, pages));
            }
            Act::Write(who, pages) if count > 0 => {
                let who = who % count;
                let mapped = self.living[who].2.iter().copied();
                let shared: Vec<_> = mapped
                    .filter(|&page| self.holders(page) > 1)
                    .take(usize::from(pages))
                    .collect();
                for page in shared {
                    self.living[who].2.remove(&page);
                    self.next_page += 1;
                    self.living[who].2.insert(self.next_page);
                    self.copied += 1;
                }
            }
            Act::Exec(who) if count > 0 => self.living[who % count].2.clear(),
            Act::Exit(who) if count > 1 => {
                self.living.remove(who % count);
            }
            _ => {}
        }
    }

    fn holders(&self, page: u64) -> usize {
        let holding = self
            .living
            .iter()
            .filter(|(_, _, pages)| pages.contains(&page));
        holding.count()
    }

    fn truth(&self) -> u64 {
        let all: std::collections::BTreeSet<_> =
            self.living.iter().flat_map(|(_, _, pages)| pages).collect();
        all.len() as u64 * PAGE
    }

    fn processes(&self) -> Vec<Process> {
        self.living
            .iter()
            .map(|(pid, parent, pages)| Process {
                rss_anon: Reading::Value(pages.len() as u64 * PAGE),
                ..process(*pid, *parent, 0)
            })
            .collect()
    }

    fn shares(&self) -> Vec<ProcessShare> {
        let living = self.living.iter().zip(self.processes());
        living
            .map(|((_, _, pages), process)| {
                let parts = pages.iter().map(|&page| PAGE / self.holders(page) as u64);
                ProcessShare {
                    pss: Pss {
                        anon: parts.sum(),
                        ..Pss::default()
                    },
                    ..share(&process, 0)
                }
            })
            .collect()
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (any::<usize>(), 0u8..40).prop_map(|(who, pages)| Act::Touch(who, pages)),
        3 => any::<usize>().prop_map(Act::Fork),
        2 => (any::<usize>(), 0u8..40).prop_map(|(who, pages)| Act::Write(who, pages)),
        1 => any::<usize>().prop_map(Act::Exec),
        2 => any::<usize>().prop_map(Act::Exit),
        1 => Just(Act::Correct),
    ];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_estimate_keeps_its_promises_against_the_true_pages(acts in acts()) {
        let mut pages = Pages { next_pid: 1, ..Pages::default() };
        pages.living.push((1, 0, Default::default()));
        let mut footprint = Footprint::new(16);
        for act in &acts {
            pages.apply(act);
            let tree = pages.processes();
            let mut sample = Sample::default();
            footprint.update(tree.iter(), &mut sample);
            if let Act::Correct = act {
                footprint.apply_exact_shares(&pages.shares());
                pages.copied = 0;
                footprint.update(tree.iter(), &mut sample);
                prop_assert_eq!(sample.tree.footprint, Reading::Value(pages.truth()));
            }
            let estimate = sample.tree.footprint.value().unwrap();
            let held = || tree.iter().filter_map(|process| process.rss_anon.value());
            prop_assert!(estimate >= held().max().unwrap_or(0));
            prop_assert!(estimate <= held().sum());
            // Only copies made behind our back are missed.
            prop_assert!(estimate + pages.copied * PAGE >= pages.truth());
        }
    }
}
