//! The names that attributes of requests had before version 1.23 of the semantic conventions. Exporters such as opentelemetry-swift still send
//! them by default.

use unjank_protocol::Text;

/// The old name and the new one. Of several old names for one new name, the best is first.
const NAMES: [(&str, &str); 10] = [
    ("http.method", "http.request.method"),
    ("http.url", "url.full"),
    ("http.target", "url.path"),
    ("http.scheme", "url.scheme"),
    ("http.status_code", "http.response.status_code"),
    ("net.peer.name", "server.address"),
    (HOST, "server.address"),
    ("net.peer.port", "server.port"),
    ("http.request_content_length", "http.request.body.size"),
    ("http.response_content_length", "http.response.body.size"),
];

/// May have a port, which the new name does not.
const HOST: &str = "http.host";

/// Renames the attributes of a request that a client made. An attribute whose new name is there, too, keeps its old one.
pub(super) fn rename(attributes: &mut [(Text<'_>, Text<'_>)]) {
    for (old, new) in NAMES {
        if attributes.iter().any(|(name, _)| name.as_str() == new) {
            continue;
        }
        // Of attributes that have one name, the last one counts.
        let mut latest_first = attributes.iter_mut().rev();
        let Some((name, value)) = latest_first.find(|(name, _)| name.as_str() == old) else {
            continue;
        };
        if old == HOST {
            *value = without_port(value).to_owned().into();
        }
        *name = new.into();
    }
}

/// `shop.example.com:8080` → `shop.example.com`. An address of version 6 has brackets if a port follows.
fn without_port(host: &str) -> &str {
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(attributes: &[(&str, &str)]) -> Vec<(String, String)> {
        let texts = attributes.iter();
        let mut texts: Vec<_> = texts
            .map(|(name, value)| (Text::from(*name), Text::from(*value)))
            .collect();
        rename(&mut texts);
        let owned = texts.iter();
        owned
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn each_old_name_has_a_new_one() {
        for (old, new) in NAMES {
            let expected = vec![(new.to_owned(), "7".to_owned())];
            assert_eq!(renamed(&[(old, "7")]), expected);
        }
    }

    #[test]
    fn a_new_name_is_not_overwritten() {
        let both = [("http.url", "https://old.example"), ("url.full", "new")];
        let names: Vec<_> = renamed(&both).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["http.url", "url.full"]);
        let both = [("http.host", "b.example"), ("net.peer.name", "a.example")];
        let names: Vec<_> = renamed(&both).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["http.host", "server.address"]);
    }

    #[test]
    fn a_host_has_no_port() {
        for (host, name) in [
            ("shop.example.com", "shop.example.com"),
            ("shop.example.com:8080", "shop.example.com"),
            ("[2001:db8::1]:8080", "[2001:db8::1]"),
            ("2001:db8::1", "2001:db8::1"),
            ("", ""),
        ] {
            assert_eq!(without_port(host), name);
        }
    }
}
