/** Where things are in the picture of the cluster: coordinates only, no elements. */

/** @import { Message, Plan } from './model.js' */
/** @typedef {{ x: number, y: number }} Point */
/** @typedef {{ x: number, y: number, out: Point, turn: number }} Place */
/** @typedef {{ at: 'inside' | 'small' | 'below', most: number }} Naming of all nodes */

import { NAME_MAX, widthOf } from './words.js';

/** Space for nodes and the labels beside them. */
const MARGIN = { left: 56, right: 96, y: 36 };
/** On a circle there are labels on both sides. */
const CIRCLE_MARGIN = { left: 128, right: 128, y: 36 };
/** Messages on links that wrap around are outside. */
const STUB_MARGIN = { left: 136, right: 136, y: 36 };
/** Dots are small, and few of them have labels. */
const DOTS_MARGIN = { left: 48, right: 48, y: 16 };
/** Neighbours are not drawn further apart. */
const SPACING_MAX = 220;
const RADIUS = { least: 6, usual: 22, most: 30 };
const DOT = { least: 2, most: 4 };
/** However close nodes are, so much of their names is shown. */
const NAME_MIN = 4;

/** Shapes whose links would cover the picture: they are drawn for the selection only. */
const BARE = ['complete', 'quorums', 'ring'];

/** Above this number of nodes the picture shows dots. */
export const DOTS_ABOVE = 64;

/** The plan of a cluster in the box that there is. */
export class Layout {
  /**
   * @param {Plan} plan
   * @param {number} width
   * @param {number} height
   * @param {string[]} [names]
   */
  constructor(plan, width, height, names = []) {
    this.plan = plan;
    this.dots = plan.nodes.length > DOTS_ABOVE;
    this.isBare = BARE.includes(plan.kind);
    this.width = width;
    const wraps = plan.stubs.length > 0 ? STUB_MARGIN : MARGIN;
    const margin = this.dots ? DOTS_MARGIN : this.isBare ? CIRCLE_MARGIN : wraps;
    const room = {
      x: Math.max(1, width - margin.left - margin.right),
      y: Math.max(1, height - 2 * margin.y),
    };
    let unitX = plan.width > 0 ? room.x / plan.width : 0;
    let unitY = plan.height > 0 ? room.y / plan.height : 0;
    unitX = Math.min(unitX, SPACING_MAX);
    unitY = Math.min(unitY, SPACING_MAX);
    // A circle may become an ellipse, but not a line. Circles in circles stay round.
    if (unitX > 0 && unitY > 0) {
      const [wide, high] = plan.kind === 'radial' ? [1.25, 1.25] : [2.2, 1.5];
      unitX = Math.min(unitX, unitY * wide);
      unitY = Math.min(unitY, unitX * high);
    }
    const left = margin.left + (room.x - plan.width * unitX) / 2;
    const top = margin.y + (room.y - plan.height * unitY) / 2;
    /** @type {Point[]} */
    this.spots = plan.nodes.map(([x, y]) => ({ x: left + x * unitX, y: top + y * unitY }));
    this.unit = { x: unitX || unitY, y: unitY || unitX };
    this.middle = { x: left + (plan.width * unitX) / 2, y: top + (plan.height * unitY) / 2 };
    this.spacing = nearest(this.spots);
    const longest = names.reduce((most, name) => Math.max(most, widthOf(name, 12)), 0);
    this.r = this.#radius(longest);
    /** Size of messages, which are smaller among small nodes. */
    this.scale = Math.max(0.6, Math.min(1, this.r / 14));
    this.names = this.#naming(names, longest);
    /** @type {Map<number, Point>} */
    this.sides = new Map();
    /** @type {Map<number, number[]>} */
    this.neighbours = new Map();
    for (const [i, j] of plan.edges) {
      this.neighbours.set(i, [...(this.neighbours.get(i) ?? []), j]);
      this.neighbours.set(j, [...(this.neighbours.get(j) ?? []), i]);
    }
  }

  /**
   * Discs grow to have room for their names, as far as they do not come close to each other.
   * @param {number} longest width of the longest name
   */
  #radius(longest) {
    const fits = this.spacing * 0.32;
    if (this.dots) return Math.max(DOT.least, Math.min(DOT.most, fits));
    const needed = Math.max(RADIUS.usual, Math.min(RADIUS.most, longest / 2 + 4));
    return Math.max(RADIUS.least, Math.min(needed, fits));
  }

  /**
   * Names are in their discs if all of them have room there, and else below them.
   * @param {string[]} names
   * @param {number} longest
   * @returns {Naming}
   */
  #naming(names, longest) {
    const room = 2 * this.r - 4;
    const most = Math.max(NAME_MIN, Math.min(NAME_MAX, Math.floor(this.spacing / 7.4)));
    if (this.dots) return { at: 'small', most: NAME_MAX };
    if (this.r > 18 && names.every((name) => widthOf(name, 16) <= room))
      return { at: 'inside', most: NAME_MAX };
    return longest <= room || names.length === 0
      ? { at: 'small', most: NAME_MAX }
      : { at: 'below', most };
  }

  /**
   * Where the name of a node stands, seen from its middle.
   * @param {number} i
   */
  name(i) {
    const { r } = this;
    const { x, y } = this.spots[i];
    // Names of dots are outside, as far as two sides allow.
    const west = x < this.middle.x;
    if (this.dots) return { x: west ? -r - 6 : r + 6, y: 4, anchor: west ? 'end' : 'start' };
    if (this.names.at !== 'below')
      return { x: 0, y: this.names.at === 'inside' ? 5.5 : 4.5, anchor: 'middle' };
    if (!this.isBare) return { x: 0, y: r + 16, anchor: 'middle' };
    // On a circle, outside.
    const out = direction(this.middle, { x, y });
    const anchor = out.x > 0.3 ? 'start' : out.x < -0.3 ? 'end' : 'middle';
    return { x: out.x * (r + 6), y: out.y * (r + 10) + 4, anchor };
  }

  /**
   * The line between two nodes, from edge to edge.
   * @param {number} i
   * @param {number} j
   * @param {number} [gap]
   */
  between(i, j, gap = 0) {
    const a = this.spots[i];
    const b = this.spots[j];
    const u = direction(a, b);
    const d = this.r + gap;
    return { x1: a.x + u.x * d, y1: a.y + u.y * d, x2: b.x - u.x * d, y2: b.y - u.y * d, u };
  }

  /**
   * A pointer from one node to another; the second and later kinds of pointers bend, so that they
   * do not cover the first.
   * @param {number} i
   * @param {number} j
   * @param {number} bend
   */
  pointer(i, j, bend) {
    const { x1, y1, x2, y2, u } = this.between(i, j, 5);
    if (bend === 0) return `M${x1} ${y1}L${x2} ${y2}`;
    const side = { x: -u.y * bend, y: u.x * bend };
    const x = (x1 + x2) / 2 + side.x;
    const y = (y1 + y2) / 2 + side.y;
    return `M${x1 + side.x / 6} ${y1 + side.y / 6}Q${x} ${y} ${x2 + side.x / 6} ${y2 + side.y / 6}`;
  }

  /**
   * Where a node's label goes: beside it, where neither a link nor another node is; else below it,
   * to the right.
   * @param {number} i
   */
  label(i) {
    const { x, y } = this.spots[i];
    const d = this.r + 10;
    const origin = { x: 0, y: 0 };
    const ends = this.plan.stubs.filter(([node]) => node === i);
    const links = [
      ...(this.neighbours.get(i) ?? []).map((j) => direction(this.spots[i], this.spots[j])),
      ...ends.map(([, dx, dy]) => direction(origin, { x: dx, y: dy })),
    ];
    const isFree = (/** @type {number} */ sign) => {
      if (links.some((link) => link.x * sign > 0.97)) return false;
      return this.spots.every((other, j) => {
        const dx = (other.x - x) * sign;
        return j === i || dx <= 0 || dx > 2 * this.r + 56 || Math.abs(other.y - y) > this.r;
      });
    };
    // On a circle, outside.
    const isWest = this.isBare && x < this.middle.x - 1;
    const hasName = this.isBare && this.names.at === 'below';
    const sign = hasName ? undefined : (isWest ? [-1, 1] : [1, -1]).find(isFree);
    if (sign === undefined) {
      const isBelow = this.names.at === 'below';
      return { x: x + this.r * 0.75, y: isBelow ? y - this.r : y + this.r + 8, anchor: 'start' };
    }
    return { x: x + sign * d, y: y + 4, anchor: sign < 0 ? 'end' : 'start' };
  }

  /**
   * The nodes to which a node has links that are drawn only while it is selected.
   * @param {number} node
   * @returns {number[]}
   */
  linked(node) {
    if (!this.isBare) return [];
    const { sets, kind } = this.plan;
    if (kind === 'ring') return [...new Set(this.neighbours.get(node))];
    const all = sets ? sets[node] : this.spots.map((_, i) => i);
    return all.filter((other) => other !== node);
  }

  /**
   * The side of a link with more room: away from the other links of both its ends; if equal, the
   * right.
   * @param {number} i
   * @param {number} j
   */
  roomier(i, j) {
    const key = i * this.spots.length + j;
    const known = this.sides.get(key);
    if (known) return known;
    const u = direction(this.spots[i], this.spots[j]);
    const out = { x: -u.y, y: u.x };
    let crowd = 0;
    /** @type {(end: number, other: number, sign: number) => void} */
    const add = (end, other, sign) => {
      for (const next of this.neighbours.get(end) ?? []) {
        if (next === other) continue;
        const d = direction(this.spots[end], this.spots[next]);
        // Links that leave at a small angle crowd most.
        const along = (d.x * u.x + d.y * u.y) * sign;
        crowd += Math.max(0, along + 0.2) * (d.x * out.x + d.y * out.y);
      }
    };
    add(i, j, 1);
    add(j, i, -1);
    const isFlipped = Math.abs(crowd) < 0.01 ? out.x < 0 : crowd > 0;
    const side = isFlipped ? flip(out) : out;
    this.sides.set(key, side);
    return side;
  }

  /**
   * The direction in which a link leaves the picture, if it wraps around to the other side.
   * @param {number} from
   * @param {number} to
   * @returns {Point | undefined} at the receiver
   */
  #wrap(from, to) {
    if (this.plan.stubs.length === 0 || this.neighbours.get(from)?.includes(to)) return undefined;
    const u = direction(this.spots[from], this.spots[to]);
    const ends = this.plan.stubs.filter(([i]) => i === to);
    const end = ends.find(([, dx, dy]) => (dx * u.x + dy * u.y) / (Math.hypot(dx, dy) || 1) > 0.99);
    return end && direction({ x: 0, y: 0 }, { x: end[1], y: end[2] });
  }

  /**
   * Where a message waits on its link, behind those that were sent earlier.
   * @param {Message} message
   * @param {number} earlier number of messages on the same link that were sent earlier
   * @returns {Place}
   */
  waiting(message, earlier) {
    const a = this.spots[message.from];
    const b = this.spots[message.to];
    const u = direction(a, b);
    const wrap = this.#wrap(message.from, message.to);
    if (wrap) {
      const d = this.r + 16 + earlier * 14;
      const out = { x: Math.abs(wrap.y), y: Math.abs(wrap.x) };
      return { x: b.x + wrap.x * d, y: b.y + wrap.y * d, out, turn: angle(wrap) + 180 };
    }
    const out = this.roomier(message.from, message.to);
    const length = Math.hypot(b.x - a.x, b.y - a.y);
    const apart = Math.abs(u.y) > 0.35 ? 22 / Math.abs(u.y) : 72;
    // Beyond the middle of what can be seen of the link, but not at its end.
    const first = this.r + (length - 2 * this.r) * 0.6;
    const d = Math.max(first - earlier * apart, this.r + 6 + 4 / (1 + earlier));
    const off = this.dots ? 4 : 13 * this.scale;
    return {
      x: a.x + u.x * d + out.x * off,
      y: a.y + u.y * d + out.y * off,
      out,
      turn: angle(u),
    };
  }
}

/**
 * Number of earlier messages on the link of each message.
 * @param {Message[]} flight oldest first
 */
export function queued(flight) {
  /** @type {Map<string, number>} */
  const links = new Map();
  return flight.map(({ from, to }) => {
    const link = `${from} ${to}`;
    const count = links.get(link) ?? 0;
    links.set(link, count + 1);
    return count;
  });
}

const CHARACTER = 7.3;
/** Above and below the line on which a text stands. */
const ABOVE = 10;
const BELOW = 3;

/** @typedef {{ x1: number, y1: number, x2: number, y2: number }} Box or a line */

/** @typedef {{ x: number, y: number, anchor: string }} Label seen from its mark */
/**
 * @typedef {Object} Mark
 * @property {Place} place
 * @property {string} text
 * @property {number} away
 * @property {string} [group] marks that are explained if one of them has a label
 */

/**
 * Chooses for each label the side of its mark on which it covers neither a node, another label nor
 * a line, or none at all. A label goes on a link only if no other of its group has one.
 * @param {Mark[]} marks the most important first
 * @param {Layout} layout
 * @param {{ lines: Box[], boxes: Box[], links?: Box[] }} [others] that no label may cover either
 * @returns {(Label | undefined)[]}
 */
export function declutter(marks, layout, { lines, boxes, links = [] } = { lines: [], boxes: [] }) {
  const r = layout.r - 2;
  const discs = layout.spots.map(({ x, y }) => ({ x1: x - r, y1: y - r, x2: x + r, y2: y + r }));
  const taken = [...discs, ...boxes];
  for (const { place } of marks) {
    taken.push({ x1: place.x - 5, y1: place.y - 5, x2: place.x + 5, y2: place.y + 5 });
  }
  /** @param {Mark} mark @param {Box[]} avoided */
  const placed = ({ place, text, away }, avoided) => {
    const { out } = place;
    const level = { x: 1, y: 0 };
    const upright = { x: 0, y: 1 };
    const sides = [out, flip(out), level, flip(level), flip(upright), upright];
    for (const side of sides) {
      const anchor = side.x > 0.3 ? 'start' : side.x < -0.3 ? 'end' : 'middle';
      const x = side.x * away;
      const y = side.y * away + 4;
      const box = boxOf(text, { x: place.x + x, y: place.y + y, anchor });
      const isFree = taken.every(
        (it) => it.x2 <= box.x1 || box.x2 <= it.x1 || it.y2 <= box.y1 || box.y2 <= it.y1,
      );
      const isInside = box.x1 >= 0 && box.x2 <= layout.width;
      if (!isFree || !isInside || avoided.some((line) => crosses(line, box))) continue;
      taken.push(box);
      return { x, y, anchor };
    }
    return undefined;
  };
  const clear = marks.map((mark) => placed(mark, [...lines, ...links]));
  const explained = new Set(marks.flatMap(({ group }, i) => (clear[i] && group ? [group] : [])));
  return marks.map((mark, i) => {
    if (clear[i] || (mark.group && explained.has(mark.group))) return clear[i];
    const label = placed(mark, lines);
    if (label && mark.group) explained.add(mark.group);
    return label;
  });
}

/**
 * The box of a text.
 * @param {string} text
 * @param {{ x: number, y: number, anchor: string }} at
 * @returns {Box}
 */
export function boxOf(text, { x, y, anchor }) {
  const width = text.length * CHARACTER;
  const shift = anchor === 'start' ? 0 : anchor === 'end' ? -width : -width / 2;
  return { x1: x + shift, y1: y - ABOVE, x2: x + shift + width, y2: y + BELOW };
}

/** @param {Point} point */
function flip({ x, y }) {
  return { x: -x, y: -y };
}

/**
 * Returns whether a line goes through a box.
 * @param {Box} line
 * @param {Box} box
 */
function crosses({ x1, y1, x2, y2 }, box) {
  let [from, to] = [0, 1];
  for (const [start, length, low, high] of [
    [x1, x2 - x1, box.x1, box.x2],
    [y1, y2 - y1, box.y1, box.y2],
  ]) {
    if (length === 0 && (start < low || start > high)) return false;
    if (length === 0) continue;
    const ends = [(low - start) / length, (high - start) / length];
    from = Math.max(from, Math.min(...ends));
    to = Math.min(to, Math.max(...ends));
  }
  return from <= to;
}

/**
 * @param {Point} a
 * @param {Point} b
 * @returns {Point} of length 1
 */
function direction(a, b) {
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  return { x: (b.x - a.x) / length, y: (b.y - a.y) / length };
}

/** @param {Point} u */
function angle(u) {
  return (Math.atan2(u.y, u.x) * 180) / Math.PI;
}

/**
 * The distance of the two nodes that are nearest to each other.
 * @param {Point[]} spots
 */
function nearest(spots) {
  let least = Infinity;
  spots.forEach((a, i) => {
    for (let j = i + 1; j < spots.length; j++) {
      least = Math.min(least, Math.hypot(a.x - spots[j].x, a.y - spots[j].y));
    }
  });
  return Number.isFinite(least) ? least : 200;
}
