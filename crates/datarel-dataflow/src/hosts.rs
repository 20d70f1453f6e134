//! The processes of a computation: a list of hosts, one a line.

use std::time::Duration;

use crate::refusal::Refusal;

/// Several processes.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The address of each process, `host:port`.
    pub hosts: Vec<String>,
    /// Which of them this one is, from 0.
    pub process: usize,
    /// How long the others are waited for.
    pub wait: Duration,
    /// What must be the same in all processes: a number made from the program and its data.
    pub token: u64,
}

/// Reads a list of hosts: `host:port` a line; blank lines and what stands behind `#` are passed over.
///
/// # Errors
/// [`Refusal::Hosts`], with the place.
pub fn hosts(text: &str) -> Result<Vec<String>, Refusal> {
    let mut hosts: Vec<String> = Vec::new();
    for (line, whole) in (1..).zip(text.lines()) {
        let code = whole.split('#').next().unwrap_or("");
        let address = code.trim();
        if address.is_empty() {
            continue;
        }
        let before = code.chars().take_while(|c| c.is_whitespace()).count();
        let refuse = |characters: usize, reason: String| {
            Err(Refusal::Hosts { line, column: before + characters + 1, reason })
        };
        let count = |part: &str| part.chars().count();
        if let Some((first, _)) = address.split_once(char::is_whitespace) {
            return refuse(count(first), format!("one host a line, and something follows `{first}`"));
        }
        let Some((host, port)) = address.rsplit_once(':') else {
            return refuse(0, format!("`{address}` has no port: host:port is expected"));
        };
        if host.is_empty() {
            return refuse(0, format!("`{address}` has no host: host:port is expected"));
        }
        if !port.parse::<u16>().is_ok_and(|port| port > 0) {
            return refuse(count(host) + 1, format!("`{port}` is no port from 1 to 65535"));
        }
        if hosts.iter().any(|known| known == address) {
            return refuse(
                0,
                format!("`{address}` stands there already: each process has an address of its own"),
            );
        }
        hosts.push(address.to_owned());
    }
    if hosts.is_empty() {
        let reason = "there is no host: one `host:port` a line is expected".to_owned();
        return Err(Refusal::Hosts { line: text.lines().count().max(1), column: 1, reason });
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_one_address_a_line() {
        let text = "# the lab\n  one:2101\n\n[::1]:7 # second\r\nthree.example:65535\n";
        assert_eq!(hosts(text).unwrap(), ["one:2101", "[::1]:7", "three.example:65535"]);
        let cases = [
            ("", 1, 1, "there is no host"),
            ("# none\n\n", 2, 1, "there is no host"),
            ("a:1\n  b\n", 2, 3, "`b` has no port"),
            (":1", 1, 1, "`:1` has no host"),
            ("a:x", 1, 3, "`x` is no port"),
            ("a:0", 1, 3, "`0` is no port"),
            ("a:65536", 1, 3, "`65536` is no port"),
            ("a:1 b:2", 1, 4, "something follows `a:1`"),
            ("a:1\na:1", 2, 1, "stands there already"),
        ];
        for (text, line, column, part) in cases {
            match hosts(text) {
                Err(Refusal::Hosts { line: l, column: c, reason }) => {
                    assert_eq!((l, c), (line, column), "{text:?}: {reason}");
                    assert!(reason.contains(part), "{text:?}: {reason}");
                }
                other => panic!("{text:?}: {other:?}"),
            }
        }
    }
}
