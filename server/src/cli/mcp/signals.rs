//! The tool `signals`: lists the signals with their dimensions and measures. Needs no request to the server.

use std::sync::Arc;

use anyhow::{Context, bail};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::store::reads::{Dimension, SUBJECTS, Subject, subject};

pub(super) const NAME: &str = "signals";

const DESCRIPTION: &str = "Lists the signals that can be queried, or the dimensions and measures of one signal with their units.";

pub(super) fn described() -> Tool {
    let names: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
    let schema = json!({
        "type": "object",
        "properties": {"signal": {
            "type": "string",
            "enum": names,
            "description": "The signal. Without it, the answer has the names of all signals."
        }},
        "additionalProperties": false
    });
    let Value::Object(schema) = schema else {
        unreachable!("the schema is an object")
    };
    Tool::new(NAME, DESCRIPTION, Arc::new(schema))
        .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

pub(super) fn list(arguments: &JsonObject) -> anyhow::Result<String> {
    if let Some(unknown) = arguments.keys().find(|name| *name != "signal") {
        bail!("`{unknown}` is not a parameter of `{NAME}`, only `signal`");
    }
    let answer = match arguments.get("signal").filter(|value| !value.is_null()) {
        None => json!({"signals": SUBJECTS.iter().map(|subject| subject.name).collect::<Vec<_>>()}),
        Some(name) => {
            let found = name.as_str().and_then(subject);
            one(found
                .with_context(|| format!("there is no signal {name}: call `{NAME}` without it"))?)
        }
    };
    Ok(answer.to_string())
}

fn one(subject: &Subject) -> Value {
    let dimensions: Vec<_> = subject
        .dimensions
        .iter()
        .chain(subject.common())
        .map(Dimension::name)
        .collect();
    let measures: Vec<_> = subject
        .measures
        .iter()
        .map(
            |measure| json!({"name": measure.name, "unit": measure.unit, "better": measure.better}),
        )
        .collect();
    json!({"signal": subject.name, "dimensions": dimensions, "measures": measures})
}
