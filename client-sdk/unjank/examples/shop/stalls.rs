//! Work that does not belong on the main thread.

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

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

/// Writes to a real SQLite database and waits for it.
#[inline(never)]
pub(crate) fn save_order() {
    let folder = tempfile::tempdir().expect("cannot create a folder for the shop's database");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("cannot start the runtime");
    let saved: Result<(), sqlx::Error> = runtime.block_on(async {
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("shop.sqlite"))
            .create_if_missing(true);
        let mut database = options.connect().await?;
        sqlx::query("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)")
            .execute(&mut database)
            .await?;
        let begun = Instant::now();
        while begun.elapsed() < TOO_LONG {
            sqlx::query(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) \
                 INSERT INTO orders (note) SELECT 'lamp ' || i FROM n",
            )
            .execute(&mut database)
            .await?;
        }
        Ok(())
    });
    saved.expect("cannot save the order");
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
