//! The runs of an erasure.

use std::collections::BTreeSet;

use unjank_database::{Control, Erasure, ErasureKind, ErasureState};
use uuid::Uuid;

use super::place::Place;
use super::{ANN, at, on_both_engines, with_project};

on_both_engines![an_earlier_run_of_a_pass_saves_nothing];

async fn next(control: &Control) -> Vec<Erasure> {
    let none = BTreeSet::new();
    let pass = control.next_pass(at(3), &none, at(3));
    pass.await.unwrap()
}

fn counted(pass: &mut [Erasure], rows: u64) {
    pass[0].receipt.rows.insert("spans".to_owned(), rows);
}

async fn an_earlier_run_of_a_pass_saves_nothing(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let subject = ("shop", ErasureKind::Install, &*Uuid::new_v4().to_string());
    let erasure = control.request_erasure(subject, &ANN, at(1)).await.unwrap();
    let mut paused = next(control).await;
    counted(&mut paused, 4);
    assert!(control.save_pass(&paused).await.unwrap());

    let mut later = next(control).await;
    assert_eq!(later[0].receipt, paused[0].receipt);
    counted(&mut paused, 5);
    assert!(!control.save_pass(&paused).await.unwrap());
    assert!(!control.finish_pass(&paused, at(4)).await.unwrap());
    let stored = control.erasure("shop", erasure.id).await.unwrap();
    assert_eq!(
        (stored.state, stored.receipt),
        (ErasureState::Running, later[0].receipt.clone())
    );

    counted(&mut later, 8);
    assert!(control.finish_pass(&later, at(5)).await.unwrap());
    assert!(!control.finish_pass(&later, at(6)).await.unwrap());
    let stored = control.erasure("shop", erasure.id).await.unwrap();
    assert_eq!(
        (stored.state, stored.finished_at),
        (ErasureState::Done, Some(at(5)))
    );
    assert_eq!(stored.receipt, later[0].receipt);
    assert!(!control.save_pass(&paused).await.unwrap());
    assert!(next(control).await.is_empty());
}
