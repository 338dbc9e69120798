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
            let origin = Url::parse(entry).ok().map(|url| url.origin().ascii_serialization());
            let is_origin = entry == ALL || origin.as_deref() == Some(entry.trim_end_matches('/'));
            is_origin.then(|| entry.trim_end_matches('/').to_owned()).ok_or_else(|| {
                format!("`{entry}` is not an origin: write it as the browser does, such as https://shop.example, without a path, or * for all")
            })
        });
        origins.collect::<Result<_, _>>().map(Self)
    }
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
        for wrong in [
            "shop.example",
            "https://shop.example/cart",
            "https://*.shop.example:443",
            "null",
            "data:x",
        ] {
            let problem = wrong.parse::<WebOrigins>().unwrap_err();
            assert!(problem.contains("is not an origin"), "{wrong}: {problem}");
        }
    }
}
