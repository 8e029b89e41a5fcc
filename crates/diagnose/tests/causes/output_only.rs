//! A log and nothing else, in the forms in which people have them.

use antifreeze_diagnose::kernel::{Log, incidents};
use antifreeze_diagnose::verdict::EndKind;
use antifreeze_diagnose::{Code, Run, Verdict};

fn verdict(output: &[u8]) -> Verdict {
    Run::from_output(output.to_vec(), Log::default()).verdict
}

/// What comes first, or nothing.
#[track_caller]
fn tells(output: &str, code: Option<Code>) -> Verdict {
    let verdict = verdict(output.as_bytes());
    let first = verdict.causes.first().map(|cause| cause.code);
    assert_eq!(first, code, "{output}\n{:#?}", verdict.causes);
    verdict
}

fn error(text: &str) -> String {
    format!(
        "epoch 1 loss 0.7\nTraceback (most recent call last):\n  File \"/w/train.py\", line 88, in <module>\n    loss.backward()\n{text}\n"
    )
}

/// Enough to show that it went on.
fn goes_on() -> String {
    (1..40)
        .map(|epoch| {
            format!(
                "Epoch {epoch}: train_loss={:.4} val_loss={:.4}\n",
                2.0 / f64::from(epoch),
                2.1
            )
        })
        .collect()
}

const LAUNCHER: &str = "Traceback (most recent call last):\n  File \"/opt/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \ntrain.py FAILED\n";

#[test]
fn what_it_went_on_from_is_not_what_ended_it() {
    let caught = [
        "CUDA out of memory. Retrying with batch size 8\n".to_owned(),
        "Downloading: Connection reset by peer. Socket Timeout, retrying\n".into(),
        "a sample text says: Segmentation fault (core dumped)\nKilled\n".into(),
        "RTX 9999 with CUDA capability sm_200 is not compatible with the current PyTorch installation.\n".into(),
        error("OSError: [Errno 28] No space left on device"),
        error("ValueError: a.jpg is broken"),
    ];
    for said in caught {
        tells(&format!("{said}{}Training finished.\n", goes_on()), None);
        let ended = format!("{said}{}{}", goes_on(), error("KeyError: 'label'"));
        let verdict = tells(&ended, Some(Code::UserException));
        assert!(verdict.causes[0].summary.contains("KeyError"), "{said}");
    }
}

#[test]
fn the_last_word_of_a_shell_is_understood() {
    for (word, code, end) in [
        ("Killed", Code::KilledExternally, EndKind::Killed),
        (
            "run.sh: line 3:  4242 Killed                  python train.py",
            Code::KilledExternally,
            EndKind::Killed,
        ),
        (
            "Process finished with exit code 137 (interrupted by signal 9:SIGKILL)",
            Code::KilledExternally,
            EndKind::Killed,
        ),
        ("Terminated", Code::KilledExternally, EndKind::Killed),
        (
            "Segmentation fault (core dumped)",
            Code::NativeCrash,
            EndKind::Crashed,
        ),
        (
            "zsh: illegal hardware instruction (core dumped)  python train.py",
            Code::NativeCrash,
            EndKind::Crashed,
        ),
        (
            "Bus error (core dumped)",
            Code::ShmExhausted,
            EndKind::Crashed,
        ),
        (
            "bash: torchrun: command not found",
            Code::MissingDependency,
            EndKind::Unknown,
        ),
        (
            "/usr/bin/python3: No module named torch.distributed.run",
            Code::MissingDependency,
            EndKind::Unknown,
        ),
    ] {
        let verdict = tells(&format!("epoch 1 loss 0.7\n{word}\n"), Some(code));
        assert_eq!(verdict.end.kind, end, "{word}");
    }
    // The kernel may have sent it, so nobody is sure.
    assert!(verdict(b"Killed\n").causes[0].confidence < 0.8);
}

#[test]
fn who_interrupted_it_is_no_error_of_the_script() {
    let verdict = tells(&error("KeyboardInterrupt"), Some(Code::KilledExternally));
    assert_eq!(verdict.end.kind, EndKind::Killed);
    assert!(
        verdict.causes[0]
            .evidence
            .iter()
            .any(|seen| seen.text.contains("/w/train.py:88"))
    );
    tells(
        "Epoch 3\nDetected KeyboardInterrupt, attempting graceful shutdown ...\n",
        Some(Code::KilledExternally),
    );
    tells(
        &error("ValueError: KeyboardInterrupt"),
        Some(Code::UserException),
    );
}

#[test]
fn a_rank_that_lost_its_peer_is_no_error_of_the_script_that_spawned_it() {
    let spawned = |error: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/w/train.py\", line 22, in <module>\n    \
             multiprocessing.spawn(rank, nprocs=2)\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n\
             -- Process 0 terminated with the following error:\nTraceback (most recent call last):\n  \
             File \"/w/train.py\", line 15, in rank\n    all_reduce(x)\n{error}\n"
        )
    };
    let peer = "RuntimeError: [gloo/transport/tcp/pair.cc:561] Connection closed by peer [127.0.0.1]:28045.";
    tells(&spawned(peer), Some(Code::DistributedFailure));
    let verdict = tells(&spawned("KeyError: 'label'"), Some(Code::UserException));
    assert!(
        verdict.causes[0].summary.contains("KeyError"),
        "{verdict:#?}"
    );
}

#[test]
fn the_error_of_a_rank_is_told_and_not_that_of_what_started_it() {
    let rank = "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/w/train.py\", line 31, in main\n[rank1]:     x\n[rank1]: ValueError: too many values\n";
    let peer = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/w/train.py\", line 40, in main\n[rank0]:     x\n[rank0]: RuntimeError: [gloo/pair.cc:534] Connection closed by peer\n";
    for rest in [
        LAUNCHER.to_owned(),
        peer.to_owned(),
        format!("{peer}{LAUNCHER}"),
    ] {
        let verdict = tells(&format!("{rank}{rest}"), Some(Code::UserException));
        let location = verdict.causes[0].location.as_ref().unwrap();
        assert_eq!((location.file.as_str(), location.line), ("/w/train.py", 31));
    }
    tells(peer, Some(Code::DistributedFailure));
    // As gloo says it.
    let cut_off = peer.replace(
        "Connection closed by peer",
        "Read error [127.0.0.1]:3: Connection reset by peer",
    );
    let killed = format!(
        "{cut_off}Sending process 6 closing signal SIGTERM\nfailed (exitcode: -9) local_rank: 1 (pid: 7) of binary: python\n{LAUNCHER}  exitcode  : -15 (pid: 6)  (SIGTERM)\n"
    );
    let verdict = tells(&killed, Some(Code::DistributedFailure));
    assert!(
        verdict.causes[0].summary.contains("SIGKILL"),
        "{:#?}",
        verdict.causes
    );
    tells(&killed.replace("-9", "-11"), Some(Code::NativeCrash));
    // One that waited in vain aborts.
    let waited = "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)\nterminate called after throwing an instance of 'c10::DistBackendError'\nfailed (exitcode: -6) local_rank: 1 (pid: 7) of binary: python\n";
    tells(
        &format!("{waited}{LAUNCHER}"),
        Some(Code::DistributedFailure),
    );
    let killed =
        format!("failed (exitcode: -9) local_rank: 0 (pid: 7) of binary: python\n{LAUNCHER}");
    tells(&killed, Some(Code::DistributedFailure));
    let crashed =
        format!("failed (exitcode: -11) local_rank: 0 (pid: 7) of binary: python\n{LAUNCHER}");
    tells(&crashed, Some(Code::NativeCrash));
    // A download is none of its ranks.
    tells(
        &error("requests.exceptions.ConnectionError: Connection reset by peer"),
        Some(Code::UserException),
    );
}

#[test]
fn the_end_of_a_loader_is_told_by_its_signal() {
    let ended = |signal: &str| {
        let first = error(&format!(
            "RuntimeError: DataLoader worker (pid 7) is killed by signal: {signal}. "
        ));
        format!(
            "{first}\nThe above exception was the direct cause of the following exception:\n\n{}",
            error("RuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly")
        )
    };
    tells(&ended("Killed"), Some(Code::LoaderMemory));
    tells(&ended("Segmentation fault"), Some(Code::NativeCrash));
}

#[test]
fn a_cluster_is_understood() {
    for (line, code) in [
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-16T12:00:00 DUE TO TIME LIMIT ***",
            Some(Code::KilledExternally),
        ),
        (
            "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2026-11-16T12:00:00 ***",
            Some(Code::KilledExternally),
        ),
        (
            "slurmstepd: error: Exceeded job memory limit\nslurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-16T12:00:00 ***",
            Some(Code::ContainerLimit),
        ),
        (
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch. Some of the step tasks have been OOM Killed.",
            Some(Code::ContainerLimit),
        ),
        ("    Reason:       OOMKilled", Some(Code::ContainerLimit)),
        (
            "slurmstepd: error: Unable to unlink domain socket: No such file or directory",
            None,
        ),
    ] {
        tells(&format!("epoch 1 loss 0.7\n{line}\n"), code);
    }
}

#[test]
fn a_notebook_whose_kernel_died_is_told_with_doubt() {
    for said in [
        "[I ServerApp] AsyncIOLoopKernelRestarter: restarting kernel (1/5), keep random ports\n",
        "The kernel appears to have died. It will restart automatically.\n",
    ] {
        let verdict = tells(said, Some(Code::SwapThrash));
        assert!(verdict.causes.iter().all(|cause| cause.confidence < 0.6));
    }
}

#[test]
fn memory_that_was_refused_is_told_by_how_much_was_asked_for() {
    for text in [
        "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes.",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 560. GiB for an array",
    ] {
        let verdict = tells(&error(text), Some(Code::BatchTooLarge));
        assert!(verdict.causes[0].confidence < 0.8);
    }
    // Nothing tells which of them it was.
    let verdict = tells(&error("MemoryError"), Some(Code::MemoryLeak));
    let codes: Vec<Code> = verdict.causes.iter().map(|cause| cause.code).collect();
    assert!(codes.contains(&Code::BatchTooLarge), "{codes:?}");
    assert!(verdict.causes.iter().all(|cause| cause.confidence < 0.6));
    let untrained = error("MemoryError").replace("epoch 1 loss 0.7\n", "");
    tells(&untrained, Some(Code::DatasetInMemory));
    let jax = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 14.90GiB\n";
    let exhausted = error(
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 16000000000 bytes.",
    );
    tells(&format!("{jax}{exhausted}"), Some(Code::VramExhausted));
    tells(&exhausted, Some(Code::BatchTooLarge));
}

#[test]
fn errors_that_have_a_cause_of_their_own_are_told_by_it() {
    for (text, code) in [
        (
            "RuntimeError: Found no NVIDIA driver on your system.",
            Code::GpuDriverMismatch,
        ),
        (
            "AssertionError: Torch not compiled with CUDA enabled",
            Code::GpuDriverMismatch,
        ),
        (
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
            Code::GpuDriverMismatch,
        ),
        (
            "ImportError: /w/flash.so: undefined symbol: _ZN3c10",
            Code::MissingDependency,
        ),
        (
            "ImportError: libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by x.so)",
            Code::MissingDependency,
        ),
        (
            "ImportError: Using quantization requires bitsandbytes: `pip install -U bitsandbytes`",
            Code::MissingDependency,
        ),
        (
            "ImportError: attempted relative import with no known parent package",
            Code::UserException,
        ),
        (
            "RuntimeError: indices should be either on cpu or on the same device as the indexed tensor (cpu)",
            Code::DeviceMismatch,
        ),
        (
            "RuntimeError: Function 'LogBackward0' returned nan values in its 0th output.",
            Code::NumericNan,
        ),
        ("AssertionError: loss is nan at step 41", Code::NumericNan),
        (
            "ValueError: cannot convert float NaN to integer",
            Code::UserException,
        ),
        (
            "FileNotFoundError: No such file: 'loss_nan.csv'",
            Code::UserException,
        ),
        (
            "RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 704 vs 598",
            Code::DiskFull,
        ),
    ] {
        tells(&error(text), Some(code));
    }
}

#[test]
fn the_loss_that_was_printed_last_counts() {
    let verdict = tells(
        "step 1 loss 2.3\nstep 2 loss nan\nstep 3 loss nan\n",
        Some(Code::NumericNan),
    );
    let cause = &verdict.causes[0];
    assert!(cause.summary.contains("step 2"), "{cause:#?}");
    assert!(
        cause
            .evidence
            .iter()
            .any(|seen| seen.text.contains("step 1")),
        "{cause:#?}"
    );
    tells("step 1 loss nan (skipped)\nstep 2 loss 2.3\n", None);
    tells(
        "EarlyStopping: best loss=inf\nEpoch 1 train_loss=0.61\n",
        None,
    );
}

#[test]
fn notebooks_and_boxes_have_tracebacks_too() {
    let notebook = "OutOfMemoryError                          Traceback (most recent call last)\nCell In[7], line 12\n     11 out = model(x)\n---> 12 loss = crit(out)\n\nOutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
    let verdict = tells(notebook, Some(Code::VramExhausted));
    let location = verdict.causes[0].location.as_ref().unwrap();
    assert_eq!((location.file.as_str(), location.line), ("cell 7", 12));
    tells(
        "  File \"/w/train.py\", line 3\n    for x in y\n              ^\nSyntaxError: expected ':'\n",
        Some(Code::UserException),
    );
    // Raised where nobody can catch it, after all was done.
    let ignored = format!(
        "Training finished\nException ignored in: <function f at 0x7f>\n{}",
        error("AssertionError").trim_start_matches("epoch 1 loss 0.7\n")
    );
    tells(&ignored, None);
}

#[test]
fn a_log_in_two_bytes_for_each_letter_is_read() {
    let text = error("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.");
    let little: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let big: Vec<u8> = [0xfe, 0xff]
        .into_iter()
        .chain(text.encode_utf16().flat_map(u16::to_be_bytes))
        .collect();
    for bytes in [little, big, text.replace('\n', "\r\n").into_bytes()] {
        assert_eq!(verdict(&bytes).causes[0].code, Code::VramExhausted);
    }
}

#[test]
fn the_kernels_log_says_who_killed_it() {
    let told = |line: &str| {
        let log = Log {
            incidents: incidents(line.as_bytes(), jiff::Timestamp::MAX),
            read: vec!["a file".into()],
            missing: Vec::new(),
        };
        Run::from_output(b"epoch 1 loss 0.7\nKilled\n".to_vec(), log).verdict
    };
    let kill = "Killed process 7 (python) total-vm:9kB, anon-rss:8kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0";
    let machine = told(&format!("[ 1000.000000] Out of memory: {kill}\n"));
    assert_eq!(
        (machine.end.kind, machine.causes[0].code),
        (EndKind::OomKilled, Code::SwapThrash)
    );
    // Of an error that is none of a machine's, an old line in that log says little.
    let log = Log {
        incidents: incidents(
            b"[ 1000.000000] NVRM: Xid (PCI:0000:01:00): 79, pid=7, GPU has fallen off the bus.\n",
            jiff::Timestamp::MAX,
        ),
        read: vec!["a file".into()],
        missing: Vec::new(),
    };
    for (text, code) in [
        ("ValueError: bad shape", Code::UserException),
        ("RuntimeError: CUDA error: unknown error", Code::GpuLost),
    ] {
        let verdict = Run::from_output(error(text).into_bytes(), log.clone()).verdict;
        assert_eq!(verdict.causes[0].code, code, "{:#?}", verdict.causes);
    }
    let group = told(&format!(
        "[ 1000.000000] Memory cgroup out of memory: {kill}\n"
    ));
    assert_eq!(
        (group.end.kind, group.causes[0].code),
        (EndKind::OomKilled, Code::ContainerLimit)
    );
}

#[test]
fn a_library_that_the_loader_could_not_map_is_no_missing_package() {
    for words in [
        "ImportError: /v/torch/_C.so: failed to map segment from shared object",
        "ImportError: /mnt/v/_C.so: failed to map segment from shared object: Operation not permitted",
    ] {
        tells(&error(words), Some(Code::LibraryNotMapped));
    }
    let shell = "python: error while loading shared libraries: libm.so.6: cannot create shared object descriptor: Cannot allocate memory\n";
    tells(shell, Some(Code::LibraryNotMapped));
}
