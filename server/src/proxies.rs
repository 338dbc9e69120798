//! Who a request comes from when proxies stand in between: only what a trusted proxy says is believed. Knows no HTTP but the text
//! of `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;

/// The networks whose `X-Forwarded-For` is believed, as the setting has them: `10.0.0.0/8,::1`. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl FromStr for TrustedProxies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim);
        let networks = entries.filter(|entry| !entry.is_empty()).map(|entry| {
            let address = entry.parse::<IpAddr>().map(IpNet::from);
            address.or_else(|_| entry.parse()).map_err(|_| {
                format!("`{entry}` is no address and no network such as 10.0.0.0/8 or fd00::/8")
            })
        });
        networks.collect::<Result<_, _>>().map(Self)
    }
}

impl TrustedProxies {
    /// The address of the client: the peer's, unless the peer is a trusted proxy; then the last one that the proxies name and that
    /// is none of them. What stands before it, anybody may have written. `forwarded`: the values of all headers, in order.
    pub fn client<'h>(
        &self,
        peer: IpAddr,
        forwarded: impl DoubleEndedIterator<Item = &'h str>,
    ) -> IpAddr {
        let mut client = peer.to_canonical();
        let mut named = forwarded.rev().flat_map(|value| value.rsplit(','));
        while self.trusts(client) {
            // A proxy that names nobody, or not by address, is as far as one can see.
            let Some(next) = named.next().and_then(address) else {
                break;
            };
            client = next;
        }
        client
    }

    /// Whether the address is that of a trusted proxy.
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// `192.0.2.1`, `192.0.2.1:1234`, `2001:db8::1` or `[2001:db8::1]:1234`.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &str, peer: &str, forwarded: &[&str]) -> String {
        let trusted: TrustedProxies = trusted.parse().unwrap();
        let client = trusted.client(peer.parse().unwrap(), forwarded.iter().copied());
        client.to_string()
    }

    #[test]
    fn nobody_is_believed_who_is_not_trusted() {
        assert_eq!(client("", "192.0.2.9", &["198.51.100.1"]), "192.0.2.9");
        let trusted = "10.0.0.0/8, ::1";
        assert_eq!(client(trusted, "192.0.2.9", &["198.51.100.1"]), "192.0.2.9");
        assert_eq!(
            client(trusted, "::ffff:192.0.2.9", &["198.51.100.1"]),
            "192.0.2.9"
        );
    }

    #[test]
    fn the_rightmost_address_that_is_no_proxy_is_the_client() {
        let trusted = "10.0.0.0/8,::1";
        for (peer, forwarded, expected) in [
            ("10.1.1.1", &["198.51.100.1"][..], "198.51.100.1"),
            // The first two are the client's own invention.
            (
                "10.1.1.1",
                &["10.9.9.9, 1.1.1.1, 198.51.100.1, 10.2.2.2"],
                "198.51.100.1",
            ),
            (
                "::1",
                &["1.1.1.1", "198.51.100.1 , 10.2.2.2"],
                "198.51.100.1",
            ),
            ("::ffff:10.1.1.1", &["::ffff:198.51.100.1"], "198.51.100.1"),
            ("10.1.1.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("10.1.1.1", &["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.1.1.1", &["2001:db8::1"], "2001:db8::1"),
            ("10.1.1.1", &[], "10.1.1.1"),
            ("10.1.1.1", &["198.51.100.1, unknown"], "10.1.1.1"),
            ("10.1.1.1", &["198.51.100.1, unknown, 10.2.2.2"], "10.2.2.2"),
            ("10.1.1.1", &["10.3.3.3"], "10.3.3.3"),
        ] {
            assert_eq!(
                client(trusted, peer, forwarded),
                expected,
                "{peer} {forwarded:?}"
            );
        }
    }

    #[test]
    fn a_setting_that_is_no_network_is_refused() {
        for wrong in ["10.0.0.0/33", "proxy.example.com", "10.0.0.1-10.0.0.9"] {
            let refused = wrong.parse::<TrustedProxies>().unwrap_err();
            assert!(refused.contains(wrong), "{refused}");
        }
    }
}
