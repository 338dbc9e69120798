//! Restricts the targets of notifications. The server requests the URL of a channel from within its own network, so only public
//! addresses are allowed, and addresses that the operator lists.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;

/// Addresses and hosts that are allowed in addition to public ones, from a setting such as `10.0.0.0/8,alertmanager.internal`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedTargets {
    networks: Vec<IpNet>,
    /// In lower case.
    hosts: Vec<String>,
}

impl FromStr for AllowedTargets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut allowed = Self::default();
        let entries = text.split(',').map(str::trim);
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let network = entry.parse::<IpAddr>().map(IpNet::from);
            if let Ok(network) = network.or_else(|_| entry.parse()) {
                allowed.networks.push(network);
                continue;
            }
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            let named = entry.bytes().any(|byte| byte.is_ascii_alphabetic());
            if !named || !entry.bytes().all(plain) {
                return Err(format!(
                    "`{entry}` is not a host, address or network such as alertmanager.internal, 10.0.0.5 or 10.0.0.0/8"
                ));
            }
            allowed.hosts.push(entry.to_ascii_lowercase());
        }
        Ok(allowed)
    }
}

/// Joins the lists of several flags.
impl FromIterator<Self> for AllowedTargets {
    fn from_iter<L: IntoIterator<Item = Self>>(lists: L) -> Self {
        let mut all = Self::default();
        for list in lists {
            all.networks.extend(list.networks);
            all.hosts.extend(list.hosts);
        }
        all
    }
}

impl AllowedTargets {
    /// Whether a URL with this host may connect to this address.
    #[must_use]
    pub fn allows(&self, host: &str, address: IpAddr) -> bool {
        let address = unwrapped(address);
        is_public(address)
            || self
                .networks
                .iter()
                .any(|network| network.contains(&address))
            || self
                .hosts
                .contains(&host.trim_end_matches('.').to_ascii_lowercase())
    }
}

impl AllowedTargets {
    /// Whether a name may be resolved. Internal names may not, because the response would reveal whether they exist.
    #[must_use]
    pub fn resolves(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let is_internal = !host.contains('.')
            || INTERNAL
                .iter()
                .any(|suffix| host.ends_with(&format!(".{suffix}")));
        !is_internal || self.hosts.contains(&host)
    }
}

/// Domains that no public host has.
const INTERNAL: [&str; 10] = [
    "arpa",
    "corp",
    "home",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "private",
];

/// Returns the IPv4 address that an IPv6 address embeds: mapped (`::ffff:0:0/96`), NAT64 (`64:ff9b::/96`), 6to4 (`2002::/16`) and the
/// deprecated "compatible" addresses (`::/96`). Other addresses are returned as they are.
fn unwrapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = address else {
        return address;
    };
    let octets = six.octets();
    let four = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(
            octets[at],
            octets[at + 1],
            octets[at + 2],
            octets[at + 3],
        ))
    };
    match six.segments() {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => four(12),
        [0x2002, ..] => four(2),
        [0, 0, 0, 0, 0, 0, high, low] if (high, low) > (0, 1) => four(12),
        _ => address,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network; private; loopback; multicast, reserved and broadcast.
        (0 | 10 | 127 | 224.., ..) => true,
        // Carrier-grade NAT, which clouds use for their own services too; link-local with the metadata services.
        (100, 64..=127, _) | (169, 254, _) => true,
        (172, 16..=31, _) | (192, 168, _) => true,
        // Protocol assignments, examples, 6to4 relays, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => {
            true
        }
        _ => false,
    };
    // Azure's "wire server" is internal, although its address is public.
    !special && address != Ipv4Addr::new(168, 63, 129, 16)
}

/// Public is global unicast, `2000::/3`, without its special-purpose blocks.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocol assignments with Teredo and ORCHID; examples.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(setting: &str, host: &str, address: &str) -> bool {
        let allowed: AllowedTargets = setting.parse().unwrap();
        allowed.allows(host, address.parse().unwrap())
    }

    #[test]
    fn internal_names_are_not_resolved_unless_allowed() {
        let allowed: AllowedTargets = "alertmanager.internal,10.0.0.0/8".parse().unwrap();
        for name in [
            "localhost",
            "db",
            "db.internal",
            "a.b.LOCAL",
            "kubernetes.default.svc.cluster.local",
            "x.home.arpa.",
        ] {
            assert!(!allowed.resolves(name), "{name}");
        }
        for name in [
            "alertmanager.internal",
            "hooks.slack.com",
            "internal.example.com",
        ] {
            assert!(allowed.resolves(name), "{name}");
        }
    }

    #[test]
    fn addresses_that_are_not_public_are_refused() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:a00:1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!allowed("", "example.com", address), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "2002:808:808::1",
            "64:ff9b::8.8.8.8",
            "::ffff:8.8.8.8",
        ] {
            assert!(allowed("", "example.com", address), "{address}");
        }
    }

    #[test]
    fn the_setting_allows_the_listed_networks_and_hosts_only() {
        let setting = "127.0.0.1, 10.1.0.0/16,Alertmanager.Internal,fd00::/8";
        assert!(allowed(setting, "127.0.0.1", "127.0.0.1"));
        assert!(allowed(setting, "x", "::ffff:127.0.0.1"));
        assert!(!allowed(setting, "x", "127.0.0.2"));
        assert!(allowed(setting, "x", "10.1.2.3"));
        assert!(!allowed(setting, "x", "10.2.0.1"));
        assert!(allowed(setting, "x", "fd12::1"));
        assert!(allowed(setting, "alertmanager.internal", "192.168.0.7"));
        assert!(allowed(setting, "ALERTMANAGER.internal.", "192.168.0.7"));
        assert!(!allowed(setting, "x.alertmanager.internal", "192.168.0.7"));
    }

    #[test]
    fn a_malformed_setting_is_refused() {
        for wrong in ["10.0.0.0/33", "http://host", "10.0.0.1-10.0.0.9", "*"] {
            let refused = wrong.parse::<AllowedTargets>().unwrap_err();
            assert!(refused.contains(wrong), "{refused}");
        }
    }
}
