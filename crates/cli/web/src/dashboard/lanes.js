/** Who was a member and who led, over time: a lane per node, from what changed. */

/** @import { Change, Overview } from './messages.js' */

/**
 * @typedef {Object} Lane
 * @property {string} name
 * @property {{ from: number, to: number, isMember: boolean }[]} spans oldest first
 * @property {{ from: number, to: number }[]} leads
 */

/**
 * @typedef {Object} Lanes
 * @property {Lane[]} lanes
 * @property {{ epoch: number, at: number }[]} epochs when each began
 * @property {number} quiet members that have no lane, because nothing happened to them
 */

/** With more nodes, only those to which something happened have a lane. */
const LANES_MAX = 16;

const JOINS = 'joined';
const LEAVES = ['left', 'evicted'];

/**
 * @param {Overview} overview
 * @param {Change[]} changes oldest first; older ones than `begin` tell who led before
 * @param {number} begin
 * @param {number} now
 * @returns {Lanes}
 */
export function lanesOf(overview, changes, begin, now) {
  // A node's clock may be ahead of the one that serves the page.
  const known = changes.map((change) => ({ ...change, at_ms: Math.min(change.at_ms, now) }));
  const members = new Set(overview.members.map(({ name }) => name));
  const names = new Set([
    ...members,
    ...overview.outside.map(({ name }) => name),
    ...overview.keepers.map(({ name }) => name),
  ]);
  const recent = known.filter(({ at_ms: at }) => at >= begin);
  const touched = new Set(recent.flatMap(({ node }) => node ?? []));
  for (const name of touched) names.add(name);
  const leads = leaders(overview, known, begin, now);
  const sorted = [...names].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const isShown = (/** @type {string} */ name) =>
    sorted.length <= LANES_MAX || touched.has(name) || !members.has(name) || leads.has(name);
  const shown = sorted.filter(isShown).slice(0, 2 * LANES_MAX);
  return {
    lanes: shown.map((name) => ({
      name,
      spans: spansOf(name, members.has(name), recent, begin, now),
      leads: leads.get(name) ?? [],
    })),
    epochs: epochsOf(overview, known, begin),
    quiet: sorted.length - shown.length,
  };
}

/**
 * Goes back in time from what is so now.
 * @param {string} name
 * @param {boolean} isMemberNow
 * @param {Change[]} recent
 * @param {number} begin
 * @param {number} now
 */
function spansOf(name, isMemberNow, recent, begin, now) {
  const spans = [];
  let [to, isMember] = [now, isMemberNow];
  for (const { node, kind, at_ms: at } of [...recent].reverse()) {
    if (node !== name || (kind !== JOINS && !LEAVES.includes(kind))) continue;
    const after = kind === JOINS;
    // What is so now may be newer than the changes.
    if (after !== isMember && to === now) isMember = after;
    spans.unshift({ from: at, to, isMember });
    [to, isMember] = [at, !after];
  }
  spans.unshift({ from: begin, to, isMember });
  return spans;
}

/**
 * @param {Overview} overview
 * @param {Change[]} changes
 * @param {number} begin
 * @param {number} now
 */
function leaders(overview, changes, begin, now) {
  /** @type {Map<string, { from: number, to: number }[]>} */
  const leads = new Map();
  const add = (
    /** @type {string} */ name,
    /** @type {number} */ from,
    /** @type {number} */ to,
  ) => {
    if (to <= begin) return;
    leads.set(name, [...(leads.get(name) ?? []), { from: Math.max(from, begin), to }]);
  };
  const elections = changes.filter(({ kind, node }) => kind === 'elected' && node);
  for (const [i, { node, at_ms: from }] of elections.entries()) {
    const next = elections[i + 1];
    const isOver = !next && overview.leader !== node;
    const gone = changes.find(
      (it) => it.node === node && LEAVES.includes(it.kind) && it.at_ms >= from,
    );
    const until = next?.at_ms ?? (isOver ? from : now);
    add(String(node), from, Math.min(until, gone?.at_ms ?? until));
  }
  if (elections.length === 0 && overview.leader) add(overview.leader, begin, now);
  return leads;
}

/**
 * @param {Overview} overview
 * @param {Change[]} changes
 * @param {number} begin
 */
function epochsOf(overview, changes, begin) {
  /** @type {{ epoch: number, at: number }[]} */
  const epochs = [];
  for (const { epoch, at_ms: at } of changes) {
    const last = epochs.at(-1);
    if (!epoch || (last && epoch <= last.epoch)) continue;
    if (at <= begin) epochs.length = 0;
    epochs.push({ epoch, at: Math.max(at, begin) });
  }
  if (epochs.length === 0 && overview.epoch > 0) epochs.push({ epoch: overview.epoch, at: begin });
  return epochs;
}
