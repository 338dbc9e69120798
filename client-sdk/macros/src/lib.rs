//! The attribute `#[unjank::traced]`, which records a span for each call of a function. Apps use it through the crate `unjank`:
//! the generated code refers to items of that crate.

#![warn(missing_docs)]

mod item;
mod module;
mod options;
mod signature;
mod span;
mod traced_item;

use proc_macro::TokenStream;
use syn::parse_macro_input;

use self::options::Options;

/// Records each call of a function as a span of kind `method`, named `module::Type::function`.
///
/// Put it on a function, on a method, on an `impl` block to trace all of its methods, or on a module (`mod name { … }`) to trace
/// everything inside that has a body, except tests and `const fn`.
///
/// # Arguments
/// * `name = "…"`: another name for the span.
/// * `tag = "startup"`, `tags("startup", "network")`: tags by which the remote configuration can select the span. Functions
///   also have the tags of the `impl` block and the modules around them.
/// * `init`: the function constructs an object. The span is of kind `init` and named after the type.
/// * `err`: the span has the status `error` if the function returns `Err`; otherwise its status is `unset`. On an `impl` block
///   or a module, this applies to the functions whose return type is called `Result`.
/// * `skip`: excludes an item of a traced `impl` block or module.
/// * `method`: the function is a method. Needed only for a method that is traced on its own, without its `impl` block, if it
///   has no `self` and does not use `Self`: it is then named after its type.
///
/// # What is measured
/// For a function, the time from its first statement to its end, however it ends. For an `async fn`, the time from its first poll
/// until it completes or is dropped; a future that is dropped before it completes has the status `cancelled`. Spans that begin on the thread while it is polled are its children. A function that ends in
/// an `async` block or in `Box::pin(async …)` is measured like an `async fn`.
///
/// A function that panics has the status `error`.
///
/// While nothing is collected, a call only checks one flag.
///
/// # Limitations
/// A `const fn` cannot be traced. A module in a file of its own (`mod name;`) cannot be traced as a whole, because Rust does not
/// show it to attributes. Functions that macros inside a module make are not traced.
#[proc_macro_attribute]
pub fn traced(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(arguments as Options);
    let item = parse_macro_input!(item as syn::Item);
    match traced_item::traced(options, item) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
