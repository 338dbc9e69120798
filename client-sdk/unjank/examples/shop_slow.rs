//! The shop after a careless change that recomputes prices again and again. `unjank compare` detects the change from the report
//! files of both builds:
//!
//! ```sh
//! cargo run -p unjank --example shop -- --report base.jsonl --data-dir base
//! cargo run -p unjank --example shop_slow -- head.jsonl head
//! unjank compare --base base.jsonl --head head.jsonl
//! ```
#![expect(clippy::print_stderr, reason = "an example that prints its errors")]

#[path = "shop/prices.rs"]
#[expect(dead_code, reason = "only the sum is changed")]
mod prices;
#[path = "shop/rehearsal.rs"]
mod rehearsal;

use std::path::Path;

fn main() {
    let mut words = std::env::args().skip(1);
    let (Some(report), Some(data_dir)) = (words.next(), words.next()) else {
        eprintln!("shop_slow REPORT DATA_FOLDER");
        std::process::exit(2);
    };
    if !rehearsal::run(Path::new(&report), Path::new(&data_dir), slow_total) {
        eprintln!("cannot write {report}");
        std::process::exit(1);
    }
}

/// Returns the sum, but for every second article first recomputes the subtotal from the beginning.
fn slow_total(articles: &[u64]) -> u64 {
    for end in (2..articles.len()).step_by(2) {
        for price in articles.iter().take(end) {
            std::hint::black_box(prices::with_everything(*price));
        }
    }
    articles
        .iter()
        .map(|price| prices::with_everything(*price))
        .sum()
}
