//! An unreadable disk does not count as an empty one.

use std::time::Duration;

use serde_json::json;
use unjank::{Mode, TransportError};

use crate::collector::{Running, receipt};

#[test]
fn a_flush_fails_while_the_disk_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let running = Running::with(|config| config.mode(Mode::Test).data_dir(folder.path()));
    running
        .collector
        .answer(|_| Err(TransportError("in a tunnel".to_owned())));
    unjank::span("checkout").end();
    running.flush();
    running.collector.answer(|batch| Ok(receipt(batch)));
    let files = std::fs::read_dir(folder.path().join("queue")).unwrap();
    let mut paths = files.map(|file| file.unwrap().path());
    let path = paths.find(|path| path.extension().is_some_and(|end| end == "segment"));
    let (path, aside) = (path.unwrap(), folder.path().join("aside"));
    // A directory in place of the file makes it unreadable.
    std::fs::rename(&path, &aside).unwrap();
    std::fs::create_dir(&path).unwrap();
    let begun = std::time::Instant::now();
    assert!(!unjank::flush(Duration::from_secs(10)));
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "it should not wait"
    );
    assert!(running.collector.events("spans").is_empty());
    std::fs::remove_dir(&path).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    running.flush();
    running.flush();
    assert_eq!(running.collector.events("spans").len(), 1);
    let batches = running.collector.batches();
    let has_losses = |batch: &serde_json::Value| batch["sdk_health"]["dropped"].is_array();
    assert!(!batches.iter().any(has_losses), "no losses");
}

#[cfg(unix)]
#[test]
fn unreadable_files_of_an_earlier_process_are_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let test = |config: unjank::Config| config.mode(Mode::Test).data_dir(folder.path());
    let count = || {
        unjank::traffic(unjank::Transferred {
            host: "a",
            tx_bytes: 7,
            ..unjank::Transferred::default()
        });
    };
    let mut running = Running::with(test);
    unjank::span("first").end();
    running.flush();
    // Counted after the last upload, so only the ledger has it.
    running
        .collector
        .configure(json!({"upload": {"wifi_only": true}}));
    running.restart(test);
    running.flush();
    unjank::set_network(unjank::Network::Cellular);
    count();
    running.flush();
    drop(running.guard.take());
    let files = ["traffic.json", "install-id"].map(|name| folder.path().join(name));
    for file in &files {
        std::fs::rename(file, file.with_extension("aside")).unwrap();
        // A link to itself cannot be read but can be replaced.
        std::os::unix::fs::symlink(file, file).unwrap();
    }
    running.restart(test);
    running.flush();
    count();
    running.flush();
    for file in &files {
        assert!(file.is_symlink(), "{}", file.display());
        std::fs::remove_file(file).unwrap();
        std::fs::rename(file.with_extension("aside"), file).unwrap();
    }
    running.flush();
    let rows = running.collector.events("traffic");
    let bytes: u64 = rows
        .iter()
        .map(|row| row["tx_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(bytes, 2 * 7);
    running.restart(test);
    unjank::span("last").end();
    running.flush();
    let batches = running.collector.batches();
    let installs = [&batches[0], &batches[batches.len() - 1]];
    let installs = installs.map(|batch| &batch["resource"]["install_id"]);
    assert_eq!(installs[0], installs[1]);
}
