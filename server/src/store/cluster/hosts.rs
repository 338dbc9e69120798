//! The hosts of a cluster as ClickHouse lists them, and their HTTP addresses.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::str::FromStr;

use clickhouse::{Client, Row};
use reqwest::Url;
use serde::Deserialize;

use crate::store::clickhouse::Failure;

/// A part of the row of a host in `system.clusters`.
#[derive(Clone, Debug, Row, Deserialize)]
pub(super) struct Listed {
    shard_num: u32,
    host_name: String,
    port: u16,
    is_local: u8,
}

/// A host of a cluster. It is the only one of its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) shard: u32,
    /// The address of the native protocol, `host:port`, as in `system.clusters`.
    pub(super) address: String,
    pub(super) url: String,
}

/// The HTTP address of a host, for a host that does not use the scheme and port of the other hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostUrl {
    address: String,
    url: String,
}

/// Parses `host:port=URL`.
impl FromStr for HostUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, url) = text
            .trim()
            .split_once('=')
            .ok_or("each entry must be `host:port=URL`, such as `ch1:9000=http://ch1:8123`")?;
        let port = address.rsplit_once(':').map(|(_, port)| port);
        if port.is_none_or(|port| port.parse::<u16>().is_err()) {
            return Err(format!(
                "`{address}` must be a host and a port, as in `system.clusters`, such as `ch1:9000`"
            ));
        }
        let parsed = Url::parse(url).ok();
        let parsed = parsed.filter(|url| ["http", "https"].contains(&url.scheme()));
        let Some(parsed) = parsed else {
            return Err(format!(
                "`{url}` must be an HTTP address, such as `http://ch1:8123`"
            ));
        };
        Ok(Self {
            address: address.to_owned(),
            url: parsed.to_string(),
        })
    }
}

/// Why unjank cannot use a cluster.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCluster {
    #[error("ClickHouse has no cluster `{name}` in `system.clusters`; it has: {}", .known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error(
        "shard {shard} has {hosts} hosts: unjank does not support replicas yet, so each shard must have one host"
    )]
    Replicas { shard: u32, hosts: usize },
    #[error("{address} is a host of two shards: each shard needs a host of its own")]
    SharedHost { address: String },
    #[error("{address} of --clickhouse-hosts is not in the cluster, which has: {}", .hosts.join(", "))]
    NotInCluster { address: String, hosts: Vec<String> },
    #[error(
        "{first} and {second} would have the same HTTP address, {url}: set --clickhouse-hosts to the address of each host"
    )]
    SameUrl {
        first: String,
        second: String,
        url: String,
    },
    #[error("{url} is no HTTP address: correct --clickhouse-url")]
    Url { url: String },
}

/// Reads how the ClickHouse of `client` lists a cluster.
pub(super) async fn list(client: &Client, cluster: &str) -> Result<Vec<Listed>, Failure> {
    let sql = "SELECT ?fields FROM system.clusters WHERE cluster = {cluster:String} ORDER BY shard_num, replica_num";
    let query = client.query(sql).param("cluster", cluster);
    Ok(query.fetch_all().await?)
}

/// Reads the names of the clusters that the ClickHouse of `client` lists.
pub(super) async fn known_clusters(client: &Client) -> Result<Vec<String>, Failure> {
    let sql = "SELECT DISTINCT cluster FROM system.clusters ORDER BY cluster";
    Ok(client.query(sql).fetch_all().await?)
}

/// Returns the hosts in the order of their shards. Hosts that `given` does not name have the scheme and port of `base`.
pub(super) fn hosts(
    listed: &[Listed],
    base: &str,
    given: &[HostUrl],
) -> Result<Vec<Host>, BadCluster> {
    one_host_each(listed)?;
    let given = given_urls(listed, given)?;
    let mut hosts: Vec<Host> = Vec::new();
    for row in listed {
        let address = row.address();
        let url = match given.get(address.as_str()) {
            Some(url) => (*url).to_owned(),
            None => url_of(base, &row.host_name)?,
        };
        if let Some(other) = hosts.iter().find(|host| host.url == url) {
            return Err(BadCluster::SameUrl {
                first: other.address.clone(),
                second: address,
                url,
            });
        }
        hosts.push(Host {
            shard: row.shard_num,
            address,
            url,
        });
    }
    Ok(hosts)
}

/// Returns how the list that a host has differs from `expected`, or which other host it says to be.
pub(super) fn difference(expected: &[Host], own: &Host, listed: &[Listed]) -> Option<String> {
    let place = |shard: u32, address: &str| format!("{shard} {address}");
    let ours: Vec<String> = expected
        .iter()
        .map(|host| place(host.shard, &host.address))
        .collect();
    let theirs: Vec<String> = listed
        .iter()
        .map(|row| place(row.shard_num, &row.address()))
        .collect();
    if theirs.is_empty() {
        return Some("lists no such cluster: give all hosts the same `remote_servers`".to_owned());
    }
    if ours != theirs {
        return Some(format!(
            "lists other shards ({}): give all hosts the same `remote_servers`",
            theirs.join(", ")
        ));
    }
    // Behind a translation of addresses, a host does not recognize itself.
    let mut local = listed.iter().filter(|row| row.is_local == 1);
    let first = local.next()?.address();
    let is_own = first == own.address || local.any(|row| row.address() == own.address);
    (!is_own).then(|| format!("is {first}: correct --clickhouse-hosts"))
}

impl Listed {
    fn address(&self) -> String {
        match self.host_name.contains(':') {
            true => format!("[{}]:{}", self.host_name, self.port),
            false => format!("{}:{}", self.host_name, self.port),
        }
    }
}

fn one_host_each(listed: &[Listed]) -> Result<(), BadCluster> {
    let mut counts = BTreeMap::new();
    let mut shards = BTreeMap::new();
    for row in listed {
        *counts.entry(row.shard_num).or_insert(0) += 1;
        let address = row.address();
        let other = shards.insert(address.clone(), row.shard_num);
        if other.is_some_and(|other| other != row.shard_num) {
            return Err(BadCluster::SharedHost { address });
        }
    }
    match counts.into_iter().find(|(_, hosts)| *hosts > 1) {
        Some((shard, hosts)) => Err(BadCluster::Replicas { shard, hosts }),
        None => Ok(()),
    }
}

/// Returns the URLs of `given` by address. Fails if the cluster has no such host.
fn given_urls<'a>(
    listed: &[Listed],
    given: &'a [HostUrl],
) -> Result<BTreeMap<&'a str, &'a str>, BadCluster> {
    let hosts: Vec<String> = listed.iter().map(Listed::address).collect();
    match given.iter().find(|given| !hosts.contains(&given.address)) {
        Some(unknown) => Err(BadCluster::NotInCluster {
            address: unknown.address.clone(),
            hosts,
        }),
        None => Ok(given
            .iter()
            .map(|given| (given.address.as_str(), given.url.as_str()))
            .collect()),
    }
}

/// Returns `base` with another host.
fn url_of(base: &str, host: &str) -> Result<String, BadCluster> {
    let bad = || BadCluster::Url {
        url: base.to_owned(),
    };
    let host = match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => host.to_owned(),
    };
    let mut url = Url::parse(base).map_err(|_| bad())?;
    url.set_host(Some(&host)).map_err(|_| bad())?;
    Ok(url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(shard_num: u32, host_name: &str, port: u16) -> Listed {
        Listed {
            shard_num,
            host_name: host_name.to_owned(),
            port,
            is_local: 0,
        }
    }

    fn urls(
        listed: &[Listed],
        base: &str,
        given: &[&str],
    ) -> Result<Vec<(u32, String)>, BadCluster> {
        let given: Vec<HostUrl> = given.iter().map(|text| text.parse().unwrap()).collect();
        let hosts = hosts(listed, base, &given)?.into_iter();
        Ok(hosts.map(|host| (host.shard, host.url)).collect())
    }

    #[test]
    fn hosts_have_the_scheme_and_the_port_of_the_first_one() {
        let listed = [
            row(1, "ch1", 9000),
            row(2, "ch2", 9000),
            row(3, "::1", 9000),
        ];
        assert_eq!(
            urls(&listed, "https://ch1:8443", &[]).unwrap(),
            [
                (1, "https://ch1:8443/".to_owned()),
                (2, "https://ch2:8443/".to_owned()),
                (3, "https://[::1]:8443/".to_owned()),
            ]
        );
    }

    #[test]
    fn hosts_of_one_machine_need_an_address_each() {
        let listed = [row(1, "127.0.0.1", 9001), row(2, "127.0.0.1", 9002)];
        let base = "http://127.0.0.1:8123";
        assert_eq!(
            urls(&listed, base, &[]),
            Err(BadCluster::SameUrl {
                first: "127.0.0.1:9001".to_owned(),
                second: "127.0.0.1:9002".to_owned(),
                url: "http://127.0.0.1:8123/".to_owned(),
            })
        );
        let second = "127.0.0.1:9002=http://127.0.0.1:8124";
        assert_eq!(
            urls(&listed, base, &[second]).unwrap(),
            [
                (1, "http://127.0.0.1:8123/".to_owned()),
                (2, "http://127.0.0.1:8124/".to_owned()),
            ]
        );
        assert_eq!(
            urls(&listed, base, &["127.0.0.1:9003=http://127.0.0.1:8125"]),
            Err(BadCluster::NotInCluster {
                address: "127.0.0.1:9003".to_owned(),
                hosts: vec!["127.0.0.1:9001".to_owned(), "127.0.0.1:9002".to_owned()],
            })
        );
    }

    #[test]
    fn replicas_and_shared_hosts_are_refused() {
        let base = "http://ch1:8123";
        let replicas = [
            row(1, "ch1", 9000),
            row(2, "ch2", 9000),
            row(2, "ch3", 9000),
        ];
        assert_eq!(
            urls(&replicas, base, &[]),
            Err(BadCluster::Replicas { shard: 2, hosts: 2 })
        );
        let shared = [row(1, "ch1", 9000), row(2, "ch1", 9000)];
        assert_eq!(
            urls(&shared, base, &[]),
            Err(BadCluster::SharedHost {
                address: "ch1:9000".to_owned()
            })
        );
    }

    #[test]
    fn an_address_names_a_host_a_port_and_a_url() {
        for wrong in [
            "ch1:9000",
            "ch1=http://ch1:8123",
            "ch1:x=http://ch1:8123",
            "ch1:9000=ch1:8123",
        ] {
            wrong.parse::<HostUrl>().unwrap_err();
        }
        let ours: HostUrl = "[::1]:9000=http://[::1]:8123".parse().unwrap();
        assert_eq!(ours.address, row(1, "::1", 9000).address());
    }

    #[test]
    fn a_host_that_is_another_one_or_has_another_list_is_found() {
        let listed = [row(1, "ch1", 9000), row(2, "ch2", 9000)];
        let hosts = hosts(&listed, "http://ch1:8123", &[]).unwrap();
        let told = |listed: &[Listed]| difference(&hosts, &hosts[0], listed);
        assert_eq!(told(&listed), None);
        let local = |at: usize| {
            let mut listed = listed.clone();
            listed[at].is_local = 1;
            told(&listed)
        };
        assert_eq!(local(0), None);
        assert_eq!(local(1).unwrap(), "is ch2:9000: correct --clickhouse-hosts");
        assert!(
            told(&listed[..1])
                .unwrap()
                .contains("lists other shards (1 ch1:9000)")
        );
        assert!(told(&[]).unwrap().contains("no such cluster"));
    }
}
