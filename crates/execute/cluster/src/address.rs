//! The address of a scheduler: `df://HOST:PORT`, as Ballista writes it.

use std::fmt;
use std::str::FromStr;

use crate::ClusterError;

/// Host and port of a scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Of a host and a port.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// The host; an IPv6 one in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// For gRPC.
    pub(crate) fn http(&self) -> String {
        format!("http://{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let refused = || ClusterError::Address { text: text.to_owned() };
        let rest = match text.split_once("://") {
            Some(("df" | "http", rest)) => rest,
            Some(_) => return Err(refused()),
            None => text,
        };
        let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(refused)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(refused)?;
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
        if host.is_empty() || !(bracketed || host.chars().all(plain)) {
            return Err(refused());
        }
        Ok(Self::new(host, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_printed() {
        for text in ["df://127.0.0.1:50050", "df://[::1]:1", "df://node-1.rack:65535"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        let also = ["http://node:7", "node:7", "df://node:7/"];
        for text in also {
            assert_eq!(text.parse::<Address>().unwrap(), Address::new("node", 7), "{text}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_with_an_example() {
        let wrong = ["", "df://", "df://node", "df://node:0", "df://node:70000", "ftp://node:1"];
        for text in wrong.into_iter().chain(["df://:1", "df://a b:1", "df://::1:1"]) {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains("df://HOST:PORT"), "{text:?}: {error}");
        }
    }
}
