//! The connections between processes, made within a time, and only between those that do the same.
//!
//! Each process listens at its own address and connects to those before it. Both sides say who they are before anything
//! else; then the socket is timely's.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::hosts::Cluster;
use crate::refusal::Refusal;

/// What both sides begin with.
const GREETING: [u8; 8] = *b"datarel\x01";

/// How long is slept between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// So long a stranger may keep silent.
const STRANGER: Duration = Duration::from_secs(2);

/// Who a process is: its number, how many there are, its workers, its token.
type Hello = [u64; 4];

/// Sockets to all other processes, in order; none to this one.
pub(crate) fn connect(cluster: &Cluster, workers: usize) -> Result<Vec<Option<TcpStream>>, Refusal> {
    let deadline = Instant::now() + cluster.wait;
    let Some(own) = cluster.hosts.get(cluster.process) else {
        return Err(Refusal::Process { process: cluster.process, processes: cluster.hosts.len() });
    };
    let listen = |error: std::io::Error| Refusal::Listen { host: own.clone(), reason: error.to_string() };
    let listener = TcpListener::bind(own).map_err(listen)?;
    listener.set_nonblocking(true).map_err(listen)?;
    let meeting = Meeting {
        cluster,
        hello: [cluster.process as u64, cluster.hosts.len() as u64, workers as u64, cluster.token],
        deadline,
    };
    let mut sockets: Vec<Option<TcpStream>> = Vec::new();
    for process in 0..cluster.process {
        sockets.push(Some(meeting.call(process)?));
    }
    sockets.resize_with(cluster.hosts.len(), || None);
    while let Some(missing) =
        (cluster.process + 1..cluster.hosts.len()).find(|at| sockets.get(*at).is_some_and(Option::is_none))
    {
        let (process, socket) = meeting.answer(&listener, missing)?;
        if let Some(place) = sockets.get_mut(process).filter(|place| place.is_none()) {
            *place = Some(socket);
        }
    }
    Ok(sockets)
}

struct Meeting<'a> {
    cluster: &'a Cluster,
    hello: Hello,
    deadline: Instant,
}

impl Meeting<'_> {
    fn host(&self, process: usize) -> String {
        self.cluster.hosts.get(process).cloned().unwrap_or_default()
    }

    fn silent(&self, process: usize, reason: Option<&std::io::Error>) -> Refusal {
        Refusal::Silent {
            host: self.host(process),
            process,
            seconds: self.cluster.wait.as_secs(),
            reason: reason.map_or_else(String::new, |reason| format!(": {reason}")),
        }
    }

    fn left(&self) -> Option<Duration> {
        self.deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Connects to a process, as often as it takes.
    fn call(&self, process: usize) -> Result<TcpStream, Refusal> {
        let mut last = None;
        while let Some(left) = self.left() {
            match self.dial(process, left) {
                Ok(socket) => return Ok(socket),
                Err(Dial::Other(refusal)) => return Err(refusal),
                Err(Dial::Failed(error)) => last = Some(error),
            }
            sleep(PAUSE);
        }
        Err(self.silent(process, last.as_ref()))
    }

    fn dial(&self, process: usize, left: Duration) -> Result<TcpStream, Dial> {
        let host = self.host(process);
        let mut last = std::io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in host.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left.min(Duration::from_secs(1))) {
                Ok(mut socket) => {
                    socket.set_read_timeout(Some(left))?;
                    say(&mut socket, &self.hello)?;
                    let other = hear(&mut socket)?;
                    self.agree(process, &other).map_err(Dial::Other)?;
                    return Ok(ready(socket)?);
                }
                Err(error) => last = error,
            }
        }
        Err(Dial::Failed(last))
    }

    /// Waits for a later process; strangers are sent away.
    fn answer(&self, listener: &TcpListener, missing: usize) -> Result<(usize, TcpStream), Refusal> {
        while let Some(left) = self.left() {
            match listener.accept() {
                Ok((mut socket, _)) => {
                    let met = self.meet(&mut socket, left);
                    let Ok(other) = met else { continue };
                    let process = usize::try_from(other[0]).unwrap_or(usize::MAX);
                    let known = process > self.cluster.process && process < self.cluster.hosts.len();
                    self.agree(if known { process } else { missing }, &other)?;
                    if let Ok(socket) = ready(socket) {
                        return Ok((process, socket));
                    }
                }
                // Also where a connection was given up before it was accepted.
                Err(_) => sleep(PAUSE),
            }
        }
        Err(self.silent(missing, None))
    }

    fn meet(&self, socket: &mut TcpStream, left: Duration) -> std::io::Result<Hello> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(left.min(STRANGER)))?;
        let other = hear(socket)?;
        say(socket, &self.hello)?;
        Ok(other)
    }

    /// Whether the other is who it should be and does the same.
    fn agree(&self, process: usize, other: &Hello) -> Result<(), Refusal> {
        let reasons = [
            (other[0] != process as u64, format!("it is process {}, and not {process}", other[0])),
            (other[1] != self.hello[1], format!("it knows {} hosts, and not {}", other[1], self.hello[1])),
            (other[2] != self.hello[2], format!("it has {} workers, and not {}", other[2], self.hello[2])),
            (other[3] != self.hello[3], "its program, data or options are others".to_owned()),
        ];
        match reasons.into_iter().find(|(differs, _)| *differs) {
            Some((_, reason)) => Err(Refusal::Other { host: self.host(process), reason }),
            None => Ok(()),
        }
    }
}

/// Why a call came to nothing.
enum Dial {
    /// It may be tried again.
    Failed(std::io::Error),
    /// It would be no use.
    Other(Refusal),
}

impl From<std::io::Error> for Dial {
    fn from(error: std::io::Error) -> Dial {
        Dial::Failed(error)
    }
}

fn ready(socket: TcpStream) -> std::io::Result<TcpStream> {
    socket.set_read_timeout(None)?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

fn say(socket: &mut TcpStream, hello: &Hello) -> std::io::Result<()> {
    let mut bytes = GREETING.to_vec();
    hello.iter().for_each(|number| bytes.extend(number.to_be_bytes()));
    socket.write_all(&bytes)
}

fn hear(socket: &mut TcpStream) -> std::io::Result<Hello> {
    let mut greeting = [0; GREETING.len()];
    socket.read_exact(&mut greeting)?;
    if greeting != GREETING {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "it is no process of this kind"));
    }
    let mut hello = Hello::default();
    for number in &mut hello {
        let mut bytes = [0; 8];
        socket.read_exact(&mut bytes)?;
        *number = u64::from_be_bytes(bytes);
    }
    Ok(hello)
}
