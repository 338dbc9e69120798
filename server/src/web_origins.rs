//! The origins of web apps that may send events and ask for their configuration from a browser.

use std::str::FromStr;

use reqwest::Url;

/// Origins in the format of the setting: `https://shop.example,http://localhost:3000`, or `*`. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebOrigins(Vec<String>);

const ALL: &str = "*";

impl FromStr for WebOrigins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim);
        let origins = entries.filter(|entry| !entry.is_empty()).map(|entry| {
            let origin = Url::parse(entry).ok().and_then(|url| origin(&url));
            let written = entry.trim_end_matches('/');
            let is_origin = entry == ALL || origin.as_deref() == Some(written);
            is_origin.then(|| written.to_owned()).ok_or_else(|| {
                format!("`{entry}` is not an origin: write it as the browser does, such as https://shop.example or capacitor://localhost, without a path, or * for all")
            })
        });
        origins.collect::<Result<_, _>>().map(Self)
    }
}

/// Returns the origin that a browser sends for the pages of a URL. Web views in apps have schemes of their own, such as `capacitor://localhost`.
/// `None` if it sends `null`, and for patterns, because an origin is compared as a whole.
fn origin(url: &Url) -> Option<String> {
    let host = url.host_str().filter(|host| !host.contains('*'))?;
    let origin = url.origin();
    if origin.is_tuple() {
        return Some(origin.ascii_serialization());
    }
    let is_own = !host.is_empty() && url.scheme() != "file";
    let port = url.port().map(|port| format!(":{port}"));
    is_own.then(|| format!("{}://{host}{}", url.scheme(), port.unwrap_or_default()))
}

/// Joins the lists of several flags.
impl FromIterator<Self> for WebOrigins {
    fn from_iter<L: IntoIterator<Item = Self>>(lists: L) -> Self {
        Self(lists.into_iter().flat_map(|list| list.0).collect())
    }
}

impl WebOrigins {
    #[must_use]
    pub fn allow_all(&self) -> bool {
        self.0.iter().any(|origin| origin == ALL)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_as_browsers_write_them() {
        let origins: WebOrigins = "https://shop.example, http://localhost:3000/"
            .parse()
            .unwrap();
        assert_eq!(
            origins.iter().collect::<Vec<_>>(),
            ["https://shop.example", "http://localhost:3000"]
        );
        assert!(!origins.allow_all());
        assert!("*".parse::<WebOrigins>().unwrap().allow_all());
        assert_eq!("".parse(), Ok(WebOrigins::default()));
        for own in [
            "capacitor://localhost",
            "ionic://localhost",
            "tauri://localhost",
            "app://shop.example:8080",
            "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
        ] {
            let origins: WebOrigins = format!("{own}/").parse().unwrap();
            assert_eq!(origins.iter().collect::<Vec<_>>(), [own]);
        }
        for wrong in [
            "shop.example",
            "https://shop.example/cart",
            "https://shop.example:443",
            "https://*.shop.example",
            "null",
            "data:x",
            "file:///shop",
            "file://shop",
            "app://",
            "app://user@shop",
            "app://shop/cart",
            "app://shop?a",
            "app://shop#a",
            "app://*",
            "Capacitor://localhost",
        ] {
            let problem = wrong.parse::<WebOrigins>().unwrap_err();
            assert!(problem.contains("is not an origin"), "{wrong}: {problem}");
        }
    }
}
