//! Sessions of apps: a page of a list, and everything that one session sent.

use unjank_foundation::clock::{HOUR, UnixTime};
use uuid::Uuid;

use super::stored_run::check_run_filters;
use super::{InvalidQuery, NamedQuery, QueryError};
use crate::store::ClickHouse;
use crate::store::reads::{
    FoundSession, Hours, LONGEST_SESSION, Reading, SessionFacts, SessionFrames, SessionJank,
    SessionPageLoad, SessionPoint, SessionRedraws, SessionSpan, SessionStart, Span, SpanChoice,
    timed_signals,
};

/// The list is read backwards in time, in steps that grow by this factor until a page is full. A full page of a busy project lies
/// within the last hour.
const STEP_GROWTH: u32 = 6;

/// The position of a session in the list: the time of its last event, and its id.
pub type SessionPlace = (i64, Uuid);

/// Which sessions to list.
#[derive(Clone, Debug)]
pub struct SessionSearch {
    /// Only sessions that have an event of this signal. Then the filters may be on any of its dimensions.
    pub signal: Option<String>,
    pub after: Option<SessionPlace>,
    pub limit: usize,
}

/// A page of the list.
#[derive(Debug, Default)]
pub struct SessionPage {
    /// The one with the latest event first.
    pub sessions: Vec<SessionFacts>,
    /// Where the next page begins, if there is one.
    pub next: Option<SessionPlace>,
}

/// Lists the sessions that have events in the period of the query. What each of them sent is counted from its start, at most a day before
/// its last event, to the end of the period.
pub async fn sessions(
    clickhouse: &ClickHouse,
    project: &str,
    ask: &NamedQuery,
    search: &SessionSearch,
    now: UnixTime,
) -> Result<SessionPage, QueryError> {
    let mut readings = match search.signal.as_deref() {
        None => readings(project, &check_run_filters(ask)?, now)?,
        Some(signal) => vec![of_signal(project, signal, ask, now)?],
    };
    let mut found = find(clickhouse, &mut readings, search).await?;
    let has_more = found.len() > search.limit;
    found.truncate(search.limit);
    if found.is_empty() {
        return Ok(SessionPage::default());
    }
    let whole = readings[0].span;
    let later = match search.signal {
        // The last event of the signal need not be the last one of the session.
        Some(_) => LONGEST_SESSION,
        None => std::time::Duration::ZERO,
    };
    let all = NamedQuery {
        from: ask.from,
        to: ask.to,
        ..NamedQuery::default()
    };
    let mut all = self::readings(project, &all, now)?;
    for reading in &mut all {
        reading.span.from = whole.from - LONGEST_SESSION;
    }
    let ids: Vec<Uuid> = found.iter().map(|one| one.session_id).collect();
    let hours = Hours::of(&found, later);
    let mut facts = clickhouse.session_facts(&all, &ids, Some(&hours)).await?;
    facts.sort_by_key(|one| ids.iter().position(|id| *id == one.session_id));
    let last = found.last().filter(|_| has_more);
    Ok(SessionPage {
        sessions: facts,
        next: last.map(|one| (one.last, one.session_id)),
    })
}

/// Finds one session more than the page has room for, if there is one.
async fn find(
    clickhouse: &ClickHouse,
    readings: &mut [Reading],
    search: &SessionSearch,
) -> Result<Vec<FoundSession>, QueryError> {
    let whole = readings[0].span;
    // Sessions of earlier pages are recognized by their last event, so each page reads from the end of the period on.
    let newest = search
        .after
        .map_or(whole.to, |(last, _)| UnixTime::from_micros(last));
    let mut step = HOUR;
    loop {
        let from = (newest.min(whole.to) - step).max(whole.from);
        for reading in readings.iter_mut() {
            reading.span.from = from;
        }
        let limit = search.limit as u64 + 1;
        let found = clickhouse
            .find_sessions(readings, search.after, limit)
            .await?;
        if found.len() > search.limit || from == whole.from {
            for reading in readings.iter_mut() {
                reading.span.from = whole.from;
            }
            return Ok(found);
        }
        step *= STEP_GROWTH;
    }
}

/// Returns a reading per signal whose events have a session and a time.
fn readings(project: &str, ask: &NamedQuery, now: UnixTime) -> Result<Vec<Reading>, InvalidQuery> {
    timed_signals()
        .map(|signal| ask.single(project, signal, now))
        .collect()
}

fn of_signal(
    project: &str,
    signal: &str,
    ask: &NamedQuery,
    now: UnixTime,
) -> Result<Reading, InvalidQuery> {
    if !timed_signals().any(|known| known == signal) {
        let known: Vec<_> = timed_signals().collect();
        return Err(InvalidQuery(format!(
            "`with` must be one of: {}",
            known.join(", ")
        )));
    }
    let ask = NamedQuery {
        from: ask.from,
        to: ask.to,
        filters: ask.filters.clone(),
        ..NamedQuery::default()
    };
    ask.single(project, signal, now)
}

/// Which part of a session to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionPart {
    /// A time at or near an event of the session. Only events within a day of it are searched, which is much faster.
    pub at: Option<UnixTime>,
    pub from: Option<UnixTime>,
    pub to: Option<UnixTime>,
}

impl SessionPart {
    /// Returns the period that is searched.
    fn searched(&self, now: UnixTime) -> Span {
        let (first, last) = match (self.at, self.from, self.to) {
            (Some(at), ..) => (at, at),
            (None, Some(from), Some(to)) => (from, to),
            // The index on sessions skips most rows, but all periods are searched. Clocks may be a little ahead.
            _ => (UnixTime::default() + LONGEST_SESSION, now),
        };
        Span {
            from: first - LONGEST_SESSION,
            to: last + LONGEST_SESSION,
        }
    }
}

/// Maximum numbers of events per kind. Of more, those that took longest or had the most jank are read.
const MOST_PAGE_LOADS: u64 = 500;
const MOST_FRAMES: u64 = 2_000;
const MOST_JANKS: u64 = 500;
const MOST_SPANS: u64 = 2_000;
const MOST_REQUESTS: u64 = 1_000;
const MOST_STARTS: u64 = 100;
const MOST_REDRAWS: u64 = 500;

/// What one session sent.
#[derive(Debug)]
pub struct Timeline {
    pub facts: SessionFacts,
    /// The period that was searched for events of the session.
    pub searched: Span,
    /// The period that the events below are of, with what the session sent in it.
    pub shown: Span,
    pub sent: SessionFacts,
    pub page_loads: Vec<SessionPageLoad>,
    pub frames: Vec<SessionFrames>,
    pub janks: Vec<SessionJank>,
    pub spans: Vec<SessionSpan>,
    pub requests: Vec<SessionSpan>,
    pub starts: Vec<SessionStart>,
    pub redraws: Vec<SessionRedraws>,
    pub points: Vec<SessionPoint>,
}

/// Reads what one session sent. `None` if it sent nothing in the searched period, or is of another project.
pub async fn timeline(
    clickhouse: &ClickHouse,
    project: &str,
    session: Uuid,
    part: SessionPart,
    now: UnixTime,
) -> Result<Option<Timeline>, QueryError> {
    let searched = part.searched(now);
    let mut all = readings(project, &NamedQuery::default(), now)?;
    set_span(&mut all, searched);
    let facts = clickhouse.session_facts(&all, &[session], None).await?;
    let Some(facts) = facts.into_iter().next() else {
        return Ok(None);
    };
    let end = UnixTime::from_micros(facts.last.saturating_add(1));
    let shown = Span {
        from: part.from.unwrap_or(UnixTime::from_micros(facts.first)),
        to: part.to.unwrap_or(end),
    };
    set_span(&mut all, shown);
    let sent = if part.from.is_some() || part.to.is_some() {
        let sent = clickhouse.session_facts(&all, &[session], None).await?;
        sent.into_iter()
            .next()
            .unwrap_or_else(|| nothing_of(&facts))
    } else {
        facts.clone()
    };
    let of = |signal: &str| {
        all.iter()
            .find(|reading| reading.subject.name == signal)
            .ok_or_else(|| InvalidQuery(format!("{signal} have no sessions")))
    };
    let mut janks = of("janks")?.clone();
    janks.by.extend(janks.subject.dimension("group_id"));
    let spans = of("spans")?;
    Ok(Some(Timeline {
        page_loads: (clickhouse)
            .session_page_loads(of("page_loads")?, session, MOST_PAGE_LOADS)
            .await?,
        frames: (clickhouse)
            .session_frames(of("frame_windows")?, session, MOST_FRAMES)
            .await?,
        janks: clickhouse
            .session_janks(&janks, session, MOST_JANKS)
            .await?,
        spans: clickhouse
            .session_spans(spans, session, SpanChoice::Others, MOST_SPANS)
            .await?,
        requests: clickhouse
            .session_spans(spans, session, SpanChoice::Requests, MOST_REQUESTS)
            .await?,
        starts: (clickhouse)
            .session_starts(of("app_starts")?, session, MOST_STARTS)
            .await?,
        redraws: (clickhouse)
            .session_redraws(of("recompositions")?, session, MOST_REDRAWS)
            .await?,
        points: clickhouse.session_metrics(of("metrics")?, session).await?,
        facts,
        searched,
        shown,
        sent,
    }))
}

fn set_span(readings: &mut [Reading], span: Span) {
    for reading in readings {
        reading.span = span;
    }
}

/// The facts of a part in which the session sent nothing.
fn nothing_of(facts: &SessionFacts) -> SessionFacts {
    SessionFacts {
        spans: 0,
        requests: 0,
        frame_windows: 0,
        janks: 0,
        page_loads: 0,
        metrics: 0,
        app_starts: 0,
        recompositions: 0,
        frames_drawn: 0,
        slow_frames: 0,
        frozen_frames: 0,
        jank_ms: 0,
        ..facts.clone()
    }
}
