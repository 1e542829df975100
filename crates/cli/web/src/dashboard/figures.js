/** Figures of the last 15 minutes, each with a line and the events that explain it. */

/** @import { Change, Point } from './messages.js' */
/** @import { Model } from './model.js' */
import { html, say, svg } from '../dom.js';
import { span, whole } from './format.js';
import { REACH_MS } from './messages.js';
import { columns, latest } from './model.js';
import { Picture } from './parts.js';

const HEIGHT = 40;
/** Labels of marks that are closer are left out. */
const LABEL_APART = 28;

/**
 * @typedef {Object} Figure
 * @property {string} title
 * @property {(point: Point) => number | null} value
 * @property {(points: (Point | null)[]) => [string, string]} text the figure, and what belongs to it
 */

/** @type {Figure[]} */
const FIGURES = [
  {
    title: 'Entries',
    value: ({ entries }) => entries,
    text: (points) => {
      const last = latest(points, ({ entries }) => entries);
      return [last === null ? '–' : whole(last), 'a second'];
    },
  },
  {
    title: 'Waiting, p99',
    value: ({ wait_p99_ms: value }) => value,
    text: (points) => percentiles(points, 'wait_p50_ms', 'wait_p99_ms'),
  },
  {
    title: 'Hand-over, p99',
    value: ({ hand_over_p99_ms: value }) => value,
    text: (points) => percentiles(points, 'hand_over_p50_ms', 'hand_over_p99_ms'),
  },
  {
    title: 'Holds lost',
    value: ({ lost }) => lost,
    text: (points) => [
      whole(points.reduce((sum, point) => sum + (point?.lost ?? 0), 0)),
      'in 15 minutes',
    ],
  },
];

/**
 * @param {(Point | null)[]} points
 * @param {'wait_p50_ms' | 'hand_over_p50_ms'} middle
 * @param {'wait_p99_ms' | 'hand_over_p99_ms'} high
 * @returns {[string, string]}
 */
function percentiles(points, middle, high) {
  const [p50, p99] = [latest(points, (it) => it[middle]), latest(points, (it) => it[high])];
  const peak = Math.max(...columns(points, (it) => it[high], 1).map((it) => it ?? 0));
  const half = p50 === null ? '' : `p50 ${span(p50)}, `;
  return [p99 === null ? '–' : span(p99), peak > 0 ? `${half}peak ${span(peak)}` : 'nobody waited'];
}

export class Figures {
  /**
   * @param {HTMLElement} parent
   * @param {Model} model
   */
  constructor(parent, model) {
    this.model = model;
    this.parts = FIGURES.map((figure) => {
      const value = html('span');
      const small = html('small');
      const picture = new Picture((width) => this.draw(figure, width));
      picture.element.classList.add('spark');
      parent.append(
        html(
          'div',
          { 'data-figure': figure.title },
          html('h3', {}, figure.title),
          html('div', { class: 'value' }, value, ' ', small),
          picture.element,
        ),
      );
      return { figure, value, small, picture };
    });
  }

  show() {
    for (const { figure, value, small, picture } of this.parts) {
      const [text, rest] = figure.text(this.model.points);
      say(value, text);
      say(small, rest);
      picture.redraw();
    }
  }

  /**
   * @param {Figure} figure
   * @param {number} width
   */
  draw({ title, value }, width) {
    const values = columns(this.model.points, value, Math.floor(width));
    const top = Math.max(1e-9, ...values.map((it) => it ?? 0)) * 1.05;
    const step = values.length > 1 ? width / (values.length - 1) : 0;
    const y = (/** @type {number} */ it) => (HEIGHT - (it / top) * (HEIGHT - 2)).toFixed(1);
    let [line, area, begin] = ['', '', -1];
    for (let i = 0; i <= values.length; i++) {
      const it = values[i] ?? null;
      if (it === null) {
        const end = ((i - 1) * step).toFixed(1);
        if (begin >= 0) area += `L${end} ${HEIGHT}L${(begin * step).toFixed(1)} ${HEIGHT}Z`;
        begin = -1;
        continue;
      }
      const at = `${(i * step).toFixed(1)} ${y(it)}`;
      line += `${begin < 0 ? 'M' : 'L'}${at}`;
      area += `${begin < 0 ? 'M' : 'L'}${at}`;
      if (begin < 0) begin = i;
    }
    return svg(
      'svg',
      { width, height: HEIGHT + 14, role: 'img', 'aria-label': `${title}, the last 15 minutes` },
      svg('path', { class: 'area', d: area }),
      svg('path', { class: 'line', d: line }),
      svg('line', { class: 'axis', x1: 0, x2: width, y1: HEIGHT, y2: HEIGHT }),
      this.marks(width),
    );
  }

  /** @param {number} width */
  marks(width) {
    const end = (this.model.from + this.model.points.length) * 1000;
    let free = -Infinity;
    return marked(this.model.changes, end).map(({ at, node }) => {
      const x = width * (1 - (end - at) / REACH_MS);
      const hasLabel = x - free >= LABEL_APART;
      if (hasLabel) free = x;
      const anchor = x > width - 16 ? 'end' : x < 16 ? 'start' : 'middle';
      return svg(
        'g',
        { class: 'mark' },
        svg('line', { x1: x, x2: x, y1: 0, y2: HEIGHT }),
        hasLabel && svg('text', { x, y: HEIGHT + 12, 'text-anchor': anchor }, node),
      );
    });
  }
}

/**
 * Nodes that went, with the moment.
 * @param {Change[]} changes
 * @param {number} end
 */
export function marked(changes, end) {
  return changes.flatMap(({ kind, node, at_ms: at }) =>
    kind === 'evicted' && node && at > end - REACH_MS && at <= end ? [{ at, node }] : [],
  );
}
