//! Address templates of a project that lead to other systems: source lines, traces. Pure. The modules with the settings name the
//! placeholders.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use url::Url;

pub const MAX_CHARS: usize = 500;

/// Everything but the unreserved characters of RFC 3986: what must be encoded in a value.
pub const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What is wrong with a template.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("the template must have at most {MAX_CHARS} characters")]
    Long,
    #[error(
        "the template must start with `https://` or `http://`, a host and `/`, such as `{example}`"
    )]
    Address { example: &'static str },
    #[error("the template must not contain spaces or control characters")]
    Space,
    #[error("`{found}` is not a placeholder: use {known}")]
    Placeholder { found: String, known: String },
    #[error("the template must contain {0}")]
    Missing(&'static str),
}

/// The placeholders of a kind of template.
pub trait Placeholder: Copy + PartialEq + 'static {
    /// All placeholders, as they are written. The first is required.
    const ALL: &'static [(&'static str, Self)];
    /// The beginning of an address, for the error.
    const EXAMPLE: &'static str;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<P> {
    Text(String),
    Value(P),
}

/// Splits a template into its parts. Returns no parts for an empty template.
pub fn parse<P: Placeholder>(template: &str) -> Result<Vec<Part<P>>, TemplateError> {
    if template.is_empty() {
        return Ok(Vec::new());
    }
    check_address(template, P::EXAMPLE)?;
    let parts = split(template)?;
    match P::ALL.first() {
        Some((name, required)) if !parts.contains(&Part::Value(*required)) => {
            Err(TemplateError::Missing(name))
        }
        _ => Ok(parts),
    }
}

/// Scheme and host must be literal: values come from devices, and must not choose where a link leads.
fn check_address(template: &str, example: &'static str) -> Result<(), TemplateError> {
    if template.chars().count() > MAX_CHARS {
        return Err(TemplateError::Long);
    }
    if template.contains(|char: char| char.is_control() || char.is_whitespace()) {
        return Err(TemplateError::Space);
    }
    let host = host(template);
    let is_plain = |host: &str| !host.is_empty() && !host.contains(['{', '}', '@', '\\', '?', '#']);
    let filled = template.replace(['{', '}'], "");
    match (host.filter(|host| is_plain(host)), Url::parse(&filled)) {
        (Some(_), Ok(_)) => Ok(()),
        _ => Err(TemplateError::Address { example }),
    }
}

/// Returns the host of a template, with its port.
#[must_use]
pub fn host(template: &str) -> Option<&str> {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| template.strip_prefix(scheme))?;
    rest.split_once('/').map(|(host, _)| host)
}

/// Splits a text at its placeholders.
pub fn split<P: Placeholder>(template: &str) -> Result<Vec<Part<P>>, TemplateError> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find(['{', '}']) {
        let (text, placeholder) = rest.split_at(start);
        let end = placeholder
            .find('}')
            .map_or(placeholder.len(), |end| end + 1);
        let (placeholder, after) = placeholder.split_at(end);
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        let known = P::ALL.iter().find(|(name, _)| *name == placeholder);
        let (_, value) = known.ok_or_else(|| unknown::<P>(placeholder))?;
        parts.push(Part::Value(*value));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(parts)
}

fn unknown<P: Placeholder>(found: &str) -> TemplateError {
    let names: Vec<&str> = P::ALL.iter().map(|(name, _)| *name).collect();
    let known = match names.split_last() {
        Some((last, names)) if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        _ => names.concat(),
    };
    let found = found.to_owned();
    TemplateError::Placeholder { found, known }
}
