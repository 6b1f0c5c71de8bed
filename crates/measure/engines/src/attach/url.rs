//! URLs of servers: `scheme://user:password@host:port/path?name=value&…` (RFC 3986).

/// Its parts, with `%41` and the like decoded.
#[derive(Default)]
pub(super) struct Url {
    pub(super) scheme: String,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) path: String,
    pub(super) parameters: Vec<(String, String)>,
}

impl Url {
    /// Parses it. Errors show the wrong part; never a password.
    pub(super) fn parse(text: &str) -> Result<Url, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err("a server's URL begins with postgres:// or mysql://".to_owned());
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut url = Url { scheme: scheme.to_owned(), path: decode(path)?, ..Url::default() };
        // A password may have an `@` in it that should have been written `%40`.
        let host = match authority.rsplit_once('@') {
            None => authority,
            Some((who, host)) => {
                let (user, password) =
                    who.split_once(':').map_or((who, None), |(u, p)| (u, Some(p)));
                url.user = Some(decode(user)?);
                url.password = password.map(decode).transpose()?;
                host
            }
        };
        url.set_host(host)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            url.parameters.push((decode(name)?, decode(value)?));
        }
        Ok(url)
    }

    /// Removes and returns a parameter.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.parameters.iter().position(|(given, _)| given == name)?;
        Some(self.parameters.remove(at).1)
    }

    /// `host`, `host:port`, `[::1]:port`.
    fn set_host(&mut self, text: &str) -> Result<(), String> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        self.host = decode(host)?;
        self.port = match port {
            None => None,
            Some(port) => match port.parse() {
                Ok(port) if port != 0 => Some(port),
                // It may be a part of a password, which is not shown.
                _ => {
                    let says = "the port is not a number from 1 to 65535: write a `/`, `?` or \
                                `#` in a password as %2F, %3F or %23";
                    return Err(says.to_owned());
                }
            },
        };
        Ok(())
    }
}

/// A URL without its password, and the password, decoded.
pub(super) fn split_password(text: &str) -> Option<(String, String)> {
    let from = text.find("://")? + 3;
    let rest = &text[from..];
    let authority = rest.find(['/', '?']).map_or(rest, |end| &rest[..end]);
    let who = &authority[..authority.rfind('@')?];
    let user = who.find(':')?;
    let password = decode(&who[user + 1..]).ok()?;
    Some((format!("{}{}", &text[..from + user], &rest[who.len()..]), password))
}

fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    let wrong =
        || "a `%` in a URL is followed by two digits of base 16: write `%25` for a percent sign";
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(wrong().to_owned()) };
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| wrong().to_owned())
}
