//! Work that does not belong on the main thread.

use std::fs::File;
use std::io::{Seek, Write};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Minimum duration of each stall.
const TOO_LONG: Duration = Duration::from_millis(2_400);

/// Parses a large document repeatedly.
#[inline(never)]
pub(crate) fn parse_catalog() {
    let article = r#"{"id": 7, "name": "Lamp", "tags": ["light", "home"], "price": {"amount": 1999, "currency": "EUR"}}"#;
    let catalog = format!("[{}]", vec![article; 20_000].join(","));
    let begun = Instant::now();
    let mut articles = 0;
    while begun.elapsed() < TOO_LONG {
        let read: Value = serde_json::from_str(&catalog).expect("the catalog should be JSON");
        articles += read.as_array().map_or(0, Vec::len);
    }
    assert!(articles > 0);
}

/// Writes to the disk and waits for it.
#[inline(never)]
pub(crate) fn save_order() {
    let folder = tempfile::tempdir().expect("cannot create a folder for the shop's orders");
    let orders = vec![b'7'; 4 << 20];
    let save = || -> std::io::Result<()> {
        let mut file = File::create(folder.path().join("orders"))?;
        let begun = Instant::now();
        while begun.elapsed() < TOO_LONG {
            file.rewind()?;
            file.write_all(&orders)?;
            file.sync_all()?;
        }
        Ok(())
    };
    save().expect("cannot save the order");
}

/// Waits for a lock that another thread holds.
#[inline(never)]
pub(crate) fn wait_for_cache() {
    let cache = Arc::new(Mutex::new(0));
    let held = Arc::clone(&cache);
    let (locked, is_locked) = mpsc::sync_channel(1);
    let holder = std::thread::spawn(move || {
        let _guard = held.lock();
        // The main thread may be gone, and then nothing waits.
        let _gone = locked.send(()).is_err();
        std::thread::sleep(TOO_LONG);
    });
    is_locked.recv().expect("the cache should be locked");
    drop(cache.lock());
    holder.join().expect("the holder should end");
}
