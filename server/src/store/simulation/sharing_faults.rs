//! The faults of servers that share a control database.

use std::sync::Arc;

use super::drain;
use super::fault_kinds::{Fault, end_later};
use super::world::World;

/// How long a server is paused or cut off, in milliseconds: less than the age at which claims are too old, a little more, and more than two minutes.
const AWAY: [u64; 4] = [2_000, 50_000, 110_000, 250_000];

/// Applies a fault of servers that share a control database.
pub(super) fn strike(world: &Arc<World>, fault: Fault) {
    match fault {
        Fault::Paused => {
            world.host.pause();
            end_later(world, &AWAY, |world| world.host.resume());
        }
        Fault::ControlAway => {
            world.host.cut_off_control(true);
            end_later(world, &AWAY, |world| world.host.cut_off_control(false));
        }
        Fault::StoreAway => {
            world.host.cut_off_store(true);
            end_later(world, &AWAY, |world| world.host.cut_off_store(false));
        }
        Fault::ControlFails => {
            let failing = world.chance.pick(&[20, 100, 400]);
            fail_control(world, failing);
            end_later(world, &AWAY, |world| fail_control(world, 0));
        }
        Fault::LateInserts => {
            world.store.be_late(true);
            end_later(world, &AWAY, |world| world.store.be_late(false));
        }
        Fault::CutOff => drain::cut_off(world),
        _ => {}
    }
}

fn fail_control(world: &World, per_mille: u64) {
    if let Some(control) = &world.control {
        control.fail(per_mille);
    }
}

pub(super) fn heal(world: &World) {
    world.host.resume();
    world.host.cut_off_control(false);
    world.host.cut_off_store(false);
    world.store.be_late(false);
    fail_control(world, 0);
}
