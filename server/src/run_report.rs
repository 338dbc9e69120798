//! A run as one HTML page: no script, no other host, nothing that is not in the file. Every name in it comes from an app, so nothing
//! is ever put into the page but by `maud`, which escapes.

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

/// What the page may do: be drawn with its own style. Stands in the page too, since a file has no headers.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    format!("default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'")
});

/// The policy for the header of an answer.
#[must_use]
pub fn content_security_policy() -> &'static str {
    &POLICY
}

/// The whole page.
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
                // A constant of the program; its hash stands in the policy.
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
                    (section("The SDK itself", "sdk", tables::sdk(run)))
                }
                footer { "Made by unjank " (env!("CARGO_PKG_VERSION")) ". Counts are weighted by the sample rate. Percentiles are measured values." }
            }
        }
    };
    page.into_string()
}

/// What was not measured has no section.
fn section(title: &str, id: &str, content: Option<Markup>) -> Markup {
    html! {
        @if let Some(content) = content {
            section id=(id) { h2 { (title) } (content) }
        }
    }
}
