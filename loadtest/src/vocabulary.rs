//! The names that occur in an app: pages, functions, operations, requests. A few are frequent, most are rare.

use unjank_random::{Dice, Random};

/// A function of the app, as automatic tracing reports it.
pub(crate) struct Function {
    pub(crate) class: String,
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    /// Class and signature, used as the name of its spans.
    pub(crate) full_name: String,
}

/// A screen with the requests that it waits for and the state that its views depend on.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) requests: Vec<&'static str>,
    pub(crate) states: Vec<String>,
}

/// All names of the simulated apps. They are the same in every run.
pub(crate) struct Vocabulary {
    pub(crate) functions: Vec<Function>,
    pub(crate) pages: Vec<Page>,
    functions_used: Dice,
    pages_used: Dice,
    operations_used: Dice,
    paths_used: Dice,
}

const FEATURES: &[&str] = &[
    "feed",
    "cart",
    "checkout",
    "search",
    "product",
    "profile",
    "orders",
    "chat",
    "map",
    "login",
    "settings",
    "promo",
    "reviews",
    "camera",
    "payments",
    "tracking",
    "favorites",
    "support",
    "onboarding",
    "video",
];
const ROLES: &[&str] = &[
    "Adapter",
    "Presenter",
    "Repository",
    "ViewModel",
    "Dao",
    "Mapper",
    "Fragment",
    "Service",
    "Interactor",
    "Cache",
];
const VERBS: &[(&str, &str)] = &[
    ("onBindViewHolder", "ViewHolder, int"),
    ("load", "long"),
    ("observe", "LifecycleOwner"),
    ("render", "State"),
    ("parse", "JSONObject"),
    ("insert", "Entity"),
    ("query", "String, int"),
    ("refresh", ""),
    ("onCreateView", "LayoutInflater, ViewGroup"),
    ("toDomain", "Dto"),
    ("decode", "byte[]"),
    ("submitList", "List"),
    ("onResume", ""),
    ("measure", "int, int"),
];
const OPERATIONS: &[&str] = &[
    "open_feed",
    "add_to_cart",
    "checkout",
    "search",
    "open_product",
    "login",
    "pay",
    "place_order",
    "apply_promo",
    "load_more",
    "send_message",
    "track_courier",
    "upload_photo",
    "sync_favorites",
    "open_map",
    "refresh_token",
    "restore_session",
    "submit_review",
    "play_video",
    "change_address",
];
const PATHS: &[&str] = &[
    "/home/head",
    "/home/feed",
    "/poi/filter",
    "/search/suggest",
    "/search/results",
    "/product/card",
    "/product/reviews",
    "/cart",
    "/cart/items",
    "/checkout/quote",
    "/checkout/submit",
    "/profile",
    "/orders",
    "/orders/active",
    "/orders/track",
    "/chat/messages",
    "/map/tiles",
    "/auth/token",
    "/promo/banners",
    "/favorites",
    "/config/flags",
    "/media/upload",
    "/payments/methods",
];
/// Metrics by name, with a typical value and its spread.
pub(crate) const METRICS: &[(&str, f64, f64)] = &[
    ("memory_used_bytes", 180.0e6, 0.4),
    ("cpu_percent", 22.0, 0.6),
    ("fps", 57.0, 0.08),
    ("threads", 64.0, 0.25),
    ("heap_used_bytes", 60.0e6, 0.5),
    ("battery_percent", 55.0, 0.5),
    ("objects_created", 5_400.0, 0.9),
    ("thermal_state", 1.0, 0.4),
    ("disk_free_bytes", 9.0e9, 0.9),
    ("open_files", 140.0, 0.3),
];
pub(crate) const THREADS: &[&str] = &[
    "DefaultDispatcher-worker-1",
    "DefaultDispatcher-worker-2",
    "DefaultDispatcher-worker-4",
    "OkHttp Dispatcher",
    "arch_disk_io_0",
    "RenderThread",
    "RxComputationThreadPool-1",
    "pool-7-thread-1",
];
pub(crate) const SOURCES: &[&str] = &["api", "cdn", "web", "ads"];

/// System code in which the main thread stalls, innermost frame first.
pub(crate) const SYSTEM_STACKS: &[&[(&str, &str, i64)]] = &[
    &[
        (
            "android.database.sqlite.SQLiteConnection",
            "nativeExecuteForLastInsertedRowId",
            -2,
        ),
        (
            "android.database.sqlite.SQLiteConnection",
            "executeForLastInsertedRowId",
            782,
        ),
        (
            "android.database.sqlite.SQLiteSession",
            "executeForLastInsertedRowId",
            788,
        ),
        (
            "android.database.sqlite.SQLiteStatement",
            "executeInsert",
            86,
        ),
    ],
    &[
        ("android.content.res.AssetManager", "openXmlBlockAsset", 488),
        (
            "android.content.res.Resources",
            "loadXmlResourceParser",
            2_149,
        ),
        ("android.view.LayoutInflater", "inflate", 396),
    ],
    &[
        (
            "com.google.gson.stream.JsonReader",
            "nextNonWhitespace",
            1_334,
        ),
        (
            "com.google.gson.internal.bind.ReflectiveTypeAdapterFactory$Adapter",
            "read",
            220,
        ),
        ("com.google.gson.Gson", "fromJson", 887),
    ],
    &[
        ("java.io.FileDescriptor", "sync", -2),
        ("android.app.SharedPreferencesImpl", "writeToFile", 751),
        ("android.app.QueuedWork", "waitToFinish", 184),
    ],
    &[
        ("android.os.BinderProxy", "transactNative", -2),
        ("android.os.BinderProxy", "transact", 584),
        (
            "android.app.IActivityManager$Stub$Proxy",
            "getServices",
            4_401,
        ),
    ],
    &[
        ("android.graphics.BitmapFactory", "nativeDecodeStream", -2),
        ("android.graphics.BitmapFactory", "decodeStream", 751),
    ],
    &[
        ("android.os.MessageQueue", "nativePollOnce", -2),
        ("android.os.MessageQueue", "next", 335),
    ],
];
/// Frames between the looper and the app's code, innermost first.
pub(crate) const LOOPER: &[(&str, &str, i64)] = &[
    ("android.view.ViewRootImpl", "performTraversals", 2_891),
    ("android.view.Choreographer", "doCallbacks", 845),
    ("android.view.Choreographer", "doFrame", 775),
    ("android.os.Handler", "dispatchMessage", 99),
    ("android.os.Looper", "loopOnce", 201),
    ("android.os.Looper", "loop", 288),
    ("android.app.ActivityThread", "main", 7_839),
    ("java.lang.reflect.Method", "invoke", -2),
    (
        "com.android.internal.os.RuntimeInit$MethodAndArgsCaller",
        "run",
        548,
    ),
    ("com.android.internal.os.ZygoteInit", "main", 1_003),
];

impl Vocabulary {
    pub(crate) fn new() -> Self {
        let mut random = Random::seeded(&[0x0ca8]);
        let mut functions = functions();
        shuffle(&mut functions, &mut random);
        Self {
            functions_used: Dice::zipf(functions.len(), 1.05),
            functions,
            pages: pages(&mut random),
            pages_used: Dice::zipf(FEATURES.len() * 2, 1.0),
            operations_used: Dice::zipf(OPERATIONS.len(), 1.0),
            paths_used: Dice::zipf(PATHS.len(), 0.9),
        }
    }

    pub(crate) fn function(&self, random: &mut Random) -> &Function {
        &self.functions[self.functions_used.roll(random)]
    }

    pub(crate) fn page(&self, random: &mut Random) -> &Page {
        &self.pages[self.pages_used.roll(random)]
    }

    pub(crate) fn operation(&self, random: &mut Random) -> &'static str {
        OPERATIONS[self.operations_used.roll(random)]
    }

    pub(crate) fn path(&self, random: &mut Random) -> &'static str {
        PATHS[self.paths_used.roll(random)]
    }
}

fn functions() -> Vec<Function> {
    let mut functions = Vec::new();
    for feature in FEATURES {
        for role in ROLES {
            for (at, (verb, arguments)) in VERBS.iter().enumerate() {
                let name = format!("{}{role}", capitalized(feature));
                let class = format!("com.example.shop.{feature}.{name}");
                functions.push(Function {
                    full_name: format!("{class}.{verb}({arguments})"),
                    class,
                    function: format!("{verb}({arguments})"),
                    file: format!("{name}.kt"),
                    line: 24 + 31 * u32::try_from(at).unwrap_or_default(),
                });
            }
        }
    }
    functions
}

fn pages(random: &mut Random) -> Vec<Page> {
    let names = FEATURES.iter().flat_map(|feature| {
        let name = capitalized(feature);
        [format!("{name}Activity"), format!("{name}Fragment")]
    });
    names
        .map(|name| Page {
            requests: (0..random.between(0, 3))
                .map(|_| *random.pick(PATHS))
                .collect(),
            states: ["items", "loading", "selection"]
                .iter()
                .map(|state| format!("{name}State.{state}"))
                .collect(),
            name,
        })
        .collect()
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        let other = usize::try_from(random.below(last as u64 + 1)).unwrap_or_default();
        items.swap(last, other);
    }
}
