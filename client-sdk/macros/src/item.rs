//! `#[traced]` on a function or on an `impl` block with its methods.

use quote::ToTokens as _;
use syn::visit_mut::{VisitMut, visit_path_mut};
use syn::{
    AssocType, Attribute, Block, Error, FnArg, ImplItem, ImplItemFn, Item, ItemFn, ItemImpl, Path,
    Result, ReturnType, Signature, Type,
};

use crate::options::Options;
use crate::signature::tidy;
use crate::span::{Function, Owner, trace};

/// Adds a span to a function, or to a method that is traced without its `impl` block.
pub(crate) fn traced_function(options: Options, function: &mut ItemFn) -> Result<()> {
    let is_method = options.method.is_some() || names_self(&function.sig, &function.block);
    let traced = Function {
        signature: &function.sig,
        owner: if is_method {
            Owner::SelfType
        } else {
            Owner::Module
        },
        options,
    };
    trace(&traced, &mut function.block)
}

/// What happens to functions that cannot be traced because they also run at build time.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Constants {
    AreErrors,
    AreSkipped,
}

/// Rejects arguments that make sense for a single function only.
pub(crate) fn refuse_single(options: &Options) -> Result<()> {
    if let Some(name) = &options.name {
        let problem = "`name` is for single functions: put it on one of the functions inside";
        return Err(Error::new_spanned(name, problem));
    }
    let words = [
        ("init", options.init),
        ("method", options.method),
        ("skip", options.skip),
    ];
    for (word, place) in words {
        if let Some(place) = place {
            let problem =
                format!("`{word}` is for single functions: put it on one of the functions inside");
            return Err(Error::new(place, problem));
        }
    }
    Ok(())
}

/// Adds spans to the methods of a block.
pub(crate) fn traced_impl(
    options: &Options,
    block: &mut ItemImpl,
    constants: Constants,
) -> Result<()> {
    refuse_single(options)?;
    let type_name = type_name(&block.self_ty);
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            traced_method(options, &type_name, method, constants)?;
        }
    }
    Ok(())
}

fn traced_method(
    of_block: &Options,
    type_name: &str,
    method: &mut ImplItemFn,
    constants: Constants,
) -> Result<()> {
    let own = own_options(&mut method.attrs)?;
    let skips = constants == Constants::AreSkipped && method.sig.constness.is_some();
    if own.is_none() && skips || own.as_ref().is_some_and(|own| own.skip.is_some()) {
        return Ok(());
    }
    let traced = Function {
        signature: &method.sig,
        owner: Owner::Named(type_name),
        options: merged(own.unwrap_or_default(), of_block, &method.sig),
    };
    trace(&traced, &mut method.block)
}

/// Takes the arguments of our own attribute off an item inside a traced one.
pub(crate) fn own_options(attributes: &mut Vec<Attribute>) -> Result<Option<Options>> {
    let Some(at) = attributes.iter().position(is_ours) else {
        return Ok(None);
    };
    Options::parse(&attributes.remove(at)).map(Some)
}

/// Adds what a function inherits from the item around it.
pub(crate) fn merged(mut own: Options, around: &Options, signature: &Signature) -> Options {
    own.tags.extend(around.tags.iter().cloned());
    if returns_result(&signature.output) {
        own.err = own.err.or(around.err);
    }
    own
}

/// Returns whether a function has a receiver or uses `Self`, so that it has to be a method.
fn names_self(signature: &Signature, body: &Block) -> bool {
    if signature
        .inputs
        .iter()
        .any(|one| matches!(one, FnArg::Receiver(_)))
    {
        return true;
    }
    let mut search = SelfSearch(false);
    search.visit_signature_mut(&mut signature.clone());
    search.visit_block_mut(&mut body.clone());
    search.0
}

/// Whether code uses `Self`.
struct SelfSearch(bool);

impl VisitMut for SelfSearch {
    fn visit_path_mut(&mut self, path: &mut Path) {
        self.0 |= path
            .segments
            .first()
            .is_some_and(|first| first.ident == "Self");
        visit_path_mut(self, path);
    }

    // Items inside a function have a `Self` of their own.
    fn visit_item_mut(&mut self, _: &mut Item) {}
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

/// Whether a type is named `Result`. A macro knows only the name, so `io::Result` counts, too.
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
