//! Filters janks by the spans of the same session that were open at the same time.

use super::functions::OfFunction;

/// The property that selects the spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum During {
    /// The names of the spans.
    Span,
    /// The ids of the traces.
    Trace,
}

impl During {
    /// Selects the janks that overlap one of the spans. `when` is the condition for the time of the janks, and `holds` makes the condition
    /// for a value.
    pub(super) fn condition(
        self,
        database: &str,
        when: &str,
        parameter: &str,
        holds: impl Fn(&str) -> String,
    ) -> String {
        let selected = match self {
            Self::Span => format!(
                "({} OR {})",
                holds("s.name"),
                OfFunction::Name.matches(database, holds)
            ),
            Self::Trace => format!(
                "s.trace_id IN (SELECT toUUIDOrZero(arrayJoin({{{parameter}:Array(String)}})))"
            ),
        };
        let janks = format!(
            "(SELECT s.session_id AS session_id, s.start AS start, s.duration_ms AS duration_ms FROM `{database}`.janks AS s \
             WHERE s.project = {{project:String}} AND {when})"
        );
        // A span lasts at most a day.
        format!(
            "(s.session_id, s.start, s.duration_ms) IN (\
             SELECT jank.session_id, jank.start, jank.duration_ms FROM {janks} AS jank INNER JOIN (\
                 SELECT s.session_id AS session_id, s.start AS begins, addMicroseconds(s.start, s.duration_us) AS ends \
                 FROM `{database}`.spans AS s WHERE s.project = {{project:String}} AND {selected} \
                 AND s.session_id IN (SELECT session_id FROM {janks}) \
                 AND s.start >= (SELECT min(start) - INTERVAL 1 DAY FROM {janks}) \
                 AND s.start <= (SELECT max(start) + INTERVAL 1 DAY FROM {janks})\
             ) AS span ON jank.session_id = span.session_id \
             WHERE jank.start < span.ends AND addMilliseconds(jank.start, jank.duration_ms) > span.begins)"
        )
    }
}
