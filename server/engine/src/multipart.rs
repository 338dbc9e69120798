//! `multipart/form-data` bodies: queries and parameters too long for a URL. Small, so they are read whole.

use crate::exception::Exception;

/// The fields of a form, in order. A file (an external table's data) is refused.
pub(crate) fn fields(content_type: &str, body: &[u8]) -> Result<Vec<(String, String)>, Exception> {
    let boundary = boundary(content_type)
        .ok_or_else(|| Exception::bad_arguments("The multipart form names no boundary"))?;
    let delimiter = format!("--{boundary}");
    let broken = || Exception::bad_arguments("The multipart form is broken");
    let mut fields = Vec::new();
    let mut rest = after(body, delimiter.as_bytes()).ok_or_else(broken)?;
    let next = format!("\r\n{delimiter}");
    while !rest.starts_with(b"--") {
        let part = rest.strip_prefix(b"\r\n").ok_or_else(broken)?;
        let end = find(part, next.as_bytes()).ok_or_else(broken)?;
        let (part, behind) = part.split_at(end);
        let split = find(part, b"\r\n\r\n").ok_or_else(broken)?;
        let (headers, value) = part.split_at(split);
        let value = value.get(4..).unwrap_or_default();
        let headers = String::from_utf8_lossy(headers);
        let disposition = headers
            .lines()
            .find(|line| {
                line.to_ascii_lowercase()
                    .starts_with("content-disposition:")
            })
            .ok_or_else(broken)?;
        let name = attribute(disposition, "name").ok_or_else(broken)?;
        if attribute(disposition, "filename").is_some() {
            return Err(Exception::not_implemented(format!(
                "External tables are not supported by the embedded engine (the form holds the file of {name:?}): insert the data into a table"
            )));
        }
        let value = String::from_utf8(value.to_vec()).map_err(|_| {
            Exception::bad_arguments(format!("The form's field {name:?} is not UTF-8"))
        })?;
        fields.push((name, value));
        rest = behind.get(next.len()..).unwrap_or_default();
    }
    Ok(fields)
}

fn boundary(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.trim().split_once('=')?;
        let value = value.trim_matches('"');
        (name.eq_ignore_ascii_case("boundary") && !value.is_empty() && value.len() <= 200)
            .then(|| value.to_owned())
    })
}

fn attribute(disposition: &str, wanted: &str) -> Option<String> {
    disposition.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.trim().split_once('=')?;
        name.eq_ignore_ascii_case(wanted)
            .then(|| value.trim_matches('"').to_owned())
    })
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

fn after<'a>(text: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    text.get(find(text, wanted)? + wanted.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order_and_may_hold_line_breaks() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT {a:String}\r\n--x\r\ncontent-disposition: form-data; name=param_a\r\nContent-Type: text/plain\r\n\r\n\r\n--y\r\n\r\n--x--\r\n";
        let found = fields("multipart/form-data; boundary=x", body).unwrap();
        assert_eq!(
            found,
            [
                ("query".to_owned(), "SELECT {a:String}".to_owned()),
                ("param_a".to_owned(), "\r\n--y\r\n".to_owned())
            ]
        );
    }

    #[test]
    fn a_broken_form_is_an_error() {
        for body in [
            "",
            "--x",
            "--x\r\n",
            "--x\r\n\r\n\r\n--x--",
            "--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--",
        ] {
            assert!(
                fields("multipart/form-data; boundary=\"x\"", body.as_bytes()).is_err(),
                "{body:?}"
            );
        }
        assert!(fields("multipart/form-data", b"--x--").is_err());
    }

    #[test]
    fn a_file_is_refused_clearly() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"t\"; filename=\"t.tsv\"\r\n\r\n1\r\n--x--\r\n";
        let error = fields("multipart/form-data; boundary=x", body).unwrap_err();
        assert_eq!(error.code, 48);
    }
}
