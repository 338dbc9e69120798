//! The address of a client behind proxies. Only trusted proxies are believed. The only HTTP here is the text of `X-Forwarded-For`.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;

/// The networks whose `X-Forwarded-For` is trusted, in the format of the setting: `10.0.0.0/8,::1`. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl FromStr for TrustedProxies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim);
        let networks = entries.filter(|entry| !entry.is_empty()).map(|entry| {
            let address = entry.parse::<IpAddr>().map(IpNet::from);
            address.or_else(|_| entry.parse()).map_err(|_| {
                format!("`{entry}` is neither an IP address nor a network such as 10.0.0.0/8 or fd00::/8")
            })
        });
        networks.collect::<Result<_, _>>().map(Self)
    }
}

/// Joins the lists of several flags.
impl FromIterator<Self> for TrustedProxies {
    fn from_iter<L: IntoIterator<Item = Self>>(lists: L) -> Self {
        Self(lists.into_iter().flat_map(|list| list.0).collect())
    }
}

impl TrustedProxies {
    /// Returns the address of the client. This is the peer's address, unless the peer is a trusted proxy. Then it is the last address in the header
    /// that is not a trusted proxy: a client may have forged those before it. `forwarded` has the values of all headers, in order.
    pub fn client<'h>(
        &self,
        peer: IpAddr,
        forwarded: impl DoubleEndedIterator<Item = &'h str>,
    ) -> IpAddr {
        let mut client = peer.to_canonical();
        let mut named = forwarded.rev().flat_map(|value| value.rsplit(','));
        while self.trusts(client) {
            // If a proxy does not name an address, the proxy itself counts as the client.
            let Some(next) = named.next().and_then(address) else {
                break;
            };
            client = next;
        }
        client
    }

    /// Whether the address belongs to a trusted proxy.
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
    fn the_header_of_an_untrusted_peer_is_ignored() {
        assert_eq!(client("", "192.0.2.9", &["198.51.100.1"]), "192.0.2.9");
        let trusted = "10.0.0.0/8, ::1";
        assert_eq!(client(trusted, "192.0.2.9", &["198.51.100.1"]), "192.0.2.9");
        assert_eq!(
            client(trusted, "::ffff:192.0.2.9", &["198.51.100.1"]),
            "192.0.2.9"
        );
    }

    #[test]
    fn the_rightmost_address_that_is_not_a_proxy_is_the_client() {
        let trusted = "10.0.0.0/8,::1";
        for (peer, forwarded, expected) in [
            ("10.1.1.1", &["198.51.100.1"][..], "198.51.100.1"),
            // The client has forged the first two.
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
    fn a_setting_that_is_not_a_network_is_rejected() {
        for wrong in ["10.0.0.0/33", "proxy.example.com", "10.0.0.1-10.0.0.9"] {
            let refused = wrong.parse::<TrustedProxies>().unwrap_err();
            assert!(refused.contains(wrong), "{refused}");
        }
    }
}
