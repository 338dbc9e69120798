//! `#[unjank::traced]`: a span for every call of a function. Apps use it through the crate `unjank`, whose items the code it
//! writes names; nothing here is of use alone.

#![warn(missing_docs)]

mod item;
mod options;
mod signature;
mod span;

use proc_macro::TokenStream;
use syn::parse_macro_input;

use self::options::Options;

/// Makes every call of a function a span of kind `method`, named `module::Type::function`.
///
/// On a function, a method, or an `impl` block, where it holds for all methods.
///
/// # What it can be told
/// * `name = "…"`: another name.
/// * `tag = "startup"`, `tags("startup", "network")`: what the remote configuration may choose it by. Methods have the tags of
///   their `impl` block too.
/// * `init`: it constructs an object. The span is of kind `init` and named after the type.
/// * `err`: the span ends with an error when the function answers `Err`; else its status is unset. On an `impl` block it holds
///   for the methods whose answer is called `Result`.
/// * `skip`: a method of a traced `impl` block is left out.
///
/// # What is measured
/// A function from its first statement to its end, however it ends. An `async fn` from its first poll to its completion, or
/// until it is dropped; while it is polled, spans that begin on the thread are its children. A function that ends in an
/// `async` block or in `Box::pin(async …)` is measured as an `async fn`.
///
/// While nothing is collected a call costs a look at one flag.
///
/// # What it cannot do
/// A `const fn` cannot be traced. A method alone, without its `impl` block, does not know its type: it is named
/// `module::function`.
#[proc_macro_attribute]
pub fn traced(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(arguments as Options);
    let item = parse_macro_input!(item as syn::Item);
    match item::traced(options, item) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
