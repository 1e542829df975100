/** What changed: membership as lanes, and every change with its reason. */

/** @import { BrokenLink, Change, Overview } from './messages.js' */
/** @import { Model } from './model.js' */
import { glyph, html, Keyed, say, set, svg } from '../dom.js';
import { clock, count, list } from './format.js';
import { lanesOf } from './lanes.js';
import { REACH_MS } from './messages.js';
import { Picture } from './parts.js';

const ROW = 24;
const TOP = 24;
const ROWS_MAX = 200;
/** The rest is shown if somebody wants it. */
const ROWS_FEW = 24;

export class Changed {
  /**
   * @param {HTMLElement} section
   * @param {Model} model
   * @param {() => number} now by the node's clock
   */
  constructor(section, model, now) {
    this.model = model;
    this.now = now;
    this.lead = html('p', { class: 'muted' });
    this.picture = new Picture((width) => this.draw(width));
    this.body = html('tbody');
    this.rows = new Keyed(this.body, changeRow, updateRow);
    this.none = html('p', { class: 'muted' }, 'Nothing changed.');
    this.isWhole = false;
    this.more = html('button', {
      type: 'button',
      class: 'link',
      onclick: () => {
        this.isWhole = true;
        if (model.overview) this.show(model.overview);
      },
    });
    section.append(
      html('h2', {}, 'What changed in the last 15 minutes'),
      this.lead,
      this.picture.element,
      html('table', { class: 'changes', 'aria-label': 'Changes, newest first' }, this.body),
      this.none,
      this.more,
    );
  }

  /** @param {Overview} overview */
  show(overview) {
    const links = overview.links_down;
    const names = links.map(({ from, to }) => `${from} to ${to}`);
    const state =
      links.length === 0
        ? 'No link is broken.'
        : `${links.length === 1 ? 'One link is' : count(links.length, 'link is', 'links are')} broken: ${list(names)}.`;
    say(
      this.lead,
      `A line is a member, thick where it leads, dashed red where it is out. ${state}`,
    );
    const all = this.model.recent(this.now()).reverse();
    const changes = all.slice(0, this.isWhole ? ROWS_MAX : ROWS_FEW);
    const rest = Math.min(all.length, ROWS_MAX) - changes.length;
    say(this.more, `Show ${count(rest, 'earlier change', 'earlier changes')}`);
    set(this.more, 'hidden', rest === 0);
    const broken = brokenNow(all, links);
    this.rows.syncInOrder(
      // A change of which more is known now gets a new row.
      changes.map((change) => [JSON.stringify(change), { change, isStill: broken.has(change) }]),
    );
    set(this.none, 'hidden', changes.length > 0);
    this.picture.redraw();
  }

  /** @param {number} width */
  draw(width) {
    const { informed: overview, changes } = this.model;
    if (!overview) return svg('svg', { width, height: 0 });
    const now = this.now();
    const begin = now - REACH_MS;
    const { lanes, epochs, quiet } = lanesOf(overview, changes, begin, now);
    const longest = Math.max(...lanes.map(({ name }) => name.length), 2);
    const gutter = Math.min(width / 4, 16 + longest * 7.3);
    const height = TOP + lanes.length * ROW + 24 + (quiet > 0 ? 16 : 0);
    const x = (/** @type {number} */ at) =>
      gutter + Math.max(0, (at - begin) / REACH_MS) * (width - gutter - 8);
    const bottom = TOP + lanes.length * ROW;
    const ticks = [15, 10, 5, 0].map((minutes) =>
      svg(
        'text',
        {
          x: x(now - minutes * 60_000),
          y: bottom + 20,
          'text-anchor': minutes === 15 ? 'start' : minutes === 0 ? 'end' : 'middle',
        },
        minutes === 0 ? 'now' : clock(now - minutes * 60_000).slice(0, 5),
      ),
    );
    return svg(
      'svg',
      { class: 'lanes', width, height, role: 'img', 'aria-label': 'Members over 15 minutes' },
      epochLines(epochs, x, bottom, width),
      lanes.map((lane, i) => drawLane(lane, TOP + ROW / 2 + i * ROW, x, { begin, now, gutter })),
      ticks,
      quiet > 0 &&
        svg(
          'text',
          { x: 0, y: height - 2 },
          `and ${count(quiet, 'member', 'members')} to which nothing happened`,
        ),
    );
  }
}

/**
 * The last break of each link that is down.
 * @param {Change[]} changes newest first
 * @param {BrokenLink[]} links
 * @returns {Set<Change>}
 */
export function brokenNow(changes, links) {
  const breaks = changes.filter(({ kind }) => kind === 'link-down');
  const last = links.map((link) =>
    breaks.find((change) => change.node === link.to && reporter(change) === link.from),
  );
  return new Set(last.flatMap((change) => change ?? []));
}

/**
 * The reason of a change as a sentence. A join needs none, but has an effect.
 * @param {Change} change
 */
export function reason({ kind, epoch, why }) {
  if (why === '' && kind === 'joined' && epoch) return `It is a member from epoch ${epoch} on.`;
  if (why === '' && kind === 'left') return 'It left in good order.';
  // Not a node's name, which keeps its first letter.
  return why.replace(/^the /, 'The ');
}

/**
 * The node that noted a change of its own: the id is its name and a number.
 * @param {Change} change
 */
function reporter({ id }) {
  return id.slice(0, id.lastIndexOf(':'));
}

/**
 * @param {{ epoch: number, at: number }[]} epochs
 * @param {(at: number) => number} x
 * @param {number} bottom
 * @param {number} width
 */
function epochLines(epochs, x, bottom, width) {
  let free = width;
  // The newest label is the one that counts.
  return [...epochs].reverse().map(({ epoch, at }) => {
    const line = x(at);
    const text = width < 640 ? String(epoch) : `epoch ${epoch}`;
    const size = text.length * 7;
    // Beside its line, to the left if there is no room to the right.
    const begin = line + 4 + size > width ? line - 4 - size : line + 4;
    const hasLabel = begin + size <= free;
    if (hasLabel) free = begin - 8;
    return svg(
      'g',
      {},
      svg('line', { class: 'axis', x1: line, x2: line, y1: hasLabel ? 0 : 16, y2: bottom }),
      hasLabel && svg('text', { x: begin, y: 12 }, text),
    );
  });
}

/**
 * @param {import('./lanes.js').Lane} lane
 * @param {number} y
 * @param {(at: number) => number} x
 * @param {{ begin: number, now: number, gutter: number }} frame
 */
function drawLane({ name, spans, leads }, y, x, { begin, gutter }) {
  const letters = Math.floor((gutter - 8) / 7.3);
  const short = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
  const cross = (/** @type {number} */ at) =>
    svg('path', { class: 'cross', d: `M${at - 5} ${y - 5}l10 10m0 -10l-10 10` });
  return svg(
    'g',
    { 'data-lane': name },
    svg('text', { class: 'who', x: 0, y: y + 4 }, svg('title', {}, name), short),
    // A node that joins was not missing before.
    spans.slice(spans.length > 1 && !spans[0].isMember ? 1 : 0).map(({ from, to, isMember }) =>
      svg('line', {
        class: isMember ? 'lane' : 'lane out',
        x1: x(from),
        x2: x(to),
        y1: y,
        y2: y,
      }),
    ),
    spans
      .filter(({ from }) => from > begin)
      .map(({ from, isMember }) =>
        isMember ? svg('circle', { class: 'join', cx: x(from), cy: y, r: 4 }) : cross(x(from)),
      ),
    leads.map(({ from, to }) =>
      svg(
        'g',
        {},
        svg('line', { class: 'leads', x1: x(from), x2: x(to), y1: y, y2: y }),
        x(to) - x(from) > 48 && svg('text', { class: 'strong', x: x(from) + 8, y: y - 7 }, 'leads'),
      ),
    ),
  );
}

/** @typedef {{ change: Change, isStill: boolean }} Shown */

/** @param {Shown} shown */
function changeRow({ change }) {
  return html(
    'tr',
    { 'data-change': change.kind },
    html('td', { class: 'mono' }, clock(change.at_ms)),
    html(
      'td',
      { dir: 'auto' },
      glyph(change.is_bad ? 'fault' : 'plain'),
      html('strong', {}, change.what),
      html('span', { class: 'fault' }),
    ),
    html('td', { class: 'muted', dir: 'auto' }, reason(change)),
  );
}

/**
 * @param {HTMLElement} row
 * @param {Shown} shown
 */
function updateRow(row, { isStill }) {
  const still = row.querySelector('span.fault');
  if (still) say(still, isStill ? ' still' : '');
}
