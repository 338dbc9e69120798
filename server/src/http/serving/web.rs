//! The web interface: the static files that `make web` has built, embedded in the binary. The interface gets all data from `/api/v1` with the
//! reader's cookies, so this module needs no access rule.

use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use axum::response::{IntoResponse, Response};
use rust_embed::{Embed, EmbeddedFile};

use crate::http::api::problem::Problem;

/// The files that existed at compile time. A build without node has none. Debug builds read the folder at run time.
#[derive(Embed)]
#[folder = "../dashboards/web/dist"]
#[allow_missing = true]
struct Built;

const INDEX: &str = "index.html";

/// The page that is shown if the interface was not built.
const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>unjank</title>\
<h1>unjank is running, without its web interface</h1>\
<p>This server was built without it. Install node with npm, run <code>make web</code>, build the server again and start it; \
<code>make run</code> does all of this.</p>\
<p>The API works without it: see <a href=\"/openapi.json\">its document</a>.</p></html>";

/// All content comes from this server and nothing is written into the page, so injected markup has no effect. Other sites must not show the page in a
/// frame.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; \
frame-ancestors 'none'";

/// Paths for programs. An unknown path below them is a problem, not a page.
const NO_PAGES: [&str; 3] = ["/api", "/v1", "/ofrep"];

/// Whether the interface was built before this program.
pub(crate) fn is_built() -> bool {
    Built::get(INDEX).is_some()
}

/// Serves a file of the interface. Any other address that a browser opens gets the interface itself, which does the routing.
pub(crate) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return Problem::not_found().into_response();
    }
    let path = uri.path();
    if let Some(file) = Built::get(path.trim_start_matches('/')).filter(|_| !hidden(path)) {
        return answer(path, file, &headers);
    }
    if !opens_a_page(path, &headers) {
        return Problem::not_found().into_response();
    }
    match Built::get(INDEX) {
        Some(index) => answer(INDEX, index, &headers),
        None => secured(([(CACHE_CONTROL, "no-store"), HTML], NOT_BUILT).into_response()),
    }
}

const HTML: (HeaderName, &str) = (CONTENT_TYPE, "text/html; charset=utf-8");

/// Compressed copies are served under the names of the originals.
fn hidden(path: &str) -> bool {
    path.ends_with(".gz")
}

fn opens_a_page(path: &str, headers: &HeaderMap) -> bool {
    let of_programs = NO_PAGES.iter().any(|start| {
        path.strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    !of_programs && lists(headers, &ACCEPT, "text/html")
}

fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|one| one.split(';').next())
        .any(|one| one.trim().eq_ignore_ascii_case(wanted))
}

fn answer(path: &str, file: EmbeddedFile, headers: &HeaderMap) -> Response {
    let compressed = lists(headers, &ACCEPT_ENCODING, "gzip")
        .then(|| Built::get(&format!("{}.gz", path.trim_start_matches('/'))))
        .flatten();
    let is_compressed = compressed.is_some();
    let body = compressed.unwrap_or(file).data.into_owned();
    // Names below `/assets/` contain a hash of the content. The page that names them is revalidated each time.
    let cache = if path.starts_with("/assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let mut response = (
        [
            (CACHE_CONTROL, cache),
            (CONTENT_TYPE, content_type(path)),
            (VARY, "accept-encoding"),
        ],
        body,
    )
        .into_response();
    if is_compressed {
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert(CONTENT_ENCODING, gzip);
    }
    secured(response)
}

fn secured(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
        // A page may pass a file to a window that it opens, such as a trace viewer. A window that opens a page has no access to the page.
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin-allow-popups",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => HTML.1,
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
