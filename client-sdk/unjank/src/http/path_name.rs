//! Names of requests: paths without ids, because the server groups spans by name.

/// Replaces the parts of a path that look like ids with `{id}`.
pub(super) fn without_ids(path: &str) -> String {
    let parts = path
        .split('/')
        .map(|part| if is_id(part) { "{id}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// Returns whether a part of a path looks like an id: a number, a UUID, a hash, or a long text with digits.
fn is_id(part: &str) -> bool {
    let has_digit = part.bytes().any(|byte| byte.is_ascii_digit());
    let is_hex = part
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_number = part
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    has_digit && (is_number || is_hex && part.len() >= 8 || part.len() >= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_no_part_of_a_name() {
        for (path, name) in [
            ("/", "/"),
            ("/orders/12/items", "/orders/{id}/items"),
            ("/v1/feed", "/v1/feed"),
            ("/u/4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "/u/{id}"),
            ("/blobs/deadbeef01", "/blobs/{id}"),
            ("/face/decade", "/face/decade"),
            ("/t/QmFzZTY0IHRva2VuIDEyMzQ1", "/t/{id}"),
            (
                "/a-long-name-without-any-number",
                "/a-long-name-without-any-number",
            ),
        ] {
            assert_eq!(without_ids(path), name);
        }
    }
}
