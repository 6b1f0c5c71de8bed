//! The process at the other end of a socket of this machine (unix(7), SO_PEERCRED).

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// Who listens where this stream came in: the process that called `listen`. None where it can't be
/// seen from here, as in another container.
#[must_use]
pub fn of(stream: &UnixStream) -> Option<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: writes at most `bytes` bytes into `peer`, which has that many; the descriptor is the
    // stream's, open as long as it is borrowed.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut bytes,
        )
    };
    // A process of a namespace that this one can't see into is 0.
    if status == 0 { u32::try_from(peer.pid).ok().filter(|pid| *pid > 0) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_our_own_leads_to_ourselves() {
        let (here, _there) = UnixStream::pair().unwrap();
        assert_eq!(of(&here), Some(std::process::id()));
    }
}
