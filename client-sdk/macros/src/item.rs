//! The items that `#[traced]` accepts: a function, or an `impl` block and its methods.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::visit_mut::VisitMut;
use syn::{
    AssocType, Attribute, Error, ImplItem, ImplItemFn, Item, ItemImpl, Result, ReturnType, Type,
};

use crate::options::Options;
use crate::signature::tidy;
use crate::span::{Function, trace};

/// Adds spans to an item.
pub(crate) fn traced(options: Options, item: Item) -> Result<TokenStream> {
    match item {
        Item::Fn(mut function) => {
            if options.skip.is_none() {
                let traced = Function {
                    signature: &function.sig,
                    type_name: None,
                    options,
                };
                trace(&traced, &mut function.block)?;
            }
            Ok(function.into_token_stream())
        }
        Item::Impl(block) => traced_impl(&options, block),
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
            "`#[unjank::traced]` goes on functions, methods and `impl` blocks",
        )),
    }
}

fn traced_impl(options: &Options, mut block: ItemImpl) -> Result<TokenStream> {
    if let Some(name) = &options.name {
        let problem = "`name` is for single functions: put it on one of the methods";
        return Err(Error::new_spanned(name, problem));
    }
    for (word, place) in [("init", options.init), ("skip", options.skip)] {
        if let Some(place) = place {
            let problem = format!("`{word}` is for single functions: put it on one of the methods");
            return Err(Error::new(place, problem));
        }
    }
    let type_name = type_name(&block.self_ty);
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            traced_method(options, &type_name, method)?;
        }
    }
    Ok(block.into_token_stream())
}

fn traced_method(of_block: &Options, type_name: &str, method: &mut ImplItemFn) -> Result<()> {
    let mut options = Options::default();
    if let Some(at) = method.attrs.iter().position(is_ours) {
        options = Options::parse(&method.attrs.remove(at))?;
    }
    if options.skip.is_some() {
        return Ok(());
    }
    options.tags.extend(of_block.tags.iter().cloned());
    if returns_result(&method.sig.output) {
        options.err = options.err.or(of_block.err);
    }
    let traced = Function {
        signature: &method.sig,
        type_name: Some(type_name),
        options,
    };
    trace(&traced, &mut method.block)
}

/// `#[traced]` or `#[unjank::traced]`.
fn is_ours(attribute: &Attribute) -> bool {
    let path = &attribute.path().segments;
    path.last().is_some_and(|last| last.ident == "traced")
}

/// Returns whether a function returns a `Result`, directly or through a future, in the form that `#[async_trait]` generates.
fn returns_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, output) = output else {
        return false;
    };
    let mut outputs = Outputs(is_result(output));
    outputs.visit_type_mut(&mut output.clone());
    outputs.0
}

/// Checks the name, which is all that is known here: `io::Result` counts as well.
fn is_result(of: &Type) -> bool {
    matches!(of, Type::Path(path)
        if path.path.segments.last().is_some_and(|last| last.ident == "Result"))
}

/// Whether a type contains a `Future<Output = Result<…>>`.
struct Outputs(bool);

impl VisitMut for Outputs {
    fn visit_assoc_type_mut(&mut self, output: &mut AssocType) {
        self.0 |= output.ident == "Output" && is_result(&output.ty);
    }
}

/// Returns the name of a type without its parameters, which are not known at build time.
fn type_name(of: &Type) -> String {
    match of {
        Type::Path(path) => {
            let segments = path.path.segments.iter();
            let names: Vec<_> = segments.map(|one| one.ident.to_string()).collect();
            names.join("::")
        }
        other => tidy(other.to_token_stream()),
    }
}
