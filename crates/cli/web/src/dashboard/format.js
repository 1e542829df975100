/** Times and lists as text. */

/** @import { Problem } from './messages.js' */

/** @param {number} n */
const two = (n) => String(n).padStart(2, '0');

/**
 * A length of time: 38 ms, 1.9 s, 42 s, 3 min 04 s, 2 h 05 min, 3 d 4 h.
 * @param {number} ms
 */
export function span(ms) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 0.9995) {
    const exact = seconds * 1000;
    return `${exact < 9.95 && exact > 0 ? exact.toFixed(1) : Math.round(exact)} ms`;
  }
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return `${minutes} min ${two(rounded % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${two(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * A length of time that somebody has chosen: 3 s, 4 min.
 * @param {number} ms
 */
export function length(ms) {
  return span(ms)
    .replace(/\.0 (m?s)$/, ' $1')
    .replace(/ 00 (s|min)$/, '');
}

/**
 * A moment of the day, in the browser's time zone.
 * @param {number} ms since 1970
 */
export function clock(ms) {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/**
 * The same with the date, for a text that is read later.
 * @param {number} ms since 1970
 */
export function stamp(ms) {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/**
 * For how long a problem is known, or when it was seen last.
 * @param {Problem} problem
 * @param {number} at when the problems were examined
 * @param {number} now
 */
export function lasting({ since_ms: since, last_seen_ms: seen, is_over: isOver }, at, now) {
  if (isOver) return `over, last seen ${span(now - seen)} ago`;
  if (seen < at) return `not examined, last seen ${span(now - seen)} ago`;
  return `for ${span(now - since)}`;
}

/**
 * The same with the time of day, if the problem was found.
 * @param {Problem} problem
 * @param {number} at when the problems were examined
 * @param {number} now
 */
export function when(problem, at, now) {
  const text = lasting(problem, at, now);
  return text.startsWith('for') ? `${text}, since ${clock(problem.since_ms)}` : text;
}

/**
 * a, b and c
 * @param {string[]} words
 */
export function list(words) {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} and ${words[words.length - 1]}`;
}

/**
 * @param {number} n
 * @param {string} one
 * @param {string} many
 */
export function count(n, one, many) {
  return `${whole(n)} ${n === 1 ? one : many}`;
}

/**
 * 1,284
 * @param {number} n
 */
export function whole(n) {
  return Math.round(n).toLocaleString('en');
}

/**
 * An argument of a shell command. Names are hostile text.
 * @param {string} text
 */
export function quoted(text) {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
