/** Text for people: numbers with their nouns, names that fit, and names that cannot turn a line. */

/** Longer names of nodes are cut. */
export const NAME_MAX = 16;

/**
 * A number with its noun.
 * @param {number} n
 * @param {string} one
 * @param {string} more
 */
export function many(n, one, more) {
  return `${n} ${n === 1 ? one : more}`;
}

/**
 * The text, cut to at most `most` characters.
 * @param {string} text
 * @param {number} most
 */
export function shorten(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/**
 * A name, cut to at most `most` characters. Both ends stay: names often differ in the last
 * character only.
 * @param {string} name
 * @param {number} most
 */
export function shortenName(name, most) {
  const characters = [...name];
  if (characters.length <= most) return name;
  const end = Math.floor((most - 1) / 2);
  const begin = most - 1 - end;
  const last = end > 0 ? characters.slice(-end) : [];
  return [...characters.slice(0, begin), '…', ...last].join('');
}

/** The width of a character, in parts of the size of the font. A wide one is as wide as high. */
const NARROW = 0.6;

/**
 * About how wide a text is, in px.
 * @param {string} text
 * @param {number} size of the font
 */
export function widthOf(text, size) {
  let width = 0;
  for (const character of text) width += character < '\u1100' ? NARROW : 1;
  return width * size;
}

/**
 * The text with a capital at its beginning.
 * @param {string} text
 */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * The sentence with its full stop.
 * @param {string} text
 */
export function closed(text) {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

export const NO_BREAK = '\u00a0';

/**
 * The title, so that no line begins with a number: "Figs. 2 and 3" stays together.
 * @param {string} title
 */
export function unbroken(title) {
  return title.replaceAll(/(?: and)? (?=\d)/g, (gap) => gap.replaceAll(' ', NO_BREAK));
}

/**
 * The items as they are said: "a, b and c".
 * @param {string[]} items
 */
export function listed(items) {
  if (items.length < 2) return items.join('');
  return `${items.slice(0, -1).join(', ')} and ${items[items.length - 1]}`;
}

/** No plain name has these: a character with a direction, or one that changes it. */
const UNUSUAL = /[^\x20-\x7e]/;
const FIRST_STRONG_ISOLATE = '\u2068';
const POP_ISOLATE = '\u2069';

/**
 * The name, so that it does not change the direction of the text around it. A name that could do
 * that begins an isolate, and cannot end it before its own end.
 * @param {string} name
 */
export function isolate(name) {
  if (!UNUSUAL.test(name)) return name;
  const inner = name.replaceAll(/[\u2066-\u2069]/g, '');
  return FIRST_STRONG_ISOLATE + inner + POP_ISOLATE;
}

/**
 * Isolates names in texts of the lab. The function that it returns does so for one text.
 * @param {string[]} names
 * @returns {(text: string) => string}
 */
export function isolator(names) {
  const unusual = names.filter((name) => UNUSUAL.test(name));
  if (unusual.length === 0) return (text) => text;
  // A name may be the beginning of a longer one.
  unusual.sort((a, b) => b.length - a.length);
  const escaped = unusual.map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const any = new RegExp(escaped.join('|'), 'g');
  return (text) => text.replaceAll(any, isolate);
}
