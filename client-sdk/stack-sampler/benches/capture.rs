//! The cost of a capture to the watching thread, and how long it interrupts the watched thread.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark fails without a stack, and prints its results"
)]

use std::hint::black_box;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use unjank_stack_sampler::{Sampler, Stack};

const LOOKS: usize = 2_000;

#[inline(never)]
fn recurse(depth: usize, end: &Receiver<()>) -> usize {
    // Half a KiB per frame, which is a lot.
    let local = black_box([depth; 64]);
    if depth == 0 {
        // Runs, so that captures need the signal.
        while !matches!(end.try_recv(), Err(TryRecvError::Disconnected)) {
            std::hint::spin_loop();
        }
        return depth;
    }
    recurse(depth - 1, end) + black_box(local)[7]
}

fn percentile(mut times: Vec<Duration>, percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

fn print_times(name: &str, stacks: &[Stack]) {
    let frames = stacks[0].frames.len();
    let bytes = stacks[0].copied_bytes;
    let suspended: Vec<_> = stacks.iter().map(|stack| stack.suspended).collect();
    let unwound: Vec<_> = stacks.iter().map(|stack| stack.unwound_in).collect();
    let reached: Vec<_> = stacks.iter().map(|stack| stack.reached_after).collect();
    println!(
        "{name}: {frames} frames in {bytes} bytes; suspended {:?} (median) {:?} (99 %) {:?} (max); \
         reached after {:?} (median) {:?} (99 %); unwound and named in {:?} (median) {:?} (99 %)",
        percentile(suspended.clone(), 50),
        percentile(suspended.clone(), 99),
        percentile(suspended, 100),
        percentile(reached.clone(), 50),
        percentile(reached, 99),
        percentile(unwound.clone(), 50),
        percentile(unwound, 99),
    );
}

fn capturing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("capture");
    for recursions in [5, 50, 500] {
        let (keep, end) = sync_channel::<()>(0);
        let (give, take) = sync_channel(1);
        let watched = thread::spawn(move || {
            give.send(Sampler::for_this_thread().unwrap()).unwrap();
            recurse(recursions, &end)
        });
        let sampler = take.recv().unwrap();
        thread::sleep(Duration::from_millis(20));
        let first = sampler.capture(1000).unwrap();
        let name = format!("{} frames", first.frames.len());
        println!(
            "{name}: first capture unwound and named in {:?}",
            first.unwound_in
        );
        let stacks: Vec<_> = (0..LOOKS).map(|_| sampler.capture(1000).unwrap()).collect();
        print_times(&name, &stacks);
        // The difference between the two is unwinding and symbolization.
        group.bench_function(format!("{name}, only the first"), |bencher| {
            bencher.iter(|| sampler.capture(1).unwrap());
        });
        group.bench_function(name, |bencher| {
            bencher.iter(|| sampler.capture(1000).unwrap());
        });
        drop(keep);
        watched.join().unwrap();
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(3)).warm_up_time(Duration::from_secs(1));
    targets = capturing
}
criterion_main!(benches);
