//! Settings of the clients that reach the server by HTTP: the proxies before them, and web apps.

use clap::Args;

use crate::trusted_proxies::TrustedProxies;
use crate::web_origins::WebOrigins;

/// A part of the settings of `unjank serve`.
#[derive(Args, Clone, Debug)]
pub struct Web {
    /// Trusted proxies in front of this server, as addresses and networks: `10.0.0.0/8,::1`. Repeatable. Failed logins are counted by the
    /// client address in their `X-Forwarded-For`. Unset: no proxy is trusted, and all clients behind a proxy count as one address.
    #[arg(
        long,
        env = "UNJANK_TRUSTED_PROXIES",
        value_name = "NETWORKS",
        default_value = "",
        hide_default_value = true
    )]
    pub trusted_proxies: Vec<TrustedProxies>,

    /// The origins of web apps that report from a browser or a web view: `https://shop.example,capacitor://localhost`, or `*`. Repeatable.
    /// Unset: none.
    #[arg(
        long,
        env = "UNJANK_WEB_ORIGINS",
        value_name = "ORIGINS",
        default_value = "",
        hide_default_value = true
    )]
    pub web_origins: Vec<WebOrigins>,
}

impl Web {
    pub fn trusted_proxies(&self) -> TrustedProxies {
        self.trusted_proxies.iter().cloned().collect()
    }

    pub fn web_origins(&self) -> WebOrigins {
        self.web_origins.iter().cloned().collect()
    }
}
