use antifreeze_check::check_file::{CheckOptions, FileReport, FixMode, check_bytes};
use antifreeze_check::parallel;
use antifreeze_check::settings::{RuleFlags, Settings};
use antifreeze_lint::target_machine::TargetMachine;
use std::path::Path;

/// Checks files with all rules, for a laptop with a GPU.
pub fn examined<P: AsRef<Path> + Sync>(files: &[(P, Vec<u8>)], fixes: FixMode) -> Vec<FileReport> {
    let flags = RuleFlags {
        preview: true,
        ..RuleFlags::default()
    };
    let selection = Settings::default().resolve(&flags, Path::new("/")).unwrap();
    let options = CheckOptions {
        selection: &selection,
        target: TargetMachine {
            ram_bytes: Some(16 << 30),
            vram_bytes: Some(8 << 30),
            cores: Some(8),
        },
        fixes,
    };
    parallel::map_items(files, |(path, bytes)| {
        check_bytes(bytes.clone(), path.as_ref(), &options)
    })
    .unwrap()
}
