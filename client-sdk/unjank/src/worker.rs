//! The background thread: turns queued events into batches, stores and sends them, and fetches the remote configuration.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use unjank_protocol::{Limits, Resource, SdkHealth};
use uuid::Uuid;

use crate::backlog::Backlog;
use crate::batch::{Pending, Sealed};
use crate::budget::Budget;
use crate::client::{self, Shared};
use crate::clock::Moment;
use crate::config::{Config, Mode};
use crate::event::Event;
use crate::losses::Reason;
use crate::monitor::Monitors;
use crate::random::draw;
use crate::remote::{Identity, Remote};
use crate::report::Reporter;
use crate::requests::RequestState;
use crate::sampling::Settings;
use crate::traffic::{Ledger, is_cellular};
use crate::transport::Transport;
use crate::uplink::Uplink;
use crate::users::Turn;

/// Events wait in memory for about this long at most: a process that is killed loses no more.
const SEAL_AFTER: Duration = Duration::from_secs(5);
/// Time between checks of the queue.
const TICK: Duration = Duration::from_secs(1);
/// A long backlog is sent in pieces of this length, so that the queue is drained in between.
const UPLOAD_PIECE: Duration = Duration::from_secs(2);
/// Losses and costs are reported at least this often while anything is sent.
const HEALTH_EVERY: Duration = Duration::from_secs(600);

pub(crate) struct Worker {
    shared: Arc<Shared>,
    session_draw: f64,
    install_id: Uuid,
    backlog: Backlog,
    uplink: Uplink,
    remote: Remote,
    budget: Budget,
    monitors: Monitors,
    ledger: Ledger,
    pending: Pending,
    /// The turn that the pending events belong to.
    turn: Turn,
    /// Since when events are pending.
    pending_since: Option<Moment>,
    next_upload: Moment,
    last_health: Moment,
    reported_cpu: Duration,
    /// Something that waits could not be read when it was to be sent.
    unread: bool,
    /// The app is ending, and collection was on until then.
    ending: bool,
}

impl Worker {
    /// Opens what is kept on disk. Called when collection is switched on for the first time, not before.
    pub(crate) fn open(
        shared: Arc<Shared>,
        transport: Arc<dyn Transport>,
        session_draw: f64,
    ) -> Self {
        let config = &shared.config;
        let folder = config.data_dir.as_deref().filter(|folder| make(folder));
        let install_id = config
            .install_id
            .unwrap_or_else(|| install_id(folder.map(|folder| folder.join("install-id"))));
        let jitter = config.start_jitter.mul_f64(draw());
        let first = Moment::now().after(jitter);
        let file = folder.map(|folder| folder.join("config.json"));
        let mut remote = Remote::new(Arc::clone(&transport), file, first);
        if let Some(document) = remote.remembered() {
            let document = config.remote_document(document);
            shared.set_settings(Settings::new(document, session_draw));
        }
        let most_bytes = shared.settings.load().document.upload.max_queue_bytes;
        let backlog = match folder {
            Some(folder) => Backlog::open(&folder.join("queue"), most_bytes, &shared.losses),
            None => Backlog::in_memory(most_bytes),
        };
        let ledger = Ledger::open(folder.map(|folder| folder.join("traffic.json")), &shared);
        let mut worker = Self {
            monitors: Monitors::new(config.take_providers()),
            ledger,
            session_draw,
            install_id,
            backlog,
            uplink: Uplink::new(config, transport),
            remote,
            budget: Budget::new(config.mode != Mode::Production),
            pending: Pending::new(resource(config, install_id), Uuid::now_v7()),
            turn: Turn::default(),
            pending_since: None,
            next_upload: first,
            last_health: Moment::now(),
            reported_cpu: cpu_time(),
            unread: false,
            ending: false,
            shared,
        };
        let resource = resource(&worker.shared.config, install_id);
        worker.notify(|reporter| reporter.begin(&resource));
        worker.recover_traffic();
        worker
    }

    /// Seals traffic that an earlier process took, and that may not have been kept, again under the same id.
    fn recover_traffic(&mut self) {
        let outstanding = Ledger::outstanding(&self.shared.meters.traffic());
        for batch_id in outstanding {
            self.seal_traffic(batch_id);
        }
        self.settle_traffic();
    }

    /// Runs until it is asked to stop.
    pub(crate) fn run(mut self) {
        loop {
            let wanted = self.shared.requests.wait(self.pause());
            if wanted.forget {
                self.forget();
            }
            self.ending = wanted.last_work;
            let done = !self.may_work() || self.work(wanted);
            if done {
                self.flushed(wanted);
            }
            if wanted.stop {
                self.keep_the_rest();
                return;
            }
        }
    }

    /// Marks the requested flushes as done.
    fn flushed(&self, wanted: RequestState) {
        if wanted.flushes > wanted.flushed {
            let unread = self.unread.then_some(wanted.flushes);
            self.shared.requests.change(|now| {
                now.flushed = wanted.flushes;
                now.unread = unread.unwrap_or(now.unread);
            });
        }
    }

    /// Keeps the losses of the last upload, and batches that are only in memory, for the next start to send.
    fn keep_the_rest(&mut self) {
        if self.may_work() && self.shared.config.data_dir.is_some() {
            self.seal();
            self.backlog.write_again(&self.shared.losses);
        }
    }

    /// Returns whether collection is on, or was until the app ended.
    fn may_work(&self) -> bool {
        client::is_on() || self.ending
    }

    /// Returns the time until the next task is due.
    fn pause(&self) -> Duration {
        if !client::is_on() {
            return Duration::from_secs(3_600);
        }
        let now = Moment::now();
        let next = self.remote.next();
        let next = self
            .monitors
            .next()
            .map_or(next, |monitor| monitor.min(next));
        TICK.min(next.since(now)).max(Duration::from_millis(1))
    }

    /// Returns whether everything that a flush waits for is done.
    fn work(&mut self, wanted: RequestState) -> bool {
        let urgent = wanted.stop || wanted.flushes > wanted.flushed;
        self.unread = false;
        if self.shared.wall.has_moved() {
            // Pending events were timed by the old setting of the clock.
            self.seal();
            self.shared.wall.follow();
            self.shared.set_scene();
        }
        // Fetches the configuration first, because it decides what is monitored.
        if !wanted.stop {
            self.poll();
        }
        self.monitors.poll(&self.shared);
        self.shared.poll_meters(urgent);
        self.drain();
        let now = Moment::now();
        let old = self
            .pending_since
            .is_some_and(|since| now.since(since) >= SEAL_AFTER);
        // Polling takes time, and the user may withdraw consent during it.
        if !self.may_work() {
            return true;
        }
        if old || urgent {
            self.seal();
        }
        if (urgent || now >= self.next_upload) && self.may_upload() {
            return self.upload(urgent) || wanted.stop;
        }
        true
    }

    fn may_upload(&self) -> bool {
        let upload = &self.shared.settings.load().document.upload;
        let network = self.shared.network();
        !upload.wifi_only || !is_cellular(network)
    }

    fn drain(&mut self) {
        let most = usize::try_from(self.max_batch_events()).unwrap_or(usize::MAX);
        let now = Moment::now();
        while let Some((turn, queued)) = self.shared.pop() {
            let signal = queued.signal();
            if self.uplink.holds_back(signal, now) || !self.budget.take(signal, now) {
                self.shared.losses.add(signal, Reason::RateLimited, 1);
                continue;
            }
            let mut event = queued.into_event(&self.shared.wall, &self.shared.names);
            if !self.lets_pass(&mut event) {
                self.shared.losses.add(signal, Reason::Filtered, 1);
                continue;
            }
            self.notify(|reporter| reporter.report(&event));
            self.follow_user(turn);
            self.pending.add(event);
            self.pending_since.get_or_insert(now);
            if self.pending.len() >= most {
                self.seal();
            }
        }
    }

    fn notify(&self, call: impl Fn(&(dyn Reporter + 'static))) {
        for reporter in &self.shared.config.reporters {
            // The panic is the app's; its events are still sent.
            let notified = catch_unwind(AssertUnwindSafe(|| call(&**reporter)));
            notified.unwrap_or_default();
        }
    }

    fn max_batch_events(&self) -> u32 {
        let upload = &self.shared.settings.load().document.upload;
        upload.max_batch_events.clamp(1, Limits::EVENTS as u32)
    }

    /// Passes an event through `before_send`. Returns whether the event is kept.
    fn lets_pass(&self, event: &mut Event) -> bool {
        let Some(filter) = &self.shared.config.before_send else {
            return true;
        };
        // If the filter panics, drop the event: it may hold what the filter was to remove.
        catch_unwind(AssertUnwindSafe(|| filter(event))).unwrap_or(false)
    }

    /// Seals the pending events if the user changed: a batch belongs to one user.
    fn follow_user(&mut self, turn: Turn) {
        // Runs for every event, so it copies nothing while the user stays the same.
        if self.turn == turn {
            return;
        }
        self.turn = turn;
        let user_id = self.shared.users.user(turn);
        if self.pending.len() > 0 && user_id != self.pending.user() {
            self.seal();
        }
        self.pending.set_user(&user_id);
    }

    /// Makes a batch of the pending events, together with the losses.
    fn seal(&mut self) {
        // If this fails, the next batch saves the counts.
        let _failed = !self.ledger.save(&self.shared);
        self.add_health();
        self.notify(Reporter::flush);
        self.pending_since = None;
        if self.pending.len() == 0 {
            return;
        }
        let revision = self.shared.settings.load().document.revision;
        // JSON of plain data and zstd into memory do not fail.
        if let Ok(sealed) = self.pending.seal(revision) {
            self.keep(sealed);
        }
    }

    fn keep(&mut self, sealed: Sealed) {
        let sealed = sealed.timed_by(self.shared.wall.setting());
        self.backlog.write_again(&self.shared.losses);
        self.backlog.push(sealed, &self.shared.losses);
    }

    /// Makes a batch of the counted traffic, if there is any.
    fn seal_traffic(&mut self, batch_id: Uuid) {
        let rows = self.ledger.take(batch_id, &self.shared);
        if rows.is_empty() {
            return;
        }
        let revision = self.shared.settings.load().document.revision;
        if !self.backlog.holds(batch_id)
            && let Ok(sealed) = self.pending.traffic(batch_id, rows, revision)
        {
            self.keep(sealed);
        }
    }

    /// Forgets rows of traffic whose batch is kept or done with. A batch that is only in memory would be lost with the process:
    /// its rows are then sent again, under the same id.
    fn settle_traffic(&mut self) {
        let outstanding = Ledger::outstanding(&self.shared.meters.traffic());
        for batch_id in outstanding {
            if !self.backlog.may_lose(batch_id) || self.shared.config.data_dir.is_none() {
                self.ledger.confirm(batch_id, &self.shared);
            }
        }
    }

    fn add_health(&mut self) {
        let now = Moment::now();
        let dropped = self.shared.losses.take();
        let due = now.since(self.last_health) >= HEALTH_EVERY;
        if dropped.is_empty() && !due {
            return;
        }
        self.last_health = now;
        let cpu = cpu_time();
        let health = SdkHealth {
            dropped,
            overhead_us: micros(cpu.saturating_sub(self.reported_cpu)),
            queue_bytes: self.backlog.bytes(),
            upload_bytes: std::mem::take(&mut self.uplink.sent_bytes),
        };
        self.notify(|reporter| reporter.health(&health));
        self.pending.set_health(health);
        self.reported_cpu = cpu;
    }

    fn poll(&mut self) {
        let identity = Identity {
            install_id: self.install_id,
            user_id: self.shared.users.current(),
            network: self.shared.network(),
        };
        let interval = self.shared.settings.load().document.poll_interval_s;
        let config = &self.shared.config;
        if let Some(document) = self.remote.poll(config, &identity, interval) {
            let document = config.remote_document(document);
            // Events collected until now belong to the previous settings.
            self.drain();
            self.seal();
            let most_bytes = document.upload.max_queue_bytes;
            self.backlog.set_most_bytes(most_bytes, &self.shared.losses);
            self.shared
                .set_settings(Settings::new(document, self.session_draw));
        }
    }

    /// Sends what waits. Returns whether nothing is left that could be sent now.
    fn upload(&mut self, urgent: bool) -> bool {
        let interval = self.shared.settings.load().document.upload.interval_s;
        if urgent || !self.uplink.is_waiting() {
            if self.ledger.read(&self.shared) {
                self.recover_traffic();
            }
            self.seal_traffic(Uuid::now_v7());
            self.settle_traffic();
        }
        let begun = Moment::now();
        let ending = self.ending;
        let go_on = || (client::is_on() || ending) && Moment::now().since(begun) < UPLOAD_PIECE;
        let losses = &self.shared.losses;
        let sent = self.uplink.send(&mut self.backlog, losses, urgent, &go_on);
        self.settle_traffic();
        if let Some(etag) = sent.config_etag {
            self.remote.config_announced(&etag);
        }
        self.unread = sent.unread;
        let done = sent.all || sent.waits || sent.unread;
        if done {
            let interval = Duration::from_secs(u64::from(interval.max(1)));
            self.next_upload = Moment::now().after(interval.mul_f64(0.9 + draw() * 0.2));
        }
        done
    }

    /// Deletes everything that was not sent, because consent was withdrawn.
    fn forget(&mut self) {
        if !client::is_on() {
            self.shared.forget_queued();
        }
        if self.pending.len() > 0
            && let Ok(sealed) = self.pending.seal(0)
        {
            sealed.give_up(Reason::Disabled, &self.shared.losses);
        }
        self.pending_since = None;
        self.backlog.clear(&self.shared.losses);
        self.ledger.clear(&self.shared);
        let settings = self.shared.settings.load();
        let refresh_hz = self.shared.config.device.refresh_hz;
        self.shared.meters.clear(&settings.document, refresh_hz);
    }
}

/// Deletes what an earlier process did not send.
pub(crate) fn forget_unsent(folder: &Path) {
    // The files may not exist. A deletion that fails is retried when the user declines again.
    let _queue = std::fs::remove_dir_all(folder.join("queue")).is_err();
    let _traffic = std::fs::remove_file(folder.join("traffic.json")).is_err();
}

fn resource(config: &Config, install_id: Uuid) -> Resource<'static> {
    let text = |text: &String| text.clone().into();
    let device = &config.device;
    Resource {
        app_id: text(&config.app_id),
        app_version: text(&config.app_version),
        build: config.build,
        channel: text(&device.channel),
        os_name: text(&device.os_name),
        os_version: text(&device.os_version),
        device_model: text(&device.model),
        device_manufacturer: text(&device.manufacturer),
        device_class: text(&device.class),
        refresh_hz: device.refresh_hz,
        locale: text(&device.locale),
        install_id,
        user_id: "".into(),
        sdk_name: "unjank".into(),
        sdk_version: env!("CARGO_PKG_VERSION").into(),
    }
}

fn make(folder: &Path) -> bool {
    std::fs::create_dir_all(folder).is_ok()
}

/// Returns the stored install id, or a new one that it stores.
fn install_id(file: Option<PathBuf>) -> Uuid {
    let new = Uuid::new_v4();
    let Some(file) = file else { return new };
    match std::fs::read(&file) {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            if let Ok(known) = text.trim().parse() {
                return known;
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // There is an id, and the next start may be able to read it.
        Err(_) => return new,
    }
    // If the disk does not accept the id, every start is a new install; nothing else can be done here.
    let written = file.with_extension("new");
    let _failed = std::fs::write(&written, new.to_string())
        .and_then(|()| std::fs::rename(&written, &file))
        .is_err();
    new
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the CPU time of this thread; zero where the system does not report it.
#[cfg(unix)]
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(not(unix))]
fn cpu_time() -> Duration {
    Duration::ZERO
}
