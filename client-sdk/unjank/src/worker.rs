//! The background thread: takes events from the queue, makes batches, keeps them, sends them, and asks for the configuration.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use unjank_protocol::{Resource, SdkHealth};
use uuid::Uuid;

use crate::backlog::Backlog;
use crate::batch::{Pending, Sealed};
use crate::budget::Budget;
use crate::client::{self, Shared, Wanted, draw};
use crate::clock::Moment;
use crate::config::{Config, Mode};
use crate::event::Event;
use crate::losses::Reason;
use crate::monitor::Monitors;
use crate::remote::{Identity, Remote};
use crate::report::Reporter;
use crate::settings::Settings;
use crate::traffic::{Ledger, is_cellular};
use crate::transport::Transport;
use crate::uplink::Uplink;
use crate::users::Turn;

/// Events wait in memory for so long at most: a process that is killed loses no more.
const SEAL_AFTER: Duration = Duration::from_secs(5);
/// Between looks at the queue.
const TICK: Duration = Duration::from_secs(1);
/// A long backlog is sent in pieces of so long: events come in meanwhile.
const UPLOAD_PIECE: Duration = Duration::from_secs(2);
/// Losses and costs are told at least so often while anything is sent.
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
    /// Whose events are pending.
    turn: Turn,
    /// Since when something is pending.
    pending_since: Option<Moment>,
    next_upload: Moment,
    last_health: Moment,
    told_cpu: Duration,
    /// Something that waits could not be read when it was to be sent.
    unread: bool,
    /// The app ends, and collection was on until then.
    ending: bool,
}

impl Worker {
    /// Opens what is kept on disk: called when collection is switched on for the first time, not before.
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
            told_cpu: cpu_time(),
            unread: false,
            ending: false,
            shared,
        };
        let resource = resource(&worker.shared.config, install_id);
        worker.tell(|reporter| reporter.begin(&resource));
        worker.recover_traffic();
        worker
    }

    /// Rows of traffic that an earlier process took, and that may not have been kept, come again under the same id.
    fn recover_traffic(&mut self) {
        let outstanding = Ledger::outstanding(&self.shared.meters.traffic());
        for batch_id in outstanding {
            self.seal_traffic(batch_id);
        }
        self.settle_traffic();
    }

    /// Works until it is told to stop.
    pub(crate) fn run(mut self) {
        loop {
            let wanted = self.shared.wishes.wait(self.pause());
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

    /// Answers the flushes that were asked for.
    fn flushed(&self, wanted: Wanted) {
        if wanted.flushes > wanted.flushed {
            let unread = self.unread.then_some(wanted.flushes);
            self.shared.wishes.change(|now| {
                now.flushed = wanted.flushes;
                now.unread = unread.unwrap_or(now.unread);
            });
        }
    }

    /// What was lost by sending for the last time is told at the next start, and what is only in memory is sent then.
    fn keep_the_rest(&mut self) {
        if self.may_work() && self.shared.config.data_dir.is_some() {
            self.seal();
            self.backlog.write_again(&self.shared.losses);
        }
    }

    /// Collection is on, or was until the app ended.
    fn may_work(&self) -> bool {
        client::is_on() || self.ending
    }

    /// Until the next thing is due.
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

    /// Answers whether all was done that a flush waits for.
    fn work(&mut self, wanted: Wanted) -> bool {
        let urgent = wanted.stop || wanted.flushes > wanted.flushed;
        self.unread = false;
        if self.shared.wall.has_moved() {
            // What is pending was timed by the clock as it was set.
            self.seal();
            self.shared.wall.follow();
            self.shared.set_scene();
        }
        // What is to be watched is asked before anything is.
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
        // Each request takes its time, and people change their minds.
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
            let mut event = queued.into_event(&self.shared);
            if !self.lets_pass(&mut event) {
                self.shared.losses.add(signal, Reason::Filtered, 1);
                continue;
            }
            self.tell(|reporter| reporter.report(&event));
            self.follow_user(turn);
            self.pending.add(event);
            self.pending_since.get_or_insert(now);
            if self.pending.len() >= most {
                self.seal();
            }
        }
    }

    fn tell(&self, what: impl Fn(&(dyn Reporter + 'static))) {
        for reporter in &self.shared.config.reporters {
            // A reporter that panics is the app's; its events go on.
            let told = catch_unwind(AssertUnwindSafe(|| what(&**reporter)));
            told.unwrap_or_default();
        }
    }

    fn max_batch_events(&self) -> u32 {
        let upload = &self.shared.settings.load().document.upload;
        upload.max_batch_events.clamp(1, 10_000)
    }

    /// An interceptor that panics keeps the event back.
    fn lets_pass(&self, event: &mut Event) -> bool {
        let Some(filter) = &self.shared.config.before_send else {
            return true;
        };
        // What was to be kept back might be in it.
        catch_unwind(AssertUnwindSafe(|| filter(event))).unwrap_or(false)
    }

    /// A batch speaks for one user.
    fn follow_user(&mut self, turn: Turn) {
        // Asked for each event, so nothing is copied while it is the same one.
        if self.turn == turn {
            return;
        }
        self.turn = turn;
        let user_id = self.shared.users.of(turn);
        if self.pending.len() > 0 && user_id != self.pending.user() {
            self.seal();
        }
        self.pending.set_user(&user_id);
    }

    /// Writes down what is pending, with what was lost.
    fn seal(&mut self) {
        // What is not durable now is so with the next batch.
        let _failed = !self.ledger.save(&self.shared);
        self.add_health();
        self.tell(Reporter::flush);
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

    /// Makes a batch of what was counted, if anything was.
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

    /// Rows of traffic whose batch is kept, or is done with, are forgotten. In memory alone it would die with the process: then the
    /// rows are sent again, under the same id.
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
            overhead_us: micros(cpu.saturating_sub(self.told_cpu)),
            queue_bytes: self.backlog.bytes(),
            upload_bytes: std::mem::take(&mut self.uplink.sent_bytes),
        };
        self.tell(|reporter| reporter.health(&health));
        self.pending.set_health(health);
        self.told_cpu = cpu;
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
            // What was collected until now was collected by the settings before.
            self.drain();
            self.seal();
            let most_bytes = document.upload.max_queue_bytes;
            self.backlog.set_most_bytes(most_bytes, &self.shared.losses);
            self.shared
                .set_settings(Settings::new(document, self.session_draw));
        }
    }

    /// Answers whether nothing is left that could be sent now.
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
        let sent = self
            .uplink
            .send(&mut self.backlog, losses, (urgent, &go_on));
        self.settle_traffic();
        if let Some(etag) = sent.config_etag {
            self.remote.told(&etag);
        }
        self.unread = sent.unread;
        let done = sent.all || sent.waits || sent.unread;
        if done {
            let interval = Duration::from_secs(u64::from(interval.max(1)));
            self.next_upload = Moment::now().after(interval.mul_f64(0.9 + draw() * 0.2));
        }
        done
    }

    /// Consent is gone: what was not sent never will be.
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

/// Deletes what an earlier process had not sent.
pub(crate) fn forget_unsent(folder: &Path) {
    // What is not there needs no deleting, and what cannot be deleted is tried again with the next answer.
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

/// The install id of before, or a new one that is kept.
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
        // The id is there, and the next start may read it.
        Err(_) => return new,
    }
    // A disk that does not take it makes every start a new install: nothing else can be done here.
    let written = file.with_extension("new");
    let _failed = std::fs::write(&written, new.to_string())
        .and_then(|()| std::fs::rename(&written, &file))
        .is_err();
    new
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// CPU time of this thread; nothing where the system does not tell.
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
