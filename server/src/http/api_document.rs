//! `GET /openapi.json`: the public routes as an OpenAPI 3.1 document, made from the annotations of the handlers.
//!
//! An annotation contains what only its handler knows. `finish` adds what can be derived: path parameters, operation ids, and the answers that come
//! with a method. A test compares the list below with the routing table.

mod finish;

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::Value;
use utoipa::OpenApi;

use super::{
    account, admin, alert_preview, alert_rules, api_tokens, app_sessions, app_starts, audit, books,
    channels, comments, config_device, config_preview, config_rollout, configurations, device_keys,
    erasures, exports, forward, group_handling, incidents, ingest, ingest_keys, inside_spans,
    janks, kill_switch, mutes, notifications, ofrep, openid_connect, owner_rules, packages, people,
    projects, query, remote_config, rules, saved_views, scrubbing, session, set_up, source_links,
    storage, symbol_files, trace_links, traces, versions,
};
use crate::remote_config::{Fault, base_schema};

/// Every public handler, in the order of the routing table.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "unjank",
        description = "Devices send batches and fetch their configuration. People and their tools manage projects and query data. Every error is \
            `application/problem+json` with a stable `code`. Numeric times are in microseconds since the epoch."
    ),
    components(schemas(session::LoggedIn, ofrep::Failure, Fault)),
    paths(
        ingest::ingest,
        remote_config::get,
        ofrep::all,
        ofrep::one,
        session::log_in,
        set_up::set_up,
        session::accept_invitation,
        session::log_out,
        session::refresh,
        openid_connect::methods,
        openid_connect::start_oidc,
        openid_connect::finish_oidc,
        session::me,
        account::change_password,
        account::sessions,
        account::end_session,
        account::end_all_sessions,
        people::list,
        people::create,
        people::disable,
        people::enable,
        people::invite,
        people::cancel_invitation,
        people::members,
        people::set_role,
        people::remove,
        projects::list,
        projects::create,
        projects::one,
        projects::update,
        scrubbing::read,
        scrubbing::save,
        scrubbing::dry_run,
        storage::read,
        storage::set,
        source_links::read,
        source_links::save,
        source_links::preview,
        forward::read,
        forward::save,
        trace_links::read,
        trace_links::save,
        saved_views::list,
        saved_views::create,
        saved_views::update,
        saved_views::remove,
        erasures::erase_project,
        erasures::erase_data,
        erasures::list,
        erasures::read,
        erasures::list_of_projects,
        ingest_keys::list,
        ingest_keys::create,
        ingest_keys::refused,
        ingest_keys::update,
        ingest_keys::revoke,
        audit::list,
        audit::list_of_all,
        books::get,
        api_tokens::list,
        api_tokens::create,
        api_tokens::revoke,
        api_tokens::list_of_all,
        api_tokens::create_for_all,
        api_tokens::revoke_of_all,
        device_keys::list,
        device_keys::create,
        device_keys::revoke,
        configurations::latest,
        configurations::save,
        configurations::check,
        config_preview::run,
        config_device::ask,
        configurations::history,
        configurations::revision,
        configurations::roll_back,
        kill_switch::state,
        kill_switch::kill,
        kill_switch::switch_on,
        config_rollout::state,
        rules::latest,
        rules::save,
        rules::check,
        rules::dry_run,
        owner_rules::owners,
        rules::history,
        rules::revision,
        rules::roll_back,
        rules::reclassification,
        alert_rules::list,
        alert_rules::create,
        alert_rules::check,
        alert_preview::run,
        alert_rules::suggestions,
        alert_rules::read,
        alert_rules::save,
        alert_rules::remove,
        incidents::list,
        incidents::read,
        incidents::acknowledge,
        incidents::withdraw_acknowledgement,
        incidents::assign,
        comments::comment_on_incident,
        comments::delete_incident_comment,
        incidents::assignees,
        mutes::list,
        mutes::create,
        mutes::end,
        query::table,
        query::over_time,
        query::spread,
        query::tested,
        janks::stacks,
        janks::flame_graph,
        janks::folded_stacks,
        janks::speedscope_file,
        janks::events,
        group_handling::list,
        janks::current_group,
        group_handling::read,
        group_handling::decide,
        comments::comment_on_group,
        comments::delete_group_comment,
        owner_rules::owner_rule,
        traces::search,
        traces::trace,
        traces::chrome,
        inside_spans::inside_span,
        packages::time_by_package,
        app_starts::list,
        app_sessions::list,
        app_sessions::one,
        versions::list,
        exports::csv,
        exports::report,
        channels::list,
        channels::create,
        channels::update,
        channels::remove,
        channels::test,
        notifications::list,
        notifications::retry,
        notifications::digest,
        symbol_files::files,
        symbol_files::remove,
        symbol_files::missing,
        symbol_files::check,
        admin::healthz,
        admin::readyz,
        get,
    )
)]
struct Api;

/// Returns the document, with its keys in a fixed order.
#[must_use]
pub fn document() -> Value {
    let mut document = serde_json::to_value(Api::openapi()).unwrap_or_default();
    // Set here, because the types of the generator cannot express it.
    let configuration = &mut document["components"]["schemas"]["Configuration"];
    configuration["properties"]["base"] = base_schema();
    finish::finished(document)
}

/// Returns this document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operators",
    responses((status = 200, body = Value)),
)]
pub(super) async fn get() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));
    ([(CONTENT_TYPE, "application/json")], TEXT.clone())
}
