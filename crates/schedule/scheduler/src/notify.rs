//! Reports to the service manager that wants them: `sd_notify(3)` without its library.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::error::Error;

/// Sends a state, lines of `NAME=VALUE`, to the socket that `NOTIFY_SOCKET` names, if it does.
///
/// # Errors
///
/// [`Error::Notify`] where it can't be sent.
pub fn notify(state: &str) -> Result<(), Error> {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    send(&name, state).map_err(|source| {
        let socket = name.to_string_lossy().into_owned();
        Error::Notify { socket, source }
    })
}

/// A name that begins with `@` is not a path (unix(7), abstract).
fn send(name: &OsStr, state: &str) -> std::io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn a_state_arrives_by_path_and_by_name() {
        let unique = format!("workahead-notify-{}", std::process::id());
        let path = std::env::temp_dir().join(&unique);
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&by_path), "READY=1");
        std::fs::remove_file(&path).unwrap();
        let address = SocketAddr::from_abstract_name(&unique).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{unique}")), "WATCHDOG=1").unwrap();
        assert_eq!(received(&by_name), "WATCHDOG=1");
        assert!(send(path.as_os_str(), "READY=1").is_err(), "nobody listens");
    }
}
