//! Configurations and rule sets: no save overwrites a revision that it has not seen.

use futures_util::future::join_all;
use unjank_database::{Control, ControlError, Document, DocumentChange, DocumentKind, NewDocument};

use super::place::Place;
use super::{ANN, at, done, on_both_engines, refused, with_project};

on_both_engines![
    one_of_twenty_savers_wins_each_revision,
    revisions_are_kept_and_listed,
    a_configuration_that_is_not_json_is_refused,
];

const KINDS: [(DocumentKind, &str); 2] = [
    (DocumentKind::Configuration, "{\"sampling\": 0.5}"),
    (DocumentKind::RuleSet, "version = 1"),
];

fn edit(project: &str, expected_revision: i64, text: &str) -> NewDocument {
    NewDocument {
        project: project.to_owned(),
        expected_revision,
        text: text.to_owned(),
        note: format!("after {expected_revision}"),
        change: DocumentChange::Saved,
        action: None,
    }
}

async fn one_of_twenty_savers_wins_each_revision(place: Place) {
    with_project(&place.control, "shop").await;
    let handles = [place.control.clone(), place.another().await];
    for (kind, text) in KINDS {
        for revision in 0..3 {
            let savers = (0..20).map(|n| save(&handles[n % 2], kind, edit("shop", revision, text)));
            let (saved, refused): (Vec<_>, Vec<_>) =
                join_all(savers).await.into_iter().partition(Result::is_ok);
            assert_eq!(saved.len(), 1, "{refused:?}");
            assert_eq!(saved[0].as_ref().unwrap().revision, revision + 1);
            let current = revision + 1;
            assert_eq!(refused, vec![Err(ControlError::Conflict { current }); 19]);
        }
    }
    let audited = done(&place.control).await;
    for action in ["configuration.saved", "rule_set.saved"] {
        assert_eq!(audited.iter().filter(|one| *one == action).count(), 3);
    }
}

async fn save(
    control: &Control,
    kind: DocumentKind,
    new: NewDocument,
) -> Result<Document, ControlError> {
    control.save_document(kind, new, &ANN, at(1)).await
}

async fn revisions_are_kept_and_listed(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    for (kind, text) in KINDS {
        let none = control.latest_document(kind, "shop").await;
        assert_eq!(none.unwrap_err(), ControlError::NotFound);
        for revision in 0..4 {
            let new = edit("shop", revision, text);
            control
                .save_document(kind, new, &ANN, at(revision))
                .await
                .unwrap();
        }
        let of_bank = edit("bank", 0, text);
        control
            .save_document(kind, of_bank, &ANN, at(9))
            .await
            .unwrap();
        let latest = control.latest_document(kind, "shop").await.unwrap();
        assert_eq!((latest.revision, latest.text.as_str()), (4, text));
        assert_eq!(
            (latest.note.as_str(), latest.author.as_str()),
            ("after 3", "cli:ann")
        );
        let second = control.document(kind, "shop", 2).await.unwrap();
        assert_eq!((second.revision, second.created_at), (2, at(1)));
        let page = control.documents(kind, "shop", None, 3).await.unwrap();
        let rest = control.documents(kind, "shop", Some(2), 3).await.unwrap();
        let numbers: Vec<_> = page.iter().chain(&rest).map(|one| one.revision).collect();
        assert_eq!(numbers, [4, 3, 2, 1]);
        let all = control.latest_documents(kind).await.unwrap();
        assert_eq!((all.len(), &all[1]), (2, &latest));
        for wrong in [0, 3, 5, -1, i64::MIN] {
            let conflict = control.save_document(kind, edit("shop", wrong, text), &ANN, at(9));
            refused(control, conflict, ControlError::Conflict { current: 4 }).await;
        }
        let nowhere = control.save_document(kind, edit("none", 0, text), &ANN, at(9));
        refused(control, nowhere, ControlError::NotFound).await;
    }
}

async fn a_configuration_that_is_not_json_is_refused(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let refusal = control
        .save_document(
            DocumentKind::Configuration,
            edit("shop", 0, "{\"a\": }"),
            &ANN,
            at(1),
        )
        .await;
    assert!(matches!(refusal, Err(ControlError::Invalid(_))));
}
