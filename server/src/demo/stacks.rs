//! The stacks of simulated stalls: system code innermost, then the shop's code that called it, and the looper outermost.

use unjank_protocol::{Frame, Text};

/// A stack with the conditions under which it occurs.
pub(super) struct Stack {
    pub(super) frames: Vec<Frame<'static>>,
    /// Page on which the stack occurs. Empty for any page.
    pub(super) page: &'static str,
    pub(super) weight: f64,
    pub(super) median_ms: f64,
    pub(super) ios: bool,
    /// Whether the stack occurs only if orders are written on the main thread.
    pub(super) only_when_blocked: bool,
}

/// Stacks of one problem. They differ only in the innermost frames.
struct Problem {
    page: &'static str,
    weight: f64,
    median_ms: f64,
    innermost: &'static [&'static str],
    own: &'static str,
    outermost: &'static str,
}

const IOS: &str = "\
UIKitCore!-[UIApplication _run]
UIKitCore!UIApplicationMain
Shop!main
dyld!start";
const MESSAGE: &str = "\
android.os.Handler.handleCallback(Handler.java:958)
android.os.Handler.dispatchMessage(Handler.java:99)
android.os.Looper.loopOnce(Looper.java:230)
android.os.Looper.loop(Looper.java:319)
android.app.ActivityThread.main(ActivityThread.java:8919)
java.lang.reflect.Method.invoke(Native)
com.android.internal.os.RuntimeInit$MethodAndArgsCaller.run(RuntimeInit.java:578)
com.android.internal.os.ZygoteInit.main(ZygoteInit.java:1103)";
const FRAME: &str = "\
android.view.ViewRootImpl.performTraversals(ViewRootImpl.java:3412)
android.view.ViewRootImpl.doTraversal(ViewRootImpl.java:2548)
android.view.Choreographer.doCallbacks(Choreographer.java:899)
android.view.Choreographer.doFrame(Choreographer.java:832)
android.os.Handler.dispatchMessage(Handler.java:99)
android.os.Looper.loopOnce(Looper.java:230)
android.os.Looper.loop(Looper.java:319)
android.app.ActivityThread.main(ActivityThread.java:8919)
java.lang.reflect.Method.invoke(Native)
com.android.internal.os.ZygoteInit.main(ZygoteInit.java:1103)";
const IDLE: &str = "\
android.os.Looper.loopOnce(Looper.java:186)
android.os.Looper.loop(Looper.java:319)
android.app.ActivityThread.main(ActivityThread.java:8919)
java.lang.reflect.Method.invoke(Native)
com.android.internal.os.ZygoteInit.main(ZygoteInit.java:1103)";

/// The stall that was introduced by writing orders on the main thread.
const BLOCKED: Problem = Problem {
    page: "CheckoutActivity",
    weight: 1.0,
    median_ms: 780.0,
    innermost: &[
        "android.database.sqlite.SQLiteConnection.nativeExecuteForLastInsertedRowId(Native)
android.database.sqlite.SQLiteConnection.executeForLastInsertedRowId(SQLiteConnection.java:961)
android.database.sqlite.SQLiteSession.executeForLastInsertedRowId(SQLiteSession.java:790)
android.database.sqlite.SQLiteStatement.executeInsert(SQLiteStatement.java:89)
androidx.room.EntityInsertionAdapter.insert(EntityInsertionAdapter.kt:62)",
        "android.database.sqlite.SQLiteConnection.nativeExecute(Native)
android.database.sqlite.SQLiteConnection.execute(SQLiteConnection.java:730)
android.database.sqlite.SQLiteSession.endTransactionUnchecked(SQLiteSession.java:451)
android.database.sqlite.SQLiteDatabase.endTransaction(SQLiteDatabase.java:808)
androidx.room.RoomDatabase.internalEndTransaction(RoomDatabase.kt:535)",
    ],
    own: "com.example.shop.data.OrderDao.insert(OrderDao.kt:58)
com.example.shop.checkout.OrderRepository.save(OrderRepository.kt:41)
com.example.shop.checkout.CheckoutViewModel.placeOrder(CheckoutViewModel.kt:133)",
    outermost: MESSAGE,
};

const ANDROID: &[Problem] = &[
    Problem {
        page: "FeedActivity",
        weight: 5.0,
        median_ms: 520.0,
        innermost: &[
            "android.content.res.StringBlock.nativeGetString(Native)
android.content.res.XmlBlock$Parser.getName(XmlBlock.java:175)
android.view.LayoutInflater.rInflate(LayoutInflater.java:1134)
android.view.LayoutInflater.inflate(LayoutInflater.java:680)",
            "android.content.res.AssetManager.applyStyle(Native)
android.content.res.Resources$Theme.obtainStyledAttributes(Resources.java:1925)
android.view.LayoutInflater.inflate(LayoutInflater.java:680)",
            "android.view.LayoutInflater.createViewFromTag(LayoutInflater.java:958)
android.view.LayoutInflater.rInflate(LayoutInflater.java:1137)
android.view.LayoutInflater.inflate(LayoutInflater.java:680)",
        ],
        own: "com.example.shop.feed.FeedAdapter.onCreateViewHolder(FeedAdapter.kt:74)
androidx.recyclerview.widget.RecyclerView$Adapter.createViewHolder(RecyclerView.java:7788)
androidx.recyclerview.widget.RecyclerView.onLayout(RecyclerView.java:4578)",
        outermost: FRAME,
    },
    Problem {
        page: "SearchActivity",
        weight: 5.0,
        median_ms: 460.0,
        innermost: &[
            "com.google.gson.stream.JsonReader.nextNonWhitespace(JsonReader.java:1334)
com.google.gson.internal.bind.ReflectiveTypeAdapterFactory$Adapter.read(ReflectiveTypeAdapterFactory.java:220)
com.google.gson.Gson.fromJson(Gson.java:887)",
            "com.google.gson.stream.JsonReader.nextQuotedValue(JsonReader.java:983)
com.google.gson.Gson.fromJson(Gson.java:887)",
        ],
        own: "com.example.shop.search.SuggestionCache.restore(SuggestionCache.kt:37)
com.example.shop.search.SearchViewModel.onQuery(SearchViewModel.kt:68)",
        outermost: MESSAGE,
    },
    Problem {
        page: "ProductActivity",
        weight: 5.0,
        median_ms: 640.0,
        innermost: &[
            "android.graphics.BitmapFactory.nativeDecodeStream(Native)
android.graphics.BitmapFactory.decodeStream(BitmapFactory.java:751)",
            "android.graphics.ImageDecoder.nDecodeBitmap(Native)
android.graphics.ImageDecoder.decodeBitmap(ImageDecoder.java:2031)",
            "android.graphics.BitmapFactory.nativeDecodeByteArray(Native)
android.graphics.BitmapFactory.decodeByteArray(BitmapFactory.java:589)",
        ],
        own: "com.example.shop.product.ProductGallery.thumbnail(ProductGallery.kt:103)
com.example.shop.product.ProductGallery.bind(ProductGallery.kt:77)",
        outermost: FRAME,
    },
    Problem {
        page: "CartActivity",
        weight: 3.0,
        median_ms: 700.0,
        innermost: &[
            "sun.misc.Unsafe.park(Native)
java.util.concurrent.locks.ReentrantLock.lock(ReentrantLock.java:322)",
            "java.lang.Object.wait(Native)
java.lang.Object.wait(Object.java:442)",
        ],
        own: "com.example.shop.cart.CartRepository.total(CartRepository.kt:88)
com.example.shop.cart.CartViewModel.recalculate(CartViewModel.kt:140)",
        outermost: MESSAGE,
    },
    Problem {
        page: "ReviewsActivity",
        weight: 3.0,
        median_ms: 430.0,
        innermost: &[
            "libcore.io.Linux.read(Native)
java.io.FileInputStream.read(FileInputStream.java:313)",
            "libcore.io.Linux.open(Native)
java.io.FileInputStream.<init>(FileInputStream.java:160)",
        ],
        own: "com.example.shop.reviews.ReviewDraftStore.load(ReviewDraftStore.kt:40)
com.example.shop.reviews.ReviewsActivity.onCreate(ReviewsActivity.kt:29)",
        outermost: MESSAGE,
    },
    Problem {
        page: "LoginActivity",
        weight: 3.0,
        median_ms: 900.0,
        innermost: &["android.security.KeyStore2.handleRemoteExceptionWithRetry(KeyStore2.java:120)
javax.crypto.Cipher.init(Cipher.java:1116)"],
        own: "com.example.shop.security.TokenVault.unseal(TokenVault.kt:66)
com.example.shop.session.SessionStore.restore(SessionStore.kt:52)",
        outermost: MESSAGE,
    },
    Problem {
        page: "HelpActivity",
        weight: 3.0,
        median_ms: 1_150.0,
        innermost: &["android.webkit.WebViewFactory.getProvider(WebViewFactory.java:276)
android.webkit.WebView.<init>(WebView.java:421)"],
        own: "com.example.shop.help.ArticleView.create(ArticleView.kt:33)
com.example.shop.help.HelpActivity.onCreate(HelpActivity.kt:24)",
        outermost: MESSAGE,
    },
    Problem {
        page: "SearchActivity",
        weight: 3.0,
        median_ms: 560.0,
        innermost: &["libshop_core.so!shop_core::search::rank::score", "libshop_core.so!shop_core::search::rank::normalize"],
        own: "libshop_core.so!shop_core::search::Session::query
com.example.shop.core.Native.search(Native)
com.example.shop.search.SearchRepository.rank(SearchRepository.kt:83)",
        outermost: MESSAGE,
    },
    Problem {
        page: "ProductActivity",
        weight: 2.0,
        median_ms: 480.0,
        innermost: &["libshop_image.so!shop::image::Blur::apply(shop::image::Bitmap&, int)"],
        own: "com.example.shop.core.Native.blur(Native)
com.example.shop.product.Backdrop.draw(Backdrop.kt:45)",
        outermost: FRAME,
    },
    Problem {
        page: "",
        weight: 1.2,
        median_ms: 620.0,
        innermost: &[
            "java.io.FileDescriptor.sync(Native)
android.app.SharedPreferencesImpl.writeToFile(SharedPreferencesImpl.java:800)
android.app.SharedPreferencesImpl$EditorImpl.commit(SharedPreferencesImpl.java:605)",
            "android.app.SharedPreferencesImpl.awaitLoadedLocked(SharedPreferencesImpl.java:283)
android.app.SharedPreferencesImpl.edit(SharedPreferencesImpl.java:355)",
        ],
        own: "com.example.shop.session.SessionStore.save(SessionStore.kt:72)",
        outermost: MESSAGE,
    },
    Problem {
        page: "",
        weight: 0.8,
        median_ms: 540.0,
        innermost: &["android.os.BinderProxy.transactNative(Native)
android.os.BinderProxy.transact(BinderProxy.java:584)"],
        own: "com.example.shop.push.PushRegistrar.register(PushRegistrar.kt:31)",
        outermost: MESSAGE,
    },
    Problem {
        page: "",
        weight: 0.9,
        median_ms: 500.0,
        innermost: &["android.os.MessageQueue.nativePollOnce(Native)
android.os.MessageQueue.next(MessageQueue.java:335)"],
        own: "",
        outermost: IDLE,
    },
];

const APPLE: &[Problem] = &[
    Problem {
        page: "",
        weight: 2.0,
        median_ms: 420.0,
        innermost: &[
            "Foundation!JSONDecoder.decode<A>(_:from:)",
            "Foundation!-[_NSJSONReader parseData:options:error:]",
        ],
        own: "Shop!ShopFeed.FeedModel.decode(Foundation.Data)
Shop!ShopFeed.FeedModel.refresh()",
        outermost: IOS,
    },
    Problem {
        page: "",
        weight: 1.5,
        median_ms: 560.0,
        innermost: &["ShopCore!shop_core::search::rank::score"],
        own: "ShopCore!shop_core::search::Session::query
Shop!ShopSearch.SearchModel.rank()",
        outermost: IOS,
    },
    Problem {
        page: "",
        weight: 0.5,
        median_ms: 500.0,
        innermost: &["libsystem_kernel.dylib!mach_msg2_trap
CoreFoundation!__CFRunLoopServiceMachPort
CoreFoundation!__CFRunLoopRun"],
        own: "",
        outermost: IOS,
    },
];

/// Returns all stacks.
pub(super) fn stacks() -> Vec<Stack> {
    let android = ANDROID.iter().map(|problem| (problem, false, false));
    let apple = APPLE.iter().map(|problem| (problem, true, false));
    let all = android.chain(apple).chain([(&BLOCKED, false, true)]);
    all.flat_map(|(problem, ios, only_when_blocked)| {
        problem.innermost.iter().map(move |innermost| Stack {
            frames: [innermost, problem.own, problem.outermost]
                .iter()
                .flat_map(|part| part.lines())
                .filter_map(frame)
                .collect(),
            page: problem.page,
            weight: problem.weight / problem.innermost.len() as f64,
            median_ms: problem.median_ms,
            ios,
            only_when_blocked,
        })
    })
    .collect()
}

/// Parses `class.function(file:line)`, or `module!function` of native code.
fn frame(line: &'static str) -> Option<Frame<'static>> {
    if let Some((module, function)) = line.split_once('!') {
        return Some(Frame {
            module: Text::from(module),
            function: Text::from(function),
            native: true,
            ..Frame::default()
        });
    }
    let (name, place) = line.strip_suffix(')')?.split_once('(')?;
    let (class, function) = name.rsplit_once('.')?;
    let (file, line) = place.split_once(':').unwrap_or_default();
    Some(Frame {
        class: Text::from(class),
        function: Text::from(function),
        file: Text::from(file),
        line: line.parse().unwrap_or_default(),
        native: place == "Native",
        ..Frame::default()
    })
}
