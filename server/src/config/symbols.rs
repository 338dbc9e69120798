//! Settings of symbol files.

use std::time::Duration;

use clap::Args;

use super::{bytes, bytes_in};

/// A part of the settings of `unjank serve`.
#[derive(Args, Clone, Debug)]
pub struct Symbols {
    /// The bucket for symbol files, such as `s3://symbols/unjank`. Credentials and region come from `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and `AWS_ENDPOINT`. Unset: the folder `symbols` in the data folder. Several servers need a
    /// bucket, or a data folder that they share.
    #[arg(long, env = "UNJANK_SYMBOLS_URL", value_name = "URL")]
    pub symbols_url: Option<String>,

    /// The maximum size of the symbol files of one project, in bytes. Uploads above it fail.
    #[arg(long, env = "UNJANK_SYMBOLS_MAX_BYTES", value_name = "BYTES", default_value_t = 20 << 30, value_parser = bytes)]
    pub symbols_max_bytes: u64,

    /// The maximum size of the lookup files on this server's disk, in bytes. They are made from symbol files and can be deleted.
    #[arg(long, env = "UNJANK_SYMBOLS_CACHE_BYTES", value_name = "BYTES", default_value_t = 10 << 30, value_parser = bytes)]
    pub symbols_cache_bytes: u64,

    /// A symbol file is deleted when no stored stack needs it, this many days after it was uploaded and last used; 0 keeps files forever.
    #[arg(long, env = "UNJANK_SYMBOLS_UNUSED_DAYS", value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub symbols_unused_days: u64,

    /// The maximum memory of the process that parses a symbol file, in bytes; at least 134217728 (128 MiB). 64 MiB of it are the
    /// stack of the reader of JavaScript. A file that needs more is refused.
    #[arg(long, env = "UNJANK_SYMBOLS_PARSER_MEMORY_BYTES", value_name = "BYTES", default_value_t = 2 << 30, value_parser = bytes_in::<{ unjank_symbols::MIN_MEMORY_BYTES }, { u64::MAX }>)]
    pub symbols_parser_memory_bytes: u64,

    /// The maximum time on the CPU for parsing a symbol file, in milliseconds, rounded down to whole seconds. A file that takes longer is refused.
    #[arg(long, env = "UNJANK_SYMBOLS_PARSER_MS", value_name = "MS", default_value_t = 300_000, value_parser = clap::value_parser!(u64).range(1_000..=3_600_000))]
    pub symbols_parser_ms: u64,
}

impl Symbols {
    /// Returns how long unused files are kept. `None` means forever.
    pub fn keep_unused(&self) -> Option<Duration> {
        let days = self.symbols_unused_days;
        (days > 0).then(|| Duration::from_secs(days * 86_400))
    }

    pub fn parser_time(&self) -> Duration {
        Duration::from_millis(self.symbols_parser_ms)
    }
}
