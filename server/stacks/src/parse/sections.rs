//! Texts with more than one stack: several threads, and chains of exceptions.

use std::sync::LazyLock;

use regex::Regex;
use unjank_protocol::Frame;

use super::native::{rust, rust_source};

/// The prefix of a logcat line, in its two common formats.
static LOGCAT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +\d+ +\d+ [A-Z] [^:]*: ?|[A-Z]/[^:(]*\( *\d+\): ?)",
    )
    .expect("the tests compile every pattern of this file")
});

/// The stacks of a text, one section per thread.
#[derive(Default)]
pub(super) struct Sections<'t> {
    done: Vec<Section<'t>>,
    current: Section<'t>,
}

/// The traces of one thread.
#[derive(Default)]
struct Section<'t> {
    is_main: bool,
    /// The exception, followed by its chain of causes.
    traces: Vec<Trace<'t>>,
    /// The indentation of the `Suppressed:` trace that is being skipped.
    suppressed: Option<usize>,
    /// Whether the last frame is of a Rust backtrace, whose source follows on the next line.
    wants_source: bool,
}

#[derive(Default)]
struct Trace<'t> {
    frames: Vec<Frame<'t>>,
    /// The number of omitted outer frames, which the trace shares with the enclosing one.
    more: usize,
}

impl<'t> Sections<'t> {
    pub(super) fn take(&mut self, line: &'t str) {
        let line = LOGCAT
            .find(line)
            .and_then(|prefix| line.get(prefix.end()..))
            .unwrap_or(line);
        let text = line.trim();
        if text.is_empty() {
            if self.current.has_frames() {
                self.next(false);
            }
        } else if let Some(is_main) = thread_header(text) {
            self.next(is_main);
        } else {
            self.current
                .take(line.len() - line.trim_start().len(), text);
        }
    }

    /// Returns the stack of the main thread, or else the first stack.
    pub(super) fn main_stack(mut self) -> Option<Vec<Frame<'t>>> {
        self.next(false);
        let stacks: Vec<Section<'t>> = self.done.into_iter().filter(Section::has_frames).collect();
        let main = stacks
            .iter()
            .position(|section| section.is_main)
            .unwrap_or_default();
        stacks.into_iter().nth(main).map(Section::root_cause)
    }

    fn next(&mut self, is_main: bool) {
        let next = Section {
            is_main,
            ..Section::default()
        };
        self.done.push(std::mem::replace(&mut self.current, next));
    }
}

impl<'t> Section<'t> {
    fn take(&mut self, indent: usize, text: &'t str) {
        if self
            .suppressed
            .is_some_and(|from| indent < from || (from == 0 && text.starts_with("Caused by: ")))
        {
            self.suppressed = None;
        }
        if self.suppressed.is_some() {
            return;
        }
        if text.starts_with("Suppressed: ") {
            self.suppressed = Some(indent);
        } else if text.starts_with("Caused by: ") {
            self.traces.push(Trace::default());
        } else if let Some(more) = text
            .strip_prefix("... ")
            .and_then(|rest| rest.strip_suffix(" more"))
        {
            self.trace().more = more.parse().unwrap_or_default();
        } else {
            self.frame(text);
        }
    }

    fn frame(&mut self, text: &'t str) {
        if self.wants_source
            && let Some((file, line)) = rust_source(text)
        {
            if let Some(last) = self.trace().frames.last_mut() {
                (last.file, last.line) = (file.into(), line);
            }
            self.wants_source = false;
            return;
        }
        // Dumps of Android's runtime label native frames.
        let text = text.strip_prefix("native: ").unwrap_or(text);
        if let Some(frame) = super::frame(text) {
            self.wants_source = rust(text).is_some();
            self.trace().frames.push(frame);
        }
    }

    fn trace(&mut self) -> &mut Trace<'t> {
        if self.traces.is_empty() {
            self.traces.push(Trace::default());
        }
        let last = self.traces.len() - 1;
        &mut self.traces[last]
    }

    fn has_frames(&self) -> bool {
        self.traces.iter().any(|trace| !trace.frames.is_empty())
    }

    /// Returns the innermost of a chain of exceptions, including the frames it shares with the enclosing ones.
    fn root_cause(self) -> Vec<Frame<'t>> {
        let mut whole: Vec<Frame<'t>> = Vec::new();
        for trace in self
            .traces
            .into_iter()
            .filter(|trace| !trace.frames.is_empty())
        {
            let shared = whole.len().saturating_sub(trace.more);
            let outer = whole.split_off(shared);
            whole = trace.frames;
            whole.extend(outer);
        }
        whole
    }
}

/// Returns `None` if a line does not start a thread, otherwise whether it starts the main one.
fn thread_header(text: &str) -> Option<bool> {
    // jstack and Android's runtime: "main" prio=5 tid=1 Native
    if let Some((name, rest)) = text.strip_prefix('"').and_then(|text| text.split_once('"')) {
        return rest.starts_with(' ').then_some(name == "main");
    }
    // Tombstones: pid: 812, tid: 812, name: main  >>> com.example <<<
    if let Some(rest) = text.strip_prefix("pid: ") {
        let (pid, rest) = rest.split_once(", tid: ")?;
        let (tid, _) = rest.split_once(',')?;
        return Some(pid == tid);
    }
    // lldb: * thread #1, queue = 'com.apple.main-thread'
    if let Some(rest) = text
        .strip_prefix("* ")
        .unwrap_or(text)
        .strip_prefix("thread #")
    {
        return Some(rest == "1" || rest.starts_with("1,") || rest.starts_with("1:"));
    }
    // Rust: thread 'main' panicked at src/main.rs:3:5
    if let Some(rest) = text.strip_prefix("thread '") {
        return rest
            .contains("' panicked at")
            .then(|| rest.starts_with("main'"));
    }
    // Crash reports count threads from 0, gdb from 1: Thread 0 Crashed:   Thread 1 (Thread 0x7f… (LWP 812)):
    let rest = text.strip_prefix("Thread ")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = rest.split_at_checked(digits)?;
    let of_gdb = rest.starts_with(" (");
    let of_apple =
        rest.starts_with(':') || rest.starts_with(" Crashed") || rest.starts_with(" name:");
    (digits > 0 && (of_gdb || of_apple)).then_some(number == if of_gdb { "1" } else { "0" })
}

#[cfg(test)]
mod tests {
    use super::super::parse_text;

    fn functions(text: &str) -> Vec<String> {
        parse_text(text)
            .unwrap()
            .iter()
            .map(|frame| frame.function.to_string())
            .collect()
    }

    #[test]
    fn the_root_cause_includes_the_frames_it_shares() {
        let text = "java.lang.RuntimeException: cannot pay\n\
            \tat com.example.Cart.pay(Cart.kt:42)\n\
            \tat com.example.Main.run(Main.kt:7)\n\
            \tSuppressed: java.io.IOException: closing\n\
            \t\tat com.example.File.close(File.kt:1)\n\
            \tCaused by: java.io.IOException: disk\n\
            \t\tat com.example.Disk.write(Disk.kt:1)\n\
            Caused by: java.lang.IllegalStateException: no money\n\
            \tat com.example.Purse.open(Purse.kt:9)\n\
            \tat com.example.Cart.pay(Cart.kt:41)\n\
            \t... 1 more\n";
        assert_eq!(functions(text), ["open", "pay", "run"]);
    }

    #[test]
    fn the_main_thread_is_chosen_among_several() {
        let android = "\"Signal Catcher\" daemon prio=10 tid=6\n  at com.example.Signal.wait(Signal.kt:1)\n\n\
            \"main\" prio=5 tid=1 Blocked\n  | group=\"main\" sCount=1\n  native: #00 pc 0004f9a8  /system/lib64/libc.so (syscall+28)\n\
            \x20 at com.example.Cart.pay(Cart.kt:42)\n  - waiting to lock <0x0b> held by thread 12\n  at com.example.Main.run(Main.kt:7)\n\n\
            \"Thread-2\" prio=5 tid=12\n  at com.example.Other.run(Other.kt:1)\n";
        assert_eq!(functions(android), ["syscall", "pay", "run"]);
        let apple = "Thread 4 Crashed:\n0   Shop  0x01 worker + 1\n\nThread 0 name:  Dispatch queue: com.apple.main-thread\nThread 0:\n\
            0   Shop  0x01 pay + 1\n1   Shop  0x02 main + 1\n";
        assert_eq!(functions(apple), ["pay", "main"]);
        let tombstone = "pid: 812, tid: 812, name: main  >>> com.example <<<\n\nbacktrace:\n  #00 pc 0001 libc.so (read+8)\n\
            --- --- ---\npid: 812, tid: 815, name: worker  >>> com.example <<<\n  #00 pc 0001 libc.so (write+8)\n";
        assert_eq!(functions(tombstone), ["read"]);
    }

    #[test]
    fn source_lines_of_a_rust_backtrace_belong_to_the_frame_above() {
        let text = "thread 'main' panicked at src/main.rs:3:5:\nstack backtrace:\n   0: shop::cart::pay\n             at ./src/cart.rs:42:7\n   1: shop::main\n";
        let frames = parse_text(text).unwrap();
        assert_eq!(
            (frames[0].file.as_str(), frames[0].line),
            ("./src/cart.rs", 42)
        );
        assert_eq!(frames.len(), 2);
    }

    #[test]
    fn logcat_prefixes_are_removed() {
        let text = "03-23 14:49:54.483  1234  1250 E AndroidRuntime: \tat com.example.Cart.pay(Cart.kt:42)\n\
            E/AndroidRuntime( 1234): \tat com.example.Main.run(Main.kt:7)\n";
        assert_eq!(functions(text), ["pay", "run"]);
    }

    #[test]
    fn text_without_frames_is_rejected_with_its_first_line() {
        let error = parse_text("\nhello\nthere\n").unwrap_err();
        assert_eq!((error.lines, error.first.as_deref()), (3, Some("hello")));
        assert!(error.to_string().contains("\"hello\"") && error.to_string().contains("Dart"));
        assert_eq!(parse_text("").unwrap_err().first, None);
    }
}
