//! Opens the symbol files of a server.

use std::sync::Arc;

use unjank_database::Control;
use unjank_foundation::clock::Clock;
use unjank_foundation::task::Tasks;

use crate::app::App;
use crate::config::{Serve, Shared, bucket_options};
use crate::metrics::SymbolMetrics;
use crate::symbols::{Assemblies, Lookups, Parser, ParserLimits, SymbolStore};

/// Maximum number of requests with chunks of symbol files at a time. Each may take 24 MiB.
pub(super) const UPLOADS: usize = 4;

/// Returns the work on uploads.
pub(super) fn join_chunks(app: &App, tasks: &Tasks) -> impl Future<Output = ()> + use<> {
    Arc::clone(&app.symbols).run(tasks.shutdown())
}

pub(super) fn open(
    shared: &Shared,
    settings: &Serve,
    control: &Control,
    (clock, metrics): (&Clock, &SymbolMetrics),
) -> anyhow::Result<Arc<Assemblies>> {
    let min_free_bytes = settings.min_free_bytes;
    let settings = &settings.symbols;
    let store = match &settings.symbols_url {
        Some(url) => SymbolStore::bucket(url, &bucket_options())?,
        None => SymbolStore::folder(&shared.data_dir.join("symbols"))?,
    };
    let parser = Parser::new(
        shared.engine_program()?,
        (settings.symbols_parser_memory_bytes, settings.parser_time()),
        ParserLimits::Settings,
    );
    let lookups = Lookups::open(
        &shared.data_dir.join("symbol-lookups"),
        settings.symbols_cache_bytes,
        Arc::new(store),
        Arc::new(parser),
        (control.clone(), clock.clone()),
    )?;
    let assemblies = Assemblies::new(
        Arc::new(lookups),
        clock.clone(),
        (settings.symbols_max_bytes, min_free_bytes),
        metrics.clone(),
    );
    Ok(Arc::new(assemblies))
}
