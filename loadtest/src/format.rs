//! The forms in which batches are sent.

use anyhow::{Context, Result};
use clap::ValueEnum;
use prost::Message;
use unjank_columns::Bounds;
use unjank_protocol::{Batch, Timestamp};

use crate::otlp;

/// How a batch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A batch of the protocol, as JSON.
    #[value(name = "json")]
    Batch,
    /// A batch of the protocol, as columns.
    Columns,
    #[value(skip)]
    OtlpProtobuf,
    #[value(skip)]
    OtlpJson,
}

const SENT_AT: &str = "\"sent_at\":\"";

impl Format {
    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Batch => "json",
            Self::Columns => "columns",
            Self::OtlpProtobuf => "OTLP, protobuf",
            Self::OtlpJson => "OTLP, JSON",
        }
    }

    /// Whether the server answers with a receipt.
    pub(crate) fn is_batch(self) -> bool {
        matches!(self, Self::Batch | Self::Columns)
    }

    pub(crate) fn path(self) -> &'static str {
        if self.is_batch() {
            "/v1/ingest"
        } else {
            "/v1/traces"
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Batch | Self::OtlpJson => "application/json",
            Self::Columns => unjank_columns::MEDIA_TYPE,
            Self::OtlpProtobuf => "application/x-protobuf",
        }
    }

    pub(crate) fn encode(self, batch: &Batch<'_>) -> Result<Vec<u8>> {
        match self {
            Self::Batch => serde_json::to_vec(batch).context("encoding a batch"),
            Self::Columns => Ok(unjank_columns::write(batch)),
            Self::OtlpProtobuf => Ok(otlp::request(batch)?.encode_to_vec()),
            Self::OtlpJson => {
                serde_json::to_vec(&otlp::request(batch)?).context("encoding a request")
            }
        }
    }

    /// Returns a body with another time of sending.
    pub(crate) fn restamp(self, body: &[u8], sent_at: Timestamp) -> Result<Vec<u8>> {
        if self == Self::Columns {
            let read = unjank_columns::read(body, &Bounds::default());
            let mut batch = read.context("reading a columnar batch")?.batch;
            batch.sent_at = Some(sent_at);
            return Ok(unjank_columns::write(&batch));
        }
        let json = std::str::from_utf8(body).context("a batch is not UTF-8")?;
        let (head, rest) = json
            .split_once(SENT_AT)
            .context("a batch of a device with a clock has no sent_at")?;
        let (_, tail) = rest.split_once('"').context("sent_at is not a string")?;
        Ok(format!("{head}{SENT_AT}{sent_at}\"{tail}").into_bytes())
    }
}
