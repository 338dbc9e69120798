#![expect(missing_docs)]
use unjank_spool::*;
#[test]
fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let options = || Options {
        max_record_bytes: 1000,
        segment_bytes: 3000,
        ..Options::new(dir.path(), 100_000)
    };
    let (mut log, r) = Log::open(options()).unwrap();
    assert_eq!(r.next_seq, 1);
    for i in 0..20u8 {
        assert_eq!(log.append(&[i; 700]).unwrap().seq, u64::from(i) + 1);
    }
    let mut reader = log.reader();
    assert!(reader.next_chunk(1 << 20).unwrap().is_none());
    assert_eq!(log.sync().unwrap(), 20);
    let mut seen = vec![];
    while let Some(chunk) = reader.next_chunk(1500).unwrap() {
        for r in chunk.iter() {
            assert_eq!(r.payload, [u8::try_from(r.seq - 1).unwrap(); 700]);
            seen.push(r.seq);
        }
    }
    assert_eq!(seen, (1..=20).collect::<Vec<_>>());
    assert!(matches!(Log::open(options()), Err(OpenError::InUse { .. })));
    log.trimmer().trim(10).unwrap();
    drop(log);
    let (log, r) = Log::open(options()).unwrap();
    assert_eq!(
        (r.records, r.first_seq, r.next_seq, r.torn_bytes),
        (10, 11, 21, 0)
    );
    assert_eq!(
        log.reader().next_chunk(1).unwrap().unwrap().first_seq(),
        Some(11)
    );
}
