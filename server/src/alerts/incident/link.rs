//! Links to the screen of the web interface that shows the numbers of a rule.

use std::time::Duration;

use form_urlencoded::Serializer;
use unjank_foundation::clock::UnixTime;

use crate::alerts::judge::verdict::{Group, Sides};
use crate::alerts::rule::Rule;

/// The filters that every screen has: the dimensions in `dashboards/web/src/navigation/filters.ts`.
const FILTERS: [&str; 15] = [
    "app_id",
    "app_version",
    "os_name",
    "os_version",
    "device_class",
    "device_model",
    "network",
    "page",
    "locale",
    "mode",
    "build",
    "channel",
    "install_id",
    "session_id",
    "config_revision",
];

/// Returns the path and query of the link.
pub(crate) fn link(project: &str, rule: &Rule, group: &Group, sides: &Sides) -> String {
    const SECOND: Duration = Duration::from_secs(1);
    let signal = rule.metric.signal.as_str();
    let of_janks = group.get("group_id").filter(|_| signal == "janks");
    let (path, part) = match (group.get("install_id"), of_janks) {
        (Some(install), _) => (format!("/installs/{install}"), None),
        (None, Some(id)) => (format!("/jank/{id}"), None),
        (None, None) => {
            let (path, part) = screen(signal);
            (path.to_owned(), part)
        }
    };
    let mut query = Serializer::new(String::new());
    query.append_pair("project", project);
    query.append_pair("from", &time(sides.from.floor(SECOND)));
    // Screens use whole seconds, so round up.
    query.append_pair("to", &time(sides.to.ceil(SECOND)));
    if let Some((name, value)) = part {
        query.append_pair(name, value);
    }
    let own = |name: &str| match (signal, name) {
        ("metrics", "name") => Some("metric"),
        ("spans", "name" | "kind")
        | ("janks", "kind" | "category" | "owner")
        | ("app_starts" | "start_phases", "kind")
        | ("metrics", "uptime") => None,
        ("metrics" | "spans", _)
            if name.starts_with("attribute.") && !group.contains_key("install_id") =>
        {
            None
        }
        // The path names the install, and its page also asks about others.
        (_, "install_id") if group.contains_key("install_id") => Some(""),
        _ if FILTERS.contains(&name) => None,
        _ => Some(""),
    };
    let mut append = |name: &str, value: &str| match own(name) {
        None => {
            query.append_pair(name, value);
        }
        Some("") => {}
        Some(other) => {
            query.append_pair(other, value);
        }
    };
    for (name, values) in &rule.metric.filters {
        if !group.contains_key(name) {
            values.iter().for_each(|value| append(name, value));
        }
    }
    for (name, value) in group {
        append(name, value);
    }
    if let Some(version) = &sides.version {
        query.append_pair("app_version", version);
    }
    if let Some(version) = &sides.base_version {
        query.append_pair("base_app_version", version);
        if sides.base_from == Some(sides.from) {
            query.append_pair("compare", "same_days");
        }
    }
    format!("{path}?{}", query.finish())
}

/// Returns the path of the screen, and the parameter that chooses a part of it.
fn screen(signal: &str) -> (&'static str, Option<(&'static str, &'static str)>) {
    match signal {
        "spans" => ("/spans", None),
        "recompositions" => ("/spans", Some(("tab", "recompositions"))),
        "frame_windows" => ("/frames", None),
        "janks" => ("/jank", None),
        "sessions" => ("/hangs", Some(("hangs", "anr"))),
        "page_loads" | "page_requests" => ("/page-loads", None),
        "traffic" | "requests" => ("/traffic", None),
        "metrics" => ("/resources", None),
        "app_starts" | "start_phases" => ("/app-starts", None),
        _ => ("/ingest", None),
    }
}

fn time(time: UnixTime) -> String {
    let text = time.to_string();
    text.split_once('.')
        .map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

#[cfg(test)]
mod tests {
    use super::FILTERS;

    #[test]
    fn links_have_the_filters_of_the_web_interface() {
        let source = include_str!("../../../../dashboards/web/src/navigation/filters.ts");
        let dimensions = source
            .split("{ name: '")
            .skip(1)
            .filter_map(|rest| rest.split('\'').next());
        assert_eq!(dimensions.collect::<Vec<_>>(), FILTERS);
    }
}
