//! The tools that query the server. Each is a GET operation of the API document, which has the description and the parameters.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use reqwest::Url;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use unjank_protocol::whole_number;

use crate::cli::api_client::Server;
use crate::http;
use crate::store::reads::dimension_names;

/// The prefix of every path below. The command sets the project.
const PROJECT: &str = "/api/v1/projects/{project}/";
/// The name of a tool, and the rest of the path of its operation.
const OPERATIONS: &[(&str, &str)] = &[
    ("query", "query/{signal}"),
    ("series", "query/{signal}/series"),
    ("distribution", "query/{signal}/distribution"),
    ("attributes", "query/{signal}/attributes"),
    ("jank_stacks", "janks/stacks"),
    ("jank_events", "janks/events"),
    ("jank_group", "janks/groups/{group}"),
    ("spans_inside", "spans/inside"),
    ("span_packages", "spans/packages"),
    ("traces", "traces"),
    ("trace", "traces/{trace}"),
    ("incidents", "incidents"),
    ("incident", "incidents/{incident}"),
    ("alert_rules", "alert-rules"),
    ("configuration", "config"),
    ("configuration_revisions", "config/revisions"),
    ("digest", "digest"),
    ("missing_symbols", "symbols/missing"),
];
/// Operations with this parameter accept every dimension as a filter. Their tools have the parameters `filters` and `contains` instead of sixty
/// parameters, one per dimension.
const QUERY_MARK: &str = "contains.name";
const FILTERS: &str = "filters";
const CONTAINS: &str = "contains";

/// A tool that sends one GET request.
pub(super) struct ApiTool {
    pub(super) name: &'static str,
    path: &'static str,
    description: String,
    /// The JSON Schema of each parameter.
    parameters: Map<String, Value>,
    required: BTreeSet<String>,
    /// Whether the tool takes `filters` and `contains`.
    is_query: bool,
}

/// Returns all tools.
pub(super) fn all() -> anyhow::Result<Vec<ApiTool>> {
    let document = http::document();
    OPERATIONS
        .iter()
        .map(|(name, path)| {
            ApiTool::new(&document, name, path).with_context(|| format!("the tool `{name}`"))
        })
        .collect()
}

impl ApiTool {
    fn new(document: &Value, name: &'static str, path: &'static str) -> anyhow::Result<Self> {
        let operation = &document["paths"][format!("{PROJECT}{path}")]["get"];
        let summary = operation["summary"].as_str().context("no such operation")?;
        let details = operation["description"].as_str().unwrap_or_default();
        let all = operation["parameters"]
            .as_array()
            .context("no parameters")?;
        let is_query = all.iter().any(|one| one["name"] == QUERY_MARK);
        let dimensions = dimension_names();
        let mut tool = Self {
            name,
            path,
            description: format!("{summary}\n\n{details}").trim().to_owned(),
            parameters: Map::new(),
            required: BTreeSet::new(),
            is_query,
        };
        for one in all {
            let name = one["name"].as_str().context("a parameter has no name")?;
            let is_filter = is_query
                && one["in"] == "query"
                && (name == QUERY_MARK || dimensions.contains(name));
            if name == "project" || is_filter {
                continue;
            }
            let mut schema = resolved(document, &one["schema"]);
            if let (Some(schema), Some(text)) =
                (schema.as_object_mut(), one["description"].as_str())
            {
                schema.insert("description".to_owned(), text.into());
            }
            tool.parameters.insert(name.to_owned(), schema);
            if one["required"] == true {
                tool.required.insert(name.to_owned());
            }
        }
        if is_query {
            tool.parameters.insert(FILTERS.to_owned(), json!({
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
                "description": "Only events with one of the values, for each dimension: {\"app_version\": [\"4.12.0\"]}. The tool `signals` lists the \
                                dimensions."
            }));
            tool.parameters.insert(CONTAINS.to_owned(), json!({
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Only events whose dimension contains the text, in upper or lower case: {\"name\": \"checkout\"}."
            }));
        }
        Ok(tool)
    }

    pub(super) fn described(&self) -> Tool {
        let schema = JsonObject::from_iter([
            ("type".to_owned(), "object".into()),
            ("properties".to_owned(), self.parameters.clone().into()),
            (
                "required".to_owned(),
                self.required.iter().cloned().collect(),
            ),
            ("additionalProperties".to_owned(), false.into()),
        ]);
        Tool::new(self.name, self.description.clone(), Arc::new(schema))
            .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
    }

    /// Returns the URL of the request for a call.
    pub(super) fn url(&self, server: &Server, arguments: &JsonObject) -> anyhow::Result<Url> {
        self.check(arguments)?;
        let mut segments = vec!["api", "v1", "projects", server.project.as_str()];
        let mut in_path = BTreeSet::new();
        for segment in self.path.split('/') {
            let Some(name) = segment
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'))
            else {
                segments.push(segment);
                continue;
            };
            let value = arguments.get(name).and_then(Value::as_str);
            let value = value.with_context(|| format!("`{name}` must be text"))?;
            // The HTTP client would resolve these segments to another path.
            ensure!(
                !matches!(value, "" | "." | ".."),
                "`{name}` must be an id or a name"
            );
            in_path.insert(name);
            segments.push(value);
        }
        let mut url = server.path(&segments)?;
        for (name, value) in arguments
            .iter()
            .filter(|(name, _)| !in_path.contains(name.as_str()))
        {
            let whole = self.whole_number(name, value);
            for (name, value) in pairs(name, whole.as_ref().unwrap_or(value))? {
                url.query_pairs_mut().append_pair(&name, &value);
            }
        }
        Ok(url)
    }

    /// The value of a parameter that is an integer, without its fraction: JSON Schema defines 5.0 as an integer, and the query string has
    /// digits only.
    fn whole_number(&self, name: &str, value: &Value) -> Option<Value> {
        let schema = self.parameters.get(name)?;
        let Value::Number(number) = value else {
            return None;
        };
        let whole = (schema["type"] == "integer").then(|| whole_number(&number.to_string()))?;
        whole.map(Value::from)
    }

    fn check(&self, arguments: &JsonObject) -> anyhow::Result<()> {
        let unknown = arguments
            .keys()
            .find(|name| !self.parameters.contains_key(*name));
        if let Some(name) = unknown {
            let known: Vec<_> = self.parameters.keys().map(String::as_str).collect();
            let hint = match self.is_query {
                true => ". Dimensions go into `filters`",
                false => "",
            };
            bail!(
                "`{name}` is not a parameter of `{}`. Parameters: {}{hint}",
                self.name,
                known.join(", ")
            );
        }
        match self
            .required
            .iter()
            .find(|name| !arguments.contains_key(*name))
        {
            Some(missing) => bail!("`{missing}` is required"),
            None => Ok(()),
        }
    }
}

/// Returns an argument as pairs of the query string.
fn pairs(name: &str, value: &Value) -> anyhow::Result<Vec<(String, String)>> {
    let nested = match name {
        FILTERS => "",
        CONTAINS => "contains.",
        _ => {
            let values = texts(name, value)?;
            return Ok(values
                .into_iter()
                .map(|value| (name.to_owned(), value))
                .collect());
        }
    };
    if value.is_null() {
        return Ok(Vec::new());
    }
    let by_dimension = value
        .as_object()
        .with_context(|| format!("`{name}` must be an object"))?;
    let dimensions = dimension_names();
    let mut pairs = Vec::new();
    for (dimension, value) in by_dimension {
        ensure!(
            dimensions.contains(dimension.as_str()) || dimension.starts_with("attribute."),
            "`{dimension}` is not a dimension: see the tool `signals`"
        );
        let values = texts(dimension, value)?;
        pairs.extend(
            values
                .into_iter()
                .map(|value| (format!("{nested}{dimension}"), value)),
        );
    }
    Ok(pairs)
}

/// Converts a value, or each value of a list, to text.
fn texts(name: &str, value: &Value) -> anyhow::Result<Vec<String>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Number(_) | Value::Bool(_) => Ok(vec![value.to_string()]),
        Value::Array(values) => {
            let values = values.iter().map(|one| match one {
                Value::Array(_) => bail!("`{name}` must be a list of text values"),
                one => texts(name, one),
            });
            Ok(values.collect::<anyhow::Result<Vec<_>>>()?.concat())
        }
        Value::Object(_) => bail!("`{name}` must be text, a number, or a list of these"),
    }
}

/// Follows the reference if a schema is a reference.
fn resolved(document: &Value, schema: &Value) -> Value {
    let reference = schema["$ref"]
        .as_str()
        .and_then(|text| text.strip_prefix('#'));
    let found = reference.and_then(|pointer| document.pointer(pointer));
    found.unwrap_or(schema).clone()
}
