/** What the node has told, folded from its pushes. The page knows no rule: it shows this. */

/** @import { Change, History, Overview, Point } from './messages.js' */
import { OLD_MS, REACH_MS } from './messages.js';

const SECONDS = REACH_MS / 1000;
/** Of members and epochs, and as many of losses and links. */
const CHANGES_MAX = 1000;
const LOCAL = new Set(['lost', 'link-down', 'link-up']);

export class Model {
  constructor() {
    /** @type {Overview | null} */
    this.overview = null;
    /** The last overview of a node that had a lease: without one, it knows no members. */
    this.informed = /** @type {Overview | null} */ (null);
    /** When the overview came, by the page's clock. */
    this.heardAt = 0;
    /** The second of the first point. */
    this.from = 0;
    /** @type {(Point | null)[]} */
    this.points = [];
    /** Oldest first. @type {Change[]} */
    this.changes = [];
    /** Whether the next points and changes are all that the node has kept. */
    this.isNewHistory = true;
    this.areNewChanges = true;
  }

  /** The page follows a node from now on: what an earlier one told does not count. */
  restart() {
    this.isNewHistory = true;
    this.areNewChanges = true;
  }

  /**
   * @param {Overview} overview
   * @param {number} at by the page's clock
   */
  hear(overview, at) {
    this.overview = overview;
    if (hasLease(overview)) this.informed = overview;
    this.heardAt = at;
  }

  /**
   * Now by the node's clock.
   * @param {number} at by the page's clock
   */
  now(at) {
    return this.overview ? this.overview.at_ms + (at - this.heardAt) : Date.now();
  }

  /**
   * Whether the node has sent no overview for too long. Other messages do not count.
   * @param {number} at by the page's clock
   */
  isOld(at) {
    return this.overview !== null && at - this.heardAt > OLD_MS;
  }

  /**
   * Puts points at their seconds, and drops those that are too old. A whole history replaces the
   * one before: the node's clock may have been set back.
   * @param {History} history
   */
  extend({ from_s: from, points }) {
    if (this.isNewHistory || points.length >= SECONDS) this.points = [];
    this.isNewHistory = false;
    if (points.length === 0) return;
    const end = Math.max(
      from + points.length,
      this.points.length > 0 ? this.from + this.points.length : 0,
    );
    const begin = end - SECONDS;
    const merged = Array.from({ length: SECONDS }, (_, i) => {
      const second = begin + i;
      const fresh = second - from;
      if (fresh >= 0 && fresh < points.length) return points[fresh];
      return this.points[second - this.from] ?? null;
    });
    this.from = begin;
    this.points = merged;
  }

  /** Adds changes. One that was told before is replaced. @param {Change[]} changes */
  add(changes) {
    const known = this.areNewChanges ? [] : this.changes;
    this.areNewChanges = false;
    const all = new Map([...known, ...changes].map((change) => [change.id, change]));
    const sorted = [...all.values()].sort((a, b) => a.at_ms - b.at_ms);
    const last = [true, false].flatMap((isLocal) =>
      sorted.filter(({ kind }) => LOCAL.has(kind) === isLocal).slice(-CHANGES_MAX),
    );
    const kept = new Set(last);
    this.changes = sorted.filter((change) => kept.has(change));
  }

  /** Changes that are not older than the page looks back, oldest first. @param {number} now */
  recent(now) {
    return this.changes.filter(({ at_ms: at }) => at > now - REACH_MS);
  }
}

/** @param {Overview} overview */
export function hasLease({ without_lease_for_ms: without }) {
  return typeof without !== 'number';
}

/**
 * The values of a line that is so many pixels wide: the largest of each pixel's seconds, or null.
 * @param {(Point | null)[]} points
 * @param {(point: Point) => number | null} value
 * @param {number} width
 * @returns {(number | null)[]}
 */
export function columns(points, value, width) {
  const wanted = Math.max(1, Math.min(width, points.length));
  /** @type {(number | null)[]} */
  const result = new Array(wanted).fill(null);
  for (const [i, point] of points.entries()) {
    const of = point && value(point);
    if (of === null) continue;
    const column = Math.floor((i * wanted) / points.length);
    result[column] = Math.max(result[column] ?? 0, of);
  }
  return result;
}

/**
 * The last value that is known, in the last seconds.
 * @param {(Point | null)[]} points
 * @param {(point: Point) => number | null} value
 */
export function latest(points, value) {
  for (const point of points.slice(-10).reverse()) {
    const of = point && value(point);
    if (of !== null) return of;
  }
  return null;
}
