//! Errors of the server, and what a client can do after each.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::backend::{ErrorFields, Message as Parsed};
use workahead_workloads::session::SessionError;

use super::wire::{Message, garbled};

/// The most of a field that is kept: a message may have a GiB, and each client has its own.
const FIELD_BYTES_MAX: usize = 16 << 10;

/// An ErrorResponse as a session's error.
pub(super) fn read(message: Message<'_>) -> SessionError {
    match Parsed::parse(&mut BytesMut::from(message.whole)) {
        Ok(Some(Parsed::ErrorResponse(body))) => {
            Refusal::read(body.fields()).map_or_else(|error| garbled(&error), Refusal::into_error)
        }
        Ok(_) => garbled(&"an error without fields"),
        Err(error) => garbled(&error),
    }
}

/// The fields that matter (manual, "Error and Notice Message Fields").
#[derive(Debug, Default)]
struct Refusal {
    severity: String,
    code: String,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl Refusal {
    fn read(mut fields: ErrorFields<'_>) -> std::io::Result<Refusal> {
        let mut refusal = Refusal::default();
        while let Some(field) = fields.next()? {
            let all = field.value_bytes();
            let kept = all.get(..FIELD_BYTES_MAX).unwrap_or(all);
            let text = String::from_utf8_lossy(kept).into_owned();
            match field.type_() {
                // The one that is never translated.
                b'V' => refusal.severity = text,
                b'C' => refusal.code = text,
                b'M' => refusal.message = text,
                b'D' => refusal.detail = Some(text),
                b'H' => refusal.hint = Some(text),
                _ => {}
            }
        }
        Ok(refusal)
    }

    fn into_error(self) -> SessionError {
        let way = way(&self.code, &self.severity);
        let Refusal { code, message, detail, hint, .. } = self;
        let mut says = message;
        for more in [detail, hint].into_iter().flatten() {
            says = format!("{says}: {more}");
        }
        // Some hints are lists.
        let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
        way(format!("{says} (SQLSTATE {code})"))
    }
}

/// By SQLSTATE (manual, "PostgreSQL Error Codes").
fn way(code: &str, severity: &str) -> fn(String) -> SessionError {
    match code {
        // serialization_failure, deadlock_detected, lock_not_available
        "40001" | "40P01" | "55P03" => SessionError::Retry,
        // unique_violation
        "23505" => SessionError::Duplicate,
        // admin_shutdown, crash_shutdown, cannot_connect_now; class 08, connection exceptions
        "57P01" | "57P02" | "57P03" => SessionError::Gone,
        code if code.starts_with("08") => SessionError::Gone,
        // A login that is refused ends the connection, but the server is well: classes 28 and 3D,
        // 53300 too many connections.
        code if code.starts_with("28") || code.starts_with("3D") => SessionError::Failed,
        "53300" | "42501" | "42704" | "22023" => SessionError::Failed,
        _ if severity == "FATAL" || severity == "PANIC" => SessionError::Gone,
        _ => SessionError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(fields: &[(u8, &str)]) -> SessionError {
        let mut body = Vec::new();
        for (kind, text) in fields {
            body.push(*kind);
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body.push(0);
        let mut whole = vec![b'E'];
        whole.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        whole.extend_from_slice(&body);
        read(Message { tag: b'E', whole: &whole })
    }

    #[test]
    fn states_decide_what_a_client_does() {
        let of = |code| error(&[(b'V', "ERROR"), (b'C', code), (b'M', "why")]);
        for code in ["40001", "40P01", "55P03"] {
            assert_eq!(of(code), SessionError::Retry(format!("why (SQLSTATE {code})")));
        }
        for code in ["57P01", "57P02", "57P03", "08006"] {
            assert_eq!(of(code), SessionError::Gone(format!("why (SQLSTATE {code})")));
        }
        assert_eq!(of("23505"), SessionError::Duplicate("why (SQLSTATE 23505)".to_owned()));
        for code in ["42P01", "23503", "53100"] {
            assert_eq!(of(code), SessionError::Failed(format!("why (SQLSTATE {code})")));
        }
        let fatal = error(&[(b'V', "FATAL"), (b'C', "XX000"), (b'M', "why")]);
        assert_eq!(fatal, SessionError::Gone("why (SQLSTATE XX000)".to_owned()));
    }

    #[test]
    fn a_refusal_is_one_line() {
        let fields = [(b'C', "23505"), (b'M', "duplicate\nkey"), (b'D', "Key (a)=(1)\n exists.")];
        let says = "duplicate key: Key (a)=(1) exists. (SQLSTATE 23505)";
        assert_eq!(error(&fields), SessionError::Duplicate(says.to_owned()));
    }

    #[test]
    fn a_long_refusal_is_cut_and_keeps_its_state() {
        let long = "x".repeat(1 << 20);
        let long = long.as_str();
        let fields = [(b'M', long), (b'D', long), (b'H', long), (b'C', "23505")];
        let SessionError::Duplicate(says) = error(&fields) else { panic!("it is a duplicate") };
        assert!(says.len() < 4 * FIELD_BYTES_MAX, "{}", says.len());
        assert!(says.starts_with("xxx") && says.ends_with("x (SQLSTATE 23505)"));
    }
}
