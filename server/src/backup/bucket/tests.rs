//! What a backup finds in a bucket before it uploads, and what it leaves there at its end.

use std::pin::pin;

use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use tokio::time::sleep;

use super::*;
use crate::backup::place::Staging;
use crate::backup::upload::Upload;

/// Longer than a backup waits.
const FOR_EVER: Duration = Duration::from_secs(24 * 3_600);

fn bucket(objects: impl ObjectStore) -> BackupBucket {
    BackupBucket {
        objects: Arc::new(objects),
        name: "backups".to_owned(),
        endpoint: Some("https://s3.example.com".to_owned()),
        root: Name::from("shop/one"),
        url: "s3://backups/shop/one".to_owned(),
        unanswered: Arc::default(),
    }
}

async fn put(bucket: &BackupBucket, path: &Path) {
    let name = bucket.object(path).unwrap();
    let content = b"x".to_vec();
    bucket.objects.put(&name, content.into()).await.unwrap();
}

async fn paths(bucket: &BackupBucket) -> Vec<PathBuf> {
    let sizes = bucket.list_all().await.unwrap();
    sizes.into_keys().collect()
}

/// A claim to the prefix, with files.
fn claim(bucket: &BackupBucket) -> Claim {
    Claim {
        files: ["backup.json", "secret"].map(PathBuf::from).to_vec(),
        ..bucket.new_claim()
    }
}

#[tokio::test]
async fn the_end_of_an_upload_keeps_a_complete_set_and_deletes_nothing_without_its_claim() {
    for (has_claim, has_description) in [(true, false), (true, true), (false, false)] {
        let bucket = bucket(InMemory::new());
        let claim = claim(&bucket);
        let (description, notes, secret) = (
            Path::new(DESCRIPTION),
            Path::new("notes"),
            Path::new("secret"),
        );
        for path in [notes, secret] {
            put(&bucket, path).await;
        }
        if has_claim {
            put(&bucket, &claim.path()).await;
        }
        if has_description {
            put(&bucket, description).await;
        }
        let is_complete = bucket.end(&claim).await.unwrap();
        assert_eq!(is_complete, has_description);
        let left = match (has_claim, has_description) {
            (true, true) => vec![description, notes, secret],
            (true, false) => vec![notes],
            (false, _) => vec![notes, secret],
        };
        assert_eq!(paths(&bucket).await, left);
    }
}

#[tokio::test]
async fn what_a_killed_backup_left_in_another_bucket_or_at_another_endpoint_is_not_forgotten() {
    let bucket = bucket(InMemory::new());
    let own = claim(&bucket);
    put(&bucket, &own.path()).await;
    let elsewhere = Claim {
        endpoint: None,
        ..own.clone()
    };
    let other = Claim {
        url: "s3://other/shop/one".to_owned(),
        ..own.clone()
    };
    for claim in [elsewhere, other] {
        assert!(bucket.end_left(&claim).await.is_err(), "{claim:?}");
    }
    assert_eq!(paths(&bucket).await, [own.path()]);
    bucket.end_left(&own).await.unwrap();
    assert!(paths(&bucket).await.is_empty());
}

#[tokio::test]
async fn a_prefix_is_empty_apart_from_the_own_claim() {
    let bucket = bucket(InMemory::new());
    let own = claim(&bucket);
    bucket.check_empty().await.unwrap();
    bucket.claim(&own).await.unwrap();
    bucket.check_claim(&own).await.unwrap();
    let refused = bucket.check_empty().await.unwrap_err().to_string();
    assert!(
        refused.contains("another backup is being uploaded"),
        "{refused}"
    );
    put(&bucket, Path::new("secret")).await;
    let refused = bucket.check_claim(&own).await.unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");
    // Nobody waits until millions of objects are listed.
    for number in 0..LISTED {
        put(&bucket, &Path::new("log").join(number.to_string())).await;
    }
    let refused = bucket.check_empty().await.unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_bucket_that_is_silent_is_named() {
    let silent = ThrottleConfig {
        wait_list_per_call: FOR_EVER,
        ..ThrottleConfig::default()
    };
    let bucket = bucket(ThrottledStore::new(InMemory::new(), silent));
    let begun = tokio::time::Instant::now();
    let error = bucket.check_answers().await.unwrap_err().to_string();
    assert!(error.contains("`backups` does not answer"), "{error}");
    assert!(begun.elapsed() < FOR_EVER);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_bucket_may_store_later_is_not_forgotten() {
    let below = tempfile::tempdir().unwrap();
    let staging = Staging::take(below.path()).unwrap();
    staging.renew().unwrap();
    for (wait_put_per_call, left) in [(FOR_EVER, 1), (Duration::ZERO, 0)] {
        let config = ThrottleConfig {
            wait_put_per_call,
            // The upload ends only because of the interruption.
            wait_list_per_call: FOR_EVER,
            ..ThrottleConfig::default()
        };
        let bucket = bucket(ThrottledStore::new(InMemory::new(), config));
        let upload = Upload {
            bucket: &bucket,
            staging: &staging,
            check_room: &|| Ok(()),
            report: &|_: &str, _: u64, _: u64| {},
        };
        let interrupted = pin!(sleep(Duration::from_secs(60)));
        assert!(upload.run(interrupted).await.is_err());
        let claims = staging.claims().unwrap();
        assert_eq!(claims.len(), left, "{claims:?}");
        claims.iter().for_each(|claim| staging.forget(claim));
    }
}

#[tokio::test(start_paused = true)]
async fn a_prefix_stays_claimed_while_the_bucket_may_store_a_file_of_a_cut_off_upload() {
    let below = tempfile::tempdir().unwrap();
    let staging = Staging::take(below.path()).unwrap();
    staging.renew().unwrap();
    let late = Path::new("secret");
    std::fs::write(staging.set().join(late), "x").unwrap();
    // The claim is stored before the interruption. The file would be stored after the time for cleaning up.
    let config = ThrottleConfig {
        wait_put_per_call: Duration::from_secs(100),
        ..ThrottleConfig::default()
    };
    let bucket = bucket(ThrottledStore::new(InMemory::new(), config));
    let upload = Upload {
        bucket: &bucket,
        staging: &staging,
        check_room: &|| Ok(()),
        report: &|_: &str, _: u64, _: u64| {},
    };
    let interrupted = pin!(sleep(Duration::from_secs(150)));
    assert!(upload.run(interrupted).await.is_err());
    let claims = staging.claims().unwrap();
    assert_eq!(claims.len(), 1, "{claims:?}");
    let own = claims[0].clone();
    assert_eq!(paths(&bucket).await, [own.path()]);
    put(&bucket, late).await;
    put(&bucket, Path::new(DESCRIPTION)).await;
    let refused = bucket.check_empty().await.unwrap_err().to_string();
    assert!(
        refused.contains("another backup is being uploaded"),
        "{refused}"
    );
    // The next command with this staging folder deletes both.
    let next = BackupBucket {
        unanswered: Arc::default(),
        ..bucket.clone()
    };
    let own = Claim {
        files: vec![PathBuf::from(DESCRIPTION), late.to_owned(), "log/1".into()],
        ..own
    };
    next.end_left(&own).await.unwrap();
    assert!(paths(&bucket).await.is_empty());
}
