//! The items that `#[traced]` accepts: a function, an `impl` block with its methods, or a module with its functions and blocks.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Error, Item, Result};

use crate::item::{Constants, traced_function, traced_impl};
use crate::module::traced_module;
use crate::options::Options;

/// Adds spans to an item.
pub(crate) fn traced(options: Options, item: Item) -> Result<TokenStream> {
    match item {
        Item::Fn(mut function) => {
            if options.skip.is_none() {
                traced_function(options, &mut function)?;
            }
            Ok(function.into_token_stream())
        }
        Item::Impl(mut block) => {
            traced_impl(&options, &mut block, Constants::AreErrors)?;
            Ok(block.into_token_stream())
        }
        Item::Mod(mut module) => {
            traced_module(&options, &mut module)?;
            Ok(module.into_token_stream())
        }
        Item::Trait(item) => Err(Error::new_spanned(
            item.ident,
            "a trait cannot be traced: put `#[unjank::traced]` on the `impl` blocks of the trait, or on its methods that have a body",
        )),
        Item::Verbatim(tokens) => Err(Error::new_spanned(
            tokens,
            "only a function with a body can be traced: put `#[unjank::traced]` on the `impl` block",
        )),
        other => Err(Error::new_spanned(
            other,
            "`#[unjank::traced]` goes on functions, methods, `impl` blocks and modules",
        )),
    }
}
