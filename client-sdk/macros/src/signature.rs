//! Formats signatures the way people write them.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, Signature};

/// Returns the name of a function and the types of its arguments: `pay(&self, u64)`.
pub(crate) fn signature_text(signature: &Signature) -> String {
    let argument = |argument: &FnArg| match argument {
        FnArg::Receiver(receiver) => {
            let mut receiver = receiver.clone();
            receiver.attrs.clear();
            tidy(receiver.into_token_stream())
        }
        FnArg::Typed(typed) => tidy(typed.ty.to_token_stream()),
    };
    let arguments: Vec<_> = signature.inputs.iter().map(argument).collect();
    format!("{}({})", signature.ident, arguments.join(", "))
}

/// The kind of the previous token. It decides whether the next token needs a space before it.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// There is no token, or one that needs no space after it.
    Open,
    Word,
    /// A keyword or a lifetime before a type.
    Prefix,
    /// A comma, a plus or an arrow.
    Loose,
    /// The apostrophe of a lifetime.
    Apostrophe,
}

/// Formats tokens with spaces where people put them.
pub(crate) fn tidy(tokens: TokenStream) -> String {
    let mut text = String::new();
    write(tokens, &mut text);
    text
}

fn write(tokens: TokenStream, text: &mut String) {
    let mut before = Before::Open;
    for token in tokens {
        before = match token {
            TokenTree::Group(group) => {
                if matches!(before, Before::Prefix | Before::Loose) {
                    text.push(' ');
                }
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                write(group.stream(), text);
                text.push_str(close);
                Before::Word
            }
            TokenTree::Punct(punct) => {
                let (sign, joint) = (punct.as_char(), punct.spacing() == Spacing::Joint);
                let bound = sign == ':' && !joint && !text.ends_with(':');
                let arrow = sign == '>' && text.ends_with('-');
                let spaced = matches!(sign, '+' | '=') || sign == '-' && joint;
                let opens = matches!(sign, '&' | '*' | '\'' | '[');
                if spaced || opens && matches!(before, Before::Prefix | Before::Loose) {
                    text.push(' ');
                }
                text.push(sign);
                match sign {
                    '\'' => Before::Apostrophe,
                    ',' | '+' | '=' | ';' => Before::Loose,
                    '>' if arrow => Before::Loose,
                    ':' if bound => Before::Loose,
                    _ => Before::Open,
                }
            }
            word => {
                let word = word.to_string();
                if !matches!(before, Before::Open | Before::Apostrophe) {
                    text.push(' ');
                }
                text.push_str(&word);
                let prefix = matches!(word.as_str(), "mut" | "dyn" | "impl" | "const" | "as");
                if prefix || before == Before::Apostrophe {
                    Before::Prefix
                } else {
                    Before::Word
                }
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_formatted_as_people_write_them() {
        for (written, read) in [
            ("fn pay(&self, amount: u64)", "pay(&self, u64)"),
            (
                "fn all(mut self: Box<Self>, a: u8, b: &'a [u8])",
                "all(mut self: Box<Self>, u8, &'a [u8])",
            ),
            (
                "fn on<F>(f: impl Fn(&mut str) -> Vec<u8> + Send + 'static)",
                "on(impl Fn(&mut str) -> Vec<u8> + Send + 'static)",
            ),
            (
                "fn find(of: &HashMap<String, dyn Any>)",
                "find(&HashMap<String, dyn Any>)",
            ),
            (
                "fn raw(at: *const u8, block: [u8; 4])",
                "raw(*const u8, [u8; 4])",
            ),
            ("fn nothing()", "nothing()"),
        ] {
            let signature: Signature = syn::parse_str(written).unwrap();
            assert_eq!(signature_text(&signature), read);
        }
    }
}
