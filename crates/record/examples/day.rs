//! Makes the record of a day, 86,400 samples of ten processes, and measures what it takes to
//! open it, to list it and to follow it.
//!
//! `cargo run --release -p antifreeze-record --example day`; with a folder, both are left there and nothing is
//! measured.

use antifreeze_record::codec::{SAMPLE_BYTES, encode_event, encode_sample};
use antifreeze_record::event::{Event, EventKind, Rung, Trigger};
use antifreeze_record::{
    FrameKind, LEVEL_COUNT, LevelSizes, Record, RecordHead, RecordWriter, SCHEMA,
};
use antifreeze_sense::Stamp;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

#[path = "../testing/calm.rs"]
mod calm;

const DAY: u64 = 86_400;
const MIB: f64 = 1024.0 * 1024.0;

const WHOLE: LevelSizes = LevelSizes([60 << 20; LEVEL_COUNT]);

fn main() -> io::Result<()> {
    if let Some(folder) = std::env::args_os().nth(1) {
        for (name, sizes) in [("thinned", LevelSizes::default()), ("whole", WHOLE)] {
            let folder = Path::new(&folder).join(name);
            std::fs::create_dir(&folder)?;
            let mut log = RecordWriter::create(&folder, sizes, &head())?;
            write_day(&mut log)?;
            log.sync()?;
        }
        return Ok(());
    }
    measure("thinned, as a guard writes it", LevelSizes::default())?;
    measure("every sample kept", WHOLE)
}

fn measure(title: &str, sizes: LevelSizes) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut log = RecordWriter::create(folder.path(), sizes, &head())?;
    let bytes = write_day(&mut log)?;
    println!("{title}");
    println!(
        "  samples: {} bytes each, {:.2} MB an hour",
        bytes / DAY,
        bytes as f64 / 24e6
    );
    println!(
        "  files: {:.1} MiB",
        size_of_files(folder.path())? as f64 / MIB
    );

    let times: io::Result<Vec<Duration>> = (0..10)
        .map(|_| {
            let start = Instant::now();
            let record = Record::open(folder.path())?;
            let (events, stamps) = (record.events().count(), record.sample_stamps().count());
            let taken = start.elapsed();
            assert_eq!((events, stamps), (24, record.sample_count()));
            Ok(taken)
        })
        .collect();
    let mut times = times?;
    times.sort();
    if let [best, .., worst] = times.as_slice() {
        println!("  open and list: {best:.1?} to {worst:.1?} in ten runs");
    }

    let mut record = Record::open(folder.path())?;
    let start = Instant::now();
    let decoded = record.samples().count();
    println!("  decode all {decoded} samples: {:.1?}", start.elapsed());

    append_sample(&mut log, DAY);
    let start = Instant::now();
    log.sync()?;
    println!("  sync of one sample: {:.1?}", start.elapsed());
    let start = Instant::now();
    assert!(record.refresh()?);
    println!("  follow one sample: {:.1?}", start.elapsed());
    Ok(())
}

fn head() -> RecordHead {
    RecordHead {
        schema: SCHEMA,
        run: "a-day".into(),
        boot: [0; 16],
        start: Stamp::default(),
        total: 64 << 30,
        reserve: 2 << 30,
        budget: None,
        folder: "/home/someone/net".into(),
        command: vec!["python".into(), "train.py".into()],
        truncated: false,
    }
}

/// A sample each second, an event each hour. Returns the bytes of all samples.
fn write_day(log: &mut RecordWriter) -> io::Result<u64> {
    let mut bytes = 0;
    for second in 0..DAY {
        bytes += append_sample(log, second);
        if second % 3600 == 1800 {
            append_event(log, second);
        }
        if second % 60 == 59 {
            log.sync()?;
        }
    }
    Ok(bytes)
}

fn append_sample(log: &mut RecordWriter, second: u64) -> u64 {
    let mut out = [0; SAMPLE_BYTES];
    let len = encode_sample(&calm::calm_sample(10, second), &mut out);
    log.append(FrameKind::Sample, &out[..len]);
    len as u64
}

fn append_event(log: &mut RecordWriter, second: u64) {
    let kind = EventKind::Rung {
        from: Rung::Calm,
        to: Rung::Watch,
        trigger: Trigger::TreeGrowth,
        room: 4 << 30,
        growth: 1 << 20,
        forecast_ms: Some(900_000),
        confidence: 70,
    };
    let at = Stamp {
        monotonic_ns: second,
        realtime_ns: second,
    };
    let mut out = [0; SAMPLE_BYTES];
    let len = encode_event(&Event { at, kind }, &mut out);
    log.append(FrameKind::Event, &out[..len]);
}

fn size_of_files(folder: &Path) -> io::Result<u64> {
    std::fs::read_dir(folder)?
        .map(|file| Ok(file?.metadata()?.len()))
        .sum()
}
