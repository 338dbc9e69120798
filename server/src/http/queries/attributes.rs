//! `/api/v1/projects/{project}/query/{signal}/attributes`: the attributes that the app gives to metrics and spans.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{QueryParameters, QueryString, complete, known};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::turn;
use crate::store::reads::KnownAttribute;

const MOST_LISTED: u64 = 200;

/// An attribute of events.
#[derive(Serialize, ToSchema)]
#[schema(as = EventAttribute)]
pub(super) struct AttributeBody {
    name: String,
    /// The number of recorded events that have it, without weights for sampling.
    recorded: u64,
}

impl From<KnownAttribute> for AttributeBody {
    fn from(known: KnownAttribute) -> Self {
        Self {
            name: known.attribute,
            recorded: known.recorded,
        }
    }
}

/// The attributes of events.
#[derive(Serialize, ToSchema)]
#[schema(as = EventAttributes)]
pub(super) struct AttributesBody {
    /// The most frequent first, at most 200. Names that queries do not accept are left out.
    attributes: Vec<AttributeBody>,
}

/// Lists the attributes of metrics or spans. `attribute.` and a name is a dimension to group and filter by.
///
/// Reads single events, in the period as given. `query/{signal}?by=attribute.payment&measure=count` has the values of an attribute.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}/attributes", tag = "query",
    operation_id = "attributes",
    params(QueryParameters),
    responses((status = 200, body = AttributesBody), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    QueryString(mut ask): QueryString,
) -> Result<Json<AttributesBody>, Problem> {
    let subject = known(&signal)?;
    if !subject.has_attributes() {
        return Err(Problem::invalid_question(format!(
            "{} have no attributes: metrics and spans have them",
            subject.name
        )));
    }
    ask.measures = vec!["count".to_owned()];
    let limit = ask.limit.unwrap_or(MOST_LISTED).min(MOST_LISTED);
    let ask = complete(&app, &member, ask).await?;
    let reading = ask.single(&member.project, subject.name, app.clock.now())?;
    let _turn = turn(&app, &member.actor).await?;
    let found = app.clickhouse.known_attributes(&reading, limit).await?;
    Ok(Json(AttributesBody {
        attributes: found.into_iter().map(AttributeBody::from).collect(),
    }))
}
