/** Who was inside a lock and who waited, over time: a row per owner and node. */

/** @import { Lock, LockEvent } from './messages.js' */

/**
 * @typedef {Object} Box
 * @property {'inside' | 'waiting'} kind
 * @property {number} from
 * @property {number} to
 * @property {boolean} isNow whether it lasts
 * @property {boolean} isBad whether it ended with a loss, or without the lock
 */

/**
 * @typedef {Object} Row
 * @property {string} owner
 * @property {string} node
 * @property {Box[]} boxes
 */

/** Lengths of the picture, in ms. */
const REACHES = [12, 60, 4 * 60, 8 * 60, 16 * 60].map((seconds) => seconds * 1000);
const ROWS_MAX = 12;

/**
 * @param {Lock} lock
 * @param {LockEvent[]} recent oldest first
 * @param {number} now
 * @returns {{ rows: Row[], reach: number, more: number }}
 */
export function turnsOf(lock, recent, now) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  const row = (/** @type {string} */ owner, /** @type {string} */ node) => {
    const key = JSON.stringify([owner, node]);
    const found = rows.get(key) ?? { owner, node, boxes: [] };
    rows.set(key, found);
    return found;
  };
  const { holder, waiters } = lock;
  const lasts = { to: now, isNow: true, isBad: false };
  // The holder first, then those who wait, in their order.
  if (holder) {
    const from = now - holder.held_for_ms;
    row(holder.owner, holder.node).boxes.push({ kind: 'inside', from, ...lasts });
  }
  for (const { owner, node, waited_for_ms: waited } of waiters) {
    row(owner, node).boxes.push({ kind: 'waiting', from: now - waited, ...lasts });
  }
  for (const event of [...recent].reverse()) {
    const box = boxOf(event);
    if (box && box.from <= now) row(event.owner, event.node).boxes.push(box);
  }
  const all = [...rows.values()];
  const shown = all.slice(0, ROWS_MAX);
  const lasting = shown.flatMap(({ boxes }) => boxes.filter(({ isNow }) => isNow));
  const oldest = Math.min(now, ...lasting.map(({ from }) => from));
  const wanted = (now - oldest) * 1.1;
  const most = REACHES[REACHES.length - 1];
  return {
    rows: shown,
    reach: REACHES.find((reach) => reach >= wanted) ?? most,
    more: all.length - shown.length,
  };
}

/**
 * What an event ends: a wait or a hold.
 * @param {LockEvent} event
 * @returns {Box | null}
 */
function boxOf({ event, at_unix_ms: to, after_us: after }) {
  if (after === undefined) return null;
  const ended = { from: to - after / 1000, to, isNow: false };
  switch (event) {
    case 'acquired':
      return { kind: 'waiting', ...ended, isBad: false };
    case 'gave-up':
      return { kind: 'waiting', ...ended, isBad: true };
    case 'released':
      return { kind: 'inside', ...ended, isBad: false };
    case 'lost':
      return { kind: 'inside', ...ended, isBad: true };
    default:
      return null;
  }
}

/**
 * An event as a sentence without its subject.
 * @param {LockEvent} event
 * @param {(ms: number) => string} span
 */
export function sentence({ event, after_us: after, fence, reason, missed }, span) {
  const passed = after === undefined ? '' : ` after ${span(after / 1000)}`;
  switch (event) {
    case 'waiting':
      return 'begins to wait';
    case 'acquired':
      return `gets it${passed}${fence ? `, fence ${fence}` : ''}`;
    case 'released':
      return `leaves${passed}`;
    case 'lost':
      return `loses it${passed}${reason ? `: ${reason}` : ''}`;
    case 'gave-up':
      return `gives up${passed}`;
    case 'missed':
      return `${missed ?? 'some'} events were left out here`;
    default:
      return event;
  }
}
