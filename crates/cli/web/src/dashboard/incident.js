/** The page as plain text, for the channel or ticket of an incident. */

/** @import { Change, Lock, Overview } from './messages.js' */
import { reason as why } from './changed.js';
import { lasting, list, span, stamp } from './format.js';
import { OLD_MS } from './messages.js';

/**
 * @param {Overview} overview
 * @param {Change[]} changes oldest first
 * @param {{ now: number, lostFor: number | null, lock: Lock | null }} moment
 */
export function incident(overview, changes, { now, lostFor, lock }) {
  return [
    `soloist, ${stamp(now)}, ${seenFrom(overview)}`,
    ...oldText(now - overview.at_ms, lostFor),
    '',
    overview.verdict,
    overview.detail,
    '',
    ...problems(overview, now),
    ...(overview.well.length > 0 ? [`Looked at and well: ${overview.well.join('; ')}.`, ''] : []),
    ...members(overview, now),
    ...(lock ? ['', ...lockLines(lock)] : []),
    '',
    'What changed in the last 15 minutes:',
    ...(changes.length === 0 ? ['nothing'] : []),
    ...[...changes].reverse().map((it) => `${stamp(it.at_ms)}  ${it.what}: ${why(it)}`),
    '',
  ].join('\n');
}

/**
 * @param {number} age of the overview
 * @param {number | null} lostFor
 */
function oldText(age, lostFor) {
  if (lostFor !== null) return [`CONNECTION LOST ${span(lostFor)} AGO: what follows is old.`];
  if (age <= OLD_MS) return [];
  return [`NO OVERVIEW FROM THE NODE FOR ${span(age)}: what follows is old.`];
}

/** @param {Overview} overview */
function seenFrom({ from, epoch, silent, without_lease_for_ms: without }) {
  const lease =
    typeof without === 'number'
      ? `, WHICH HAS HAD NO LEASE FOR ${span(without)}: what follows may be old`
      : '';
  const noAnswer = silent.length > 0 ? `; no answer from ${list(silent)}` : '';
  return `seen from ${from}, epoch ${epoch}${lease}${noAnswer}`;
}

/**
 * @param {Overview} overview
 * @param {number} now
 */
function problems({ problems: all, at_ms: at }, now) {
  return all.flatMap((problem, i) => [
    `${i + 1}. ${problem.title} (${problem.level}, ${lasting(problem, at, now)})`,
    `   ${problem.text}`,
    ...problem.commands.map(({ label, command }) => `   ${label}: ${command}`),
    '',
  ]);
}

/**
 * @param {Overview} overview
 * @param {number} now
 */
function members({ members: all, outside, keepers, leader }, now) {
  const out = outside.map(
    ({ name, state, reason, since_ms: at }) =>
      `${name} ${state}${at ? ` ${span(now - at)} ago` : ''}${reason ? ` (${reason})` : ''}`,
  );
  return [
    `Members: ${all.map(({ name }) => name).join(', ') || 'none'}`,
    `Outside: ${out.join('; ') || 'none'}`,
    `Keepers: ${keepers.map(({ name, state }) => `${name} ${state}`).join(', ')}; leader: ${leader ?? 'none'}`,
  ];
}

/** @param {Lock} lock */
function lockLines({ name, state, holder, waiters, waiting }) {
  const inside = holder
    ? `${holder.owner} on ${holder.node} for ${span(holder.held_for_ms)}, fence ${holder.fence}`
    : `nobody (${state})`;
  const queue = waiters.map((it) => `${it.owner} on ${it.node} for ${span(it.waited_for_ms)}`);
  return [
    `Lock ${name}: inside is ${inside}`,
    `  ${waiting} wait${queue.length > 0 ? `: ${queue.join(', ')}` : ''}`,
  ];
}
