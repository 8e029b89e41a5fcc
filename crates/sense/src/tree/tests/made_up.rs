//! A folder laid out like the /proc of a kernel that does not list children, where
//! numbers come back at will.

use super::*;
use std::fs;
use tempfile::TempDir;

struct MadeUp(TempDir);

impl MadeUp {
    fn new() -> MadeUp {
        MadeUp(TempDir::new().unwrap())
    }

    fn process(&self, pid: u32, parent: u32, started: u64) {
        let folder = self.0.path().join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let zeros = "0 ".repeat(15);
        let stat = format!("{pid} (made up) S {parent} {zeros}1 0 {started} 0 0 \n");
        fs::write(folder.join("stat"), stat).unwrap();
        let status = format!(
            "Name:\tmade up\nState:\tS (sleeping)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\n\
             VmData:\t100 kB\nRssAnon:\t50 kB\nVmSwap:\t0 kB\nThreads:\t1\n"
        );
        fs::write(folder.join("status"), status).unwrap();
    }

    fn end(&self, pid: u32) {
        fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
    }

    /// Without kept descriptors: those of a folder on disk would outlive their process.
    fn tree(&self) -> ProcessTree<()> {
        ProcessTree::open_at(self.0.path(), 16, 0).unwrap()
    }
}

fn followed(tree: &mut ProcessTree<()>, newest: Reading<u64>, times: u64) -> Vec<u32> {
    for now in 0..times {
        tree.update_members(newest, now);
    }
    numbers(tree).into_iter().map(|pid| pid.0).collect()
}

#[test]
fn one_scan_finds_the_tree_and_the_next_those_that_stand_before_their_parent() {
    let made_up = MadeUp::new();
    made_up.process(10, 1, 100);
    made_up.process(20, 10, 200);
    made_up.process(5, 20, 300);
    made_up.process(30, 1, 100);
    let mut tree = made_up.tree();
    tree.add_root(Pid(10), 0).unwrap();
    assert_eq!(followed(&mut tree, NO_NEWEST, 3), [5, 10, 20]);
}

#[test]
fn a_process_that_ended_leaves() {
    let made_up = MadeUp::new();
    made_up.process(10, 1, 100);
    made_up.process(20, 10, 200);
    let mut tree = made_up.tree();
    tree.add_root(Pid(10), 0).unwrap();
    assert_eq!(followed(&mut tree, NO_NEWEST, 2), [10, 20]);
    made_up.end(20);
    tree.read_processes(1, &mut Sample::default());
    assert_eq!(numbers(&tree), [Pid(10)]);
}

#[test]
fn a_number_that_came_back_to_a_stranger_leaves() {
    let made_up = MadeUp::new();
    made_up.process(10, 1, 100);
    made_up.process(20, 10, 200);
    let mut tree = made_up.tree();
    tree.add_root(Pid(10), 0).unwrap();
    assert_eq!(followed(&mut tree, NO_NEWEST, 2), [10, 20]);
    made_up.process(20, 1, 999);
    tree.read_processes(1, &mut Sample::default());
    assert_eq!(numbers(&tree), [Pid(10)]);
}

#[test]
fn a_number_that_came_back_to_the_tree_is_a_new_process() {
    let made_up = MadeUp::new();
    made_up.process(10, 1, 100);
    made_up.process(20, 10, 200);
    let mut tree = made_up.tree();
    tree.add_root(Pid(10), 0).unwrap();
    assert_eq!(followed(&mut tree, Reading::Value(19), 3), [10, 20]);
    made_up.process(20, 10, 999);
    tree.update_members(Reading::Value(20), 5);
    assert_eq!(tree.get(Pid(20)).unwrap().process.started, 999);
    assert_eq!(tree.get(Pid(20)).unwrap().first_seen, 5);
}

#[test]
fn whoever_got_the_number_of_a_dead_reaper_brings_nobody_in() {
    let made_up = MadeUp::new();
    made_up.process(7, 1, 70);
    made_up.process(10, 7, 100);
    let mut tree = made_up.tree();
    tree.add_root(Pid(10), 0).unwrap();
    tree.add_reaper(Pid(7)).unwrap();
    made_up.process(7, 1, 777);
    made_up.process(50, 7, 800);
    assert_eq!(followed(&mut tree, NO_NEWEST, 3), [10]);
}

#[test]
fn whoever_got_the_number_of_an_excluded_process_belongs_like_any_other() {
    let made_up = MadeUp::new();
    made_up.process(7, 1, 70);
    made_up.process(8, 7, 80);
    let mut tree = made_up.tree();
    tree.add_reaper(Pid(7)).unwrap();
    tree.exclude(Pid(8)).unwrap();
    assert_eq!(followed(&mut tree, NO_NEWEST, 2), [0u32; 0]);
    made_up.process(8, 7, 888);
    assert_eq!(followed(&mut tree, NO_NEWEST, 2), [8]);
}

#[test]
fn a_thread_is_no_process() {
    let made_up = MadeUp::new();
    made_up.process(10, 1, 100);
    made_up.process(20, 10, 200);
    let status = made_up.0.path().join("20/status");
    let of_a_thread = fs::read_to_string(&status)
        .unwrap()
        .replace("Tgid:\t20", "Tgid:\t15");
    fs::write(&status, of_a_thread).unwrap();
    let mut tree = made_up.tree();
    tree.add_root(Pid(10), 0).unwrap();
    assert_eq!(followed(&mut tree, NO_NEWEST, 2), [10]);
}
