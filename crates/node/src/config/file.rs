//! Parses the configuration file into a [`Config`].

mod members;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::limits::{NoLimit, RawLimits};
use super::{
    Api, ApiTcp, ApiTls, Config, ConfigError, Members, Metrics, Problem, Security, SocketAccess,
    TlsFiles, Ttl,
};
use soloist_api::{Address, NodeName, parse_duration};
use soloist_core::limits::Limits;
use soloist_core::rules::RuleSettings;
use soloist_core::rules::{RuleProblem, Rules};

type Text = Spanned<String>;

/// Nodes with their addresses.
type RawNodes = Spanned<BTreeMap<Text, Text>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Text,
    listen: Option<Text>,
    insecure: Option<Spanned<bool>>,
    /// From earlier versions; rejected, whatever it contains.
    nodes: Option<Spanned<toml::Value>>,
    keepers: Option<RawNodes>,
    address: Option<Text>,
    data: Option<Text>,
    lease: Option<Text>,
    drift: Option<Spanned<i64>>,
    io_threads: Option<Spanned<i64>>,
    tls: Option<Spanned<RawTls>>,
    #[serde(default)]
    locks: RawLocks,
    #[serde(default)]
    lock: Vec<RawLock>,
    #[serde(default)]
    api: RawApi,
    #[serde(default)]
    limits: RawLimits,
    #[serde(default)]
    metrics: Metrics,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTls {
    ca: Text,
    certificate: Text,
    key: Text,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawLocks {
    algorithm: Option<Text>,
    variant: Option<Text>,
    shape: Option<Text>,
    max_local_turns: Option<Spanned<i64>>,
    ttl_default: Option<Text>,
    ttl_max: Option<Text>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLock {
    pattern: Text,
    algorithm: Option<Text>,
    variant: Option<Text>,
    shape: Option<Text>,
    max_local_turns: Option<Spanned<i64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawApi {
    socket: Option<Text>,
    socket_mode: Option<Text>,
    socket_group: Option<Text>,
    listen: Option<Text>,
    token_file: Option<Text>,
    tls: Option<Spanned<RawApiTls>>,
    ui: Option<Spanned<bool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApiTls {
    certificate: Text,
    key: Text,
    client_ca: Option<Text>,
}

/// A problem and its position, before the file's name is known.
struct Wrong {
    at: Range<usize>,
    key: String,
    problem: Box<Problem>,
}

fn wrong<T>(at: &Spanned<T>, key: &str, problem: impl Into<Problem>) -> Wrong {
    Wrong {
        at: at.span(),
        key: key.to_owned(),
        problem: Box::new(problem.into()),
    }
}

/// Parses the text of a configuration file in `folder`.
pub(super) fn parse(text: &str, file: &str, folder: &Path) -> Result<Config, ConfigError> {
    let raw = raw(text, file)?;
    convert(&raw, folder).map_err(|wrong| ConfigError::Value {
        file: file.to_owned(),
        line: line(text, wrong.at.start),
        key: wrong.key,
        problem: wrong.problem,
    })
}

/// Replaces the name and the address, and changes no other byte.
pub(super) fn text_for(
    text: &str,
    file: &str,
    name: &NodeName,
    address: &Address,
) -> Result<String, ConfigError> {
    let raw = raw(text, file)?;
    let mut changed = text.to_owned();
    let (at_name, at_address) = (raw.name.span(), raw.address.map(|text| text.span()));
    let mut put = |at: Range<usize>, text: &str| changed.replace_range(at, text);
    match at_address {
        // Replace the later one first, because a change of the earlier one would move it.
        Some(at) if at.start > at_name.start => {
            put(at, &format!("\"{address}\""));
            put(at_name, &format!("\"{name}\""));
        }
        Some(at) => {
            put(at_name, &format!("\"{name}\""));
            put(at, &format!("\"{address}\""));
        }
        None => {
            let rest = text[at_name.end..].find('\n');
            let end = rest.map_or(text.len(), |rest| at_name.end + rest);
            put(end..end, &format!("\naddress = \"{address}\""));
            put(at_name, &format!("\"{name}\""));
        }
    }
    Ok(changed)
}

fn raw(text: &str, file: &str) -> Result<Raw, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let line = line(text, error.span().map_or(0, |span| span.start));
        let whole = text.lines().nth(line - 1).unwrap_or_default().trim();
        ConfigError::Form {
            file: file.to_owned(),
            line,
            message: error.message().replace('\n', " "),
            text: whole.chars().take(80).collect(),
        }
    })
}

fn line(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    1 + before.filter(|byte| **byte == b'\n').count()
}

fn convert(raw: &Raw, folder: &Path) -> Result<Config, Wrong> {
    let name: NodeName = (raw.name.get_ref().parse()).map_err(|e| wrong(&raw.name, "name", e))?;
    let members = members::members(raw, &name, folder)?;
    Ok(Config {
        security: security(raw, &name, &members, folder)?,
        listen: listen(raw)?,
        rules: rules(raw)?,
        ttl: ttl(&raw.locks)?,
        api: api(&raw.api, folder)?,
        limits: limits(&raw.limits)?,
        metrics: raw.metrics.clone(),
        io_threads: io_threads(raw)?,
        name,
        members,
    })
}

fn io_threads(raw: &Raw) -> Result<usize, Wrong> {
    let Some(given) = &raw.io_threads else {
        return Ok(Config::IO_THREADS);
    };
    let threads = usize::try_from(*given.get_ref()).ok();
    let threads = threads.filter(|threads| (1..=Config::IO_THREADS_MOST).contains(threads));
    let problem = || Problem::IoThreads(*given.get_ref());
    threads.ok_or_else(|| wrong(given, "io_threads", problem()))
}

fn listen(raw: &Raw) -> Result<Option<Address>, Wrong> {
    let Some(text) = &raw.listen else {
        return Ok(None);
    };
    let address: Address =
        (text.get_ref().parse()).map_err(|error| wrong(text, "listen", error))?;
    if address.port == 0 {
        return Err(wrong(text, "listen", Problem::NoListenPort(address)));
    }
    let insecure = (raw.insecure.as_ref()).is_some_and(|insecure| *insecure.get_ref());
    if insecure && !address.is_loopback() {
        return Err(wrong(text, "listen", Problem::InsecureListen(address)));
    }
    Ok(Some(address))
}

fn security(raw: &Raw, me: &NodeName, members: &Members, folder: &Path) -> Result<Security, Wrong> {
    let insecure = raw.insecure.as_ref().filter(|insecure| *insecure.get_ref());
    match (&raw.tls, insecure) {
        (Some(_), Some(at)) => Err(wrong(at, "insecure", Problem::BothSecurities)),
        (None, None) => Err(wrong(&raw.name, "tls", Problem::NoSecurity)),
        (Some(tls), None) => {
            let tls = tls.get_ref();
            Ok(Security::Tls(TlsFiles {
                ca: path(&tls.ca, "tls.ca", folder)?,
                certificate: path(&tls.certificate, "tls.certificate", folder)?,
                key: path(&tls.key, "tls.key", folder)?,
            }))
        }
        (None, Some(at)) => match members::elsewhere(me, members) {
            Some((name, address)) => {
                let (name, address) = (name.clone(), address.clone());
                Err(wrong(at, "insecure", Problem::Insecure { name, address }))
            }
            None => Ok(Security::Insecure),
        },
    }
}

fn path(text: &Text, key: &str, folder: &Path) -> Result<PathBuf, Wrong> {
    if text.get_ref().is_empty() {
        return Err(wrong(text, key, Problem::EmptyPath));
    }
    Ok(folder.join(text.get_ref()))
}

fn owned(text: &Option<Text>) -> Option<String> {
    text.as_ref().map(|text| text.get_ref().clone())
}

fn rules(raw: &Raw) -> Result<Rules, Wrong> {
    let locks = &raw.locks;
    let usual = RuleSettings::default();
    let default = RuleSettings {
        algorithm: owned(&locks.algorithm).unwrap_or(usual.algorithm),
        variant: owned(&locks.variant).unwrap_or_default(),
        shape: owned(&locks.shape).unwrap_or_default(),
        max_local_turns: turns(&locks.max_local_turns, "locks", usual.max_local_turns)?,
    };
    let mut patterns = Vec::with_capacity(raw.lock.len());
    for lock in &raw.lock {
        patterns.push((lock.pattern.get_ref().clone(), inherit(lock, &default)?));
    }
    Rules::for_any(&default, &patterns).map_err(|error| {
        let key = error.problem.key();
        match error.place {
            Some(place) => {
                let lock = &raw.lock[place];
                let at = match key {
                    "algorithm" => lock.algorithm.as_ref(),
                    "variant" => lock.variant.as_ref(),
                    "shape" => lock.shape.as_ref(),
                    _ => None,
                };
                let key = format!("lock.{key}");
                wrong(at.unwrap_or(&lock.pattern), &key, error.problem)
            }
            None => {
                let at = match key {
                    "algorithm" => locks.algorithm.as_ref(),
                    "variant" => locks.variant.as_ref(),
                    "shape" => locks.shape.as_ref(),
                    _ => None,
                };
                let key = format!("locks.{key}");
                wrong(at.unwrap_or(&raw.name), &key, error.problem)
            }
        }
    })
}

/// Returns the settings of a pattern. Those it does not set come from `[locks]`, except that
/// variant and shape belong to an algorithm and are not inherited if the pattern sets another one.
fn inherit(lock: &RawLock, default: &RuleSettings) -> Result<RuleSettings, Wrong> {
    let base = match &lock.algorithm {
        None => default.clone(),
        Some(algorithm) => RuleSettings {
            algorithm: algorithm.get_ref().clone(),
            variant: String::new(),
            shape: String::new(),
            max_local_turns: default.max_local_turns,
        },
    };
    Ok(RuleSettings {
        algorithm: base.algorithm,
        variant: owned(&lock.variant).unwrap_or(base.variant),
        shape: owned(&lock.shape).unwrap_or(base.shape),
        max_local_turns: turns(&lock.max_local_turns, "lock", base.max_local_turns)?,
    })
}

fn turns(given: &Option<Spanned<i64>>, table: &str, otherwise: u32) -> Result<u32, Wrong> {
    let Some(given) = given else {
        return Ok(otherwise);
    };
    let most = RuleSettings::TURNS_MOST;
    let turns = u32::try_from(*given.get_ref()).ok();
    turns.filter(|n| (1..=most).contains(n)).ok_or_else(|| {
        let key = format!("{table}.max_local_turns");
        wrong(given, &key, RuleProblem::Turns(*given.get_ref()))
    })
}

fn within(text: &Text, key: &str, least: Duration, most: Duration) -> Result<Duration, Wrong> {
    let given = parse_duration(text.get_ref()).map_err(|error| wrong(text, key, error))?;
    if (least..=most).contains(&given) {
        return Ok(given);
    }
    Err(wrong(text, key, Problem::Time { given, least, most }))
}

fn ttl(raw: &RawLocks) -> Result<Ttl, Wrong> {
    let usual = Ttl::default();
    let max = match &raw.ttl_max {
        Some(text) => within(text, "locks.ttl_max", Ttl::LEAST, Ttl::MOST)?,
        None => usual.max,
    };
    let default = match &raw.ttl_default {
        Some(text) => within(text, "locks.ttl_default", Ttl::LEAST, max)?,
        None => usual.default.min(max),
    };
    Ok(Ttl { default, max })
}

fn limits(raw: &RawLimits) -> Result<Limits, Wrong> {
    let no_limit = |NoLimit { at, key }| {
        let given = *at.get_ref();
        wrong(at, key, Problem::Limit { given })
    };
    raw.limits().map_err(no_limit)
}

fn api(raw: &RawApi, folder: &Path) -> Result<Api, Wrong> {
    Ok(Api {
        socket: socket(raw, folder)?,
        access: socket_access(raw)?,
        tcp: api_tcp(raw, folder)?,
        ui: api_ui(raw)?,
    })
}

fn api_ui(raw: &RawApi) -> Result<bool, Wrong> {
    match &raw.ui {
        Some(at) if *at.get_ref() && raw.listen.is_none() => {
            Err(wrong(at, "api.ui", Problem::NoBrowser))
        }
        Some(ui) => Ok(*ui.get_ref()),
        None => Ok(false),
    }
}

/// The system's limit for the path of a Unix socket, excluding the terminating zero.
const SOCKET_PATH_MOST: usize = 107;

fn socket(raw: &RawApi, folder: &Path) -> Result<PathBuf, Wrong> {
    let Some(text) = &raw.socket else {
        // A folder that is too long is reported when the socket is opened: there is no line to
        // point at.
        return Ok(folder.join(Api::SOCKET));
    };
    let path = path(text, "api.socket", folder)?;
    let bytes = path.as_os_str().len();
    if bytes > SOCKET_PATH_MOST {
        let problem = Problem::SocketPath {
            path: path.display().to_string(),
            bytes,
            most: SOCKET_PATH_MOST,
        };
        return Err(wrong(text, "api.socket", problem));
    }
    Ok(path)
}

fn socket_access(raw: &RawApi) -> Result<SocketAccess, Wrong> {
    let group = raw.socket_group.as_ref();
    if let Some(text) = group.filter(|text| text.get_ref().is_empty()) {
        return Err(wrong(text, "api.socket_group", Problem::EmptyGroup));
    }
    let mode = match (&raw.socket_mode, group) {
        (Some(text), _) => {
            let mode = u32::from_str_radix(text.get_ref(), 8).ok();
            // The owner must be able to connect, which takes the right to write.
            let mode = mode.filter(|mode| *mode <= 0o777 && mode & 0o600 == 0o600);
            let no_mode = || Problem::SocketMode(text.get_ref().clone());
            mode.ok_or_else(|| wrong(text, "api.socket_mode", no_mode()))?
        }
        (None, Some(_)) => SocketAccess::WITH_GROUP,
        (None, None) => SocketAccess::USER_ONLY,
    };
    let group = group.map(|text| text.get_ref().clone());
    Ok(SocketAccess { mode, group })
}

fn api_tcp(raw: &RawApi, folder: &Path) -> Result<Option<ApiTcp>, Wrong> {
    let Some(listen) = &raw.listen else {
        return match (&raw.token_file, &raw.tls) {
            (Some(at), _) => Err(wrong(at, "api.token_file", Problem::NothingToProtect)),
            (_, Some(at)) => Err(wrong(at, "api.tls", Problem::NothingToProtect)),
            _ => Ok(None),
        };
    };
    let address: Address =
        (listen.get_ref().parse()).map_err(|error| wrong(listen, "api.listen", error))?;
    if address.port == 0 {
        return Err(wrong(listen, "api.listen", Problem::NoApiPort(address)));
    }
    let token_file = match &raw.token_file {
        Some(text) => Some(path(text, "api.token_file", folder)?),
        None => None,
    };
    let tls = match &raw.tls {
        Some(tls) => Some(api_tls(tls.get_ref(), folder)?),
        None => None,
    };
    let tcp = ApiTcp {
        listen: address,
        token_file,
        tls,
    };
    match tcp.unprotected() {
        Some(missing) => {
            let address = tcp.listen.clone();
            let problem = Problem::Unprotected { address, missing };
            Err(wrong(listen, "api.listen", problem))
        }
        None => Ok(Some(tcp)),
    }
}

fn api_tls(raw: &RawApiTls, folder: &Path) -> Result<ApiTls, Wrong> {
    let client_ca = match &raw.client_ca {
        Some(text) => Some(path(text, "api.tls.client_ca", folder)?),
        None => None,
    };
    Ok(ApiTls {
        certificate: path(&raw.certificate, "api.tls.certificate", folder)?,
        key: path(&raw.key, "api.tls.key", folder)?,
        client_ca,
    })
}
