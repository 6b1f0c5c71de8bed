//! A cluster as a client names it: `workahead://TOKEN@HOST:PORT,HOST:PORT`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use ::url::Url;

use crate::{ClusterError, Token};

const SCHEME: &str = "workahead://";

/// Workers, and the token that they ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterUrl {
    token: Token,
    hosts: Vec<String>,
}

impl ClusterUrl {
    /// Of workers at these addresses.
    #[must_use]
    pub fn new(token: Token, workers: &[SocketAddr]) -> Self {
        Self { token, hosts: workers.iter().map(SocketAddr::to_string).collect() }
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Every address that its hosts stand for: a name may have several, as a headless service of
    /// Kubernetes has. Those that are unknown now are left out.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let mut all: Vec<SocketAddr> =
            self.hosts.iter().flat_map(|host| host.to_socket_addrs()).flatten().collect();
        all.sort();
        all.dedup();
        all
    }

    /// Without the token.
    #[must_use]
    pub fn public(&self) -> String {
        format!("{SCHEME}{}", self.hosts.join(","))
    }

    /// With the token: for the terminal of who started it, and for files that only they read.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{SCHEME}{}@{}", self.token.reveal(), self.hosts.join(","))
    }
}

/// A worker's address as the engine has it.
pub(crate) fn http(address: SocketAddr) -> Url {
    Url::parse(&format!("http://{address}")).expect("an address is a URL's authority")
}

impl fmt::Display for ClusterUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public())
    }
}

impl FromStr for ClusterUrl {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let rest = text.trim().strip_prefix(SCHEME).ok_or(ClusterError::Url)?;
        let (token, hosts) = rest.split_once('@').ok_or(ClusterError::Url)?;
        let hosts: Vec<String> =
            hosts.trim_end_matches('/').split(',').map(str::to_owned).collect();
        let is_named = |host: &String| {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-[]:".contains(letter);
            let port = host.rsplit_once(':').and_then(|(name, port)| {
                (!name.is_empty() && name.chars().all(plain)).then(|| port.parse::<u16>().ok())?
            });
            port.is_some_and(|port| port != 0)
        };
        if !hosts.iter().all(is_named) {
            return Err(ClusterError::Url);
        }
        Ok(Self { token: token.parse()?, hosts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_as_they_are_revealed_and_shown_without_the_token() {
        let token = Token::generate().unwrap();
        let text = format!("workahead://{}@127.0.0.1:1,[::1]:2,node-1.rack:3", token.reveal());
        let url: ClusterUrl = text.parse().unwrap();
        assert_eq!(url.reveal(), text);
        assert_eq!(url.to_string(), "workahead://127.0.0.1:1,[::1]:2,node-1.rack:3");
        assert!(!format!("{url:?}").contains(token.reveal()));
        assert!(url.addresses().contains(&"[::1]:2".parse().unwrap()));
    }

    #[test]
    fn wrong_urls_are_refused() {
        let token = Token::generate().unwrap();
        let token = token.reveal();
        for rest in ["", "@h:1", "h:1", "x@h:1"] {
            assert!(format!("workahead://{rest}").parse::<ClusterUrl>().is_err(), "{rest}");
        }
        for hosts in ["", "h", "h:0", "h:70000", ":1", "h:1,", "a b:1", "h/x:1"] {
            let text = format!("workahead://{token}@{hosts}");
            assert!(text.parse::<ClusterUrl>().is_err(), "{hosts}");
        }
    }
}
