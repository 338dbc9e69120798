//! Generates the code that traces a function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{Block, Error, Expr, Result, ReturnType, Signature, Stmt, Type, parse_quote};

use crate::options::Options;
use crate::signature::signature_text;

/// A function to trace.
pub(crate) struct Function<'f> {
    pub(crate) signature: &'f Signature,
    pub(crate) owner: Owner<'f>,
    pub(crate) options: Options,
}

/// What a function belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'f> {
    /// The module: it is a free function.
    Module,
    /// The type of an `impl` block that the macro sees, so its name is known.
    Named(&'f str),
    /// A type that only the compiler knows, as `Self`.
    SelfType,
}

/// Rewrites the body so that every call records a span.
pub(crate) fn trace(function: &Function<'_>, body: &mut Block) -> Result<()> {
    let (signature, options) = (function.signature, &function.options);
    if let Some(token) = &signature.constness {
        return Err(Error::new_spanned(
            token,
            "a `const fn` cannot be traced, because it also runs at build time: remove `const`, or exclude the method of a traced `impl` block with `#[unjank::traced(skip)]`",
        ));
    }
    if let (Some(err), ReturnType::Default) = (options.err, &signature.output) {
        return Err(Error::new(
            err,
            "`err` is for functions that return a `Result`: remove it",
        ));
    }
    let callsite = function.callsite();
    if signature.asyncness.is_some() {
        *body = function.async_body(&callsite, body);
    } else if let Some(future) = last_future(body) {
        let failed = function.failed();
        *future = parse_quote! { ::unjank::traced_future(#callsite, #future, #failed) };
    } else if options.err.is_some() {
        *body = function.watched_body(&callsite, body);
    } else {
        let span = Ident::new("__unjank_span", Span::mixed_site());
        let begin: Stmt = parse_quote! { let #span = ::unjank::callsite_span(#callsite); };
        body.stmts.insert(0, begin);
    }
    Ok(())
}

impl Function<'_> {
    /// Returns a reference to the static that describes the span.
    fn callsite(&self) -> TokenStream {
        let (options, function) = (&self.options, &self.signature.ident);
        // The line of the function rather than of the attribute, which may be on an `impl` block.
        let place = function.span();
        let module = quote_spanned! {place=> ::core::module_path!() };
        let class = match self.owner {
            Owner::Named(of) => quote! { ::core::concat!(#module, "::", #of) },
            Owner::Module | Owner::SelfType => module.clone(),
        };
        let kind = match options.init {
            Some(_) => quote! { Init },
            None => quote! { Method },
        };
        let text = function.to_string();
        let text = text.trim_start_matches("r#");
        let name = match (&options.name, options.init, self.owner) {
            (Some(name), ..) => quote! { #name },
            (None, Some(_), Owner::Named(_)) => class.clone(),
            (None, None, Owner::Named(of)) => {
                quote! { ::core::concat!(#module, "::", #of, "::", #text) }
            }
            (None, _, Owner::Module | Owner::SelfType) => {
                quote! { ::core::concat!(#module, "::", #text) }
            }
        };
        let signature = signature_text(self.signature);
        let tags = &options.tags;
        let (file, line) = (
            quote_spanned! {place=> ::core::file!() },
            quote_spanned! {place=> ::core::line!() },
        );
        let callsite = quote! {
            ::unjank::Callsite {
                name: #name,
                class: #class,
                function: #signature,
                file: #file,
                line: #line,
                tags: &[#(#tags),*],
                kind: ::unjank::protocol::SpanKind::#kind,
            }
        };
        if !matches!(self.owner, Owner::SelfType) {
            return quote! {{
                static CALLSITE: ::unjank::Callsite = #callsite;
                &CALLSITE
            }};
        }
        // The last part of the name, unless the name is given or is that of the type.
        let method = match (&options.name, options.init) {
            (None, None) => quote! { ::core::option::Option::Some(#text) },
            _ => quote! { ::core::option::Option::None },
        };
        let renamed = options.name.is_none();
        quote! {{
            static CALLSITE: ::unjank::MethodCallsite =
                ::unjank::MethodCallsite::new(#callsite, #renamed, #method);
            CALLSITE.of::<Self>()
        }}
    }

    /// Returns the predicate that detects a failed result.
    fn failed(&self) -> TokenStream {
        match self.options.err {
            Some(err) => quote_spanned! {err=> ::core::result::Result::is_err },
            None => quote! { |_| false },
        }
    }

    /// Returns the return type, as far as it can be written inside the body.
    fn answer(&self) -> Option<Type> {
        let ReturnType::Type(_, answer) = &self.signature.output else {
            return None;
        };
        let mut answer = (**answer).clone();
        Inferred.visit_type_mut(&mut answer);
        (!matches!(answer, Type::Never(_) | Type::Infer(_))).then_some(answer)
    }

    fn async_body(&self, callsite: &TokenStream, body: &Block) -> Block {
        let (failed, statements) = (self.failed(), &body.stmts);
        // Gives `?` and coercions the return type, which cannot be declared for an async block.
        let typed = self.answer().map(|answer| {
            quote! {
                if let ::core::option::Option::Some(answer) = ::core::option::Option::None::<#answer> {
                    #[allow(unreachable_code, clippy::needless_return)]
                    return answer;
                }
            }
        });
        parse_quote! {{
            ::unjank::traced_future(#callsite, async move { #typed #(#statements)* }, #failed).await
        }}
    }

    /// Returns a body whose result is checked, wherever it returns.
    fn watched_body(&self, callsite: &TokenStream, body: &Block) -> Block {
        let (failed, statements) = (self.failed(), &body.stmts);
        let answer = self.answer().map(|answer| quote! { -> #answer });
        let run = quote! { move || #answer { #(#statements)* } };
        parse_quote! {{
            ::unjank::traced_call(#callsite, #run, #failed)
        }}
    }
}

/// Finds the async block that a function ends in, even if it is boxed. Such a function only creates the future that has to be
/// measured.
fn last_future(body: &mut Block) -> Option<&mut Expr> {
    let Some(Stmt::Expr(last, None)) = body.stmts.last_mut() else {
        return None;
    };
    match last {
        Expr::Async(_) => Some(last),
        Expr::Call(call) if is_box_pin(&call.func) => {
            let first = call.args.first_mut();
            first.filter(|first| matches!(first, Expr::Async(_)))
        }
        _ => None,
    }
}

fn is_box_pin(function: &Expr) -> bool {
    let Expr::Path(path) = function else {
        return false;
    };
    let mut names = path.path.segments.iter().rev();
    names.next().is_some_and(|last| last.ident == "pin")
        && names.next().is_some_and(|before| before.ident == "Box")
}

/// Replaces `impl Trait`, which is allowed only in signatures.
struct Inferred;

impl VisitMut for Inferred {
    fn visit_type_mut(&mut self, of: &mut Type) {
        if matches!(of, Type::ImplTrait(_)) {
            *of = parse_quote! { _ };
        } else {
            syn::visit_mut::visit_type_mut(self, of);
        }
    }
}
