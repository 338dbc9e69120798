//! Opens a bucket of S3 by its URL and by the variables of the environment. What is kept in a bucket, and under which names, belongs in the
//! modules that use it.

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore, RetryConfig};

#[derive(Debug, thiserror::Error)]
pub(crate) enum BucketError {
    #[error("must be like s3://bucket/prefix: {0}")]
    Url(String),
    #[error(transparent)]
    Settings(#[from] object_store::Error),
}

/// A folder of a bucket.
pub(crate) struct Bucket {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) name: String,
    /// The service that has the bucket. `None`: Amazon's.
    pub(crate) endpoint: Option<String>,
    /// The start of the names of all objects.
    pub(crate) root: Path,
}

/// Opens a bucket, such as `s3://symbols/unjank`. `options` are named like the variables of the environment: `AWS_ACCESS_KEY_ID`, …
/// `answer_within` is the maximum time of one request, such as `60 seconds`, unless `AWS_TIMEOUT` names another.
pub(crate) fn open(
    url: &str,
    options: &[(String, String)],
    retry: RetryConfig,
    answer_within: &str,
) -> Result<Bucket, BucketError> {
    let parsed = reqwest::Url::parse(url).map_err(|error| BucketError::Url(error.to_string()))?;
    let name = parsed.host_str().filter(|_| parsed.scheme() == "s3");
    let name = name.ok_or_else(|| BucketError::Url(format!("`{url}` names no bucket")))?;
    let root = Path::from_url_path(parsed.path());
    let root = root.map_err(|error| BucketError::Url(error.to_string()))?;
    let timeout = Key::Client(ClientConfigKey::Timeout);
    let mut builder = AmazonS3Builder::new().with_config(timeout, answer_within);
    for (name, value) in options {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder.with_bucket_name(name).with_retry(retry);
    let endpoints = [Key::S3Endpoint, Key::Endpoint];
    let endpoint = endpoints
        .iter()
        .find_map(|key| builder.get_config_value(key));
    Ok(Bucket {
        objects: Arc::new(builder.build()?),
        name: name.to_owned(),
        endpoint,
        root,
    })
}
