//! Page loads: T1, T2, T3, and the requests a page waits for.

use unjank_monitors::{PageId, RequestId, Uptime};
use unjank_protocol::LaunchKind;

use crate::client;
use crate::frames::Times;

/// A page that is being loaded, for 30 s at most. Dropped before its final draw it counts as aborted. At most 16 load at once; further
/// ones are counted as lost.
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

/// Begins to load a page, which is the screen from now on ([`crate::set_page`]). Which requests belong to it says the remote
/// configuration (`pages`). The name is cut at 1 KiB. While nothing is collected, nothing is timed.
///
/// ```
/// let mut page = unjank::page_load("MainActivity", unjank::LaunchKind::Warm);
/// for _frame in 0..3 {
///     page.draw(); // the one after the last request is the final one
/// }
/// ```
pub fn page_load(page: &str, launch: LaunchKind) -> PageLoading {
    crate::set_page(page);
    PageLoading(client::with(|shared| {
        shared.meters.pages().begin(page, launch, Uptime::now())
    }))
}

impl PageLoading {
    /// The first element is shown: the end of T1. Only the first call counts.
    pub fn first_draw(&self) {
        if let Some(page) = self.0 {
            client::with(|shared| shared.meters.pages().first_draw(page, Uptime::now()));
        }
    }

    /// Something was drawn: the load is over when this was after the last request. For hosts that do not know which draw is the
    /// final one. The first call is the first draw, too.
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

    /// Everything is shown: the end of T3, and of the load.
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

/// A request under way. Dropped before its end it counts as never answered.
///
/// ```
/// let request = unjank::request("/home/head");
/// // … send it, and wait …
/// request.end(503); // the page has failed, unless it asks again
/// ```
#[derive(Debug)]
#[must_use = "a request lasts as long as this value"]
pub struct NetworkRequest(Option<RequestId>);

/// Begins a request, by the path of its address; a host and a query are left out. It counts for T2 of the page that lists the path, and
/// for nothing else: bytes are counted by [`crate::traffic()`]. At most 256 are under way at once; further ones are counted as lost.
/// Nothing while nothing is collected.
///
/// ```
/// let answered = unjank::request("https://api.example.com/home/head?city=1");
/// answered.end(200);
/// drop(unjank::request("/poi/filter")); // never answered
/// ```
pub fn request(path: &str) -> NetworkRequest {
    NetworkRequest(client::with(|shared| {
        shared.meters.pages().request_begin(path, Uptime::now())
    }))
}

impl NetworkRequest {
    /// It was answered with this HTTP status: 400 and above let the page fail, and so does 0, for no answer.
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
