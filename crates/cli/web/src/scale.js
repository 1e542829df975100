/** The scale of the space-time diagram: where positions and nodes are in its window. */

/** @import { Message, Model } from './model.js' */
import { DOTS_ABOVE } from './geometry.js';
import { isolate, NAME_MAX, shortenName, widthOf } from './words.js';

const COLUMN = { min: 4, usual: 14, max: 96 };
/** Columns at least as wide have labels. */
const LABELS_FROM = 60;
/** Above this many lines, only nodes that are active in the window have one. */
const ROWS_MAX = DOTS_ABOVE;
/** The names of nodes stand at the left. */
const GUTTER_MIN = 56;
/** Names are indented by their depth in a tree, as far as there is room. */
const INDENT = { each: 6, max: 24 };
/** Room above the first line: for the numbers of the steps, and for labels below them. */
const TOP = { plain: 20, labels: 28 };
/** Room below the last line: labels below events reach into it. */
const BOTTOM = { plain: 8, labels: 16 };
/** Height of a line, of one that has room for labels, and of all lines of a small cluster. */
const ROW = { min: 14, labels: 20, max: 40, all: 224 };

export class Scale {
  /** Size of the part that is visible. */
  width = 0;
  tall = 0;
  /** How far it is scrolled. */
  left = 0;
  up = 0;
  /** Factor that the user chose. */
  zoom = 1;
  gutter = GUTTER_MIN;
  column = COLUMN.usual;
  top = TOP.plain;
  row = 20;
  height = 0;
  /** Positions from one number to the next. */
  every = 10;
  /** Whether events have labels. */
  labelled = false;
  /** The line of each node that has one. @type {Map<number, number>} */
  lines = new Map();
  /** The steps in the window. */
  window = { first: 0, last: -1 };
  /** How far it was scrolled when the window was last found. */
  seen = 0;
  /** @type {Model | undefined} */
  model;
  /** Depth of each node. @type {Map<number, number>} */
  depths = new Map();

  /** Room for steps. */
  get room() {
    return this.width - this.gutter - 8;
  }

  /**
   * The place of a position in the window.
   * @param {number} position
   */
  x(position) {
    return this.gutter + position * this.column - this.left;
  }

  /** @param {number} node */
  y(node) {
    return this.lines.get(node) ?? -100;
  }

  /**
   * The position at a place in the window.
   * @param {number} x
   */
  position(x) {
    const position = Math.round((x - this.gutter + this.left) / this.column);
    return Math.max(0, Math.min(this.model?.length ?? 0, position));
  }

  /**
   * The node whose line is nearest to a place.
   * @param {number} y
   * @returns {number | undefined}
   */
  nodeAt(y) {
    const found = [...this.lines].find(([, line]) => Math.abs(line - y) <= this.row / 2);
    return found?.[0];
  }

  /**
   * The line of a message, from where it is sent to where it arrives. That of a message which never
   * arrives is short.
   * @param {Message} message
   */
  line({ from, to, sent, got }) {
    const x1 = this.x(sent);
    const y1 = this.y(from);
    if (got !== Infinity) return { x1, y1, x2: this.x(got), y2: this.y(to) };
    const towards = Math.sign(this.y(to) - y1);
    return { x1, y1, x2: x1 + this.column * 1.2, y2: y1 + towards * this.row * 0.7 };
  }

  /** @param {number} node */
  indent(node) {
    return Math.min((this.depths.get(node) ?? 0) * INDENT.each, INDENT.max);
  }

  /** @param {number} node */
  name(node) {
    return isolate(shortenName(this.model?.run.names[node] ?? '', NAME_MAX));
  }

  /**
   * Finds the width of columns. Returns that of the whole run.
   * @param {Model} model
   */
  measure(model) {
    if (this.model?.run.names !== model.run.names) {
      this.depths = new Map(model.run.rows);
      this.model = model;
      const widths = model.run.names.map(
        (_, node) => 4 + this.indent(node) + widthOf(this.name(node), 12) + 16,
      );
      this.gutter = Math.ceil(widths.reduce((a, b) => Math.max(a, b), GUTTER_MIN));
    }
    this.model = model;
    const fits = this.room / (model.length + 0.5);
    const usual = Math.max(COLUMN.usual, Math.min(fits, COLUMN.max - 12));
    this.column = Math.max(COLUMN.min, Math.min(COLUMN.max, usual * this.zoom));
    this.zoom = this.column / usual;
    this.every = [1, 2, 5, 10, 20, 50, 100].find((n) => n * this.column >= 40) ?? 100;
    return this.gutter + (model.length + 0.5) * this.column;
  }

  /** Chooses the zoom at which the whole run fits. @param {Model} model */
  fit(model) {
    this.zoom = 1;
    this.measure(model);
    this.zoom = this.room / (model.length + 0.5) / this.column;
  }

  /**
   * Finds the steps in the window. Returns whether they are the same as before.
   * @param {Model} model
   */
  look(model) {
    const before = this.window;
    const wasAt = this.seen;
    this.seen = this.left;
    const first = Math.floor((this.left - 20) / this.column) - 1;
    const last = Math.ceil((this.left + this.width - this.gutter) / this.column) + 1;
    this.window = { first: Math.max(0, first), last: Math.min(model.length - 1, last) };
    const { window } = this;
    return wasAt === this.left && before.first === window.first && before.last === window.last;
  }

  /** Whether the lines depend on the window. @param {Model} model */
  isPartial(model) {
    return model.run.rows.length > ROWS_MAX;
  }

  /**
   * Places the lines: all nodes of a small cluster; of a large one, those with an event in the
   * window.
   * @param {Model} model
   * @param {number} chosen the selected node, which always has a line
   */
  layRows(model, chosen) {
    const { rows, steps } = model.run;
    let order = rows;
    if (this.isPartial(model)) {
      const active = new Set([chosen]);
      const { first, last } = this.window;
      for (let i = first; i <= last && active.size < ROWS_MAX; i++) active.add(steps[i].node);
      order = rows.filter(([node]) => active.has(node));
    }
    this.row = Math.max(ROW.min, Math.min(ROW.max, ROW.all / order.length));
    this.labelled = this.column >= LABELS_FROM && this.row >= ROW.labels;
    this.top = this.labelled ? TOP.labels : TOP.plain;
    this.lines = new Map(order.map(([node], i) => [node, this.top + this.row * (i + 0.5)]));
    this.height =
      this.top + this.row * order.length + (this.labelled ? BOTTOM.labels : BOTTOM.plain);
  }
}
