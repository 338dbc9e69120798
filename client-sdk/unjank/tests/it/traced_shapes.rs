//! `#[traced]` on functions of every shape: what macros make, what never answers, what other languages call.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::collector::Running;
use crate::traced::block_on;

/// The names of the spans, in the order in which they ended, and how many of them had a parent.
fn names(running: &Running) -> (Vec<String>, usize) {
    running.flush();
    let spans = running.collector.events("spans");
    let children = spans
        .iter()
        .filter(|span| span["parent_span_id"].is_string());
    let name = |span: &serde_json::Value| {
        let name = span["name"].as_str().unwrap();
        name.trim_start_matches("it::traced_shapes::").to_owned()
    };
    (spans.iter().map(name).collect(), children.count())
}

#[async_trait::async_trait]
trait Shop: Sync {
    async fn total(&self, prices: &[u64]) -> Result<u64, String>;

    #[unjank::traced]
    async fn open(&self) -> bool {
        true
    }
}

struct Corner;

#[unjank::traced(err)]
#[async_trait::async_trait]
impl Shop for Corner {
    async fn total(&self, prices: &[u64]) -> Result<u64, String> {
        unjank::span("sum").end();
        let first = prices.first().ok_or("nothing")?;
        Ok(*first)
    }
}

struct Market;

#[async_trait::async_trait]
#[unjank::traced(err)]
impl Shop for Market {
    async fn total(&self, prices: &[u64]) -> Result<u64, String> {
        unjank::span("sum").end();
        let first = prices.first().ok_or("nothing")?;
        Ok(*first)
    }
}

#[test]
fn methods_of_an_async_trait_are_traced_whichever_attribute_comes_first() {
    let running = Running::start();
    for shop in [&Corner as &dyn Shop, &Market] {
        assert_eq!(block_on(shop.total(&[7])), Ok(7));
        assert!(block_on(shop.total(&[])).is_err());
        assert!(block_on(shop.open()));
    }
    let (names, children) = names(&running);
    let shop = |of: &str| {
        let total = format!("{of}::total");
        let names = ["sum", &total, "sum", &total, "open"];
        names.map(str::to_owned)
    };
    assert_eq!(names, [shop("Corner"), shop("Market")].concat());
    assert_eq!(children, 4);
    let spans = running.collector.events("spans");
    let errors = spans.iter().filter(|span| span["status"] == "error");
    assert_eq!(errors.count(), 2);
}

macro_rules! getters {
    ($($name:ident: $answer:ty = $value:expr),*) => {
        $(
            #[unjank::traced]
            fn $name() -> $answer {
                $value
            }
        )*
    };
}

getters!(small: u8 = 1, large: Option<String> = None);

macro_rules! counted {
    ($(#[$attribute:meta])* $name:ident, $body:block) => {
        $(#[$attribute])*
        fn $name(__unjank_span: u8) -> Result<u8, String> $body
    };
}

// A name that our code uses, and attributes that come in from outside.
counted!(
    #[unjank::traced(err)]
    made,
    { Err("no".to_owned()) }
);
counted!(
    #[unjank::traced]
    plain,
    { Ok(1) }
);

#[unjank::traced]
fn own_names(__unjank_span: u8) -> u8 {
    __unjank_span
}

#[test]
fn functions_that_macros_make_are_traced() {
    let running = Running::start();
    assert_eq!((small(), large()), (1, None));
    assert!(made(1).is_err());
    assert_eq!((plain(1), own_names(2)), (Ok(1), 2));
    let (names, children) = names(&running);
    assert_eq!(names, ["small", "large", "made", "plain", "own_names"]);
    assert_eq!(children, 0);
}

struct Pair<A, const N: usize>(A, [u8; N]);

#[unjank::traced]
impl<A, const N: usize> Pair<A, N>
where
    A: Display,
{
    fn show<B: AsRef<str> + ?Sized>(&self, after: &B) -> String {
        format!("{}{}{N}", self.0, after.as_ref())
    }

    fn largest<'s, F>(&'s self, choose: F) -> impl Iterator<Item = &'s u8> + use<'s, A, N, F>
    where
        F: Fn(&u8) -> bool + 's,
    {
        self.1.iter().filter(move |one| choose(one))
    }

    fn into_parts(self: std::sync::Arc<Self>) -> [u8; N] {
        self.1
    }
}

#[unjank::traced(err)]
async fn shown(what: impl Display + Send) -> Result<impl Display, std::fmt::Error> {
    Ok(format!("<{what}>"))
}

#[test]
fn generic_functions_and_those_that_answer_some_trait_are_traced() {
    let running = Running::start();
    let pair = std::sync::Arc::new(Pair("a", [1, 2, 3]));
    assert_eq!(pair.show("b"), "ab3");
    assert_eq!(pair.largest(|one| *one > 1).count(), 2);
    assert_eq!(pair.into_parts(), [1, 2, 3]);
    assert_eq!(
        block_on(shown(7)).map(|answer| format!("{answer}")),
        Ok("<7>".to_owned())
    );
    let (names, _) = names(&running);
    assert_eq!(
        names,
        ["Pair::show", "Pair::largest", "Pair::into_parts", "shown"]
    );
}

#[unjank::traced]
fn never() -> ! {
    std::panic::resume_unwind(Box::new("the only way out"))
}

#[unjank::traced(err)]
fn never_or_error(fail: bool) -> Result<std::convert::Infallible, u8> {
    if fail { Err(1) } else { never() }
}

#[test]
fn functions_that_never_answer_end_their_spans_when_they_unwind() {
    let running = Running::start();
    assert!(catch_unwind(|| never()).is_err());
    assert_eq!(never_or_error(true), Err(1));
    assert!(catch_unwind(AssertUnwindSafe(|| never_or_error(false))).is_err());
    // Whatever was open is closed: this is a root.
    unjank::span("after").end();
    let (names, children) = names(&running);
    assert_eq!(
        names,
        [
            "never",
            "never_or_error",
            "never",
            "never_or_error",
            "after"
        ]
    );
    assert_eq!(children, 1);
}

#[unjank::traced]
extern "C" fn called_by_c(number: i32) -> i32 {
    number + 1
}

#[expect(unsafe_code, reason = "unsafe functions are traced too")]
#[unjank::traced]
/// # Safety
/// `at` is valid.
unsafe extern "C" fn read_by_c(at: *const i32) -> i32 {
    // SAFETY: the caller says so.
    unsafe { *at }
}

#[unjank::traced]
fn factorial(of: u64) -> u64 {
    if of < 2 { 1 } else { of * factorial(of - 1) }
}

#[unjank::traced]
fn countdown(from: u64) -> std::pin::Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if from == 0 {
            0
        } else {
            countdown(from - 1).await
        }
    })
}

#[test]
#[expect(unsafe_code, reason = "unsafe functions are traced too")]
fn functions_for_c_and_functions_that_call_themselves_are_traced() {
    let running = Running::start();
    let by_pointer: extern "C" fn(i32) -> i32 = called_by_c;
    assert_eq!(by_pointer(1), 2);
    // SAFETY: it points to a constant.
    assert_eq!(unsafe { read_by_c(&raw const SEVEN) }, 7);
    assert_eq!(factorial(3), 6);
    assert_eq!(block_on(countdown(2)), 0);
    let (names, children) = names(&running);
    let expected = [
        "called_by_c",
        "read_by_c",
        "factorial",
        "factorial",
        "factorial",
        "countdown",
        "countdown",
        "countdown",
    ];
    assert_eq!(names, expected);
    assert_eq!(children, 4);
}

static SEVEN: i32 = 7;

struct Limits;

#[unjank::traced]
impl Limits {
    // It also runs at build time, so it has to be left out by name.
    #[unjank::traced(skip)]
    const fn build_time() -> u8 {
        3
    }

    fn run_time(&self) -> u8 {
        Self::build_time()
    }
}

#[test]
fn constant_methods_of_a_traced_block_are_left_out_where_told() {
    const AT_BUILD_TIME: u8 = Limits::build_time();
    let running = Running::start();
    assert_eq!(Limits.run_time(), AT_BUILD_TIME);
    assert_eq!(names(&running).0, ["Limits::run_time"]);
}
