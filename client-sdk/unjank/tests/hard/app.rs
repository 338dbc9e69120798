//! The app: this binary, started again to run only [`the_app`], which executes the commands on its standard input.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use unjank::{Config, Event, Mode};

const SERVER: &str = "HARD_APP_SERVER";
const FOLDER: &str = "HARD_APP_FOLDER";
/// Bytes sent by each request of the app.
pub(crate) const BYTES: u64 = 7;
/// The limit for every call of the app, whatever happens. Generous, because machines that run tests are busy.
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(1);
/// How long dropping the guard may wait for a server.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// Not a test of its own: the process that the tests start.
#[test]
#[expect(clippy::exit, reason = "how an app ends without dropping the guard")]
fn the_app() {
    let (Some(server), Some(folder)) = (std::env::var_os(SERVER), std::env::var_os(FOLDER)) else {
        return;
    };
    let config = Config::new(server.into_string().unwrap(), "demo")
        .app("com.example.shop", "4.12.0")
        .mode(Mode::Test)
        .data_dir(folder)
        .queue_events(1 << 14)
        .request_timeout(Duration::from_secs(20))
        .shutdown_timeout(SHUTDOWN_TIMEOUT)
        .start_jitter(Duration::ZERO)
        .first_wait(Duration::from_millis(50))
        .before_send(|event| {
            if let Event::Jank(jank) = event {
                jank.run_log.clear();
            }
            true
        })
        .keep_on_sigterm(true)
        .report_panics(true);
    let guard = unjank::init(config);
    assert_eq!(guard.problem(), None);
    say("\nready");
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words[place].parse::<i64>().unwrap();
        let mut calls = Calls::default();
        match words[0] {
            "spans" => calls.spans(number(1)..number(1) + number(2), number(3)),
            "metrics" => (0..number(1)).for_each(|_| calls.time(|| unjank::metric("m", 1.0))),
            "traffic" => (0..number(1)).for_each(|_| calls.traffic()),
            "user" => calls.time(|| unjank::set_user(Some(words[1]))),
            "clock" => unjank::testing::move_wall_clock(number(1)),
            // A span that is open while the clock moves.
            "span_over" => {
                let mut span = unjank::span("over");
                span.attribute("number", number(1));
                std::thread::sleep(Duration::from_millis(50));
                unjank::testing::move_wall_clock(number(2));
                std::thread::sleep(Duration::from_millis(50));
            }
            "flush" => flush(),
            "keep" => assert!(unjank::keep(Duration::from_secs(30)), "nothing was kept"),
            "hang" => hang(Duration::from_millis(number(1).unsigned_abs())),
            "exit" => {
                calls.spans(number(1)..number(1) + number(2), 0);
                std::process::exit(0);
            }
            "withdraw" => {
                unjank::set_enabled(false);
                std::process::exit(0);
            }
            "abort" => aborts(),
            #[cfg(target_os = "linux")]
            "stop" => stops(),
            #[cfg(target_os = "linux")]
            "stop_between" => stops_between_frames(words[1] == "background"),
            "storm" => storm(number(1)),
            _ => break,
        }
        say(&format!("done {}", calls.longest.as_micros()));
    }
    drop(guard);
    say("ended");
}

/// The server may not take everything, but the call ends in time.
fn flush() {
    let begun = Instant::now();
    let _sent = unjank::flush(Duration::from_secs(30));
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "the flush did not finish"
    );
}

/// Blocks the main loop.
#[inline(never)]
fn hang(lasts: Duration) {
    let main_loop = unjank::MainLoop::of_this_thread();
    // The watchdog starts.
    std::thread::sleep(Duration::from_millis(200));
    unjank::breadcrumb("secret");
    main_loop.begin();
    say("hangs");
    std::thread::sleep(lasts);
    main_loop.end();
}

/// Stops the process while it handles a message, draws a frame, starts and loads a page.
#[cfg(target_os = "linux")]
fn stops() {
    let main_loop = unjank::MainLoop::of_this_thread();
    // The watchdog starts.
    std::thread::sleep(Duration::from_millis(700));
    let start = unjank::app_start(unjank::AppStartKind::Cold);
    let page = unjank::page_load("Cart", unjank::LaunchKind::Cold);
    main_loop.begin();
    unjank::frame_tick(Instant::now());
    std::thread::sleep(Duration::from_millis(15));
    let last = Instant::now();
    unjank::frame_tick(last);
    unjank::input("pay", last);
    stops_here();
    main_loop.end();
    unjank::frame_tick(Instant::now());
    unjank::pause_ticks();
    unjank::frame(last, Instant::now());
    start.finish();
    page.final_draw();
}

/// Stops the process while it handles no message and draws no frame.
#[cfg(target_os = "linux")]
fn stops_between_frames(in_background: bool) {
    let main_loop = unjank::MainLoop::of_this_thread();
    // The watchdog starts.
    std::thread::sleep(Duration::from_millis(700));
    for _ in 0..3 {
        main_loop.begin();
        unjank::frame_tick(Instant::now());
        main_loop.end();
        std::thread::sleep(Duration::from_millis(15));
    }
    unjank::set_foreground(!in_background);
    stops_here();
    unjank::set_foreground(true);
    main_loop.begin();
    unjank::frame_tick(Instant::now());
    main_loop.end();
    unjank::pause_ticks();
}

/// Stops the process until another one lets it go on.
#[cfg(target_os = "linux")]
fn stops_here() {
    let before = Instant::now();
    say("stops");
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::STOP).unwrap();
    // Another thread may receive the signal, a moment later.
    while before.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the process by a panic that cannot unwind.
extern "C" fn aborts() {
    unjank::span("last").end();
    panic!("the last words");
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
}

/// Calls of the app, with the duration of the longest.
#[derive(Default)]
struct Calls {
    longest: Duration,
    noise: u64,
}

impl Calls {
    fn time(&mut self, call: impl FnOnce()) {
        let begun = Instant::now();
        call();
        self.longest = self.longest.max(begun.elapsed());
    }

    fn spans(&mut self, numbers: std::ops::Range<i64>, noise: i64) {
        for number in numbers {
            // Prepared outside the timing, because it is not a call of the SDK.
            let texts: Vec<String> = (0..noise).map(|_| self.text()).collect();
            self.time(|| work(number, texts));
        }
    }

    /// Returns a kibibyte that does not compress well.
    fn text(&mut self) -> String {
        const LETTERS: &[u8; 64] =
            b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
        let mut text = String::with_capacity(1_024);
        while text.len() < 1_000 {
            self.noise = next(self.noise);
            let mut bits = self.noise;
            for _ in 0..8 {
                text.push(char::from(LETTERS[usize::try_from(bits % 64).unwrap()]));
                bits >>= 6;
            }
        }
        text
    }

    fn traffic(&mut self) {
        self.time(|| {
            unjank::traffic(unjank::Transferred {
                host: "api.example.com",
                tx_bytes: BYTES,
                answered: true,
                ..unjank::Transferred::default()
            });
        });
    }
}

fn work(number: i64, texts: Vec<String>) {
    let mut span = unjank::span("work");
    span.attribute("number", number);
    for (place, text) in texts.into_iter().enumerate() {
        span.attribute(format!("noise{place}"), text);
    }
}

/// The output of splitmix64 for a state.
pub(crate) fn next(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Works until it is killed. Prints what it is about to record, and then what is on disk or with the server.
fn storm(first: i64) {
    let mut calls = Calls::default();
    for round in 0.. {
        let begin = first + round * 20;
        say(&format!("makes {} {}", begin + 20, (round + 1) * 5));
        calls.spans(begin..begin + 20, 0);
        (0..5).for_each(|_| calls.traffic());
        assert!(calls.longest < LONGEST_CALL, "{:?}", calls.longest);
        std::thread::sleep(Duration::from_millis(1));
        if round % 23 != 22 {
            continue;
        }
        let _sent = unjank::flush(Duration::from_secs(5));
        if unjank::keep(Duration::from_secs(5)) {
            say(&format!("keeps {} {}", begin + 20, (round + 1) * 5));
        }
    }
}

/// A running app.
pub(crate) struct App {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What an app that was killed in a storm had printed: upper bounds of the numbers, and requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    pub(crate) first: u64,
    pub(crate) made: u64,
    pub(crate) made_requests: u64,
    pub(crate) kept: u64,
    pub(crate) kept_requests: u64,
}

impl App {
    pub(crate) fn start(server: &str, folder: &Path) -> Self {
        Self::start_by(
            Command::new(std::env::current_exe().unwrap()),
            server,
            folder,
        )
    }

    /// `program` runs this binary with the arguments it is given.
    pub(crate) fn start_by(mut program: Command, server: &str, folder: &Path) -> Self {
        let mut child = program
            .args(["app::the_app", "--exact", "--nocapture"])
            .env(SERVER, server)
            .env(FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut app = Self {
            child,
            input,
            lines,
        };
        app.wait_for_line("ready");
        app
    }

    fn wait_for_line(&mut self, begin: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let found = lines.find(|line| line.starts_with(begin));
        found.expect("the app ended")
    }

    fn write(&mut self, order: &str) {
        writeln!(self.input, "{order}").unwrap();
    }

    /// Sends a command and waits until it is done. Checks that no call took long.
    pub(crate) fn does(&mut self, order: &str) {
        let longest = self.completes(order);
        assert!(longest < LONGEST_CALL, "{order}: a call took {longest:?}");
    }

    /// Sends a command and waits until it is done. Returns how long its longest call took.
    pub(crate) fn completes(&mut self, order: &str) -> Duration {
        self.write(order);
        let done = self.wait_for_line("done ");
        let micros = done.strip_prefix("done ").unwrap().parse().unwrap();
        Duration::from_micros(micros)
    }

    pub(crate) fn storms(&mut self, first: u64) {
        self.write(&format!("storm {first}"));
    }

    /// Sends a command and waits until the app prints this.
    pub(crate) fn begins(&mut self, order: &str, printed: &str) {
        self.write(order);
        self.wait_for_line(printed);
    }

    /// Sends a command during which the app ends. Returns whether it ended well.
    pub(crate) fn ends_in(mut self, order: &str) -> bool {
        self.write(order);
        self.child.wait().unwrap().success()
    }

    #[cfg(unix)]
    pub(crate) fn terminate(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(15), "the app should end by the signal");
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn wait_until_stopped(&self) {
        let status = format!("/proc/{}/stat", self.child.id());
        let is_stopped = || std::fs::read_to_string(&status).unwrap().contains(") T ");
        while !is_stopped() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Lets a stopped app go on, and waits until its command is done.
    #[cfg(target_os = "linux")]
    pub(crate) fn resume(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
        self.wait_for_line("done ");
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn ends(mut self) {
        self.write("end");
        self.wait_for_line("ended");
        assert!(self.child.wait().unwrap().success());
    }

    /// Kills the app. Returns what it printed in a storm that began with this number.
    pub(crate) fn killed(mut self, first: u64) -> Life {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let mut life = Life {
            first,
            made: first,
            kept: first,
            ..Life::default()
        };
        // Lines still in the pipe when it died count as well.
        for line in self.lines.by_ref().map_while(Result::ok) {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |place: usize| words[place].parse::<u64>().unwrap();
            match words[0] {
                "makes" => (life.made, life.made_requests) = (number(1), number(2)),
                "keeps" => (life.kept, life.kept_requests) = (number(1), number(2)),
                _ => {}
            }
        }
        life
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // The app has ended, or the test failed.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
