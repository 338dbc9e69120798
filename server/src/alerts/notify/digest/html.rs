//! The digest as HTML for mail. Names come from apps, so everything is inserted through `maud`, which escapes it.

use maud::{Markup, html};

use super::Digest;
use super::text::sections;

pub(crate) fn digest_html(digest: &Digest) -> Markup {
    html! {
        h2 { (digest.subject()) }
        @for (title, lines) in sections(digest) {
            h3 { (title) }
            ul { @for line in lines { li { (line) } } }
        }
    }
}
