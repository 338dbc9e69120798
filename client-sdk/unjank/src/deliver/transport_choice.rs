//! Chooses what carries requests: the transport of the app, the built-in HTTP client, or nothing.

use std::sync::Arc;

use super::problem;
use super::transport::{self, Transport};
use crate::config::Config;

/// Returns the transport of a configuration, or why there is none.
pub(crate) fn choose(config: &Config) -> Result<Arc<dyn Transport>, String> {
    if let Some(transport) = &config.transport {
        return Ok(Arc::clone(transport));
    }
    if config.offline {
        return Ok(Arc::new(transport::Nowhere));
    }
    match problem::of_endpoint(&config.endpoint) {
        Some(problem) => Err(problem),
        None => built_in_transport(config),
    }
}

#[cfg(feature = "ureq")]
fn built_in_transport(config: &Config) -> Result<Arc<dyn Transport>, String> {
    Ok(Arc::new(transport::Ureq::new(&config.root_certificates)?))
}

#[cfg(not(feature = "ureq"))]
fn built_in_transport(_: &Config) -> Result<Arc<dyn Transport>, String> {
    Err("no transport: set `Config::transport`, or build with the feature `ureq`".to_owned())
}
