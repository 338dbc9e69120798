//! The HTTP API: one routing table and the middleware in order. The only module that knows status codes.

mod account;
mod admin;
mod alert_preview;
mod alert_rules;
mod api_document;
mod api_tokens;
mod audit;
mod body;
mod books;
mod channels;
mod client_address;
mod config_preview;
mod configurations;
mod device;
mod device_keys;
mod erasures;
mod exports;
mod frames;
mod incidents;
mod ingest;
mod ingest_keys;
mod janks;
mod json_value;
mod linger;
mod listener;
mod mutes;
mod notifications;
mod object;
mod ofrep;
mod openapi;
mod openid_connect;
mod people;
mod problem;
mod problem_codes;
mod projects;
mod query;
mod remote_config;
mod revisions;
mod roles;
mod rules;
mod scrubbing;
mod session;
mod source_links;
mod stalled_writes;
mod storage;
mod symbol_archives;
mod symbol_files;
mod symbol_uploads;
mod traces;
mod web;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{map_request, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, patch, post, put};
use tower::ServiceBuilder;
use tower_http::ServiceBuilderExt;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::csrf::CsrfLayer;
use tower_http::request_id::MakeRequestUuid;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::{DefaultMakeSpan, TraceLayer};
use tracing::Level;

pub use self::api_document::document;
pub use self::listener::{ListenerSettings, serve_connections};

use self::problem::Problem;
use crate::app::App;

/// Routes for devices and people.
pub fn public(app: Arc<App>) -> Router {
    let routes = Router::new()
        // `body` reads the body, within its own limits of compressed size, decompressed size, time and memory.
        .route(
            "/v1/ingest",
            post(ingest::ingest).layer(DefaultBodyLimit::disable()),
        )
        .route("/v1/config", get(remote_config::get))
        // As for batches, `body` reads the body.
        .route(
            "/ofrep/v1/evaluate/flags",
            post(ofrep::all).layer(DefaultBodyLimit::disable()),
        )
        .route(
            "/ofrep/v1/evaluate/flags/{*key}",
            post(ofrep::one).layer(DefaultBodyLimit::disable()),
        )
        .nest("/api/0", symbol_uploads())
        .nest("/api/v1", management())
        .route("/healthz", get(admin::healthz))
        .route("/readyz", get(admin::readyz))
        .route("/openapi.json", get(api_document::get))
        // Every other path belongs to the web interface or is unknown.
        .fallback(web::serve);
    middleware(routes).with_state(app)
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
            post(configurations::kill),
        )
        .merge(rules())
        .merge(alerts())
        .merge(questions())
        .merge(notifying())
        .merge(symbols())
        .fallback(|| async { Problem::not_found() })
        // Some answers contain secrets that are shown once. The others are for one person.
        .layer(SetResponseHeaderLayer::if_not_present(
            CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        // Browsers also attach cookies to requests of other sites. Such requests are rejected because of their origin.
        .layer(CsrfLayer::new().with_rejection_response(|_| Problem::cross_site().into_response()))
}

/// Uploads of symbol files by build tools.
fn symbol_uploads() -> Router<Arc<App>> {
    // Beside the chunks, a request has the heads of its parts.
    let chunks = DefaultBodyLimit::max(symbol_uploads::MAX_REQUEST_BYTES + (64 << 10));
    let assemble = DefaultBodyLimit::max(symbol_uploads::MAX_ASSEMBLE_BYTES);
    Router::new()
        .route(
            "/organizations/{organization}/chunk-upload/",
            get(symbol_uploads::options).merge(post(symbol_uploads::chunks).layer(chunks)),
        )
        .route(
            "/projects/{organization}/{project}/files/difs/assemble/",
            post(symbol_uploads::assemble_files),
        )
        .route(
            "/projects/{organization}/{project}/files/dsyms/",
            post(symbol_archives::add).layer(chunks),
        )
        .route(
            "/organizations/{organization}/artifactbundle/assemble/",
            post(symbol_uploads::assemble_bundle),
        )
        .fallback(symbol_uploads::unsupported)
        .layer(assemble)
        .layer(map_response(symbol_uploads::write_problems_for_the_tool))
}

/// The symbol files of a project, and the builds without them.
fn symbols() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/symbols/files",
            get(symbol_files::files),
        )
        .route(
            "/projects/{project}/symbols/files/{file}",
            delete(symbol_files::remove),
        )
        .route(
            "/projects/{project}/symbols/missing",
            get(symbol_files::missing),
        )
        .route(
            "/projects/{project}/symbols/check",
            get(symbol_files::check),
        )
}

/// Users, their logins, and the audit log.
fn people() -> Router<Arc<App>> {
    Router::new()
        .route("/login", post(session::log_in))
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
        .route("/users/{user}/invitation", post(people::invite))
        .route("/projects/{project}/members", get(people::members))
        .route(
            "/projects/{project}/members/{user}",
            put(people::set_role).delete(people::remove),
        )
}

/// Projects and their stored data: retention, scrubbing and erasure.
fn data() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}",
            patch(projects::update).delete(erasures::erase_project),
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
            post(incidents::acknowledge),
        )
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
        .route(
            "/projects/{project}/janks/groups/{group}",
            get(janks::current_group),
        )
        .route("/projects/{project}/traces", get(traces::search))
        .route("/projects/{project}/traces/{trace}", get(traces::trace))
        .route(
            "/projects/{project}/traces/{trace}/chrome",
            get(traces::chrome),
        )
        .route("/projects/{project}/export/{table}", get(exports::csv))
        .route("/projects/{project}/report", get(exports::report))
        .route("/projects/{project}/books", get(books::get))
        .route("/projects/{project}/spans/inside", get(traces::inside_span))
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
    middleware(routes).with_state(app)
}

/// Adds every layer, outermost first.
fn middleware(routes: Router<Arc<App>>) -> Router<Arc<App>> {
    let stack = ServiceBuilder::new()
        // A request gets its id before anything is logged about it.
        .set_x_request_id(MakeRequestUuid)
        // Keys never reach a log.
        .sensitive_headers([AUTHORIZATION, COOKIE, device::API_KEY])
        .layer(
            TraceLayer::new_for_http()
                // Metrics count rejected requests. A log line for each would bury the cause.
                .on_failure(())
                .make_span_with(DefaultMakeSpan::new().level(Level::DEBUG)),
        )
        .propagate_x_request_id()
        // Browsers must not guess another content type.
        .layer(SetResponseHeaderLayer::if_not_present(
            X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        // A bug in one request causes a 500 and does not close the connection.
        .layer(CatchPanicLayer::custom(|_| problem::internal()));
    routes
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(map_request(linger::drain_unread_body))
        .layer(map_response(close_after_unread_body))
        .layer(stack)
}

/// Closes the connection if the body was not read to its end. The header keeps clients from sending another request on it.
async fn close_after_unread_body(mut response: Response) -> Response {
    let unread = [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::REQUEST_TIMEOUT];
    if unread.contains(&response.status()) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}
