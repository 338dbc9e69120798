//! The buckets of distributions, of values above, at and below zero.
//!
//! A value v > 0 is in bucket b with v in (1.02^(b-1), 1.02^b]. [`ZERO`] has zero and everything nearer to zero than 1.02^[`ZERO`].
//! A value below zero is in the mirrored bucket, -4001 - b. Thus the order of buckets is the order of values, which sums of maps keep.
//! Roll-ups of servers before these buckets have values below zero in [`ZERO`].

/// 1.02^-2000 is 6·10⁻¹⁸.
const ZERO: i32 = -2_000;

/// The sum of a bucket and its mirrored bucket.
const MIRROR: i32 = 2 * ZERO - 1;

/// The largest power of a bucket above zero, and of one below. 1.02^28767 is 10²⁴⁷.
const MOST: i32 = 28_767;

/// The bucket of a value as SQL.
pub(super) fn bucket(value: &str) -> String {
    let power = format!("least({MOST}, greatest({ZERO}, ceil(log(abs({value})) / log(1.02))))");
    format!("toInt16(multiIf({power} = {ZERO}, {ZERO}, {value} > 0, {power}, {MIRROR} - {power}))")
}

/// The middle of a bucket, by relative error, as SQL: 2·1.02^b / (1.02 + 1). It is within 1 % of every value in the bucket.
pub(super) fn middle(bucket: &str) -> String {
    format!(
        "multiIf({bucket} = {ZERO}, 0., {bucket} > {ZERO}, 2 * pow(1.02, {bucket}) / 2.02, -2 * pow(1.02, {MIRROR} - {bucket}) / 2.02)"
    )
}

/// The largest value of a bucket, as SQL.
pub(super) fn upper_end(bucket: &str) -> String {
    format!(
        "multiIf({bucket} = {ZERO}, 0., {bucket} > {ZERO}, pow(1.02, {bucket}), -pow(1.02, {MIRROR} - {bucket} - 1))"
    )
}

/// The largest value of a bucket.
#[must_use]
pub fn upper_bound(bucket: i32) -> f64 {
    match bucket {
        ZERO => 0.0,
        _ if bucket > ZERO => 1.02_f64.powi(bucket),
        _ => -1.02_f64.powi(MIRROR - bucket - 1),
    }
}
