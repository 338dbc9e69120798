//! Attributes of OTLP.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};

/// Attributes that the semantic conventions define as numbers. unjank keeps the values of all attributes as texts.
const NUMBERS: [&str; 7] = [
    "http.response.status_code",
    "http.request.body.size",
    "http.response.body.size",
    "http.request.size",
    "http.response.size",
    "http.request.resend_count",
    "server.port",
];

/// Collects attributes. Empty texts are left out.
#[derive(Debug, Default)]
pub(super) struct AttributeList(Vec<KeyValue>);

impl AttributeList {
    pub(super) fn text(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.value(key, Value::StringValue(value.to_owned()));
        }
    }

    pub(super) fn number(&mut self, key: &str, value: i64) {
        self.value(key, Value::IntValue(value));
    }

    pub(super) fn float(&mut self, key: &str, value: f64) {
        self.value(key, Value::DoubleValue(value));
    }

    /// Adds an attribute that was stored as a text.
    pub(super) fn stored(&mut self, key: &str, value: &str) {
        match value.parse() {
            Ok(number) if NUMBERS.contains(&key) => self.number(key, number),
            _ => self.value(key, Value::StringValue(value.to_owned())),
        }
    }

    fn value(&mut self, key: &str, value: Value) {
        self.0.push(KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..KeyValue::default()
        });
    }

    pub(super) fn into_inner(self) -> Vec<KeyValue> {
        self.0
    }
}
