//! What the script, its libraries or somebody else did.

use crate::scenes::{EXIT_1, GB, Scene};
use crate::{blames, is_healthy, spares};
use antifreeze_diagnose::Code;
use antifreeze_diagnose::run::stacks::Stacks;
use antifreeze_sense::{Reading, Sample};

fn failed(error: &str) -> Scene {
    let printed = format!(
        "epoch 1\nTraceback (most recent call last):\n  File \"train.py\", line 3, in step\n    x\n{error}\n"
    );
    Scene::new()
        .steady(60, GB)
        .printed(&printed)
        .ended(60, EXIT_1)
}

#[test]
fn an_error_of_the_script_is_told_with_its_line() {
    let scene = failed("ValueError: bad shape");
    blames(&scene, Code::UserException, 0.85);
    let location = scene.verdict().causes[0].location.clone().unwrap();
    assert_eq!((location.file.as_str(), location.line), ("train.py", 3));
    // Caught, it is nobody's business.
    let printed =
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\nValueError: x\n";
    is_healthy(&Scene::new().steady(60, GB).printed(printed).ended(60, 0));
}

#[test]
fn what_was_said_last_is_told_where_nothing_else_is() {
    let printed = |text: &str, status| Scene::new().steady(60, GB).printed(text).ended(60, status);
    let scene = printed("epoch 1\nno config file\n", EXIT_1);
    blames(&scene, Code::UserException, 0.4);
    let cause = &scene.verdict().causes[0];
    assert!(
        cause.summary.ends_with("no config file") && cause.confidence < 0.5,
        "{cause:#?}"
    );
    is_healthy(&printed("no config file\n", 0));
    assert!(printed("", EXIT_1).verdict().causes.is_empty());
    blames(&printed("", 127 << 8), Code::MissingDependency, 0.7);
}

#[test]
fn a_shell_that_started_it_tells_how_it_was_ended() {
    let told = |word: &str| {
        let printed = format!("run.sh: line 1:  4242 {word}                  python3 train.py\n");
        Scene::new()
            .steady(60, GB)
            .printed(&printed)
            .ended(60, EXIT_1)
    };
    blames(&told("Killed"), Code::KilledExternally, 0.55);
    blames(&told("Segmentation fault"), Code::NativeCrash, 0.65);
    // It went on from that, and ended well.
    let well = Scene::new().steady(60, GB).printed("Killed\n").ended(60, 0);
    is_healthy(&well);
}

#[test]
fn who_interrupted_it_is_told_whatever_its_status() {
    let scene = failed("KeyboardInterrupt");
    blames(&scene, Code::KilledExternally, 0.85);
    spares(&scene, Code::UserException);
}

#[test]
fn what_is_not_installed_is_named_with_how_to_get_it() {
    let remedy = |error: &str| {
        let scene = failed(error);
        blames(&scene, Code::MissingDependency, 0.7);
        let remedy = scene.verdict().causes[0].remedies[0].clone();
        (remedy.text, remedy.code.unwrap())
    };
    let (_, paste) = remedy("ModuleNotFoundError: No module named 'cv2'");
    assert_eq!(paste, "python -m pip install opencv-python");
    // One's own, by its name or by where the script is; a part of another version; a file that hides it.
    for (error, word, paste) in [
        (
            "ModuleNotFoundError: No module named 'utils'",
            "project",
            "PYTHONPATH",
        ),
        (
            "ModuleNotFoundError: No module named 'train.losses'",
            "project",
            "PYTHONPATH",
        ),
        (
            "ModuleNotFoundError: No module named 'torch._six'",
            "another version",
            "pip show torch",
        ),
        (
            "ModuleNotFoundError: No module named 'torch.nn'; 'torch' is not a package",
            "`torch.py` hides the package",
            "import torch",
        ),
    ] {
        let (text, code) = remedy(error);
        assert!(text.contains(word) && code.contains(paste), "{text} {code}");
        assert!(!code.contains("install"), "{code}");
    }
    blames(
        &failed("ImportError: cannot import name 'Trainer' from 'model' (/home/u/proj/model.py)"),
        Code::UserException,
        0.85,
    );
    let library =
        "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory";
    blames(&failed(library), Code::MissingDependency, 0.85);
    blames(
        &failed("FileNotFoundError: No such file: 'data.npy'"),
        Code::UserException,
        0.85,
    );
}

#[test]
fn tensors_on_two_devices_are_told() {
    let error = "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!";
    blames(&failed(error), Code::DeviceMismatch, 0.9);
    blames(
        &failed("RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
        Code::UserException,
        0.85,
    );
}

#[test]
fn a_rank_that_failed_is_told() {
    let time_out = "[rank0]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)";
    let scene = Scene::new()
        .steady(60, GB)
        .printed(time_out)
        .ended(60, EXIT_1);
    blames(&scene, Code::DistributedFailure, 0.8);
    let fine = Scene::new()
        .steady(60, GB)
        .printed("Connection reset by peer, trying again\n")
        .ended(60, 0);
    is_healthy(&fine);
}

#[test]
fn a_crash_is_told_with_pythons_own_words() {
    const SEGMENTATION_FAULT: u32 = 11;
    let crash = |printed| {
        Scene::new()
            .steady(60, GB)
            .printed(printed)
            .ended(60, SEGMENTATION_FAULT)
    };
    blames(&crash(""), Code::NativeCrash, 0.65);
    blames(
        &crash("Fatal Python error: Segmentation fault\n"),
        Code::NativeCrash,
        0.8,
    );
    let mut shown = crash("");
    let dump = b"Fatal Python error: Segmentation fault

Current thread 0x1 (most recent call first):
  File \"/usr/lib/python3/dist-packages/somenet/ops.py\", line 3 in multiply
  File \"train.py\", line 12 in step
";
    shown.facts.stacks = Stacks::parse(7, dump);
    blames(&shown, Code::NativeCrash, 0.9);
    let cause = &shown.verdict().causes[0];
    let location = cause.location.as_ref().unwrap();
    assert_eq!((location.file.as_str(), location.line), ("train.py", 12));
    assert_eq!(cause.remedies[0].text, "update or reinstall somenet");
    is_healthy(
        &Scene::new()
            .steady(60, GB)
            .printed("Fatal Python error: no\n")
            .ended(60, 0),
    );
}

#[test]
fn a_kill_from_outside_is_told_and_a_cluster_named() {
    let killed = |printed| Scene::new().steady(60, GB).printed(printed).ended(60, 9);
    blames(&killed(""), Code::KilledExternally, 0.8);
    let slurm = "slurmstepd: error: *** STEP 7.0 CANCELLED AT 2026-11-16 DUE TO TIME LIMIT ***\n";
    blames(&killed(slurm), Code::KilledExternally, 0.9);
    // The kernel's own kill is not somebody's.
    let counted = |sample: &mut Sample| sample.paging.oom_kills = Reading::Value(4);
    spares(
        &Scene::new().steady(60, GB).last(counted).ended(60, 9),
        Code::KilledExternally,
    );
}

#[test]
fn a_signal_that_is_sent_for_one_reason_is_told_with_it() {
    for (number, why, paste) in [
        (1, "its terminal was closed", "nohup "),
        (24, "CPU time limit", "ulimit -S -t"),
        (25, "exceeded the size limit", "ulimit -S -f"),
    ] {
        let scene = Scene::new().steady(60, GB).ended(60, number);
        blames(&scene, Code::KilledExternally, 0.9);
        let cause = &scene.verdict().causes[0];
        assert!(cause.summary.contains(why), "{cause:#?}");
        let offered = cause.remedies[0].code.as_deref().unwrap();
        assert!(offered.contains(paste), "{cause:#?}");
    }
    let terminated = Scene::new().steady(60, GB).ended(60, 15);
    assert!(terminated.verdict().causes[0].remedies.is_empty());
}

#[test]
fn a_full_disk_is_told_where_it_is_seen_or_said() {
    let full = |sample: &mut Sample| sample.disk.space.free = Reading::Value(0);
    let error = "OSError: [Errno 28] No space left on device";
    blames(&failed(error).last(full), Code::DiskFull, 0.85);
    blames(&failed(error), Code::DiskFull, 0.75);
    spares(
        &failed("OSError: [Errno 13] Permission denied"),
        Code::DiskFull,
    );
}

#[test]
fn two_percent_of_a_large_disk_are_no_reason_to_fail() {
    let left = |error: &str, bytes: u64| {
        failed(error).last(move |sample| {
            sample.disk.space.total = Reading::Value(252 * GB);
            sample.disk.space.free = Reading::Value(bytes);
        })
    };
    let unrelated = "KeyError: 'label'";
    let write = "OSError: Unable to create file (unable to truncate a file)";
    spares(&left(unrelated, 4_900_000_000), Code::DiskFull);
    blames(&left(write, 4_900_000_000), Code::DiskFull, 0.8);
    let verdict = left(unrelated, 900_000_000).verdict();
    assert!(
        verdict
            .causes
            .iter()
            .any(|cause| cause.code == Code::DiskFull)
    );
}

/// It was looked at seconds before the end, and a checkpoint fills a small disk in less.
#[test]
fn a_file_that_ends_before_its_writing_does_tells_of_a_disk_on_which_little_was_left() {
    let error =
        "RuntimeError: [enforce fail at inline_container.cc:671] . unexpected pos 832 vs 726";
    for error in [error, "RuntimeError: basic_ios::clear: iostream error"] {
        let left = |bytes: u64| {
            failed(error).last(move |sample| sample.disk.space.free = Reading::Value(bytes))
        };
        blames(&left(200_000_000), Code::DiskFull, 0.75);
        spares(&left(100 * GB), Code::DiskFull);
    }
}
