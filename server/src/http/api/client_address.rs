//! The address of a client: the peer of its connection, or the address that a trusted proxy reports.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderName;
use axum::http::request::Parts;

use crate::app::App;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

pub(crate) struct ClientAddress(pub(crate) IpAddr);

impl FromRequestParts<Arc<App>> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        // Every connection has a peer. Requests without a connection share one address.
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        if parts.headers.contains_key(FORWARDED_FOR) && !app.trusted_proxies.trusts(peer) {
            warn_of(peer);
        }
        let values = parts.headers.get_all(FORWARDED_FOR).iter();
        // A value that is not text is not an address.
        let values = values.map(|value| value.to_str().unwrap_or_default());
        Ok(Self(app.trusted_proxies.client(peer, values)))
    }
}

/// Warns at most once an hour, because anyone can send the header.
fn warn_of(peer: IpAddr) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    const PAUSE: Duration = Duration::from_secs(3_600);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none_or(|last| last.elapsed() >= PAUSE) {
        *last = Some(Instant::now());
        tracing::warn!(
            %peer,
            "a request has the header X-Forwarded-For, but its peer is not a trusted proxy: the header is ignored. If the peer is your proxy, \
             name it in --trusted-proxies; until then all its clients count as one"
        );
    }
}
