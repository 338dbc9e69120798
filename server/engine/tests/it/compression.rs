//! Packing, both ways.

use std::io::{Read, Write};

use flate2::read::{MultiGzDecoder, ZlibDecoder};

use crate::support::shared;

const TEXT: &str = "SELECT number AS a, repeat('x', number % 100) AS s FROM numbers(100000)";

/// Unpacks as far as it goes: an answer may have broken off.
pub(crate) fn unpack(packing: &str, bytes: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn Read + '_> = match packing {
        "gzip" => Box::new(MultiGzDecoder::new(bytes)),
        "deflate" => Box::new(ZlibDecoder::new(bytes)),
        "zstd" => Box::new(zstd::Decoder::new(bytes).unwrap()),
        "lz4" => Box::new(lz4_flex::frame::FrameDecoder::new(bytes)),
        _ => Box::new(bytes),
    };
    let mut out = Vec::new();
    reader.read_to_end(&mut out).unwrap();
    out
}

fn pack(packing: &str, bytes: &[u8]) -> Vec<u8> {
    match packing {
        "gzip" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder =
                flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => zstd::encode_all(bytes, 1).unwrap(),
        "lz4" => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => bytes.to_vec(),
    }
}

#[tokio::test]
async fn answers_are_packed_as_the_client_accepts_them() {
    let engine = shared();
    let plain = engine.ask(&[], TEXT).await;
    for packing in ["gzip", "deflate", "zstd", "lz4"] {
        let answer = engine
            .post(&[("enable_http_compression", "1")])
            .header("accept-encoding", packing)
            .body(TEXT)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.headers()["content-encoding"], packing);
        let body = answer.bytes().await.unwrap();
        assert!(body.len() < plain.len() / 3);
        assert_eq!(unpack(packing, &body), plain.as_bytes(), "{packing}");
    }
    let answer = engine
        .post(&[("enable_http_compression", "0")])
        .header("accept-encoding", "gzip")
        .body("SELECT 1")
        .send()
        .await
        .unwrap();
    assert!(!answer.headers().contains_key("content-encoding"));
}

#[tokio::test]
async fn packed_bodies_are_unpacked() {
    let engine = shared();
    engine
        .ask(&[], "CREATE TABLE packed (a UInt64) ENGINE = Memory")
        .await;
    let rows: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    for (index, packing) in ["identity", "gzip", "deflate", "zstd", "lz4"]
        .into_iter()
        .enumerate()
    {
        let request = engine
            .post(&[("query", "INSERT INTO packed FORMAT TSV")])
            .header("content-encoding", packing);
        let answer = request
            .body(pack(packing, rows.as_bytes()))
            .send()
            .await
            .unwrap();
        assert_eq!(
            answer.status(),
            200,
            "{packing}: {}",
            answer.text().await.unwrap()
        );
        let expected = format!("{}\n", (index + 1) * 100_000);
        assert_eq!(
            engine.ask(&[], "SELECT count() FROM packed").await,
            expected,
            "{packing}"
        );
    }
    // A statement may be packed as well.
    let answer = engine
        .post(&[])
        .header("content-encoding", "gzip")
        .body(pack("gzip", b"SELECT sum(a) FROM packed"))
        .send()
        .await
        .unwrap();
    assert_eq!(
        answer.text().await.unwrap(),
        format!("{}\n", 5_u64 * (0..100_000_u64).sum::<u64>())
    );
}

#[tokio::test]
async fn damaged_or_unknown_packing_stores_nothing() {
    let engine = shared();
    engine
        .ask(&[], "CREATE TABLE damaged (a UInt64) ENGINE = Memory")
        .await;
    let rows: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    for packing in ["gzip", "deflate", "zstd", "lz4"] {
        let packed = pack(packing, rows.as_bytes());
        for cut in [packed.len() - 5, packed.len() / 2] {
            let request = engine
                .post(&[("query", "INSERT INTO damaged FORMAT TSV")])
                .header("content-encoding", packing);
            let answer = request.body(packed[..cut].to_vec()).send().await.unwrap();
            assert_ne!(answer.status(), 200, "{packing}");
        }
    }
    let request = engine
        .post(&[("query", "INSERT INTO damaged FORMAT TSV")])
        .header("content-encoding", "br");
    assert_eq!(
        crate::support::refused(request.body("x").send().await.unwrap()).await,
        (48, 501)
    );
    let answer = engine
        .post(&[
            ("query", "INSERT INTO damaged FORMAT TSV"),
            ("decompress", "1"),
        ])
        .body("no blocks at all, but text")
        .send()
        .await
        .unwrap();
    assert_eq!(crate::support::refused(answer).await.0, 33);
    assert_eq!(engine.ask(&[], "SELECT count() FROM damaged").await, "0\n");
}

#[tokio::test]
async fn clickhouses_own_blocks_go_out_and_come_back_in() {
    let engine = shared();
    engine
        .ask(
            &[],
            "CREATE TABLE own_blocks (a UInt64, s String) ENGINE = Memory",
        )
        .await;
    let answer = engine
        .post(&[("compress", "1")])
        .body(format!("{TEXT} FORMAT Native"))
        .send()
        .await
        .unwrap();
    let blocks = answer.bytes().await.unwrap();
    assert_eq!(blocks[16], 0x82);
    let answer = engine
        .post(&[
            ("query", "INSERT INTO own_blocks FORMAT Native"),
            ("decompress", "1"),
        ])
        .body(blocks.clone())
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    assert_eq!(
        engine
            .ask(&[], "SELECT count(), sum(length(s)) FROM own_blocks")
            .await,
        "100000\t4950000\n"
    );
    let mut damaged = blocks.to_vec();
    damaged[1000] ^= 4;
    let answer = engine
        .post(&[
            ("query", "INSERT INTO own_blocks FORMAT Native"),
            ("decompress", "1"),
        ])
        .body(damaged)
        .send()
        .await
        .unwrap();
    assert_eq!(crate::support::refused(answer).await.0, 33);
    assert_eq!(
        engine.ask(&[], "SELECT count() FROM own_blocks").await,
        "100000\n"
    );
}
