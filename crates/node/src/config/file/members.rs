//! Parses `[keepers]` and the settings that belong to it.

use std::path::Path;

use super::{Raw, RawNodes, Text, Wrong, path, within, wrong};
use crate::config::{Members, Nodes, NodesError, Problem};
use soloist_api::{Address, NodeName};
use soloist_core::epochs::lease::Lease;

pub(super) fn members(raw: &Raw, me: &NodeName, folder: &Path) -> Result<Members, Wrong> {
    match (&raw.nodes, &raw.keepers) {
        (Some(at), _) => Err(wrong(at, "nodes", Problem::FixedNodes)),
        (None, Some(keepers)) => from_keepers(raw, keepers, me, folder),
        (None, None) => Err(wrong(&raw.name, "keepers", Problem::NoKeepers)),
    }
}

/// Returns a node whose address is not loopback, if any.
pub(super) fn elsewhere<'a>(
    me: &'a NodeName,
    members: &'a Members,
) -> Option<(&'a NodeName, &'a Address)> {
    let keepers = members.keepers.iter();
    let keepers = keepers.map(|(_, name, address)| (name, address));
    let mut all = keepers.chain([(me, &members.address)]);
    all.find(|(_, address)| !address.is_loopback())
}

fn from_keepers(
    raw: &Raw,
    keepers: &RawNodes,
    me: &NodeName,
    folder: &Path,
) -> Result<Members, Wrong> {
    Members::check_keepers(keepers.get_ref().len())
        .map_err(|error| wrong(keepers, "keepers", error))?;
    let keepers = listed(keepers, "keepers")?;
    Ok(Members {
        address: address(raw, me, &keepers)?,
        data: match &raw.data {
            Some(text) => path(text, "data", folder)?,
            None => folder.join(Members::DATA),
        },
        lease: lease(raw)?,
        keepers,
    })
}

/// Parses the nodes in the table of this name.
fn listed(raw: &RawNodes, table: &str) -> Result<Nodes, Wrong> {
    let mut all = Vec::with_capacity(raw.get_ref().len());
    for (name, address) in raw.get_ref() {
        let key = format!("{table}.{}", name.get_ref());
        let name: NodeName = (name.get_ref().parse()).map_err(|e| wrong(name, table, e))?;
        let address: Address = (address.get_ref().parse()).map_err(|e| wrong(address, &key, e))?;
        all.push((name, address));
    }
    Nodes::new(all).map_err(|error| {
        let about = error.node().map(|name| name.to_string());
        let found = about.and_then(|name| raw.get_ref().get_key_value(name.as_str()));
        match found {
            Some((name, at)) => wrong(at, &format!("{table}.{}", name.get_ref()), error),
            None => wrong(raw, table, error),
        }
    })
}

/// Returns the address at which others reach this node.
fn address(raw: &Raw, me: &NodeName, keepers: &Nodes) -> Result<Address, Wrong> {
    let keeper = (keepers.id(me.as_str())).and_then(|id| keepers.address(id));
    let (text, address) = match (&raw.address, keeper) {
        (None, Some(keeper)) => return Ok(keeper.clone()),
        (None, None) => {
            let problem = Problem::NoAddress(me.clone());
            return Err(wrong(&raw.name, "address", problem));
        }
        (Some(text), _) => (text, parsed(text, "address")?),
    };
    match keeper {
        Some(keeper) if *keeper == address => Ok(address),
        Some(keeper) => {
            let keeper = keeper.clone();
            let problem = Problem::TwoAddresses { address, keeper };
            Err(wrong(text, "address", problem))
        }
        None => match beside(keepers, me, &address) {
            Err(error) => Err(wrong(text, "address", error)),
            Ok(()) => Ok(address),
        },
    }
}

/// Checks this node together with the keepers.
fn beside(keepers: &Nodes, me: &NodeName, address: &Address) -> Result<(), NodesError> {
    let listed = keepers.iter();
    let keepers = listed.map(|(_, name, address)| (name.clone(), address.clone()));
    Nodes::new(keepers.chain([(me.clone(), address.clone())])).map(|_| ())
}

fn parsed(text: &Text, key: &str) -> Result<Address, Wrong> {
    (text.get_ref().parse()).map_err(|error| wrong(text, key, error))
}

fn lease(raw: &Raw) -> Result<Lease, Wrong> {
    let usual = Lease::default();
    let length = match &raw.lease {
        Some(text) => within(text, "lease", Lease::LEAST, Lease::MOST)?,
        None => usual.length,
    };
    let Some(given) = &raw.drift else {
        let drift = usual.drift;
        return Ok(Lease { length, drift });
    };
    let drift = u32::try_from(*given.get_ref()).ok();
    match drift.filter(|drift| (Members::DRIFT_LEAST..=Members::DRIFT_MOST).contains(drift)) {
        Some(drift) => Ok(Lease { length, drift }),
        None => Err(wrong(given, "drift", Problem::Drift(*given.get_ref()))),
    }
}
