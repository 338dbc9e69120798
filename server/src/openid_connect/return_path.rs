//! The page to open after a login, which is always on this server. Pure.

use reqwest::Url;

/// The maximum length. Longer paths do not fit into a cookie.
const LONGEST: usize = 2_000;

/// Returns the path, query and fragment of `wanted` if it is a page of this server.
pub(super) fn local_path(public_url: &Url, wanted: &str) -> Option<String> {
    if !wanted.starts_with('/') || wanted.len() > LONGEST {
        return None;
    }
    // Parses the text as a browser does: `//host`, `/\host` and `/<tab>/host` lead to other servers.
    let url = public_url.join(wanted).ok()?;
    let path = url.path();
    // A path that starts with `//` would be parsed as a host name. The API has no pages, and could start another login.
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
    fn pages_of_this_server_are_allowed() {
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
    fn no_path_leads_to_another_server() {
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
        // Line breaks must not get into a header.
        assert_eq!(local("/a\r\nb").as_deref(), Some("/ab"));
    }
}
