//! A batch that is built, encoded and compressed, ready to be sent.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::ValueEnum;
use unjank_protocol::{Batch, Signal, Timestamp};
use unjank_random::Random;
use uuid::Uuid;

use crate::events::{Mix, Scene, spoil};
use crate::fingerprint::{self, Times};
use crate::format::Format;
use crate::plan::Plan;
use crate::population::Population;
use crate::run_tag::RunTag;
use crate::vocabulary::Vocabulary;

/// Compression of request bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Encoding {
    Zstd,
    Gzip,
    Identity,
}

impl Encoding {
    /// Returns the value of `Content-Encoding`, or `None` for an uncompressed body.
    pub(crate) fn header(self) -> Option<&'static str> {
        match self {
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }

    pub(crate) fn compress(self, json: &[u8]) -> Result<Vec<u8>> {
        match self {
            // Level 1, which is cheap enough for a phone.
            Self::Zstd => zstd::bulk::compress(json, 1).context("compressing a batch with zstd"),
            Self::Gzip => {
                let out = Vec::with_capacity(json.len() / 4);
                let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::fast());
                encoder
                    .write_all(json)
                    .and_then(|()| encoder.finish())
                    .context("compressing a batch with gzip")
            }
            Self::Identity => Ok(json.to_vec()),
        }
    }

    pub(crate) fn decompress(self, body: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Zstd => zstd::decode_all(body).context("decompressing a batch with zstd"),
            Self::Gzip => {
                let mut json = Vec::new();
                flate2::read::GzDecoder::new(body)
                    .read_to_end(&mut json)
                    .context("decompressing a batch with gzip")?;
                Ok(json)
            }
            Self::Identity => Ok(body.to_vec()),
        }
    }
}

/// What verification needs to know about a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) session: Uuid,
    /// The fingerprints of the events per signal, in the order of the signal's list.
    pub(crate) fingerprints: Vec<(Signal, Vec<u64>)>,
    /// Deliberately invalid events, which the server must reject.
    pub(crate) invalid: Vec<(Signal, u32)>,
}

impl Manifest {
    /// Returns the manifest of a recorded batch.
    pub(crate) fn new(batch: &Batch<'_>) -> Self {
        Self {
            session: batch.session_id,
            fingerprints: fingerprint::of_batch(batch, Times::Ignored),
            invalid: Vec::new(),
        }
    }
}

/// A batch ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) seq: u64,
    pub(crate) batch_id: Uuid,
    /// Scheduled start relative to the start of the run. `None` in a closed loop.
    pub(crate) at: Option<Duration>,
    pub(crate) body: Bytes,
    pub(crate) encoding: Encoding,
    pub(crate) format: Format,
    pub(crate) events: u64,
    /// Bytes before compression.
    pub(crate) plain_bytes: u64,
    pub(crate) manifest: Manifest,
    /// Clock that updates `sent_at` before late attempts. `None` always sends the same bytes.
    pub(crate) clock: Option<DeviceClock>,
}

/// A device's clock, and when it last stamped the parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceClock {
    pub(crate) skew_us: i64,
    pub(crate) stamped: Timestamp,
}

/// Older stamps are renewed before the next attempt. Real devices renew the stamp on each attempt; a few seconds make no
/// difference.
const STAMP_AGE_US: i64 = 5_000_000;

impl Parcel {
    /// Updates `sent_at` to the device's current time if the last stamp is old, because a retry is sent at a later time.
    pub(crate) fn restamp(&mut self, now: Timestamp) -> Result<()> {
        let Some(clock) = &mut self.clock else {
            return Ok(());
        };
        if now.micros_since(clock.stamped) < STAMP_AGE_US {
            return Ok(());
        }
        let plain = self.encoding.decompress(&self.body)?;
        let plain = self.format.restamp(&plain, now.shifted(clock.skew_us))?;
        self.body = self.encoding.compress(&plain)?.into();
        clock.stamped = now;
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ParcelSettings {
    pub(crate) seed: u64,
    pub(crate) tag: RunTag,
    pub(crate) mix: Mix,
    pub(crate) events: usize,
    pub(crate) encoding: Encoding,
    pub(crate) format: Format,
    /// Probability that a batch was held back on the device for hours or days.
    pub(crate) late: f64,
    /// Probability that a batch contains an event that the server must reject.
    pub(crate) invalid: f64,
    /// Whether fingerprints are computed.
    pub(crate) verify: bool,
    /// [`Times::OfRightClocks`] for batches sent at once, whose stamp retries renew; [`Times::Ignored`] for batches sent later.
    pub(crate) times: Times,
}

/// Builds parcels from plans. The same plan at the same time produces the same bytes.
pub(crate) struct Packer {
    settings: ParcelSettings,
    vocabulary: Vocabulary,
    population: Population,
}

const HOUR_US: u64 = 3_600_000_000;

impl Packer {
    pub(crate) fn new(settings: ParcelSettings) -> Self {
        Self {
            vocabulary: Vocabulary::new(),
            population: Population::new(settings.seed, settings.tag),
            settings,
        }
    }

    /// Builds the batch of `plan` as its device sends it at `now`.
    pub(crate) fn pack(&self, plan: &Plan, now: Timestamp) -> Result<Parcel> {
        let settings = &self.settings;
        let mut random = Random::seeded(&[settings.seed, 3, plan.seq]);
        let device = self.population.device(plan.device);
        // OpenTelemetry has no time of sending, so the server cannot correct a clock.
        let skew_us = match settings.format {
            Format::Batch | Format::Columns => device.clock_skew_us,
            Format::OtlpProtobuf | Format::OtlpJson => 0,
        };
        let sent_at = now.shifted(skew_us);
        let held_us = if random.chance(settings.late) {
            random.between(HOUR_US, 5 * 24 * HOUR_US)
        } else {
            0
        };
        let made_at = sent_at.shifted(-i64::try_from(held_us).unwrap_or_default());
        let scene = Scene {
            vocabulary: &self.vocabulary,
            device: &device,
            end: made_at,
            minute: plan.part,
        };
        let mut batch = Batch {
            modules: Vec::new(),
            batch_id: settings.tag.batch_id(plan.seq, made_at.as_micros()),
            sent_at: Some(sent_at),
            resource: device.resource(),
            session_id: session_id(settings, plan.session),
            config_revision: Some(1 + plan.device % 3),
            split_from: Vec::new(),
            spans: Vec::new(),
            frame_windows: Vec::new(),
            janks: Vec::new(),
            traffic: Vec::new(),
            page_loads: Vec::new(),
            metrics: Vec::new(),
            app_starts: Vec::new(),
            recompositions: Vec::new(),
            sdk_health: None,
        };
        settings
            .mix
            .fill(&mut batch, &scene, settings.events, &mut random);
        let invalid = if random.chance(settings.invalid) {
            spoil(&mut batch, &mut random)
        } else {
            None
        };
        let plain = settings.format.encode(&batch)?;
        let fingerprints = if settings.verify {
            fingerprint::of_batch(&batch, settings.times)
        } else {
            Vec::new()
        };
        Ok(Parcel {
            seq: plan.seq,
            batch_id: batch.batch_id,
            at: plan.at,
            // Copy to the exact size: the compressor's buffer has capacity for the worst case.
            body: Bytes::copy_from_slice(&settings.encoding.compress(&plain)?),
            encoding: settings.encoding,
            format: settings.format,
            events: batch.events() as u64,
            plain_bytes: plain.len() as u64,
            manifest: Manifest {
                session: batch.session_id,
                fingerprints,
                invalid: invalid.into_iter().collect(),
            },
            clock: (settings.times == Times::OfRightClocks).then_some(DeviceClock {
                skew_us,
                stamped: now,
            }),
        })
    }
}

/// Returns a random session id that is the same for all uploads of the session.
fn session_id(settings: &ParcelSettings, session: u64) -> Uuid {
    Random::seeded(&[settings.seed, settings.tag.0, 4, session]).uuid()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use unjank_columns::Bounds;

    use super::*;

    fn settings(encoding: Encoding) -> ParcelSettings {
        ParcelSettings {
            seed: 11,
            tag: RunTag(0xaaaa_bbbb_cccc_dddd),
            mix: Mix::Realistic,
            events: 200,
            encoding,
            format: Format::Batch,
            late: 0.1,
            invalid: 0.0,
            verify: true,
            times: Times::OfRightClocks,
        }
    }

    fn plan(seq: u64) -> Plan {
        Plan {
            seq,
            at: None,
            device: seq % 50,
            session: seq / 3,
            part: seq % 3,
        }
    }

    const NOW: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

    #[test]
    fn the_same_plan_and_seed_give_the_same_bytes() {
        let packer = Packer::new(settings(Encoding::Zstd));
        let again = Packer::new(settings(Encoding::Zstd));
        let other = Packer::new(ParcelSettings {
            seed: 12,
            ..settings(Encoding::Zstd)
        });
        let parcel = packer.pack(&plan(4), NOW).unwrap();
        assert_eq!(parcel, again.pack(&plan(4), NOW).unwrap());
        assert_ne!(parcel.body, other.pack(&plan(4), NOW).unwrap().body);
    }

    #[test]
    fn every_encoding_decompresses_to_the_batch() {
        let mut bodies = Vec::new();
        for encoding in [Encoding::Zstd, Encoding::Gzip, Encoding::Identity] {
            let parcel = Packer::new(settings(encoding)).pack(&plan(1), NOW).unwrap();
            let json = encoding.decompress(&parcel.body).unwrap();
            let batch: Batch<'_> = serde_json::from_slice(&json).unwrap();
            assert_eq!(batch.batch_id, parcel.batch_id);
            assert_eq!(batch.events(), 200);
            bodies.push(json);
        }
        assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn the_realistic_mix_contains_every_signal_and_no_event_twice() {
        let packer = Packer::new(settings(Encoding::Identity));
        let mut signals = HashSet::new();
        let mut fingerprints = HashSet::new();
        let mut events = 0;
        for seq in 0..300 {
            let parcel = packer.pack(&plan(seq), NOW).unwrap();
            assert_eq!(parcel.events, 200);
            for (signal, list) in parcel.manifest.fingerprints {
                signals.insert(signal);
                events += list.len();
                fingerprints.extend(list.into_iter().map(|fingerprint| (signal, fingerprint)));
            }
        }
        assert_eq!(signals.len(), 9);
        assert_eq!(
            fingerprints.len(),
            events,
            "two events have the same fingerprint"
        );
    }

    #[test]
    fn a_generated_batch_is_within_the_protocol_limits() {
        let packer = Packer::new(settings(Encoding::Identity));
        let limits = unjank_protocol::Limits::default();
        for seq in 0..100 {
            let parcel = packer.pack(&plan(seq), NOW).unwrap();
            let batch: Batch<'_> = serde_json::from_slice(&parcel.body).unwrap();
            let sent_at = batch.sent_at.unwrap();
            for span in &batch.spans {
                assert!((0..limits.span_us).contains(&span.duration_us));
                let age = sent_at.micros_since(span.start);
                assert!((-limits.ahead_us..limits.age_us).contains(&age), "{age}");
            }
        }
    }

    #[test]
    fn the_manifest_lists_invalid_events() {
        let packer = Packer::new(ParcelSettings {
            invalid: 1.0,
            ..settings(Encoding::Identity)
        });
        let parcel = packer.pack(&plan(2), NOW).unwrap();
        let batch: Batch<'_> = serde_json::from_slice(&parcel.body).unwrap();
        let [(Signal::Spans, index)] = parcel.manifest.invalid[..] else {
            panic!("{:?}", parcel.manifest.invalid);
        };
        assert!(batch.spans[index as usize].duration_us < 0);
    }

    #[test]
    fn a_late_attempt_changes_only_sent_at() {
        for encoding in [Encoding::Zstd, Encoding::Gzip, Encoding::Identity] {
            let mut parcel = Packer::new(settings(encoding)).pack(&plan(1), NOW).unwrap();
            let first = encoding.decompress(&parcel.body).unwrap();
            parcel.restamp(NOW.shifted(1_000_000)).unwrap();
            assert_eq!(encoding.decompress(&parcel.body).unwrap(), first);
            parcel.restamp(NOW.shifted(60_000_000)).unwrap();
            let second = encoding.decompress(&parcel.body).unwrap();
            let mut first: Batch<'_> = serde_json::from_slice(&first).unwrap();
            let second: Batch<'_> = serde_json::from_slice(&second).unwrap();
            assert_eq!(
                second.sent_at,
                first.sent_at.map(|sent| sent.shifted(60_000_000))
            );
            first.sent_at = second.sent_at;
            assert_eq!(first, second);
        }
    }

    #[test]
    fn columns_are_the_batch_of_json_and_a_late_attempt_changes_only_sent_at() {
        let pack = |format| {
            let packer = Packer::new(ParcelSettings {
                format,
                ..settings(Encoding::Zstd)
            });
            packer.pack(&plan(1), NOW).unwrap()
        };
        let (json, mut columns) = (pack(Format::Batch), pack(Format::Columns));
        assert_eq!(json.manifest, columns.manifest);
        assert!(columns.body.len() < json.body.len());
        let json = Encoding::Zstd.decompress(&json.body).unwrap();
        let mut batch: Batch<'_> = serde_json::from_slice(&json).unwrap();
        let first = batch.sent_at.unwrap();
        for late_us in [0, 60_000_000] {
            columns.restamp(NOW.shifted(late_us)).unwrap();
            let plain = Encoding::Zstd.decompress(&columns.body).unwrap();
            let read = unjank_columns::read(&plain, &Bounds::default()).unwrap();
            batch.sent_at = Some(first.shifted(late_us));
            assert_eq!(read.batch, batch);
        }
    }
}
