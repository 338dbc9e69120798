//! A model of the SDK's delivery. Devices keep a batch until it is acknowledged, and split it after a 413.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::join;
use tokio::time::sleep;
use uuid::Uuid;

use super::batch::{Batch, Event};
use super::rows::MICROS_A_DAY;
use super::store::EVENTS;
use super::world::{Answer, World};

/// Creates and delivers `batches` batches, with pauses of up to `longest` milliseconds. A load balancer picks the server of each attempt.
pub(super) async fn run(servers: Vec<Arc<World>>, batches: u64, longest: u64) {
    let world = &servers[0];
    let mut queue = VecDeque::new();
    for _ in 0..batches {
        queue.push_back(batch(world));
        sleep(world.chance.millis(0, longest)).await;
        if world.chance.happens(700) {
            deliver(&servers, &mut queue).await;
        }
    }
    deliver(&servers, &mut queue).await;
}

/// Sends a batch to a server. If there are two, some batches arrive at both.
async fn send(servers: &[Arc<World>], batch: &Batch) -> Answer {
    let [one, other] = servers else {
        return servers[0].send(batch).await;
    };
    match one.chance.below(5) {
        0 | 1 => one.send(batch).await,
        2 | 3 => other.send(batch).await,
        _ => match join!(one.send(batch), other.send(batch)) {
            (Answer::Acknowledged, _) => Answer::Acknowledged,
            (_, answer) => answer,
        },
    }
}

fn batch(world: &World) -> Batch {
    let chance = &world.chance;
    let events = 1 + chance.below(6);
    let event = |_| {
        // Most events are recent, some are from other weeks and months.
        let days = chance.pick(&[0, 0, 0, 1, 6, 9, 30]);
        let event = Event {
            id: chance.number() | 1,
            table: EVENTS[chance.below(EVENTS.len() as u64) as usize],
            at: world.now() - days * MICROS_A_DAY,
        };
        world.truth().events.insert(event.id, event.table);
        event
    };
    Batch {
        id: Uuid::from_u64_pair(chance.number(), chance.number()),
        project: chance.pick(&["shop", "bank"]),
        split_from: Vec::new(),
        events: (0..events).map(event).collect(),
    }
}

/// Delivers all queued batches, oldest first, and retries until each is acknowledged.
async fn deliver(servers: &[Arc<World>], queue: &mut VecDeque<Batch>) {
    let world = &servers[0];
    while let Some(batch) = queue.front() {
        match send(servers, batch).await {
            Answer::Acknowledged => {
                queue.pop_front();
            }
            Answer::TooLarge => {
                if let Some([first, second]) = batch.halves() {
                    queue.pop_front();
                    queue.push_front(second);
                    queue.push_front(first);
                } else {
                    sleep(world.chance.millis(100, 2_000)).await;
                }
            }
            // Whether the app restarts or waits, it sends the same batch again.
            Answer::TryAgain | Answer::Nothing => sleep(world.chance.millis(10, 2_000)).await,
        }
        if world.chance.happens(30) {
            // The app restarts and does something else first.
            sleep(world.chance.millis(1_000, 5_000)).await;
        }
    }
}
