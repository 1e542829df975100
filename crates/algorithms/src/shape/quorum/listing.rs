//! Quorum systems that are listed set by set.

use crate::NodeId;

/// Parses one set per line, `i: a b c`. Every node must have one. The result is sorted.
pub(super) fn read(text: &str, nodes: usize) -> Result<Vec<Vec<NodeId>>, String> {
    let mut sets: Vec<Option<Vec<NodeId>>> = vec![None; nodes];
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (node, set) =
            read_line(line, nodes).map_err(|reason| format!("line {number}: {reason}"))?;
        if sets[node.index()].replace(set).is_some() {
            return Err(format!("line {number}: a second set for node {node}"));
        }
    }
    let sets = NodeId::all(nodes).zip(sets);
    sets.map(|(node, set)| set.ok_or_else(|| format!("node {node} has no set")))
        .collect()
}

fn read_line(line: &str, nodes: usize) -> Result<(NodeId, Vec<NodeId>), String> {
    let (node, members) = line
        .split_once(':')
        .ok_or_else(|| format!("'{line}' is not a set; write 'i: a b c'"))?;
    let node = read_node(node.trim(), nodes)?;
    let members = members.trim();
    let members = members
        .strip_prefix('{')
        .and_then(|inner| inner.strip_suffix('}'))
        .unwrap_or(members);
    let mut set = members
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter(|word| !word.is_empty())
        .map(|word| read_node(word, nodes))
        .collect::<Result<Vec<_>, _>>()?;
    set.sort_unstable();
    if let Some(twice) = set.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("the set of node {node} has {} twice", twice[0]));
    }
    if set.binary_search(&node).is_err() {
        return Err(format!("node {node} is not in its own set"));
    }
    Ok((node, set))
}

fn read_node(word: &str, nodes: usize) -> Result<NodeId, String> {
    match word.parse::<u32>() {
        Ok(number) if (number as usize) < nodes => Ok(NodeId::new(number)),
        _ => Err(format!(
            "'{word}' is not a node; nodes are 0 to {}",
            nodes - 1
        )),
    }
}

/// Refuses a system in which two sets do not intersect, and names them.
pub(super) fn verify(sets: &[Vec<NodeId>]) -> Result<(), String> {
    // The sets that contain each node. A set intersects exactly those that contain one of its
    // members.
    let mut holders: Vec<Vec<usize>> = vec![Vec::new(); sets.len()];
    for (index, set) in sets.iter().enumerate() {
        for member in set {
            holders[member.index()].push(index);
        }
    }
    // The last set that each set was found to intersect.
    let mut met = vec![usize::MAX; sets.len()];
    for (index, set) in sets.iter().enumerate() {
        let mut unmet = sets.len();
        for member in set {
            for &other in &holders[member.index()] {
                unmet -= usize::from(std::mem::replace(&mut met[other], index) != index);
            }
            if unmet == 0 {
                break;
            }
        }
        if let Some(other) = met.iter().position(|&last| last != index) {
            return Err(format!(
                "the sets of node {index} and node {other} do not meet"
            ));
        }
    }
    Ok(())
}
