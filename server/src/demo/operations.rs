//! The shop's operations as trees of steps: manually instrumented operations, and the steps that run inside them.

use unjank_protocol::SpanKind;

/// An operation that the user waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    OpenFeed,
    LoadMore,
    Search,
    OpenProduct,
    AddToCart,
    ApplyPromo,
    Checkout,
    LogIn,
    TrackOrder,
    SubmitReview,
}

/// Where a step runs, and whether the enclosing step waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunsOn {
    /// On the thread of the enclosing step.
    Here,
    /// On another thread, and the enclosing step waits for it.
    Awaited(&'static str),
    /// On another thread, without a wait.
    Aside(&'static str),
}

/// The kind of a step. The SDK makes spans of all kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// A traced function.
    Function,
    /// The construction of an object.
    Construction,
    /// A request of the shop's client, which begins a span for each request.
    Request,
}

impl Does {
    pub(super) fn kind(self) -> SpanKind {
        match self {
            Self::Function => SpanKind::Method,
            Self::Construction => SpanKind::Init,
            Self::Request => SpanKind::Network,
        }
    }
}

/// A step with its nested steps. Durations are medians on a mid-range device.
pub(super) struct Step {
    pub(super) does: Does,
    /// Class with its package, or the name of a request.
    pub(super) class: &'static str,
    pub(super) function: &'static str,
    pub(super) line: u32,
    pub(super) own_us: f64,
    pub(super) place: RunsOn,
    pub(super) times: u32,
    pub(super) inside: &'static [Self],
}

const IO: RunsOn = RunsOn::Awaited("DefaultDispatcher-worker-1");
const HTTP: RunsOn = RunsOn::Awaited("OkHttp Dispatcher");
const DISK: RunsOn = RunsOn::Aside("arch_disk_io_0");

const fn method(
    class: &'static str,
    function: &'static str,
    line: u32,
    own_us: f64,
    place: RunsOn,
    inside: &'static [Step],
) -> Step {
    Step {
        does: Does::Function,
        class,
        function,
        line,
        own_us,
        place,
        times: 1,
        inside,
    }
}

/// Runs the step `times` times in a row.
const fn repeated(times: u32, mut step: Step) -> Step {
    step.times = times;
    step
}

const fn request(name: &'static str, own_us: f64) -> Step {
    let step = method(name, "", 0, own_us, HTTP, &[]);
    Step {
        does: Does::Request,
        ..step
    }
}

const fn init(class: &'static str, line: u32, own_us: f64) -> Step {
    let step = method(class, "<init>", line, own_us, RunsOn::Here, &[]);
    Step {
        does: Does::Construction,
        ..step
    }
}

/// Writes an order to the database. The work is the same on every thread.
pub(super) const INSERT_ORDER: Step = method(
    "com.example.shop.data.OrderDao",
    "insert(Order)",
    58,
    270_000.0,
    DISK,
    &[method(
        "androidx.room.RoomDatabase",
        "runInTransaction(Runnable)",
        574,
        9_000.0,
        RunsOn::Here,
        &[],
    )],
);

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenFeed => "open_feed",
            Self::LoadMore => "load_more",
            Self::Search => "search",
            Self::OpenProduct => "open_product",
            Self::AddToCart => "add_to_cart",
            Self::ApplyPromo => "apply_promo",
            Self::Checkout => "checkout",
            Self::LogIn => "login",
            Self::TrackOrder => "track_order",
            Self::SubmitReview => "submit_review",
        }
    }

    /// Returns the line of the call that begins the operation's span.
    pub(super) fn line(self) -> u32 {
        match self {
            Self::OpenFeed => 31,
            Self::LoadMore => 47,
            Self::Search => 63,
            Self::OpenProduct => 82,
            Self::AddToCart => 99,
            Self::ApplyPromo => 115,
            Self::Checkout => 134,
            Self::LogIn => 158,
            Self::TrackOrder => 171,
            Self::SubmitReview => 187,
        }
    }

    /// Returns the operation's own time in microseconds, and its steps.
    pub(super) fn steps(self) -> (f64, &'static [Step]) {
        match self {
            Self::OpenFeed => (14_000.0, OPEN_FEED),
            Self::LoadMore => (5_000.0, LOAD_MORE),
            Self::Search => (7_000.0, SEARCH),
            Self::OpenProduct => (11_000.0, OPEN_PRODUCT),
            Self::AddToCart => (4_000.0, ADD_TO_CART),
            Self::ApplyPromo => (4_000.0, APPLY_PROMO),
            Self::Checkout => (22_000.0, CHECKOUT),
            Self::LogIn => (9_000.0, LOG_IN),
            Self::TrackOrder => (5_000.0, TRACK_ORDER),
            Self::SubmitReview => (6_000.0, SUBMIT_REVIEW),
        }
    }
}

const BIND_CARD: Step = method(
    "com.example.shop.feed.FeedAdapter",
    "onBindViewHolder(ViewHolder, int)",
    91,
    2_600.0,
    RunsOn::Here,
    &[method(
        "com.bumptech.glide.RequestBuilder",
        "into(ImageView)",
        775,
        1_300.0,
        RunsOn::Here,
        &[],
    )],
);

const OPEN_FEED: &[Step] = &[
    init("com.example.shop.feed.FeedViewModel", 31, 6_500.0),
    init("com.example.shop.ads.AdLoader", 22, 17_000.0),
    request("GET /home/head", 150_000.0),
    request("GET /home/feed", 240_000.0),
    method(
        "com.example.shop.feed.FeedRepository",
        "toDomain(FeedDto)",
        64,
        9_000.0,
        IO,
        &[method(
            "com.google.gson.Gson",
            "fromJson(Reader, Type)",
            887,
            21_000.0,
            RunsOn::Here,
            &[],
        )],
    ),
    method(
        "com.example.shop.feed.FeedFragment",
        "render(FeedState)",
        118,
        5_500.0,
        RunsOn::Here,
        &[
            repeated(6, BIND_CARD),
            method(
                "com.airbnb.lottie.LottieAnimationView",
                "setComposition(LottieComposition)",
                312,
                7_500.0,
                RunsOn::Here,
                &[],
            ),
        ],
    ),
    method(
        "com.example.shop.analytics.Tracker",
        "flush()",
        47,
        12_000.0,
        RunsOn::Aside("pool-7-thread-1"),
        &[],
    ),
];

const LOAD_MORE: &[Step] = &[
    request("GET /home/feed", 230_000.0),
    method(
        "com.google.gson.Gson",
        "fromJson(Reader, Type)",
        887,
        20_000.0,
        IO,
        &[],
    ),
    repeated(4, BIND_CARD),
];

const SEARCH: &[Step] = &[
    init("com.example.shop.search.SearchViewModel", 27, 4_000.0),
    request("GET /search/results", 230_000.0),
    method(
        "com.example.shop.search.SearchRepository",
        "rank(List)",
        83,
        11_000.0,
        IO,
        &[method(
            "shop_core::search::rank",
            "score",
            41,
            16_000.0,
            RunsOn::Here,
            &[],
        )],
    ),
    method(
        "com.example.shop.search.ResultList",
        "submitList(List)",
        52,
        4_500.0,
        RunsOn::Here,
        &[method(
            "androidx.recyclerview.widget.DiffUtil",
            "calculateDiff(Callback)",
            124,
            8_500.0,
            RunsOn::Here,
            &[],
        )],
    ),
];

const OPEN_PRODUCT: &[Step] = &[
    init("com.example.shop.product.ProductViewModel", 35, 5_500.0),
    init("com.example.shop.product.GalleryPlayer", 41, 14_000.0),
    request("GET /product/card", 190_000.0),
    method(
        "com.example.shop.product.ProductMapper",
        "toDomain(ProductDto)",
        29,
        7_000.0,
        IO,
        &[method(
            "com.google.gson.Gson",
            "fromJson(Reader, Type)",
            887,
            12_000.0,
            RunsOn::Here,
            &[],
        )],
    ),
    method(
        "com.example.shop.product.ProductGallery",
        "bind(Product)",
        77,
        6_000.0,
        RunsOn::Here,
        &[
            repeated(
                3,
                method(
                    "com.bumptech.glide.load.engine.Engine",
                    "load(Key)",
                    178,
                    3_800.0,
                    RunsOn::Here,
                    &[],
                ),
            ),
            method(
                "com.example.shop.product.PriceFormatter",
                "format(Money)",
                19,
                1_900.0,
                RunsOn::Here,
                &[],
            ),
        ],
    ),
];

const ADD_TO_CART: &[Step] = &[
    method(
        "com.example.shop.cart.CartRepository",
        "add(Product, int)",
        102,
        6_000.0,
        IO,
        &[
            request("POST /cart/items", 150_000.0),
            method(
                "com.example.shop.data.CartDao",
                "upsert(CartItem)",
                33,
                13_000.0,
                RunsOn::Here,
                &[],
            ),
        ],
    ),
    method(
        "com.example.shop.cart.CartBadge",
        "update(int)",
        18,
        1_400.0,
        RunsOn::Here,
        &[],
    ),
    method(
        "com.example.shop.analytics.Tracker",
        "flush()",
        47,
        12_000.0,
        RunsOn::Aside("pool-7-thread-1"),
        &[],
    ),
];

const APPLY_PROMO: &[Step] = &[
    request("POST /cart/promo", 170_000.0),
    method(
        "com.example.shop.cart.CartViewModel",
        "recalculate(Cart)",
        140,
        8_000.0,
        RunsOn::Here,
        &[],
    ),
];

const CHECKOUT: &[Step] = &[
    init("com.example.shop.checkout.CheckoutViewModel", 38, 6_000.0),
    method(
        "com.example.shop.checkout.OrderValidator",
        "validate(Order)",
        44,
        9_000.0,
        RunsOn::Here,
        &[],
    ),
    request("POST /checkout/submit", 290_000.0),
    method(
        "com.stripe.android.PaymentController",
        "confirm(PaymentIntent)",
        211,
        12_000.0,
        IO,
        &[method(
            "com.example.shop.security.TokenVault",
            "unseal(byte[])",
            66,
            24_000.0,
            RunsOn::Here,
            &[],
        )],
    ),
    method(
        "com.example.shop.checkout.CheckoutFragment",
        "render(CheckoutState)",
        126,
        7_000.0,
        RunsOn::Here,
        &[],
    ),
    method(
        "com.example.shop.analytics.Tracker",
        "flush()",
        47,
        12_000.0,
        RunsOn::Aside("pool-7-thread-1"),
        &[],
    ),
];

const LOG_IN: &[Step] = &[
    request("POST /auth/token", 220_000.0),
    method(
        "com.example.shop.security.TokenVault",
        "seal(String)",
        49,
        31_000.0,
        IO,
        &[],
    ),
    method(
        "com.example.shop.session.SessionStore",
        "save(Session)",
        72,
        9_000.0,
        RunsOn::Here,
        &[],
    ),
];

const TRACK_ORDER: &[Step] = &[
    init("com.example.shop.orders.CourierMap", 25, 19_000.0),
    request("GET /orders/track", 200_000.0),
    method(
        "com.google.android.gms.maps.MapView",
        "onCreate(Bundle)",
        12,
        27_000.0,
        RunsOn::Here,
        &[],
    ),
    method(
        "com.example.shop.orders.OrderTimeline",
        "render(OrderState)",
        58,
        4_000.0,
        RunsOn::Here,
        &[],
    ),
];

const SUBMIT_REVIEW: &[Step] = &[
    method(
        "com.example.shop.reviews.ReviewDraftStore",
        "load(long)",
        40,
        10_000.0,
        IO,
        &[],
    ),
    request("POST /product/reviews", 260_000.0),
    method(
        "com.example.shop.reviews.ReviewList",
        "submitList(List)",
        61,
        5_000.0,
        RunsOn::Here,
        &[],
    ),
];
