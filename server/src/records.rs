//! The format of a record, which is what the ingest log keeps of a batch: its rows as columns, in the native format of ClickHouse, and
//! the counts of its events. `ingest` makes records, and `store` sends them.

pub(crate) mod columns;
pub(crate) mod native;
pub(crate) mod record;

pub use self::columns::{FrameBuilder, Inner, Kind, Layout};
pub use self::native::{BadFrame, Frame};
pub use self::record::{Count, Outcome, Record, RecordBuilder};

pub(crate) use self::columns::uuid_bytes;

/// For the benchmark: joins the frames of `records` table by table, as the writer does. Returns the size of the blocks in bytes.
#[doc(hidden)]
pub fn bench_join(records: &[Vec<u8>]) -> usize {
    let mut tables: std::collections::BTreeMap<&[u8], Vec<Frame<'_>>> =
        std::collections::BTreeMap::new();
    for frame in records
        .iter()
        .filter_map(|bytes| Record::read(bytes).ok())
        .flat_map(|record| record.frames)
    {
        tables.entry(frame.key()).or_default().push(frame);
    }
    let mut bytes = 0;
    for frames in tables.values() {
        if let Ok(mut block) = native::Block::join(frames) {
            while let Ok(Some(chunk)) = block.next_chunk() {
                bytes += chunk.len();
            }
        }
    }
    bytes
}
