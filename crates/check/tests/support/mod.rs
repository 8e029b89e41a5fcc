use antifreeze_check::crew;
use antifreeze_check::examine::{Fixes, Orders, Report, bytes_at};
use antifreeze_check::settings::{Flags, Settings};
use antifreeze_lint::here::Here;
use std::path::Path;

/// The report of each file, by all rules, on a laptop with a card.
pub fn examined<P: AsRef<Path> + Sync>(files: &[(P, Vec<u8>)], fixes: Fixes) -> Vec<Report> {
    let flags = Flags {
        preview: true,
        ..Flags::default()
    };
    let selection = Settings::default().resolve(&flags, Path::new("/")).unwrap();
    let orders = Orders {
        selection: &selection,
        here: Here {
            ram: Some(16 << 30),
            vram: Some(8 << 30),
            cores: Some(8),
        },
        fixes,
    };
    crew::each(files, |(path, bytes)| {
        bytes_at(bytes.clone(), path.as_ref(), &orders)
    })
    .unwrap()
}
