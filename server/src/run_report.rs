//! Renders a run as a self-contained HTML page without scripts or external resources. All names come from apps, so content enters
//! the page through `maud` only, which escapes it.

mod head;
mod numbers;
mod pages;
mod sparkline;
mod stalls;
mod tables;

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use crate::test_run::TestRun;

const STYLE: &str = include_str!("run_report/style.css");

/// Allows only the page's own style. The page contains the policy as well, because a file has no headers.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
});

/// Returns the policy for the header of a response.
#[must_use]
pub fn content_security_policy() -> &'static str {
    &POLICY
}

/// Returns the whole page.
#[must_use]
pub fn html(run: &TestRun) -> String {
    let title = head::title(run);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(*POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                // The style is a constant of the program; the policy contains its hash.
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { (head::header(run, &title)) }
                main {
                    (head::overview(run))
                    (section("Pages", "pages", pages::pages(run)))
                    (section("App starts", "starts", tables::starts(run)))
                    (section("Stalls of the main thread", "stalls", stalls::stalls(run)))
                    (section("Spans", "spans", tables::spans(run)))
                    (section("Traffic", "traffic", tables::traffic(run)))
                    (section("Redraws", "redraws", tables::redrawn(run)))
                    (section("Other monitors", "monitors", tables::metrics(run)))
                    (section("SDK", "sdk", tables::sdk(run)))
                }
                footer { "Made by unjank " (env!("CARGO_PKG_VERSION")) ". Counts are weighted by the sample rate. Percentiles are measured values." }
            }
        }
    };
    page.into_string()
}

/// Renders a section, unless nothing was measured.
fn section(title: &str, id: &str, content: Option<Markup>) -> Markup {
    html! {
        @if let Some(content) = content {
            section id=(id) { h2 { (title) } (content) }
        }
    }
}
