//! Turns the file that `ReportFile` wrote into a trace for ui.perfetto.dev:
//! `cargo run -p unjank --example report_to_trace -- run.jsonl trace.json`

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "it is a command")]
fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(report), Some(trace), None) = (words.next(), words.next(), words.next()) else {
        eprintln!("give the report and the trace to write");
        return ExitCode::FAILURE;
    };
    match unjank::export::report_to_chrome_trace(report, trace) {
        Ok(unreadable) => {
            eprintln!("{unreadable} lines could not be read");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
