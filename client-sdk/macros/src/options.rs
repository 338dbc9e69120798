//! The arguments of `#[traced(…)]`.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Result, Token};

/// The arguments of one `#[traced]`.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) tags: Vec<LitStr>,
    pub(crate) init: Option<Span>,
    pub(crate) err: Option<Span>,
    pub(crate) skip: Option<Span>,
    pub(crate) method: Option<Span>,
}

const KNOWN: &str = "`traced` accepts `name = \"…\"`, `tag = \"…\"`, `tags(\"…\", \"…\")`, `init`, `err`, `method` and `skip`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        for argument in Punctuated::<Meta, Token![,]>::parse_terminated(input)? {
            options.take(argument)?;
        }
        if let (Some(skip), true) = (options.skip, options.has_more_than_skip()) {
            return Err(Error::new(
                skip,
                "`skip` cannot be combined with other arguments: remove it or the others",
            ));
        }
        Ok(options)
    }
}

impl Options {
    /// Parses the attribute of a method.
    pub(crate) fn parse(attribute: &Attribute) -> Result<Self> {
        match &attribute.meta {
            Meta::Path(_) => Ok(Self::default()),
            _ => attribute.parse_args(),
        }
    }

    fn take(&mut self, argument: Meta) -> Result<()> {
        let word = argument.path().get_ident().map(ToString::to_string);
        match (word.as_deref(), argument) {
            (Some("name"), Meta::NameValue(pair)) => self.name = Some(text(pair.value)?),
            (Some("tag"), Meta::NameValue(pair)) => self.tags.push(text(pair.value)?),
            (Some("tags"), Meta::List(list)) => {
                let tags = Punctuated::<LitStr, Token![,]>::parse_terminated;
                for tag in list.parse_args_with(tags)? {
                    self.tags.push(filled(tag)?);
                }
            }
            (Some("init"), Meta::Path(path)) => self.init = Some(path.span()),
            (Some("err"), Meta::Path(path)) => self.err = Some(path.span()),
            (Some("method"), Meta::Path(path)) => self.method = Some(path.span()),
            (Some("skip"), Meta::Path(path)) => self.skip = Some(path.span()),
            (_, other) => return Err(Error::new_spanned(other, KNOWN)),
        }
        Ok(())
    }

    fn has_more_than_skip(&self) -> bool {
        let words = [self.init, self.err, self.method];
        self.name.is_some() || !self.tags.is_empty() || words.iter().any(Option::is_some)
    }
}

fn text(value: Expr) -> Result<LitStr> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => filled(text),
        other => Err(Error::new_spanned(
            other,
            "names and tags have to be known at build time: write a string literal",
        )),
    }
}

fn filled(text: LitStr) -> Result<LitStr> {
    if text.value().is_empty() {
        return Err(Error::new_spanned(
            text,
            "this name is empty: write a non-empty one",
        ));
    }
    Ok(text)
}
