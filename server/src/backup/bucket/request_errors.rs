//! What the failures of requests to a bucket mean, and what to do.

use object_store::Error;

use super::BackupBucket;

impl BackupBucket {
    /// Says why a request failed, and what to do.
    pub(super) fn why(&self, error: Error) -> anyhow::Error {
        let missing = is_missing_bucket(&error);
        let error = anyhow::Error::from(error);
        let text = format!("{error:#}");
        let is_denied = ["status code: 401", "status code: 403"];
        let bucket = &self.name;
        let what = if missing {
            format!("there is no bucket `{bucket}`: check its name, AWS_ENDPOINT and AWS_REGION")
        } else if is_denied.iter().any(|status| text.contains(status)) {
            format!(
                "the bucket `{bucket}` rejects the credentials: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of the key"
            )
        } else if text.contains("169.254.") {
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_owned()
        } else if text.contains("timed out") {
            format!(
                "the bucket `{bucket}` does not answer in time: check the network and AWS_ENDPOINT. If the network is slow, raise AWS_TIMEOUT, such as AWS_TIMEOUT='30 minutes'"
            )
        } else if text.contains("HTTP error") {
            format!(
                "the bucket `{bucket}` does not answer: check the network and AWS_ENDPOINT, and AWS_ALLOW_HTTP if the endpoint has no TLS"
            )
        } else {
            format!(
                "the bucket `{bucket}` cannot be used: repeat the command later, or see the log of the bucket's service"
            )
        };
        anyhow::anyhow!("{what} ({})", error.root_cause())
    }
}

fn is_missing_bucket(error: &Error) -> bool {
    error.to_string().contains("NoSuchBucket")
}
