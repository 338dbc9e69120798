//! Page loads: T1, T2 and T3, and the requests that a page waits for.

use unjank_monitors::{PageId, RequestId, Uptime};
use unjank_protocol::LaunchKind;

use super::client;
use crate::clock::Times;

/// A page that is loading, for at most 30 s. If it is dropped before its final draw, the load counts as aborted. At most 16 pages
/// load at once; further ones are counted as lost.
///
/// ```
/// use unjank::LaunchKind;
///
/// let page = unjank::page_load("MainActivity", LaunchKind::Cold);
/// page.first_draw(); // T1: something is shown
/// let request = unjank::request("/home/head");
/// request.end(200); // T2: from the first request's begin to the last one's end
/// page.final_draw(); // T3: from the data to the final draw
/// ```
#[derive(Debug)]
#[must_use = "a page that is dropped counts as aborted"]
pub struct PageLoading(Option<PageId>);

/// Begins to load a page and makes it the current screen, as [`crate::set_page`] does. The remote configuration (`pages`) lists
/// the requests of each page. The name is cut at 1 KiB. While nothing is collected, nothing is timed.
///
/// ```
/// let mut page = unjank::page_load("MainActivity", unjank::LaunchKind::Warm);
/// for _frame in 0..3 {
///     page.draw(); // the first one after the last request is the final draw
/// }
/// ```
pub fn page_load(page: &str, launch: LaunchKind) -> PageLoading {
    crate::set_page(page);
    PageLoading(client::with(|shared| {
        shared.meters.pages().begin(page, launch, Uptime::now())
    }))
}

impl PageLoading {
    /// Marks the first element as shown: the end of T1. Only the first call counts.
    pub fn first_draw(&self) {
        if let Some(page) = self.0 {
            client::with(|shared| shared.meters.pages().first_draw(page, Uptime::now()));
        }
    }

    /// Marks a draw. The load is over with the first draw after the last request. For hosts that do not know which draw is the
    /// final one. The first call also counts as the first draw.
    ///
    /// ```
    /// let mut page = unjank::page_load("MainActivity", unjank::LaunchKind::Cold);
    /// page.draw(); // T1
    /// unjank::request("/home/head").end(200);
    /// page.draw(); // T3, once every request of the page has ended
    /// ```
    pub fn draw(&mut self) {
        let ended = self.0.and_then(|page| {
            client::with(|shared| {
                let load = shared.meters.pages().draw(page, Uptime::now());
                let ended = load.is_some();
                shared.record_loads(load);
                ended
            })
        });
        if ended == Some(true) {
            self.0 = None;
        }
    }

    /// Marks everything as shown: the end of T3 and of the load.
    pub fn final_draw(mut self) {
        if let Some(page) = self.0.take() {
            client::with(|shared| {
                let load = shared.meters.pages().final_draw(page, Uptime::now());
                shared.record_loads(load);
            });
        }
    }
}

impl Drop for PageLoading {
    fn drop(&mut self) {
        if let Some(page) = self.0.take() {
            client::with(|shared| {
                let load = shared.meters.pages().abandon(page, Uptime::now());
                shared.record_loads(load);
            });
        }
    }
}

/// A request in flight. If it is dropped before [`NetworkRequest::end`], it counts as a request without a response.
///
/// ```
/// let request = unjank::request("/home/head");
/// // … send it, and wait …
/// request.end(503); // the load fails, unless the page retries the request
/// ```
#[derive(Debug)]
#[must_use = "a request lasts as long as this value"]
pub struct NetworkRequest(Option<RequestId>);

/// Begins a request, identified by the path of its URL; the host and the query are ignored. The request counts only towards T2 of
/// the page that lists the path: bytes are counted by [`crate::traffic()`]. At most 256 requests are in flight at once; further
/// ones are counted as lost. Does nothing while nothing is collected.
///
/// ```
/// let answered = unjank::request("https://api.example.com/home/head?city=1");
/// answered.end(200);
/// drop(unjank::request("/poi/filter")); // without a response
/// ```
pub fn request(path: &str) -> NetworkRequest {
    NetworkRequest(client::with(|shared| {
        shared.meters.pages().request_begin(path, Uptime::now())
    }))
}

impl NetworkRequest {
    /// Ends the request with its HTTP status. 400 and above fail the load; so does 0, for no response.
    pub fn end(mut self, status: u16) {
        self.close(status);
    }

    fn close(&mut self, status: u16) {
        if let Some(request) = self.0.take() {
            client::with(|shared| {
                shared
                    .meters
                    .pages()
                    .request_end(request, status, Uptime::now());
            });
        }
    }
}

impl Drop for NetworkRequest {
    fn drop(&mut self) {
        self.close(0);
    }
}
