//! The page that is opened after a login: always one of this server. Pure.

use reqwest::Url;

/// Longer addresses do not fit into a cookie.
const LONGEST: usize = 2_000;

/// The path, query and fragment of `wanted`, if that leads to a page of this server.
pub(super) fn local_path(public_url: &Url, wanted: &str) -> Option<String> {
    if !wanted.starts_with('/') || wanted.len() > LONGEST {
        return None;
    }
    // Reads the text as a browser does: `//host`, `/\host` and `/<tab>/host` lead to other servers.
    let url = public_url.join(wanted).ok()?;
    let path = url.path();
    // A path that begins with `//` would be read as the name of a server. The API has no pages, and a login would start again.
    let is_page = !path.starts_with("//") && path != "/api" && !path.starts_with("/api/");
    if url.origin() != public_url.origin() || !is_page {
        return None;
    }
    let mut local = path.to_owned();
    for (mark, part) in [('?', url.query()), ('#', url.fragment())] {
        if let Some(part) = part {
            local.push(mark);
            local.push_str(part);
        }
    }
    Some(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(wanted: &str) -> Option<String> {
        local_path(&"https://unjank.example.com".parse().unwrap(), wanted)
    }

    #[test]
    fn pages_of_this_server_are_kept_as_they_are() {
        for wanted in [
            "/",
            "/config?project=shop&tab=history",
            "/spans?name=a%2Fb#top",
            "/a/..%2fb",
        ] {
            assert_eq!(local(wanted).as_deref(), Some(wanted));
        }
        assert_eq!(local("/a/../b").as_deref(), Some("/b"));
    }

    #[test]
    fn nothing_leads_to_another_server() {
        for wanted in [
            "",
            "https://evil.example",
            "javascript:alert(1)",
            "evil.example",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "/.//evil.example",
            "/a/..//evil.example",
            "/%2e//evil.example",
            "\\\\evil.example",
            "/api/v1/session/oidc",
            "/x/../api/v1/session/oidc",
        ] {
            assert_eq!(local(wanted), None, "{wanted:?}");
        }
        assert_eq!(local(&format!("/{}", "a".repeat(LONGEST))), None);
        // No line break gets into a header.
        assert_eq!(local("/a\r\nb").as_deref(), Some("/ab"));
    }
}
