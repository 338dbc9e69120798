//! The HTTP API: the routing table. The only module that knows status codes.

mod account;
mod admin;
mod alert_preview;
mod alert_rules;
mod api_document;
mod api_tokens;
mod app_sessions;
mod app_starts;
mod audit;
mod body;
mod books;
mod channels;
mod client_address;
mod comments;
mod config_device;
mod config_preview;
mod config_rollout;
mod configurations;
mod device;
mod device_keys;
mod device_routes;
mod erasures;
mod exports;
mod fair_stream;
mod forward;
mod frames;
mod group_handling;
mod grpc;
mod http2;
mod incidents;
mod ingest;
mod ingest_keys;
mod inside_spans;
mod jank_group_routes;
mod janks;
mod json_value;
mod kill_switch;
mod layers;
mod linger;
mod listener;
mod mutes;
mod notifications;
mod object;
mod ofrep;
mod openapi;
mod openid_connect;
mod otlp;
mod otlp_answers;
mod owner_rules;
mod packages;
mod people;
mod problem;
mod problem_codes;
mod projects;
mod query;
mod remote_config;
mod revisions;
mod roles;
mod rules;
mod saved_views;
mod scrubbing;
mod session;
mod set_up;
mod source_links;
mod storage;
mod symbol_archives;
mod symbol_files;
mod symbol_routes;
mod symbol_uploads;
mod trace_links;
mod traces;
mod turns;
mod versions;
mod web;

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use axum::routing::{delete, get, patch, post, put};
use tower_http::csrf::CsrfLayer;
use tower_http::set_header::SetResponseHeaderLayer;

pub use self::api_document::document;
pub use self::listener::{ListenerSettings, Routes, serve_connections};

use self::device_routes::{cross_origin, devices, opentelemetry};
use self::problem::Problem;
use crate::app::App;

/// Routes for devices and people.
pub fn public(app: Arc<App>) -> Router {
    let routes = Router::new()
        .merge(
            devices()
                .merge(opentelemetry())
                // Here as well, so that browsers may ask by `OPTIONS`.
                .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
                .layer(cross_origin(&app.web_origins)),
        )
        .nest("/api/0", symbol_routes::uploads())
        .nest("/api/v1", management())
        .route("/healthz", get(admin::healthz))
        .route("/readyz", get(admin::readyz))
        .route("/openapi.json", get(api_document::get))
        // Every other path belongs to the web interface or is unknown.
        .fallback(web::serve);
    layers::around(routes).with_state(app)
}

/// What clients may call over HTTP/2. Answers are small, so a client that does not read them holds little.
pub fn grpc(app: Arc<App>) -> Router {
    layers::around(grpc::services()).with_state(app)
}

/// Routes for people and their tools. The parameters of a handler define who may call it.
fn management() -> Router<Arc<App>> {
    Router::new()
        .merge(people())
        .merge(data())
        .route("/projects", get(projects::list).post(projects::create))
        .route(
            "/projects/{project}/keys",
            get(ingest_keys::list).post(ingest_keys::create),
        )
        .route(
            "/projects/{project}/keys/refused",
            get(ingest_keys::refused),
        )
        .route(
            "/projects/{project}/keys/{key}",
            patch(ingest_keys::update).delete(ingest_keys::revoke),
        )
        .route("/projects/{project}/audit", get(audit::list))
        .route(
            "/projects/{project}/tokens",
            get(api_tokens::list).post(api_tokens::create),
        )
        .route(
            "/projects/{project}/tokens/{token}",
            delete(api_tokens::revoke),
        )
        .route(
            "/tokens",
            get(api_tokens::list_of_all).post(api_tokens::create_for_all),
        )
        .route("/tokens/{token}", delete(api_tokens::revoke_of_all))
        .route(
            "/projects/{project}/device-keys",
            get(device_keys::list).post(device_keys::create),
        )
        .route(
            "/projects/{project}/device-keys/{key}",
            delete(device_keys::revoke),
        )
        .merge(configuration())
        .merge(rules())
        .merge(alerts())
        .merge(questions())
        .merge(notifying())
        .merge(symbol_routes::symbols())
        .fallback(|| async { Problem::not_found() })
        // Some answers contain secrets that are shown once. All others are for one person.
        .layer(SetResponseHeaderLayer::if_not_present(
            CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        // Browsers also attach cookies to requests of other sites. Such requests are rejected because of their origin.
        .layer(CsrfLayer::new().with_rejection_response(|_| Problem::cross_site().into_response()))
}

/// The remote configuration and its kill switch.
fn configuration() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/config",
            get(configurations::latest).put(configurations::save),
        )
        .route(
            "/projects/{project}/config/check",
            post(configurations::check),
        )
        .route(
            "/projects/{project}/config/preview",
            post(config_preview::run),
        )
        .route(
            "/projects/{project}/config/device",
            post(config_device::ask),
        )
        .route(
            "/projects/{project}/config/revisions",
            get(configurations::history),
        )
        .route(
            "/projects/{project}/config/revisions/{revision}",
            get(configurations::revision),
        )
        .route(
            "/projects/{project}/config/rollback",
            post(configurations::roll_back),
        )
        .route(
            "/projects/{project}/config/kill",
            get(kill_switch::state).post(kill_switch::kill),
        )
        .route(
            "/projects/{project}/config/switch-on",
            post(kill_switch::switch_on),
        )
        .route(
            "/projects/{project}/config/rollout",
            get(config_rollout::state),
        )
}

/// Users, their logins, and the audit log.
fn people() -> Router<Arc<App>> {
    Router::new()
        .route("/login", post(session::log_in))
        .route("/setup", post(set_up::set_up))
        .route("/invitation", post(session::accept_invitation))
        .route("/session", delete(session::log_out))
        .route("/session/refresh", post(session::refresh))
        .route("/session/methods", get(openid_connect::methods))
        .route("/session/oidc", get(openid_connect::start_oidc))
        .route("/session/oidc/callback", get(openid_connect::finish_oidc))
        .route("/me", get(session::me))
        .route("/me/password", post(account::change_password))
        .route(
            "/me/sessions",
            get(account::sessions).delete(account::end_all_sessions),
        )
        .route("/me/sessions/{session}", delete(account::end_session))
        .route("/audit", get(audit::list_of_all))
        .route("/users", get(people::list).post(people::create))
        .route("/users/{user}", delete(people::disable))
        .route("/users/{user}/enable", post(people::enable))
        .route(
            "/users/{user}/invitation",
            post(people::invite).delete(people::cancel_invitation),
        )
        .route("/projects/{project}/members", get(people::members))
        .route(
            "/projects/{project}/members/{user}",
            put(people::set_role).delete(people::remove),
        )
}

/// Projects, their saved views, and their stored data: retention, scrubbing and erasure.
fn data() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}",
            get(projects::one)
                .patch(projects::update)
                .delete(erasures::erase_project),
        )
        .route(
            "/projects/{project}/scrubbing",
            get(scrubbing::read).put(scrubbing::save),
        )
        .route(
            "/projects/{project}/scrubbing/dry-run",
            post(scrubbing::dry_run),
        )
        .route(
            "/projects/{project}/storage",
            get(storage::read).put(storage::set),
        )
        .route(
            "/projects/{project}/source-links",
            get(source_links::read).put(source_links::save),
        )
        .route(
            "/projects/{project}/source-links/preview",
            post(source_links::preview),
        )
        .route(
            "/projects/{project}/forward",
            get(forward::read).put(forward::save),
        )
        .route(
            "/projects/{project}/trace-links",
            get(trace_links::read).put(trace_links::save),
        )
        .route(
            "/projects/{project}/views",
            get(saved_views::list).post(saved_views::create),
        )
        .route(
            "/projects/{project}/views/{view}",
            patch(saved_views::update).delete(saved_views::remove),
        )
        .route("/projects/{project}/data", delete(erasures::erase_data))
        .route("/projects/{project}/erasures", get(erasures::list))
        .route(
            "/projects/{project}/erasures/{erasure}",
            get(erasures::read),
        )
        .route("/erasures", get(erasures::list_of_projects))
}

/// The classification rules of a project.
fn rules() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/rules",
            get(rules::latest).put(rules::save),
        )
        .route("/projects/{project}/rules/check", post(rules::check))
        .route("/projects/{project}/rules/dry-run", post(rules::dry_run))
        .route("/projects/{project}/rules/owners", get(owner_rules::owners))
        .route("/projects/{project}/rules/revisions", get(rules::history))
        .route(
            "/projects/{project}/rules/revisions/{revision}",
            get(rules::revision),
        )
        .route("/projects/{project}/rules/rollback", post(rules::roll_back))
        .route(
            "/projects/{project}/rules/reclassification",
            get(rules::reclassification),
        )
}

/// Alert rules, incidents and mutes.
fn alerts() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/alert-rules",
            get(alert_rules::list).post(alert_rules::create),
        )
        .route(
            "/projects/{project}/alert-rules/check",
            post(alert_rules::check),
        )
        .route(
            "/projects/{project}/alert-rules/preview",
            post(alert_preview::run),
        )
        .route(
            "/projects/{project}/alert-rules/templates",
            get(alert_rules::suggestions),
        )
        .route(
            "/projects/{project}/alert-rules/{rule}",
            get(alert_rules::read)
                .put(alert_rules::save)
                .delete(alert_rules::remove),
        )
        .route("/projects/{project}/incidents", get(incidents::list))
        .route(
            "/projects/{project}/incidents/{incident}",
            get(incidents::read),
        )
        .route(
            "/projects/{project}/incidents/{incident}/acknowledge",
            post(incidents::acknowledge).delete(incidents::withdraw_acknowledgement),
        )
        .route(
            "/projects/{project}/incidents/{incident}/assignee",
            put(incidents::assign),
        )
        .route(
            "/projects/{project}/incidents/{incident}/comments",
            post(comments::comment_on_incident),
        )
        .route(
            "/projects/{project}/incidents/{incident}/comments/{comment}",
            delete(comments::delete_incident_comment),
        )
        .route("/projects/{project}/assignees", get(incidents::assignees))
        .route(
            "/projects/{project}/mutes",
            get(mutes::list).post(mutes::create),
        )
        .route("/projects/{project}/mutes/{mute}", delete(mutes::end))
}

/// Queries for screens, exports and scripts.
fn questions() -> Router<Arc<App>> {
    Router::new()
        .route("/projects/{project}/query/{signal}", get(query::table))
        .route(
            "/projects/{project}/query/{signal}/series",
            get(query::over_time),
        )
        .route(
            "/projects/{project}/query/{signal}/distribution",
            get(query::spread),
        )
        .route(
            "/projects/{project}/query/{signal}/significance",
            get(query::tested),
        )
        .route("/projects/{project}/janks/stacks", get(janks::stacks))
        .route("/projects/{project}/janks/flame", get(janks::flame_graph))
        .route(
            "/projects/{project}/janks/folded",
            get(janks::folded_stacks),
        )
        .route(
            "/projects/{project}/janks/speedscope",
            get(janks::speedscope_file),
        )
        .route("/projects/{project}/janks/events", get(janks::events))
        .merge(jank_group_routes::jank_groups())
        .route("/projects/{project}/traces", get(traces::search))
        .route("/projects/{project}/traces/{trace}", get(traces::trace))
        .route(
            "/projects/{project}/traces/{trace}/chrome",
            get(traces::chrome),
        )
        .route("/projects/{project}/app-starts", get(app_starts::list))
        .route("/projects/{project}/sessions", get(app_sessions::list))
        .route(
            "/projects/{project}/sessions/{session}",
            get(app_sessions::one),
        )
        .route("/projects/{project}/versions", get(versions::list))
        .route("/projects/{project}/export/{table}", get(exports::csv))
        .route("/projects/{project}/report", get(exports::report))
        .route("/projects/{project}/books", get(books::get))
        .route(
            "/projects/{project}/spans/inside",
            get(inside_spans::inside_span),
        )
        .route(
            "/projects/{project}/spans/packages",
            get(packages::time_by_package),
        )
}

/// Channels and their notifications.
fn notifying() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/channels",
            get(channels::list).post(channels::create),
        )
        .route(
            "/projects/{project}/channels/{channel}",
            patch(channels::update).delete(channels::remove),
        )
        .route(
            "/projects/{project}/channels/{channel}/test",
            post(channels::test),
        )
        .route(
            "/projects/{project}/notifications",
            get(notifications::list),
        )
        .route(
            "/projects/{project}/notifications/{notification}/retry",
            post(notifications::retry),
        )
        .route("/projects/{project}/digest", get(notifications::digest))
}

/// Routes for operators.
pub fn admin(app: Arc<App>) -> Router {
    let routes = Router::new()
        .route("/healthz", get(admin::healthz))
        .route("/readyz", get(admin::explained_readyz))
        .route("/metrics", get(admin::metrics))
        .fallback(|| async { Problem::not_found() });
    layers::around(routes).with_state(app)
}
