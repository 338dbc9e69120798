//! Sessions as rows: which ones a reading has, and what each of them sent in total. Single events are in `session_events`.

use std::time::Duration;

use clickhouse::Row;
use serde::Deserialize;
use unjank_foundation::clock::{HOUR, UnixTime};
use unjank_protocol::Timestamp;
use uuid::Uuid;

use super::parts::Part;
use super::reading::Reading;
use super::statement::Statement;
use super::subjects::requests::IS_REQUEST;
use crate::store::clickhouse::{ClickHouse, Failure};

/// The signals whose events have a session and a time on the device, with the duration of an event in microseconds.
const TIMED: &[(&str, &str)] = &[
    ("spans", "s.duration_us"),
    ("frame_windows", "toUInt64(s.duration_ms) * 1000"),
    ("janks", "toUInt64(s.duration_ms) * 1000"),
    ("page_loads", "toUInt64(s.total_ms) * 1000"),
    ("metrics", "toUInt64(0)"),
    ("app_starts", "toUInt64(s.duration_ms) * 1000"),
    ("recompositions", "toUInt64(s.window_ms) * 1000"),
];

/// The facts of a session's device, of its last batch.
const DEVICE: &str = "(s.install_id, s.user_id, toString(s.app_id), toString(s.app_version), s.build, toString(s.mode), \
     toString(s.channel), toString(s.os_name), toString(s.os_version), toString(s.device_model), \
     toString(s.device_class), s.config_revision)";

/// A session is longer than this only if its app runs for days. Then only the last part of it is counted.
pub const LONGEST_SESSION: Duration = Duration::from_secs(86_400);

/// Returns the names of the signals whose events have a session and a time.
pub fn timed_signals() -> impl Iterator<Item = &'static str> {
    TIMED.iter().map(|(signal, _)| *signal)
}

/// A session that a reading has.
#[derive(Clone, Copy, Debug, Row, Deserialize)]
pub struct FoundSession {
    #[serde(with = "clickhouse::serde::uuid")]
    pub session_id: Uuid,
    /// The start of its last selected event, in microseconds since the epoch.
    pub last: i64,
    /// A time before which the session cannot have begun.
    pub since: i64,
}

/// What a session sent in total: numbers of stored events, without their sample rates.
#[derive(Clone, Debug, Row, Deserialize)]
pub struct SessionFacts {
    #[serde(with = "clickhouse::serde::uuid")]
    pub session_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    pub install_id: Uuid,
    pub user_id: String,
    pub app_id: String,
    pub app_version: String,
    pub build: u64,
    pub mode: String,
    pub channel: String,
    pub os_name: String,
    pub os_version: String,
    pub device_model: String,
    pub device_class: String,
    /// The revision of the remote configuration that the app had last; 0 if it had none.
    pub config_revision: u64,
    /// The start of the first event, in microseconds since the epoch.
    pub first: i64,
    /// The start of the last event.
    pub last: i64,
    /// The end of the last event.
    pub end: i64,
    /// When its last batch arrived.
    pub received: i64,
    pub spans: u64,
    /// The spans that describe requests. They are spans, too.
    pub requests: u64,
    pub frame_windows: u64,
    pub janks: u64,
    pub page_loads: u64,
    pub metrics: u64,
    pub app_starts: u64,
    pub recompositions: u64,
    pub frames_drawn: u64,
    pub slow_frames: u64,
    pub frozen_frames: u64,
    /// The total duration of the janks.
    pub jank_ms: u64,
}

impl ClickHouse {
    /// Finds the sessions that have events in the readings, those with the latest event first. `after` is the position where the
    /// previous page ended. The readings differ in their signal only.
    pub async fn find_sessions(
        &self,
        readings: &[Reading],
        after: Option<(i64, Uuid)>,
        limit: u64,
    ) -> Result<Vec<FoundSession>, Failure> {
        let columns = |reading: &Reading| {
            let time = reading.subject.time.column();
            // The uptime gives the start of the app. Without it, the session may have begun up to a day earlier.
            let before = if reading.subject.name == "app_starts" {
                "0".to_owned()
            } else {
                "toInt64(least(s.uptime_ms, 86400000)) * 1000".to_owned()
            };
            let day = LONGEST_SESSION.as_micros();
            format!(
                "s.session_id AS session_id, max(toUnixTimestamp64Micro(s.{time})) AS last, \
                 min(toUnixTimestamp64Micro(s.{time}) - if({before} > 0, {before}, {day})) AS since"
            )
        };
        let mut statement = self.of_all(readings, columns, "");
        let place = match after {
            None => String::new(),
            Some((last, session)) => {
                statement.numbers.push(("after".to_owned(), last));
                statement.text("after_session", &session.to_string());
                " HAVING (last, session_id) < ({after:Int64}, {after_session:UUID})".to_owned()
            }
        };
        statement.sql = format!(
            "SELECT session_id, max(a.last) AS last, min(a.since) AS since FROM ({}) AS a GROUP BY session_id{place} \
             ORDER BY last DESC, session_id DESC LIMIT {limit}",
            statement.sql
        );
        let (found, _) = self.read(statement).await?;
        Ok(found)
    }

    /// Reads what sessions sent in total, in these hours if there are some. The readings have all timed signals and differ in these only.
    pub async fn session_facts(
        &self,
        readings: &[Reading],
        sessions: &[Uuid],
        hours: Option<&Hours>,
    ) -> Result<Vec<SessionFacts>, Failure> {
        let columns = |reading: &Reading| {
            let time = reading.subject.time.column();
            let name = reading.subject.name;
            let length = TIMED.iter().find(|(signal, _)| *signal == name);
            let length = length.map_or("toUInt64(0)", |(_, length)| *length);
            let when = |name, wanted: &str, sum: &str| match name == wanted {
                true => format!("toUInt64({sum})"),
                false => "toUInt64(0)".to_owned(),
            };
            format!(
                "s.session_id AS session_id, argMax({DEVICE}, s.received_at) AS device, max(s.received_at) AS received, \
                 min(s.{time}) AS first, max(s.{time}) AS last, \
                 max(toUnixTimestamp64Micro(s.{time}) + toInt64({length})) AS end, \
                 '{name}' AS signal, count() AS events, {} AS requests, {} AS drawn, {} AS slow, {} AS frozen, {} AS jank_ms",
                when(name, "spans", &format!("countIf({IS_REQUEST})")),
                when(name, "frame_windows", "sum(s.frames_drawn)"),
                when(name, "frame_windows", "sum(s.slow_frames)"),
                when(name, "frame_windows", "sum(s.frozen_frames)"),
                when(name, "janks", "sum(s.duration_ms)"),
            )
        };
        let mut condition = " AND s.session_id IN {sessions:Array(UUID)}".to_owned();
        if hours.is_some() {
            // The first condition skips rows by the key of the table. The second one keeps the hours of each session apart.
            condition.push_str(
                " AND toStartOfHour(s.TIME) IN {hours:Array(DateTime('UTC'))} AND (s.session_id, toStartOfHour(s.TIME)) \
                 IN arrayZip({session_of_hour:Array(UUID)}, {hours:Array(DateTime('UTC'))})",
            );
        }
        let mut statement = self.of_all(readings, columns, &condition);
        let sessions = sessions.iter().map(Uuid::to_string);
        statement
            .lists
            .push(("sessions".to_owned(), sessions.collect()));
        if let Some(Hours(hours)) = hours {
            let (sessions, texts) = hours
                .iter()
                .map(|(session, hour)| (session.to_string(), hour_text(*hour)))
                .unzip();
            statement.lists.extend([
                ("session_of_hour".to_owned(), sessions),
                ("hours".to_owned(), texts),
            ]);
        }
        let counts: Vec<_> = timed_signals()
            .map(|signal| format!("sumIf(a.events, a.signal = '{signal}') AS {signal}"))
            .collect();
        statement.sql = format!(
            "SELECT session_id, of.1 AS install_id, of.2 AS user_id, of.3 AS app_id, of.4 AS app_version, of.5 AS build, \
             of.6 AS mode, of.7 AS channel, of.8 AS os_name, of.9 AS os_version, of.10 AS device_model, \
             of.11 AS device_class, of.12 AS config_revision, \
             first, last, end, received, spans, requests, frame_windows, janks, page_loads, metrics, app_starts, recompositions, \
             frames_drawn, slow_frames, frozen_frames, jank_ms FROM (\
             SELECT session_id, argMax(a.device, a.received) AS of, toUnixTimestamp64Micro(min(a.first)) AS first, \
             toUnixTimestamp64Micro(max(a.last)) AS last, max(a.end) AS end, toUnixTimestamp64Micro(max(a.received)) AS received, \
             {}, sum(a.requests) AS requests, sum(a.drawn) AS frames_drawn, sum(a.slow) AS slow_frames, \
             sum(a.frozen) AS frozen_frames, sum(a.jank_ms) AS jank_ms FROM ({}) AS a GROUP BY session_id) \
             ORDER BY last DESC, session_id DESC",
            counts.join(", "),
            statement.sql
        );
        let (facts, _) = self.read(statement).await?;
        Ok(facts)
    }

    /// Joins one aggregate per reading and session. In `condition`, `TIME` is replaced by the column with the time of a row.
    fn of_all(
        &self,
        readings: &[Reading],
        columns: impl Fn(&Reading) -> String,
        condition: &str,
    ) -> Statement {
        let mut statement = Statement::default();
        let mut all = Vec::new();
        for reading in readings {
            let mut own = Statement::default();
            let rows = reading.rows(&Part::whole(reading), self.database(), &mut own);
            // The readings share their filters and their period, so they share the parameters.
            if all.is_empty() {
                statement.take(own, "");
            }
            all.push(format!(
                "SELECT {} FROM {} WHERE {rows}{} GROUP BY session_id",
                columns(reading),
                reading.from(self.database()),
                condition.replace("TIME", reading.subject.time.column()),
            ));
        }
        statement.sql = all.join(" UNION ALL ");
        statement
    }
}

/// The hours in which each session may have events. The key of the tables begins with the hour, so that other rows are skipped.
#[derive(Clone, Debug)]
pub struct Hours(Vec<(Uuid, UnixTime)>);

impl Hours {
    /// Returns the hours of these sessions, up to `after` beyond the last event that was found.
    #[must_use]
    pub fn of(sessions: &[FoundSession], after: Duration) -> Self {
        let mut hours = Vec::new();
        for session in sessions {
            let last = UnixTime::from_micros(session.last) + after;
            let earliest = UnixTime::from_micros(session.last) - LONGEST_SESSION;
            let mut hour = UnixTime::from_micros(session.since)
                .max(earliest)
                .floor(HOUR);
            while hour <= last {
                hours.push((session.session_id, hour));
                hour += HOUR;
            }
        }
        Self(hours)
    }
}

/// Returns a time of whole seconds as ClickHouse reads it.
fn hour_text(hour: UnixTime) -> String {
    let text = Timestamp::from(hour).to_string();
    text.trim_end_matches('Z').replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hours_of_a_session_reach_back_to_its_start_and_at_most_a_day() {
        let session = |hours: i64| FoundSession {
            session_id: Uuid::nil(),
            last: UnixTime::from_secs(1_000 * 3_600 + 60).as_micros(),
            since: UnixTime::from_secs((1_000 - hours) * 3_600 + 1).as_micros(),
        };
        let hours = |sessions: &[FoundSession], after| {
            let Hours(hours) = Hours::of(sessions, after);
            let first = hours.iter().map(|(_, hour)| hour.number_of(HOUR)).min();
            (first.unwrap_or_default(), hours.len())
        };
        assert_eq!(hour_text(UnixTime::from_secs(3_600)), "1970-01-01 01:00:00");
        assert_eq!(hours(&[session(0)], Duration::ZERO), (1_000, 1));
        assert_eq!(hours(&[session(2)], HOUR), (998, 4));
        assert_eq!(hours(&[session(90)], Duration::ZERO), (976, 25));
        assert_eq!(hours(&[session(90), session(3)], Duration::ZERO), (976, 29));
    }
}
