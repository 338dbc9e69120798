//! Worlds with two servers, which share ClickHouse, the control database and their devices. `unjank log drain` drains copies of their logs.

use std::time::Duration;

use tokio::join;
use tokio::time::{Instant, sleep, timeout_at};

use super::control::Control;
use super::fault_kinds::Fault;
use super::faults::{Pace, run_with_faults};
use super::world::World;
use super::{Outcome, device, some_of, verdict};

/// How long faults strike, in seconds. Most periods exceed the two minutes after which a server counts as gone.
const TIMES: [u64; 4] = [60, 200, 200, 400];
/// After the last fault, everything must be stored within this simulated time.
const REST: Duration = Duration::from_secs(1_800);
/// How far the clock of the second server is ahead, in microseconds. The times of this simulation are whole milliseconds, so the servers never
/// receive two batches at the same time.
const AHEAD: i64 = 3_000_017;

pub(super) async fn live(room: &World, faults: &[Fault]) -> Outcome {
    let faults = without_known_limits(some_of(faults, room));
    let control = Control::new();
    let servers = [("the first server", 0), ("the second server", AHEAD)]
        .map(|(name, ahead)| room.beside(name, Some(control.clone()), ahead));
    let chance = &room.chance;
    let devices: Vec<_> = (0..1 + chance.below(3))
        .map(|_| {
            let batches = 5 + chance.below(20);
            let longest = chance.pick(&[4_000, 20_000, 40_000]);
            tokio::spawn(device::run(servers.to_vec(), batches, longest))
        })
        .collect();
    let pace = Pace {
        seconds: chance.pick(&TIMES),
        longest: 20_000,
    };
    let [one, other] = &servers;
    let (first, second) = join!(
        run_with_faults(one, &faults, pace),
        run_with_faults(other, &faults, pace)
    );
    let deadline = Instant::now() + REST;
    let mut wrong = Vec::new();
    for device in devices {
        if !matches!(timeout_at(deadline, device).await, Ok(Ok(()))) {
            wrong.push("a device still waits for an answer".to_owned());
        }
    }
    let drains = servers
        .each_ref()
        .map(|server| std::mem::take(&mut *server.drains()));
    for drain in drains.into_iter().flatten() {
        if !matches!(timeout_at(deadline, drain).await, Ok(Ok(()))) {
            wrong.push("a drain does not end".to_owned());
        }
    }
    for log in [&first.log, &second.log] {
        while log.pending_records() > 0 && Instant::now() < deadline {
            sleep(Duration::from_secs(1)).await;
        }
    }
    // Longer than any attempt takes, so nothing is in flight and every fold is rolled up.
    sleep(Duration::from_secs(300)).await;
    wrong.extend(verdict::judge(room, &[&first, &second]));
    one.stop(first).await;
    other.stop(second).await;
    Outcome::of(room, wrong)
}

/// Leaves out what docs/decisions/0002-exactly-once.md lists as a known limit: a server that takes more than two minutes for a range, while a copy
/// of its log is drained.
fn without_known_limits(mut faults: Vec<Fault>) -> Vec<Fault> {
    if faults.contains(&Fault::Drained) || faults.contains(&Fault::CutOff) {
        faults.retain(|fault| !matches!(fault, Fault::Paused | Fault::StoreSlow));
    }
    faults
}
