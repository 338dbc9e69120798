//! Obfuscated functions in requests with spans. Their spans are stored with the keys of functions (`ingest::functions`), which mean nothing to
//! other collectors.

use std::collections::HashMap;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use unjank_protocol::{Frame, Text};

pub(super) const CLASS: &str = "code.namespace";
pub(super) const FUNCTION: &str = "code.function.name";
pub(super) const FILE: &str = "code.file.path";

/// Returns the function of a key, still with its class, or `None` for another text.
fn without_digits(key: &str) -> Option<&str> {
    let (function, digits) = key.rsplit_once('@')?;
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (digits.len() == 12 && digits.bytes().all(is_digit)).then_some(function)
}

/// Whether a text looks like the key of a function.
pub(super) fn is_key(text: &str) -> bool {
    without_digits(text).is_some()
}

/// Returns the obfuscated functions of a request by key, as devices reported them.
#[must_use]
pub fn obfuscated_functions(body: &[u8]) -> HashMap<String, Frame<'static>> {
    let request = ExportTraceServiceRequest::decode(body).unwrap_or_default();
    let scopes = request
        .resource_spans
        .iter()
        .flat_map(|one| &one.scope_spans);
    let functions = scopes.flat_map(|scope| &scope.spans).filter_map(reported);
    functions.collect()
}

fn reported(span: &Span) -> Option<(String, Frame<'static>)> {
    let key = text(span, FUNCTION)?;
    let class = text(span, CLASS)?;
    let function = without_digits(key)?.strip_prefix(class)?;
    let function = function.strip_prefix('.')?;
    let owned = |text: &str| Text::from(text.to_owned());
    let frame = Frame {
        class: owned(class),
        function: owned(function),
        file: owned(text(span, FILE).unwrap_or_default()),
        ..Frame::default()
    };
    Some((key.to_owned(), frame))
}

/// Returns a request with names instead of the keys of these functions.
#[must_use]
pub fn with_names(body: &[u8], names: &HashMap<String, Frame<'static>>) -> Option<Vec<u8>> {
    let mut request = ExportTraceServiceRequest::decode(body).ok()?;
    let resources = request.resource_spans.iter_mut();
    let scopes = resources.flat_map(|resource| &mut resource.scope_spans);
    for span in scopes.flat_map(|scope| &mut scope.spans) {
        let named = text(span, FUNCTION).and_then(|key| names.get_key_value(key));
        if let Some((key, function)) = named {
            set_name(span, key, function);
        }
    }
    Some(request.encode_to_vec())
}

fn set_name(span: &mut Span, key: &str, function: &Frame<'_>) {
    if span.name == key {
        span.name = format!("{}.{}", &*function.class, &*function.function);
    }
    for KeyValue { key, value, .. } in &mut span.attributes {
        let text = match key.as_str() {
            CLASS => &function.class,
            FUNCTION => &function.function,
            FILE => &function.file,
            _ => continue,
        };
        *value = Some(AnyValue {
            value: Some(Value::StringValue(text.to_string())),
        });
    }
}

fn text<'s>(span: &'s Span, name: &str) -> Option<&'s str> {
    let found = span.attributes.iter().find(|one| one.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}
