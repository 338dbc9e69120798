//! The screens of the shop, with their requests, frames and memory use.

use super::operations::Operation;

/// A screen. Durations are medians on a mid-range device over Wi-Fi.
pub(super) struct Page {
    pub(super) name: &'static str,
    /// Relative probability that the user visits this screen next.
    pub(super) weight: f64,
    pub(super) seconds: f64,
    pub(super) t1_ms: f64,
    pub(super) t3_ms: f64,
    /// Paths of the requests that the screen waits for, with their durations in milliseconds.
    pub(super) requests: &'static [(&'static str, f64)],
    /// Share of frames over their budget.
    pub(super) slow_share: f64,
    pub(super) memory_mb: f64,
    pub(super) cpu_percent: f64,
    /// UI functions with their redraws per ten seconds, and the states that cause them.
    pub(super) redraws: &'static [(&'static str, f64, &'static [&'static str])],
    pub(super) operations: &'static [Operation],
}

pub(super) const FEED: usize = 0;
pub(super) const SEARCH: usize = 1;
pub(super) const PRODUCT: usize = 2;
pub(super) const CART: usize = 3;
pub(super) const CHECKOUT: usize = 4;
pub(super) const LOGIN: usize = 5;

pub(super) const PAGES: &[Page] = &[
    Page {
        name: "FeedActivity",
        weight: 26.0,
        seconds: 24.0,
        t1_ms: 140.0,
        t3_ms: 95.0,
        requests: &[("/home/head", 160.0), ("/home/feed", 310.0)],
        slow_share: 0.034,
        memory_mb: 182.0,
        cpu_percent: 24.0,
        redraws: &[
            ("FeedScreen", 5.0, &["FeedState.items", "FeedState.scroll"]),
            ("PromoBanner", 11.0, &["BannerState.page"]),
        ],
        operations: &[Operation::OpenFeed, Operation::LoadMore],
    },
    Page {
        name: "SearchActivity",
        weight: 15.0,
        seconds: 18.0,
        t1_ms: 90.0,
        t3_ms: 60.0,
        requests: &[("/search/suggest", 120.0), ("/search/results", 280.0)],
        slow_share: 0.028,
        memory_mb: 168.0,
        cpu_percent: 27.0,
        redraws: &[
            ("SearchField", 14.0, &["SearchState.query"]),
            ("ResultList", 4.0, &["SearchState.results"]),
        ],
        operations: &[Operation::Search],
    },
    Page {
        name: "ProductActivity",
        weight: 27.0,
        seconds: 32.0,
        t1_ms: 120.0,
        t3_ms: 110.0,
        requests: &[("/product/card", 210.0), ("/product/reviews", 260.0)],
        slow_share: 0.030,
        memory_mb: 214.0,
        cpu_percent: 21.0,
        redraws: &[
            (
                "ProductGallery",
                8.0,
                &["GalleryState.page", "GalleryState.zoom"],
            ),
            (
                "PriceTag",
                3.0,
                &["ProductState.price", "ProductState.variant"],
            ),
        ],
        operations: &[Operation::OpenProduct, Operation::AddToCart],
    },
    Page {
        name: "CartActivity",
        weight: 9.0,
        seconds: 15.0,
        t1_ms: 80.0,
        t3_ms: 55.0,
        requests: &[("/cart/items", 170.0)],
        slow_share: 0.018,
        memory_mb: 158.0,
        cpu_percent: 15.0,
        redraws: &[("CartRow", 6.0, &["CartState.items", "CartState.total"])],
        operations: &[Operation::ApplyPromo],
    },
    Page {
        name: "CheckoutActivity",
        weight: 3.0,
        seconds: 40.0,
        t1_ms: 95.0,
        t3_ms: 80.0,
        requests: &[("/checkout/quote", 260.0), ("/payments/methods", 190.0)],
        slow_share: 0.024,
        memory_mb: 165.0,
        cpu_percent: 18.0,
        redraws: &[(
            "PaymentForm",
            7.0,
            &["CheckoutState.card", "CheckoutState.errors"],
        )],
        operations: &[Operation::Checkout],
    },
    Page {
        name: "LoginActivity",
        weight: 2.0,
        seconds: 17.0,
        t1_ms: 70.0,
        t3_ms: 30.0,
        requests: &[("/auth/token", 240.0)],
        slow_share: 0.012,
        memory_mb: 128.0,
        cpu_percent: 12.0,
        redraws: &[("LoginForm", 5.0, &["LoginState.fields"])],
        operations: &[Operation::LogIn],
    },
    Page {
        name: "OrdersActivity",
        weight: 7.0,
        seconds: 14.0,
        t1_ms: 85.0,
        t3_ms: 65.0,
        requests: &[("/orders", 230.0)],
        slow_share: 0.020,
        memory_mb: 150.0,
        cpu_percent: 14.0,
        redraws: &[("OrderTimeline", 3.0, &["OrderState.courier"])],
        operations: &[Operation::TrackOrder],
    },
    Page {
        name: "ReviewsActivity",
        weight: 6.0,
        seconds: 26.0,
        t1_ms: 75.0,
        t3_ms: 70.0,
        requests: &[("/product/reviews", 260.0)],
        slow_share: 0.026,
        memory_mb: 171.0,
        cpu_percent: 17.0,
        redraws: &[("ReviewList", 4.0, &["ReviewState.items"])],
        operations: &[Operation::SubmitReview],
    },
    Page {
        name: "ProfileActivity",
        weight: 4.0,
        seconds: 12.0,
        t1_ms: 65.0,
        t3_ms: 40.0,
        requests: &[("/profile", 150.0)],
        slow_share: 0.014,
        memory_mb: 140.0,
        cpu_percent: 11.0,
        redraws: &[("ProfileHeader", 2.0, &["ProfileState.user"])],
        operations: &[],
    },
    Page {
        name: "HelpActivity",
        weight: 2.0,
        seconds: 30.0,
        t1_ms: 210.0,
        t3_ms: 160.0,
        requests: &[("/help/article", 340.0)],
        slow_share: 0.022,
        memory_mb: 205.0,
        cpu_percent: 20.0,
        redraws: &[],
        operations: &[],
    },
];
