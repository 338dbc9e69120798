//! `#[traced]` on single methods, which are named after their type, and on modules.

use serde_json::Value;

use crate::collector::Running;
use crate::traced::block_on;

/// Returns the names of the spans in the order they ended, without the name of this module.
fn names(running: &Running) -> Vec<String> {
    running.flush();
    let spans = running.collector.events("spans");
    let name = |span: &Value| {
        let name = span["name"].as_str().unwrap();
        name.trim_start_matches("it::traced_items::").to_owned()
    };
    spans.iter().map(name).collect()
}

struct Cart<T>(T);

trait Priced {
    fn total(&self) -> u64;

    #[unjank::traced]
    fn twice(&self) -> u64 {
        self.total() * 2
    }
}

impl<T> Cart<T> {
    #[unjank::traced]
    fn open(&self) {}

    #[unjank::traced(init)]
    fn new(item: T) -> Self {
        Self(item)
    }

    #[unjank::traced(method)]
    fn reset() {}

    #[unjank::traced(name = "cart.pay", err)]
    async fn pay(&self, enough: bool) -> Result<(), ()> {
        enough.then_some(()).ok_or(())
    }
}

impl<T> Priced for Cart<T> {
    #[unjank::traced]
    fn total(&self) -> u64 {
        3
    }
}

impl Priced for Vec<u64> {
    #[unjank::traced]
    fn total(&self) -> u64 {
        self.iter().sum()
    }
}

#[unjank::traced]
fn free() {
    struct Inner;
    impl Inner {
        fn make() -> Self {
            Self
        }
    }
    Inner::make();
}

#[test]
fn a_single_method_is_named_after_its_type() {
    let running = Running::start();
    let cart = Cart::new(vec![1_u8]);
    cart.open();
    Cart::<u8>::reset();
    assert!(block_on(cart.pay(true)).is_ok() && block_on(cart.pay(false)).is_err());
    assert_eq!((cart.twice(), vec![7].twice()), (6, 14));
    assert_eq!(Cart("another parameter").twice(), 6);
    free();
    assert_eq!(
        names(&running),
        [
            "Cart",
            "Cart::open",
            "Cart::reset",
            "cart.pay",
            "cart.pay",
            "Cart::total",
            "Cart::twice",
            "alloc::vec::Vec::total",
            "alloc::vec::Vec::twice",
            "Cart::total",
            "Cart::twice",
            "free",
        ]
    );
    let spans = running.collector.events("spans");
    assert_eq!(spans[0]["kind"], "init");
    assert_eq!(spans[1]["code"]["class"], "it::traced_items::Cart");
    assert_eq!(spans[1]["code"]["function"], "open(&self)");
    assert_eq!(spans[4]["status"], "error");
}

#[unjank::traced(tag = "checkout", err)]
mod checkout {
    pub(super) struct Order;

    pub(super) trait Ship {
        fn ship(&self) -> u8 {
            1
        }

        fn weigh(&self) -> u8;
    }

    impl Order {
        pub(super) const fn number() -> u8 {
            7
        }

        pub(super) fn send(&self) -> Result<u8, String> {
            Err(String::new())
        }
    }

    impl Ship for Order {
        fn weigh(&self) -> u8 {
            2
        }
    }

    pub(super) const fn constant() -> u8 {
        Order::number()
    }

    pub(super) async fn wait() {}

    #[unjank::traced(skip)]
    pub(super) fn skipped() {}

    #[unjank::traced(name = "renamed")]
    pub(super) fn own_name() {}

    pub(super) mod inner {
        pub(in super::super) fn deep() {}
    }

    #[unjank::traced(skip)]
    pub(super) mod quiet {
        pub(in super::super) fn untraced() {}
    }
}

#[test]
fn a_traced_module_traces_everything_inside() {
    use checkout::{Order, Ship};

    let running = Running::start();
    assert_eq!(checkout::constant(), 7);
    assert!(Order.send().is_err());
    assert_eq!((Order.ship(), Order.weigh()), (1, 2));
    block_on(checkout::wait());
    checkout::skipped();
    checkout::own_name();
    checkout::inner::deep();
    checkout::quiet::untraced();
    assert_eq!(
        names(&running),
        [
            "checkout::Order::send",
            "checkout::Order::ship",
            "checkout::Order::weigh",
            "checkout::wait",
            "renamed",
            "checkout::inner::deep",
        ]
    );
    assert_eq!(running.collector.events("spans")[0]["status"], "error");
}

#[test]
fn tags_select_functions_of_a_module_and_spans() {
    let running = Running::with(|config| config);
    running.learns(serde_json::json!({
        "sampling": {"session_rate": 1.0, "spans": {"default": 1.0}},
        "tracing": {"enabled": true, "tags": ["checkout"]},
    }));
    checkout::inner::deep();
    free();
    const TAGS: &[&str] = &["other", "checkout"];
    // The same text at the same address, with fewer tags.
    unjank::span_tagged("span", &TAGS[..1]).end();
    unjank::span_tagged("span", TAGS).end();
    unjank::span("span").end();
    assert_eq!(names(&running), ["checkout::inner::deep", "span"]);
}
