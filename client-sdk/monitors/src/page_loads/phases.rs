//! One page that is loading, and its event.

use std::sync::Arc;

use unjank_protocol::{LaunchKind, PageLoad, PageOutcome, PageRequest, Text};

use super::PageId;
use crate::uptime::{millis, millis_u32};
use crate::{Scene, Uptime};

/// Maximum number of requests in an event.
const REQUESTS: usize = 64;

#[derive(Debug)]
pub(super) struct OpenPage {
    pub(super) id: PageId,
    scene: Scene,
    launch: LaunchKind,
    pub(super) start: Uptime,
    apis: Arc<[String]>,
    pub(super) first_draw: Option<Uptime>,
    /// In the order they ended.
    requests: Vec<Ended>,
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) path: String,
    pub(super) began: Uptime,
    pub(super) ended: Uptime,
    pub(super) status: u16,
}

impl OpenPage {
    pub(super) fn new(
        id: PageId,
        scene: Scene,
        launch: LaunchKind,
        start: Uptime,
        apis: Arc<[String]>,
    ) -> Self {
        Self {
            id,
            scene,
            launch,
            start,
            apis,
            first_draw: None,
            requests: Vec::new(),
        }
    }

    pub(super) fn wants(&self, path: &str) -> bool {
        self.apis.iter().any(|api| api == path)
    }

    /// Returns whether a request for the path has ended.
    pub(super) fn has(&self, path: &str) -> bool {
        self.requests.iter().any(|request| request.path == path)
    }

    /// Returns whether a request for each configured path has ended.
    pub(super) fn has_all(&self) -> bool {
        self.apis.iter().all(|path| self.has(path))
    }

    /// Keeps an ended request. Returns `false` if there is no room.
    pub(super) fn ended(&mut self, request: Ended) -> bool {
        let room = self.requests.len() < REQUESTS;
        if room {
            self.requests.push(request);
        }
        room
    }

    /// Returns whether the last attempt of any path failed. Requests are in the order they ended.
    fn has_failed(&self) -> bool {
        self.apis.iter().any(|path| {
            let mut attempts = self.requests.iter().rev();
            let last = attempts.find(|request| request.path == *path);
            last.is_some_and(|request| request.status == 0 || request.status >= 400)
        })
    }

    pub(super) fn finish(
        mut self,
        now: Uptime,
        final_draw: Option<Uptime>,
        outcome: PageOutcome,
    ) -> PageLoad<'static> {
        let failed = self.has_failed();
        let first_begin = self.requests.iter().map(|request| request.began).min();
        let last_end = self.requests.iter().map(|request| request.ended).max();
        let between = |from: Option<Uptime>, to: Option<Uptime>| {
            from.zip(to).map(|(from, to)| millis(to.micros_since(from)))
        };
        self.requests.sort_by_key(|request| request.began);
        let start = self.start;
        PageLoad {
            page: self.scene.page_text(),
            start: self.scene.wall.time(start),
            t1_ms: between(Some(start), self.first_draw),
            t2_ms: between(first_begin, last_end),
            t3_ms: between(last_end, final_draw),
            total_ms: millis(now.micros_since(start)),
            launch: self.launch,
            outcome: if failed { PageOutcome::Failed } else { outcome },
            network: self.scene.network,
            uptime_ms: start.as_millis(),
            requests: self
                .requests
                .into_iter()
                .map(|request| request.event(start))
                .collect(),
            sample_rate: 1.0,
        }
    }
}

impl Ended {
    fn event(self, page_start: Uptime) -> PageRequest<'static> {
        let after = millis(self.began.micros_since(page_start));
        let before = millis(page_start.micros_since(self.began));
        PageRequest {
            path: Text::from(self.path),
            offset_ms: i32::try_from(after.saturating_sub(before)).unwrap_or_default(),
            duration_ms: millis_u32(self.ended.micros_since(self.began)),
            status: self.status,
        }
    }
}
