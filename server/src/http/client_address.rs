//! Where a request comes from: the peer of its connection, or who a trusted proxy says it is.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderName;
use axum::http::request::Parts;

use crate::app::App;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

pub(super) struct ClientAddress(pub(super) IpAddr);

impl FromRequestParts<Arc<App>> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        // Every connection says it; a request that came by none is counted with its like.
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        let values = parts.headers.get_all(FORWARDED_FOR).iter();
        // One that is no text names nobody.
        let values = values.map(|value| value.to_str().unwrap_or_default());
        Ok(Self(app.trusted_proxies.client(peer, values)))
    }
}
