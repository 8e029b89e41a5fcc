//! What only the output tells, with a record or without.

use crate::blames;
use crate::scenes::{EXIT_1, GB, Scene};
use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::{Code, Run};

fn ended(printed: &str) -> Scene {
    Scene::new()
        .steady(60, GB)
        .printed(printed)
        .ended(60, EXIT_1)
}

const LINES: [(&str, Code); 9] = [
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        Code::VramExhausted,
    ),
    (
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate",
        Code::VramExhausted,
    ),
    (
        "W tensorflow/bfc: Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB. The caller indicates that this is not a failure",
        Code::VramSpill,
    ),
    (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        Code::GpuDriverMismatch,
    ),
    (
        "Failed to initialize NVML: Driver/library version mismatch",
        Code::GpuDriverMismatch,
    ),
    (
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        Code::GpuFault,
    ),
    (
        "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.",
        Code::GpuLost,
    ),
    (
        "OSError: [Errno 5] Input/output error: 'data.bin'",
        Code::HardwareError,
    ),
    (
        "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. insufficient shared memory (shm)",
        Code::ShmExhausted,
    ),
];

#[test]
fn each_is_told_by_its_words_with_a_record_or_without() {
    for (line, code) in LINES {
        blames(&ended(line), code, 0.55);
        let run = Run::from_output(format!("epoch 1\n{line}\n").into_bytes(), Log::default());
        let first = run.verdict.causes.first().map(|cause| cause.code);
        assert_eq!(first, Some(code), "{line}: {:#?}", run.verdict.causes);
    }
}

#[test]
fn what_ran_out_late_may_be_a_leak() {
    let error = "CUDA out of memory. Tried to allocate 20 MiB.";
    let scene = ended(error).trained(|second| second * 20, |_| antifreeze_sense::Phase::Forward);
    let codes: Vec<Code> = scene
        .verdict()
        .causes
        .iter()
        .map(|cause| cause.code)
        .collect();
    assert_eq!(codes[..2], [Code::VramExhausted, Code::VramLeak]);
    assert!(
        scene
            .verdict()
            .causes
            .iter()
            .all(|cause| cause.confidence < 0.8)
    );
    assert!(
        !ended(error)
            .verdict()
            .causes
            .iter()
            .any(|cause| cause.code == Code::VramLeak)
    );
}

#[test]
fn a_quiet_log_tells_nothing_and_says_so() {
    let run = Run::from_output(b"epoch 1\nepoch 2\n".to_vec(), Log::default());
    assert!(run.verdict.causes.is_empty());
    assert_eq!(run.verdict.unseen.len(), 2, "{:?}", run.verdict.unseen);
}

#[test]
fn words_that_are_nearly_the_same_tell_nothing_of_it() {
    for (line, code) in [
        (
            "the tokenizer ran out of memory slots, going on",
            Code::VramExhausted,
        ),
        (
            "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB",
            Code::VramSpill,
        ),
        (
            "loaded the kernel image for execution on the device",
            Code::GpuDriverMismatch,
        ),
        (
            "no illegal memory access was found by the checker",
            Code::GpuFault,
        ),
        ("time on the GPU is lostless", Code::GpuLost),
        ("Input/output sizes: 64 and 10", Code::HardwareError),
        (
            "DataLoader worker uses shared memory (shm)",
            Code::ShmExhausted,
        ),
    ] {
        let causes = ended(line).verdict().causes;
        assert!(
            causes.iter().all(|cause| cause.code != code),
            "{line}: {causes:#?}"
        );
    }
}

#[test]
fn a_hint_is_not_what_ended_it() {
    let printed = |text: &str| Scene::new().steady(60, GB).printed(text).ended(60, 2 << 8);
    let tip = "tip: if you see 'CUDA out of memory', lower --batch-size\n";
    let scene = printed(&format!("{tip}assert failed: bad config\n"));
    blames(&scene, Code::UserException, 0.4);
    // In a sentence of another kind it is possible, and no more.
    let scene = printed("the last attempt met CUDA out of memory somewhere\nno config\n");
    blames(&scene, Code::VramExhausted, 0.5);
    assert!(scene.verdict().causes[0].confidence <= 0.6);
}
