//! What a server refuses, and which of a client's three ways on that leaves.

use mysql::{DriverError, Error};
use workahead_workloads::session::SessionError;

/// An error of the client library as a session's.
pub(super) fn read(error: Error) -> SessionError {
    match error {
        Error::MySqlError(refusal) => {
            let says = refusal.message.split_whitespace().collect::<Vec<_>>().join(" ");
            way(refusal.code)(format!("{says} (error {})", refusal.code))
        }
        // The two that clients of the C library know as 2006 and 2013.
        Error::IoError(error) => SessionError::Gone(error.to_string()),
        Error::DriverError(DriverError::CouldNotConnect(why)) => {
            let says = why.map_or_else(String::new, |(place, why, _)| format!("{place}: {why}"));
            SessionError::Gone(format!("nothing answers at {says}"))
        }
        Error::CodecError(error) => SessionError::Gone(error.to_string()),
        Error::DriverError(DriverError::UnknownAuthPlugin(name)) => SessionError::Failed(format!(
            "the server asks for a way to log in that is not known here ({name}): use a user with \
             a password (mysql_native_password)"
        )),
        other => SessionError::Failed(other.to_string()),
    }
}

/// By number (MariaDB manual, "MariaDB Error Code Reference").
fn way(code: u16) -> fn(String) -> SessionError {
    match code {
        // Lock wait timeout, deadlock; record has changed since last read.
        1205 | 1213 | 1020 => SessionError::Retry,
        // Duplicate entry.
        1062 => SessionError::Duplicate,
        // Shutdown in progress, connection killed.
        1053 | 1079 | 1927 => SessionError::Gone,
        _ => SessionError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_decide_what_a_client_does() {
        let of = |code| {
            let (state, message) = ("HY000".to_owned(), "why".to_owned());
            read(Error::MySqlError(mysql::MySqlError { state, message, code }))
        };
        for code in [1205, 1213] {
            assert_eq!(of(code), SessionError::Retry(format!("why (error {code})")));
        }
        assert_eq!(of(1053), SessionError::Gone("why (error 1053)".to_owned()));
        assert_eq!(of(1146), SessionError::Failed("why (error 1146)".to_owned()));
        assert_eq!(of(1062), SessionError::Duplicate("why (error 1062)".to_owned()));
        let lost = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(matches!(read(Error::IoError(lost)), SessionError::Gone(_)));
    }
}
