//! What is printed around an error: before each of its lines, after it, and by others in between.

use crate::blames;
use crate::scenes::{GB, Scene};
use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::verdict::EndKind;
use antifreeze_diagnose::{Code, Run, Verdict};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

fn verdict(output: impl AsRef<[u8]>) -> Verdict {
    Run::from_output(output.as_ref().to_vec(), Log::default()).verdict
}

fn error(text: &str) -> String {
    format!(
        "Traceback (most recent call last):\n  File \"/w/train.py\", line 88, in <module>\n    main()\n{text}\n"
    )
}

/// The first cause, how sure it is, and its line.
#[track_caller]
fn first(output: &str) -> (Code, f64, Option<u32>) {
    let verdict = verdict(output);
    let cause = verdict.causes.first().unwrap_or_else(|| panic!("{output}"));
    let line = cause.location.as_ref().map(|location| location.line);
    (cause.code, cause.confidence, line)
}

#[test]
fn an_error_after_which_it_went_on_is_not_called_its_end() {
    let caught = error("ConnectionError: no route to host");
    let goes_on = "Epoch 1 loss 1.15\nEpoch 2 loss 0.77\n";
    let well = verdict(format!("{caught}{goes_on}Training complete. Model saved\n"));
    assert_eq!(well.end.kind, EndKind::Finished, "{well:#?}");
    assert!(well.causes.is_empty(), "{well:#?}");
    let unknown = verdict(format!("{caught}{goes_on}"));
    assert_eq!(unknown.end.kind, EndKind::Unknown);
    assert!(unknown.causes[0].confidence < 0.5, "{unknown:#?}");
    let mailed = format!("Epoch 1 loss 1.15\n{caught}All done, results in runs/7\n");
    assert!(first(&mailed).1 <= 0.5);
}

#[test]
fn what_comes_down_after_an_error_leaves_it_the_end() {
    for rest in [
        "  0%|          | 0/100 [00:01<?, ?it/s]\n",
        "wandb: Run summary:\nwandb: epoch 3\nwandb: train/loss 0.3\nwandb: step 40\nwandb: loss 2\nwandb: batch 8\n",
        "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: leaked semaphore objects\n  warnings.warn('x')\n",
        "Exception ignored in: <function f at 0x7f>\nTraceback (most recent call last):\n  File \"b.py\", line 2, in g\nAssertionError\n",
        "srun: error: node1: task 0: Exited with exit code 1\n",
        "W1116 12:00:00.1 12 api.py:897] Sending process 124 closing signal SIGTERM\n",
    ] {
        let (code, confidence, line) = first(&format!("{}{rest}", error("ValueError: bad shape")));
        assert_eq!((code, line), (Code::UserException, Some(88)), "{rest}");
        assert!(confidence >= 0.9, "{rest}");
    }
}

#[test]
fn an_exit_code_that_no_uncaught_error_has_is_a_doubt() {
    let output = error("ConnectionError: no route to host");
    let ended = |code: u32, output: &str| {
        let scene = Scene::new().steady(60, GB).ended(60, code << 8);
        scene.printed(output)
    };
    let verdict = ended(4, &output).verdict();
    assert!(verdict.causes[0].confidence <= 0.5, "{verdict:#?}");
    assert!(verdict.end.detail.contains("exit code 4"), "{verdict:#?}");
    blames(&ended(1, &output), Code::UserException, 0.9);
    // It went on three times, and said itself why it ended.
    let again = format!("{output}Epoch 1 loss 2.0\n").repeat(3);
    let scene = ended(4, &format!("{again}model is bad\n"));
    let verdict = scene.verdict();
    assert_eq!(verdict.end.kind, EndKind::Failed);
    assert!(
        verdict.causes[0].summary.contains("model is bad"),
        "{verdict:#?}"
    );
    assert!(verdict.causes[0].confidence < 0.5);
}

/// Something else before each line.
fn prefixed(text: &str, prefix: impl Fn(usize) -> String) -> String {
    let lines = text.lines().enumerate();
    lines
        .map(|(number, line)| format!("{}{line}\n", prefix(number)))
        .collect()
}

#[test]
fn what_stands_before_each_line_hides_nothing() {
    let prefixes: [fn(usize) -> String; 8] = [
        |second| format!("2024-05-01T10:00:{second:02}.007919Z "),
        |second| format!("2024-05-01T10:00:{second:02}.1Z stderr F "),
        |second| format!("2024-05-01 10:00:{second:02},123 - INFO - "),
        |second| format!("Nov 18 10:00:{second:02} host python[123]: "),
        |_| "trainer-1  | ".into(),
        |_| "[default1]:".into(),
        |second| format!("trainer-1  | 2024-05-01T10:00:{second:02}Z [rank0]: "),
        // Of no known shape.
        |number| format!(" {number:07} "),
    ];
    for prefix in prefixes {
        for (text, code) in [
            (
                "ModuleNotFoundError: No module named 'apex'",
                Code::MissingDependency,
            ),
            (
                "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
                Code::DeviceMismatch,
            ),
        ] {
            let output = prefixed(&format!("Epoch 1 loss 1.2\n{}", error(text)), prefix);
            let (found, _, line) = first(&output);
            assert_eq!((found, line), (code, Some(88)), "{output}");
        }
    }
    let bad = prefixed(
        "step 1 loss 2.0\nstep 2 loss nan\nstep 3 loss nan",
        |second| format!("2024-05-01T10:00:{second:02}Z "),
    );
    assert_eq!(first(&bad).0, Code::NumericNan);
    let killed = prefixed("step 1 loss 2.0\nKilled", |second| {
        format!("2024-05-01T10:00:{second:02}Z ")
    });
    assert_eq!(verdict(killed).end.kind, EndKind::Killed);
}

#[test]
fn ranks_that_fail_at_the_same_time_are_told_apart() {
    for names in [
        ["[rank0]: ", "[rank1]: "],
        ["0: ", "1: "],
        ["a-1  | ", "b-1  | "],
    ] {
        let lines = error("ModuleNotFoundError: No module named 'apex'");
        let output: String = lines
            .lines()
            .flat_map(|line| names.map(|name| format!("{name}{line}\n")))
            .collect();
        let (code, _, line) = first(&output);
        assert_eq!(
            (code, line),
            (Code::MissingDependency, Some(88)),
            "{output}"
        );
    }
}

#[test]
fn all_of_a_message_is_read() {
    let failed = "RuntimeError: Failed to import transformers.trainer because of the following error (look up to see its traceback):";
    for more in [
        "/opt/flash_attn_2_cuda.so: undefined symbol: _ZN3c10",
        "No module named 'flash_attn_2_cuda'",
    ] {
        let (code, ..) = first(&error(&format!("{failed}\n{more}")));
        assert_eq!(code, Code::MissingDependency, "{more}");
    }
    // What comes after it is no part of it.
    let (code, ..) = first(&error(
        "ValueError: bad\n\nNo module named x: undefined symbol",
    ));
    assert_eq!(code, Code::UserException);
}

const HANDLING: &str = "\nDuring handling of the above exception, another exception occurred:\n\n";
const CAUSE: &str = "\nThe above exception was the direct cause of the following exception:\n\n";

#[test]
fn both_ends_of_a_chain_are_looked_at() {
    let chance = error("AttributeError: 'NoneType' object has no attribute 'close'");
    let memory = verdict(format!("{}{HANDLING}{chance}", error("MemoryError")));
    assert!(memory.end.detail.contains("MemoryError"), "{memory:#?}");
    let mut said = memory.causes.iter().flat_map(|cause| &cause.evidence);
    assert!(
        said.any(|seen| seen.text.contains("AttributeError")),
        "{memory:#?}"
    );
    // Raised in its place.
    let raised = error("ValueError: no such option").replace("main()", "raise ValueError(name)");
    let option = verdict(format!("{}{HANDLING}{raised}", error("RuntimeError: x")));
    assert!(option.end.detail.contains("ValueError"), "{option:#?}");
    let module = error("ModuleNotFoundError: No module named 'flash_attn'");
    for link in [CAUSE, HANDLING] {
        let (code, ..) = first(&format!(
            "{module}{link}{}",
            error("RuntimeError: no model")
        ));
        assert_eq!(code, Code::MissingDependency, "{link}");
    }
    let exit = error("SystemExit: 130");
    let stopped = verdict(format!("{}{HANDLING}{exit}", error("KeyboardInterrupt")));
    assert_eq!(stopped.end.kind, EndKind::Killed, "{stopped:#?}");
    // It waits for a queue so.
    let waits = verdict(format!(
        "{}{HANDLING}{}",
        error("_queue.Empty"),
        error("KeyboardInterrupt")
    ));
    assert_eq!(waits.end.kind, EndKind::Killed);
    assert!(waits.causes[0].confidence >= 0.9, "{waits:#?}");
}

#[test]
fn who_interrupts_what_had_failed_is_not_why() {
    let worker = format!(
        "Process SpawnProcess-1:\n{}",
        error("ValueError: bad label 11")
    );
    let parent = format!("^C{}", error("KeyboardInterrupt"));
    let both = verdict(format!("{worker}{parent}"));
    assert_eq!(both.end.kind, EndKind::Killed);
    assert!(
        both.causes.iter().all(|cause| cause.confidence < 0.8),
        "{both:#?}"
    );
    assert!(both.causes[0].summary.contains("bad label 11"), "{both:#?}");
    assert_eq!(both.causes[1].code, Code::KilledExternally);
    let went_on = verdict(format!("{worker}Epoch 1 loss 2.0\n{parent}"));
    assert_eq!(went_on.causes[0].code, Code::KilledExternally);
}

#[test]
fn an_output_that_breaks_off_in_a_traceback_says_so() {
    let cut = verdict(
        "Traceback (most recent call last):\n  File \"/w/train.py\", line 88, in <module>\n    main()\n",
    );
    assert!(cut.causes[0].confidence < 0.5, "{cut:#?}");
    assert!(
        cut.causes[0]
            .summary
            .contains("in the middle of a traceback")
    );
    let killed = verdict(
        "Traceback (most recent call last):\n  File \"/w/train.py\", line 88, in <module>\nKilled\n",
    );
    assert_eq!(killed.end.kind, EndKind::Killed);
}

#[test]
fn a_log_that_ends_well_is_told_so() {
    for said in [
        "Done.",
        "Training complete, best acc 0.91",
        "`Trainer.fit` stopped: `max_epochs=6` reached.",
    ] {
        let well = verdict(format!("Epoch 1 loss 0.2\n{said}\n"));
        assert_eq!(well.end.kind, EndKind::Finished, "{said}");
        assert!(well.causes.is_empty());
    }
    for said in [
        "Training not complete",
        "Saved checkpoint 40",
        "training failed",
    ] {
        let open = verdict(format!("Epoch 1 loss 0.2\n{said}\n"));
        assert_eq!(open.end.kind, EndKind::Unknown, "{said}");
        let is_quiet = !said.contains("failed");
        assert_eq!(
            open.end.detail.contains("nothing in it looks wrong"),
            is_quiet
        );
    }
}

#[test]
fn two_bytes_for_each_letter_are_seen_without_their_mark() {
    let text = error("ModuleNotFoundError: No module named 'apex'").repeat(3);
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [&little[..], &big[..], &little[1..]] {
        assert_eq!(verdict(bytes).causes[0].code, Code::MissingDependency);
    }
}

/// What takes the square of it takes a minute here, and what takes one pass a second.
const MUCH: usize = 1 << 17;
const SOON: i64 = 20;

/// By the processor's time: how long the machine lets us wait is not ours.
#[track_caller]
fn is_soon_read(what: &str, output: Vec<u8>) {
    let seconds = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
    let begin = seconds();
    let _ = verdict(output);
    assert!(seconds() - begin < SOON, "{what}");
}

#[test]
fn whatever_is_repeated_is_read_in_one_pass() {
    let heading = "Traceback (most recent call last):";
    for piece in [
        "loss",
        "grad_norm",
        "losses ",
        "loss=",
        "allocat",
        "epoch",
        "it/s",
        "\n",
        "a\n",
        "\r",
        "\u{8}",
        "\u{1b}[",
        "Killed\n",
        "File \"",
        "\", line 1",
        "Exception ignored in: x\n",
        "nan,",
        "loss|",
        "0: ",
        "[rank0]: ",
    ] {
        let run = piece.repeat(MUCH / piece.len());
        is_soon_read(piece, run.clone().into_bytes());
        is_soon_read(piece, format!("{heading}\n{run}").into_bytes());
        is_soon_read(piece, format!("{heading}\nMemoryError: {run}").into_bytes());
    }
    let headings = |prefix: fn(usize) -> String| -> String {
        (0..MUCH / 48)
            .map(|number| format!("{}{heading}\n", prefix(number)))
            .collect()
    };
    let numbered = headings(|number| format!(" {number:07} "));
    is_soon_read(
        "numbered",
        format!("{numbered}ChildFailedError: x\n").into_bytes(),
    );
    let ranks = headings(|number| format!("[rank{number}]: "));
    is_soon_read(
        "ranks",
        format!("{ranks}ChildFailedError: x\n").into_bytes(),
    );
    let plain = headings(|_| String::new());
    is_soon_read(
        "ignored",
        format!("Exception ignored in: x\n{plain}").into_bytes(),
    );
    let link = format!("{heading}\nKeyError: 1\n{HANDLING}");
    is_soon_read("chain", link.repeat(MUCH / link.len()).into_bytes());
}

proptest! {
    /// What the readers know, in any order, cut anywhere.
    #[test]
    fn any_mix_of_known_lines_is_read(
        pieces in prop::collection::vec(0..PIECES.len(), 0..40),
        cut in 0usize..2000,
    ) {
        let output: Vec<u8> = pieces.iter().flat_map(|piece| PIECES[*piece].bytes()).collect();
        let output = output.get(cut..).unwrap_or(&output);
        for cause in verdict(output).causes {
            prop_assert!((0.0..=1.0).contains(&cause.confidence));
            prop_assert!(!cause.summary.contains(char::is_control), "{}", cause.summary);
        }
    }
}

const PIECES: [&str; 24] = [
    "Traceback (most recent call last):\n",
    "ValueError    Traceback (most recent call last)\n",
    "╭── Traceback (most recent call last) ──╮\n",
    "╰──╯\n",
    "  File \"/w/a.py\", line 3, in f\n",
    "    raise ValueError(\"é\")\n",
    "ValueError: é bad\n",
    "KeyboardInterrupt\n",
    "MemoryError: allocate 3 GiB\n",
    HANDLING,
    CAUSE,
    "[rank0]: ",
    "[rank1]: ",
    "0: ",
    "web-1  | ",
    "2024-05-01T10:00:01.007919Z ",
    "Nov 18 10:00:01 host python[123]: ",
    "Exception ignored in: x\n",
    "Epoch 1 loss nan\n",
    "10%\r20%\u{8}\u{8}\n",
    "Killed\n",
    "Done.\n",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
    "\u{1b}[31m\n",
];
