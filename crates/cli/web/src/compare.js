/** Two runs with the same demands on one axis of time, and how many messages each has sent. */

/** @import { Run } from './model.js' */
/** @import { Player } from './player.js' */
import { html, say, set, setAll, svg } from './dom.js';
import { Model } from './model.js';

/** Two models that move together. */
export class Pair {
  /** @param {[Run, Run]} runs */
  constructor(runs) {
    this.models = runs.map((run) => new Model(run));
    const events = this.models.flatMap(({ run }, side) =>
      run.steps.map(({ time }, i) => ({ time, side, i })),
    );
    events.sort((a, b) => a.time - b.time || a.side - b.side || a.i - b.i);
    this.times = [0, ...events.map(({ time }) => time)];
    /** Position of each run at each position of both. */
    this.positions = [[0, 0]];
    for (const { side } of events) {
      const [a, b] = this.positions[this.positions.length - 1];
      this.positions.push(side === 0 ? [a + 1, b] : [a, b + 1]);
    }
    this.at = 0;
  }

  get length() {
    return this.positions.length - 1;
  }

  /** @param {number} to */
  go(to) {
    this.at = Math.max(0, Math.min(this.length, Math.trunc(to) || 0));
    this.models.forEach((model, side) => model.go(this.positions[this.at][side]));
  }

  /** @param {number} from */
  nextEntry(from) {
    const total = this.positions.map(
      ([a, b]) => this.models[0].entries[a] + this.models[1].entries[b],
    );
    const next = total.findIndex((count, i) => i > from && count > total[from]);
    return next < 0 ? this.length : next;
  }
}

const LEFT = 56;
const RIGHT = 168;
const HEIGHT = 200;
const FOOT = 176;
/** From the name at the end of a line to its count, and where the first line may be. */
const VALUE_LINE = 18;
const VALUE_TOP = 14;

/** Messages sent, over time: a line for each run, with a dot for each entry. */
export class Counts extends HTMLElement {
  width = 0;
  /** @type {Pair | undefined} */
  pair;

  picture = svg('svg', { height: HEIGHT, role: 'img', 'aria-label': 'Messages sent, over time' });

  /** @param {Player} player */
  connect(player) {
    this.append(html('h2', {}, 'Messages sent, over time in message delays'), this.picture);
    this.picture.addEventListener('click', (event) => {
      const { pair } = this;
      if (!pair) return;
      const time = ((event.offsetX - LEFT) / (this.width - LEFT - RIGHT)) * this.#end(pair);
      const at = pair.times.findLastIndex((it) => it <= time);
      player.go(Math.max(0, at));
    });
    new ResizeObserver(([entry]) => {
      this.width = entry.contentRect.width;
      const { pair } = this;
      // Nothing has a place while the comparison is hidden.
      if (!pair || this.width === 0) return;
      this.#build(pair);
      this.show(pair);
    }).observe(this.picture);
  }

  /** @param {Pair} pair */
  #end(pair) {
    return pair.times[pair.length] || 1;
  }

  /** @param {Pair} pair */
  #build(pair) {
    const end = this.#end(pair);
    const most = Math.max(1, ...pair.models.map((model) => model.sent[model.length]));
    const x = (/** @type {number} */ time) => LEFT + (time / end) * (this.width - LEFT - RIGHT);
    const y = (/** @type {number} */ count) => FOOT - (count / most) * (FOOT - 16);
    this.x = x;
    const lines = pair.models.flatMap((model, side) => {
      const { steps } = model.run;
      const path = steps.map(({ time }, i) => `H${x(time)}V${y(model.sent[i + 1])}`).join('');
      const entries = steps.flatMap(({ enter, time }, i) =>
        enter ? [`M${x(time)} ${y(model.sent[i + 1])}h0`] : [],
      );
      return [
        svg('path', { class: `count side-${side}`, d: `M${x(0)} ${y(0)}${path}H${x(end)}` }),
        svg('path', { class: 'entries', d: entries.join('') }),
      ];
    });
    const step = nice(most / 4);
    const ticks = Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step).flatMap(
      (n) => [
        svg('line', { class: 'grid', x1: LEFT, x2: this.width - RIGHT, y1: y(n), y2: y(n) }),
        svg('text', { class: 'tick', x: LEFT - 8, y: y(n) + 4, 'text-anchor': 'end' }, String(n)),
      ],
    );
    const wide = nice(end / 8);
    const times = Array.from({ length: Math.floor(end / wide) + 1 }, (_, i) => i * wide).map((t) =>
      svg('text', { class: 'tick', x: x(t), y: FOOT + 18, 'text-anchor': 'middle' }, String(t)),
    );
    this.veil = svg('rect', { class: 'veil', y: 0, height: FOOT + 2 });
    this.head = svg('line', { class: 'head', y1: 8, y2: FOOT });
    this.values = pair.models.map(({ run }, side) =>
      svg(
        'text',
        { class: `value side-${side}` },
        svg('tspan', {}, run.algorithm),
        svg('tspan', { class: 'sum', dy: VALUE_LINE }),
      ),
    );
    this.y = y;
    set(this.picture, 'width', '100%');
    this.picture.replaceChildren(
      ...ticks,
      ...times,
      ...lines,
      this.veil,
      this.head,
      ...this.values,
    );
  }

  /** @param {Pair} pair */
  show(pair) {
    const isNew = this.pair !== pair;
    this.pair = pair;
    if (this.width === 0) return;
    if (isNew) this.#build(pair);
    const { x, y, head, veil, values } = this;
    if (!x || !y || !head || !veil || !values) return;
    const now = x(pair.times[pair.at]);
    setAll(head, { x1: now, x2: now });
    setAll(veil, { x: now, width: Math.max(0, this.width - RIGHT + 4 - now) });
    // Beside the end of each line, where no line is.
    const ends = pair.models.map((model) => y(model.sent[model.length]));
    const apart = Math.abs(ends[0] - ends[1]);
    const shift = Math.max(0, 2 * VALUE_LINE + 4 - apart) / 2;
    pair.models.forEach((model, side) => {
      const above = ends[side] < ends[1 - side] || (ends[0] === ends[1] && side === 0);
      const line = ends[side] + 4 + (above ? -shift : shift);
      const [name, sum] = values[side].children;
      set(values[side], 'y', Math.max(VALUE_TOP, line));
      for (const part of [name, sum]) set(part, 'x', this.width - RIGHT + 8);
      say(sum, `${model.sent[model.at]} of ${model.sent[model.length]}`);
    });
  }
}

/** @param {number} least */
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? power;
}
