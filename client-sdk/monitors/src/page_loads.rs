//! Page loads, in three parts that overlap.
//!
//! # The formulas of Meituan's Hertz
//! * T1 = page initialised → first element shown.
//! * T2 = first start → last end of the page's requests. T2 may begin before T1 ends, and even before the page begins.
//! * T3 = last end of its requests → final draw.
//! * T (`total_ms`) = page initialised → final draw. T ≠ T1 + T2 + T3.
//!
//! A part that was not observed is absent. A page of which no request ended has neither T2 nor T3.
//!
//! # Which request belongs to which page
//! A page's requests are those whose path is in its list (`pages` of the configuration). Paths are compared exactly, without
//! host, query and fragment. If several open pages list its path, the request belongs to the newest page that has not requested
//! the path yet. If all of them have, the request belongs to the newest page. If no open page lists the path (a prefetch), the
//! request belongs to the next page that opens with the path in its list while the request is in flight, and has a negative offset.
//! All repetitions of a request count for T2, but only the last attempt of a path counts for the outcome.
//!
//! # How a load ends
//! A load is *completed* with the final draw, and *aborted* when the user leaves or time runs out. It is *failed* instead if the
//! last attempt of a path had no response or a status of 400 or more. Requests in flight at the end of a load are not
//! part of it. If a load runs out of time with requests in flight, it has *failed*.
//!
//! # Bounds
//! 16 open pages, 256 requests in flight, 64 ended requests per page, 30 s per page (see [`PageLoads::set_timeout`]). Pages and
//! requests beyond are not tracked, and are counted by [`PageLoads::take_dropped`].

mod phases;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use unjank_protocol::config::PageApis;
use unjank_protocol::{LaunchKind, PageLoad, PageOutcome};

use self::phases::{Ended, OpenPage};
use crate::uptime::LONGEST_US;
use crate::{Scene, Uptime, bounded};

const OPEN_PAGES: usize = 16;
const FLYING: usize = 256;
const TIMEOUT_US: u64 = 30_000_000;

/// A page that is loading. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageId(u64);

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(u64);

/// Tracks the pages that are loading.
///
/// ```
/// use unjank_monitors::{PageLoads, Scene, Uptime};
/// use unjank_protocol::config::PageApis;
/// use unjank_protocol::LaunchKind;
///
/// let at = Uptime::from_millis;
/// let config = [PageApis { page: "MainActivity".into(), api: vec!["/home/head".into()] }];
/// let mut loads = PageLoads::new(&config, Scene::default());
///
/// let page = loads.begin("MainActivity", LaunchKind::Cold, at(1_000));
/// let request = loads.request_begin("/home/head?city=1", at(1_060));
/// loads.first_draw(page, at(1_120));
/// loads.request_end(request, 200, at(1_540));
/// let load = loads.final_draw(page, at(1_610)).expect("the page was loading");
/// assert_eq!((load.t1_ms, load.t2_ms, load.t3_ms, load.total_ms), (Some(120), Some(480), Some(70), 610));
/// ```
#[derive(Debug)]
pub struct PageLoads {
    apis: HashMap<String, Arc<[String]>>,
    paths: HashSet<String>,
    timeout_us: u64,
    scene: Scene,
    /// In the order they began.
    open: Vec<OpenPage>,
    flying: Vec<Flying>,
    last_id: u64,
    dropped: u64,
}

#[derive(Debug)]
struct Flying {
    id: RequestId,
    path: String,
    began: Uptime,
    page: Option<PageId>,
}

impl PageLoads {
    /// Creates a tracker without pages.
    #[must_use]
    pub fn new(pages: &[PageApis], scene: Scene) -> Self {
        let mut loads = Self {
            apis: HashMap::new(),
            paths: HashSet::new(),
            timeout_us: TIMEOUT_US,
            scene,
            open: Vec::new(),
            flying: Vec::new(),
            last_id: 0,
            dropped: 0,
        };
        loads.set_config(pages);
        loads
    }

    /// Sets which requests belong to which page, for pages that begin from now on: at most 1,000 pages with 100 paths each.
    pub fn set_config(&mut self, pages: &[PageApis]) {
        let apis = pages.iter().take(1_000).map(|page| {
            let paths = page.api.iter().take(100).map(|path| bare(path).to_owned());
            (page.page.clone(), paths.collect())
        });
        self.apis = apis.collect();
        let paths = self.apis.values().flat_map(|paths| paths.iter().cloned());
        self.paths = paths.collect();
    }

    /// Sets how long a page may load, in microseconds, from 1 s to 24 h.
    pub fn set_timeout(&mut self, timeout_us: u64) {
        self.timeout_us = timeout_us.clamp(1_000_000, LONGEST_US);
    }

    /// Sets the scene. A page load reports the scene at its beginning.
    pub fn set_scene(&mut self, scene: Scene) {
        self.scene = scene;
    }

    /// Begins a page when it is initialised. The name is cut at 1 KiB. The same page may be open several times.
    pub fn begin(&mut self, page: &str, launch: LaunchKind, now: Uptime) -> PageId {
        let (id, page) = (PageId(self.next_id()), bounded(page));
        if self.open.len() >= OPEN_PAGES {
            self.dropped = self.dropped.saturating_add(1);
            return id;
        }
        let apis = self.apis.get(page).cloned().unwrap_or_default();
        self.forget_old_flights(now);
        for flight in &mut self.flying {
            if flight.page.is_none() && apis.contains(&flight.path) {
                flight.page = Some(id);
            }
        }
        let scene = Scene {
            page: page.to_owned(),
            ..self.scene.clone()
        };
        self.open.push(OpenPage::new(id, scene, launch, now, apis));
        id
    }

    /// Marks the page's first element as shown, usually a loading animation. Only the first call counts.
    pub fn first_draw(&mut self, page: PageId, now: Uptime) {
        if let Some(open) = self.open.iter_mut().find(|open| open.id == page) {
            open.first_draw.get_or_insert(now);
        }
    }

    /// Begins a request. `path` may contain a query, and may be a whole URL.
    pub fn request_begin(&mut self, path: &str, now: Uptime) -> RequestId {
        let id = RequestId(self.next_id());
        let path = bare(path);
        if !self.is_wanted(path) {
            return id;
        }
        self.forget_old_flights(now);
        if self.flying.len() >= FLYING {
            self.dropped = self.dropped.saturating_add(1);
            return id;
        }
        let page = self.page_for(path);
        self.flying.push(Flying {
            id,
            path: path.to_owned(),
            began: now,
            page,
        });
        id
    }

    /// Ends a request with its HTTP status; 0 means that there was no response. Late and repeated ends do nothing.
    pub fn request_end(&mut self, request: RequestId, status: u16, now: Uptime) {
        let Some(position) = self.flying.iter().position(|flight| flight.id == request) else {
            return;
        };
        let flight = self.flying.swap_remove(position);
        let mut open = self.open.iter_mut();
        let Some(page) = open.find(|open| flight.page == Some(open.id)) else {
            return;
        };
        let kept = page.ended(Ended {
            path: flight.path,
            began: flight.began,
            ended: now.max(flight.began),
            status,
        });
        self.dropped = self.dropped.saturating_add(u64::from(!kept));
    }

    /// Classifies a draw of the page by the rules of Hertz. The first draw shows the first element. The final draw is the first draw
    /// after every configured path has ended at least once, with no request in flight.
    #[must_use]
    pub fn draw(&mut self, page: PageId, now: Uptime) -> Option<PageLoad<'static>> {
        self.first_draw(page, now);
        let waits = self.flying.iter().any(|flight| flight.page == Some(page));
        let open = self.open.iter().find(|open| open.id == page)?;
        if waits || !open.has_all() {
            return None;
        }
        self.final_draw(page, now)
    }

    /// Marks the page as completely drawn, and ends it.
    #[must_use]
    pub fn final_draw(&mut self, page: PageId, now: Uptime) -> Option<PageLoad<'static>> {
        let open = self.close(page)?;
        let drawn = Some(now);
        Some(open.finish(now, drawn, PageOutcome::Completed))
    }

    /// Ends a page that the user left before it was complete.
    #[must_use]
    pub fn abandon(&mut self, page: PageId, now: Uptime) -> Option<PageLoad<'static>> {
        let open = self.close(page)?;
        Some(open.finish(now, None, PageOutcome::Aborted))
    }

    /// Ends the pages that have run out of time. Call it every few seconds while pages are open.
    #[must_use]
    pub fn poll(&mut self, now: Uptime) -> Vec<PageLoad<'static>> {
        self.forget_old_flights(now);
        let over = |open: &&OpenPage| now.micros_since(open.start) >= self.timeout_us;
        let over: Vec<_> = self.open.iter().filter(over).map(|open| open.id).collect();
        let mut ended = Vec::new();
        for page in over {
            let waits = self.flying.iter().any(|flight| flight.page == Some(page));
            let outcome = if waits {
                PageOutcome::Failed
            } else {
                PageOutcome::Aborted
            };
            let open = self.close(page);
            ended.extend(open.map(|open| open.finish(now, None, outcome)));
        }
        ended
    }

    /// Returns the number of pages and requests dropped since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    /// Returns whether any configured or open page lists this path.
    fn is_wanted(&self, path: &str) -> bool {
        self.paths.contains(path) || self.open.iter().any(|open| open.wants(path))
    }

    fn page_for(&self, path: &str) -> Option<PageId> {
        let asked = |page: PageId| {
            let mut flying = self.flying.iter();
            flying.any(|flight| flight.page == Some(page) && flight.path == path)
        };
        let candidates = || self.open.iter().rev().filter(|open| open.wants(path));
        let fresh = candidates().find(|open| !open.has(path) && !asked(open.id));
        fresh.or_else(|| candidates().next()).map(|open| open.id)
    }

    /// Drops requests without a page that are older than the page timeout: their end was never reported.
    fn forget_old_flights(&mut self, now: Uptime) {
        let timeout_us = self.timeout_us;
        self.flying
            .retain(|flight| flight.page.is_some() || now.micros_since(flight.began) < timeout_us);
    }

    fn close(&mut self, page: PageId) -> Option<OpenPage> {
        let position = self.open.iter().position(|open| open.id == page)?;
        self.flying.retain(|flight| flight.page != Some(page));
        Some(self.open.remove(position))
    }
}

/// Returns a path without scheme, host, query and fragment.
fn bare(path: &str) -> &str {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let path = path.get(..end).unwrap_or_default();
    let Some((_, after_scheme)) = path.split_once("://") else {
        return path;
    };
    let slash = after_scheme.find('/').unwrap_or(after_scheme.len());
    match after_scheme.get(slash..).unwrap_or_default() {
        "" => "/",
        path => path,
    }
}
