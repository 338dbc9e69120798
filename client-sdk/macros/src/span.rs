//! The code that is written into a traced function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{Block, Error, Expr, Result, ReturnType, Signature, Stmt, Type, parse_quote};

use crate::options::Options;
use crate::signature::signature_text;

/// A function to trace, and what is known of it.
pub(crate) struct Function<'f> {
    pub(crate) signature: &'f Signature,
    /// The type of the `impl` block it stands in.
    pub(crate) type_name: Option<&'f str>,
    pub(crate) options: Options,
}

/// Rewrites the body so that every call is a span.
pub(crate) fn trace(function: &Function<'_>, body: &mut Block) -> Result<()> {
    let (signature, options) = (function.signature, &function.options);
    if let Some(token) = &signature.constness {
        return Err(Error::new_spanned(
            token,
            "a `const fn` cannot be traced, since it also runs at build time: remove `const`, or leave the method of a traced `impl` block out with `#[unjank::traced(skip)]`",
        ));
    }
    if let (Some(err), ReturnType::Default) = (options.err, &signature.output) {
        return Err(Error::new(
            err,
            "`err` is for functions that answer a `Result`: remove it",
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
    /// A reference to the static that says what the span is.
    fn callsite(&self) -> TokenStream {
        let (options, function) = (&self.options, &self.signature.ident);
        // The function's own line, not that of the attribute, which may stand on an `impl` block.
        let place = function.span();
        let module = quote_spanned! {place=> ::core::module_path!() };
        let class = match self.type_name {
            Some(of) => quote! { ::core::concat!(#module, "::", #of) },
            None => module.clone(),
        };
        let (kind, made) = match (options.init, self.type_name) {
            (None, _) => (quote! { Method }, None),
            (Some(_), of) => (quote! { Init }, of),
        };
        let text = function.to_string();
        let text = text.trim_start_matches("r#");
        let name = match (&options.name, made, self.type_name) {
            (Some(name), ..) => quote! { #name },
            (None, Some(_), _) => class.clone(),
            (None, None, Some(of)) => {
                quote! { ::core::concat!(#module, "::", #of, "::", #text) }
            }
            (None, None, None) => quote! { ::core::concat!(#module, "::", #text) },
        };
        let signature = signature_text(self.signature);
        let tags = &options.tags;
        let (file, line) = (
            quote_spanned! {place=> ::core::file!() },
            quote_spanned! {place=> ::core::line!() },
        );
        quote! {{
            static CALLSITE: ::unjank::Callsite = ::unjank::Callsite {
                name: #name,
                class: #class,
                function: #signature,
                file: #file,
                line: #line,
                tags: &[#(#tags),*],
                kind: ::unjank::protocol::SpanKind::#kind,
            };
            &CALLSITE
        }}
    }

    /// What tells an answer that is an error.
    fn failed(&self) -> TokenStream {
        match self.options.err {
            Some(err) => quote_spanned! {err=> ::core::result::Result::is_err },
            None => quote! { |_| false },
        }
    }

    /// The answer's type as far as it can be written inside the body.
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
        // Tells the type of the answer to `?` and to coercions, which an async block cannot be told else.
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

    /// A body whose answer is looked at, wherever it returns.
    fn watched_body(&self, callsite: &TokenStream, body: &Block) -> Block {
        let (failed, statements) = (self.failed(), &body.stmts);
        let answer = self.answer().map(|answer| quote! { -> #answer });
        let run = quote! { move || #answer { #(#statements)* } };
        parse_quote! {{
            ::unjank::traced_call(#callsite, #run, #failed)
        }}
    }
}

/// The async block that a function ends in, also when it is boxed: such a function only makes the future that is to be measured.
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

/// Replaces `impl Trait`, which only signatures may say.
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
