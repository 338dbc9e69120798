//! `#[traced]` on a module: adds spans to everything inside that has a body.

use syn::{Attribute, Error, Item, ItemMod, ItemTrait, Meta, Result, TraitItem};

use crate::item::{Constants, merged, own_options, refuse_single, traced_function, traced_impl};
use crate::options::Options;
use crate::span::{Function, Owner, trace};

/// Adds spans to the functions, `impl` blocks, traits and modules inside a module.
pub(crate) fn traced_module(options: &Options, module: &mut ItemMod) -> Result<()> {
    refuse_single(options)?;
    let Some((_, items)) = &mut module.content else {
        return Err(Error::new_spanned(
            &module.ident,
            "only a module with its body in the same file can be traced: put `#[unjank::traced]` on the `impl` blocks and functions of the other file",
        ));
    };
    for item in items {
        traced_inside(options, item)?;
    }
    Ok(())
}

fn traced_inside(around: &Options, item: &mut Item) -> Result<()> {
    let attributes = match item {
        Item::Fn(function) => &mut function.attrs,
        Item::Impl(block) => &mut block.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::Mod(module) => &mut module.attrs,
        _ => return Ok(()),
    };
    if attributes.iter().any(is_of_tests) {
        return Ok(());
    }
    let own = own_options(attributes)?;
    if own.as_ref().is_some_and(|own| own.skip.is_some()) {
        return Ok(());
    }
    match item {
        Item::Fn(function) if function.sig.constness.is_some() && own.is_none() => Ok(()),
        Item::Fn(function) => {
            let options = merged(own.unwrap_or_default(), around, &function.sig);
            traced_function(options, function)
        }
        Item::Impl(block) => {
            let options = joined(own.unwrap_or_default(), around);
            traced_impl(&options, block, Constants::AreSkipped)
        }
        Item::Mod(module) if module.content.is_some() => {
            traced_module(&joined(own.unwrap_or_default(), around), module)
        }
        Item::Trait(item) => traced_trait(&joined(own.unwrap_or_default(), around), item),
        _ => Ok(()),
    }
}

/// Adds spans to the methods of a trait that have a body.
fn traced_trait(around: &Options, item: &mut ItemTrait) -> Result<()> {
    refuse_single(around)?;
    for item in &mut item.items {
        let TraitItem::Fn(method) = item else {
            continue;
        };
        let own = own_options(&mut method.attrs)?;
        let Some(body) = &mut method.default else {
            continue;
        };
        if own.as_ref().is_some_and(|own| own.skip.is_some()) {
            continue;
        }
        let traced = Function {
            signature: &method.sig,
            owner: Owner::SelfType,
            options: merged(own.unwrap_or_default(), around, &method.sig),
        };
        trace(&traced, body)?;
    }
    Ok(())
}

/// Adds what a block or module inherits from the module around it.
fn joined(mut own: Options, around: &Options) -> Options {
    own.tags.extend(around.tags.iter().cloned());
    own.err = own.err.or(around.err);
    own
}

/// `#[test]`, `#[tokio::test]` or `#[cfg(test)]`: no code of the app in production.
fn is_of_tests(attribute: &Attribute) -> bool {
    let last = attribute.path().segments.last();
    let is_test = last.is_some_and(|last| last.ident == "test");
    let of_cfg = match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        _ => false,
    };
    is_test || of_cfg
}
