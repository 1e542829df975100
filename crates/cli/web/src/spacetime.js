/**
 * The space-time diagram: a line per node, boxes for waiting and inside, arrows for messages. Only
 * what is in the window is drawn, and a step only moves the playhead and marks the causal past.
 */

/** @import { Message, Model, Span } from './model.js' */
/** @import { Player, View } from './player.js' */
import { html, Keyed, say, set, setAll, svg } from './dom.js';
import { Scale } from './scale.js';

/** How near a click must be, in px. */
const EVENT_REACH = 8;
const ARROW_REACH = 5;

export class SpaceTime extends HTMLElement {
  scale = new Scale();
  /** @type {View | undefined} */
  view;
  /** @type {Player | undefined} */
  player;

  layers = {
    rows: svg('g', { class: 'rows' }),
    boxes: svg('g', { class: 'boxes' }),
    cones: svg('g', { class: 'cones' }),
    arrows: svg('g', { class: 'arrows' }),
    ticks: svg('g', { class: 'ticks' }),
    labels: svg('g', { class: 'labels' }),
    events: svg('g', { class: 'events' }),
    names: svg('g', { class: 'names' }),
  };
  veil = svg('rect', { class: 'veil', y: 0 });
  head = svg('line', { class: 'head', y1: 16 });
  now = svg('text', { class: 'now', y: 12 });
  /** Behind the numbers, which stay when the lines scroll. */
  band = svg('rect', { class: 'shade', x: 0, y: 0, height: 16 });
  top = svg('g', { class: 'top' }, this.band, this.layers.ticks, this.now);
  hint = svg('text', { class: 'hint' }, 'Hidden until you answer');
  shade = svg('rect', { class: 'shade', x: 0, y: 0 });
  picture = this.#stack();
  inner = html('div', { class: 'inner' }, this.picture);
  scroller = html(
    'div',
    { class: 'scroller', tabindex: 0, role: 'group', 'aria-label': 'Diagram, scrolls' },
    this.inner,
  );

  rows = new Keyed(
    this.layers.rows,
    () => svg('line'),
    (line, /** @type {number} */ y) =>
      setAll(line, { x1: this.scale.gutter, x2: this.scale.width, y1: y, y2: y }),
  );
  names = new Keyed(
    this.layers.names,
    () => svg('text'),
    (text, /** @type {number} */ y, /** @type {number} */ node) => {
      setAll(text, {
        x: 4 + this.scale.indent(node),
        y: y + 4,
        class: this.view?.node === node ? 'name chosen' : 'name',
      });
      say(text, this.scale.name(node));
    },
  );
  boxes = new Keyed(
    this.layers.boxes,
    () => svg('rect'),
    (rect, /** @type {Span} */ span) => this.#box(rect, span),
  );
  cones = new Keyed(
    this.layers.cones,
    () => svg('line'),
    (line, /** @type {number} */ to, /** @type {number} */ node) => {
      const { gutter } = this.scale;
      const y = this.scale.y(node);
      setAll(line, { x1: gutter, x2: Math.max(gutter, this.scale.x(to)), y1: y, y2: y });
    },
  );
  arrows = new Keyed(
    this.layers.arrows,
    () => svg('path'),
    (path, /** @type {Message} */ message) => this.#arrow(path, message),
  );
  events = new Keyed(
    this.layers.events,
    (/** @type {number} */ i) => {
      return svg('circle', { 'data-event': i }, svg('title'));
    },
    (circle, i) => this.#event(circle, i),
  );
  labels = new Keyed(
    this.layers.labels,
    () => svg('text'),
    (text, /** @type {number} */ i) => this.#label(text, i),
  );
  ticks = new Keyed(
    this.layers.ticks,
    () => svg('text', { y: 12 }),
    (text, /** @type {number} */ p) => {
      set(text, 'x', this.scale.x(p));
      say(text, String(p));
    },
  );

  /** The veil hides the future, but not the labels; names stay when the rest scrolls. */
  #stack() {
    const { rows, boxes, cones, arrows, labels, events, names } = this.layers;
    const past = [rows, boxes, cones, arrows, this.veil, this.head, this.hint];
    const layers = [...past, labels, events, this.shade, names, this.top];
    return svg('svg', { role: 'img', 'aria-label': 'Space-time diagram' }, layers);
  }

  /** @param {Player} player */
  connect(player) {
    this.player = player;
    /** @type {(sign: string, label: string, act: () => void) => HTMLElement} */
    const zoom = (sign, label, act) =>
      html('button', { type: 'button', 'aria-label': label, title: label, onclick: act }, sign);
    this.append(
      this.scroller,
      html(
        'div',
        { class: 'zoom', role: 'toolbar', 'aria-label': 'Zoom' },
        zoom('−', 'Zoom out', () => this.zoomBy(1 / 1.5)),
        zoom('+', 'Zoom in', () => this.zoomBy(1.5)),
        zoom('⤢', 'Fit the run', () => this.fit()),
      ),
    );
    this.#listen();
  }

  #listen() {
    const { scroller } = this;
    this.picture.addEventListener('click', (event) => {
      const box = this.picture.getBoundingClientRect();
      this.#click(event.clientX - box.left, event.clientY - box.top);
    });
    scroller.addEventListener('scroll', () => {
      this.scale.left = scroller.scrollLeft;
      this.scale.up = scroller.scrollTop;
      if (this.view) this.#draw(this.view);
    });
    scroller.addEventListener(
      'wheel',
      (event) => {
        if (!event.ctrlKey) return;
        event.preventDefault();
        this.zoomBy(event.deltaY < 0 ? 1.2 : 1 / 1.2);
      },
      { passive: false },
    );
    new ResizeObserver(([entry]) => {
      this.scale.width = entry.contentRect.width;
      this.scale.tall = entry.contentRect.height;
      const { view } = this;
      if (!view || this.scale.width === 0) return;
      this.#measure(view.model);
      this.#follow(view.at, false);
      this.#draw(view, true);
    }).observe(scroller);
  }

  /**
   * Chooses what is at a place: a node by its name, an event, a message by its arrow, or else the
   * position.
   * @param {number} x
   * @param {number} y
   */
  #click(x, y) {
    const { player, scale, view } = this;
    if (!player || !view) return;
    if (x < scale.gutter - 8) {
      const node = scale.nodeAt(y);
      if (node !== undefined) player.chooseNode(node);
      return;
    }
    // What a question asks for cannot be chosen.
    const end = view.asks ? view.at : Infinity;
    const { steps } = view.model.run;
    const event = nearestTo([...this.events.parts.keys()], EVENT_REACH, (i) =>
      i < end ? Math.hypot(scale.x(i + 1) - x, scale.y(steps[i].node) - y) : Infinity,
    );
    if (event !== undefined) {
      player.pick(event);
      return;
    }
    const message = nearestTo([...this.arrows.parts.keys()], ARROW_REACH, (id) => {
      const found = view.model.messages.get(id);
      return found && found.sent <= end ? distance(scale.line(found), x, y) : Infinity;
    });
    if (message === undefined) player.go(scale.position(x));
    else player.chooseMessage(message);
  }

  /** @param {number} factor */
  zoomBy(factor) {
    const { view } = this;
    if (!view) return;
    this.scale.zoom *= factor;
    this.#measure(view.model);
    this.#follow(view.at, true);
    this.#draw(view, true);
  }

  fit() {
    const { view } = this;
    if (!view) return;
    this.scale.fit(view.model);
    this.zoomBy(1);
  }

  /** @param {Model} model */
  #measure(model) {
    const total = this.scale.measure(model);
    this.inner.style.width = `${Math.max(this.scale.width, Math.ceil(total))}px`;
  }

  /** @param {View} view */
  show(view) {
    const isNew = this.view?.model.run !== view.model.run;
    if (this.view?.model.run.names !== view.model.run.names) this.scale.zoom = 1;
    this.view = view;
    if (this.scale.width === 0) return;
    if (isNew) this.#measure(view.model);
    const moved = this.#follow(view.at, false);
    this.#draw(view, isNew || moved);
  }

  /**
   * Scrolls if the playhead is outside of the window. Returns whether it did.
   * @param {number} at
   * @param {boolean} centre
   */
  #follow(at, centre) {
    const { scroller, scale } = this;
    const x = scale.x(at);
    const inView = x >= scale.gutter && x <= scale.width - 24;
    if (inView && !centre) return false;
    const before = scale.left;
    scroller.scrollLeft = Math.max(0, scale.gutter + at * scale.column - scale.width * 0.4);
    scale.left = scroller.scrollLeft;
    return scale.left !== before;
  }

  /**
   * @param {View} view
   * @param {boolean} [all] whether the window or the scale differs
   */
  #draw(view, all = false) {
    const { scale } = this;
    const { model, at, event, past } = view;
    const isSame = scale.look(model) && !all;
    if (!isSame || scale.isPartial(model)) this.#drawWindow(model);
    this.names.sync(scale.lines);
    this.#mark(past, event, at);
    // The future would give the answer away.
    set(this, 'data-asks', view.asks !== null);
    this.#reveal(model.step?.node);
    const x = scale.x(at);
    setAll(this.veil, { x, width: Math.max(0, scale.width - x), height: scale.height });
    setAll(this.head, { x1: x, x2: x, y2: scale.height });
    setAll(this.hint, { x: (x + scale.width) / 2, y: scale.height / 2 });
    set(this.band, 'width', scale.width);
    set(this.top, 'transform', `translate(0 ${scale.up})`);
    this.#tick(at);
    set(this.now, 'x', x);
    set(this.now, 'class', model.step?.fault ? 'now fault' : 'now');
    say(this.now, model.step?.fault ? '✕' : String(at));
  }

  /** @param {Model} model */
  #drawWindow(model) {
    const { scale } = this;
    scale.layRows(model, this.view?.node ?? 0);
    const { width, height, lines, gutter } = scale;
    setAll(this.picture, { width, height });
    setAll(this.shade, { width: gutter - 8, height });
    this.inner.style.height = `${height}px`;
    const { first, last } = scale.window;
    this.rows.sync(lines);
    const spans = model.spans.filter((span) => span.to >= first && span.from <= last + 1);
    this.boxes.sync(
      spans.filter(({ node }) => lines.has(node)).map((span) => [spanKey(span), span]),
    );
    const messages = [...model.messages.values()].filter(
      (it) => it.got >= first && it.sent <= last + 1,
    );
    const drawn = messages.filter(({ from, to }) => lines.has(from) || lines.has(to));
    this.arrows.sync(drawn.map((message) => [message.id, message]));
    const steps = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    const shown = steps.filter((i) => lines.has(model.run.steps[i].node));
    this.events.sync(shown.map((i) => [i, i]));
    const labelled = scale.labelled ? shown : [];
    this.labels.sync(labelled.map((i) => [i, i]));
  }

  /**
   * Scrolls up or down if the node of the present step is not visible.
   * @param {number | undefined} node
   */
  #reveal(node) {
    if (node === undefined || this.scale.height <= this.scale.tall) return;
    const y = this.scale.y(node);
    if (y >= this.scale.up + 8 && y <= this.scale.up + this.scale.tall - 16) return;
    this.scroller.scrollTop = y - this.scale.tall / 2;
    this.scale.up = this.scroller.scrollTop;
  }

  /**
   * Numbers the positions, except beside the present one.
   * @param {number} at
   */
  #tick(at) {
    const { first, last } = this.scale.window;
    /** @type {[number, number][]} */
    const ticks = [];
    for (
      let p = Math.ceil(Math.max(1, first) / this.scale.every) * this.scale.every;
      p <= last + 1;
      p += this.scale.every
    ) {
      if (Math.abs(p - at) * this.scale.column > 24) ticks.push([p, p]);
    }
    this.ticks.sync(ticks);
  }

  /**
   * @param {SVGRectElement} rect
   * @param {Span} span
   */
  #box(rect, span) {
    const half = Math.min(span.phase === 'inside' ? 6 : 4, this.scale.row / 2 - 1);
    const x = Math.max(this.scale.x(span.from), this.scale.gutter - 4);
    const end = Math.min(this.scale.x(span.to), this.scale.width + 4);
    const y = this.scale.y(span.node) - half;
    setAll(rect, { class: span.phase, x, y, width: Math.max(0, end - x), height: 2 * half });
  }

  /**
   * @param {SVGPathElement} path
   * @param {Message} message
   */
  #arrow(path, message) {
    const open = message.got === Infinity;
    const { x1, y1, ...goal } = this.scale.line(message);
    const a = Math.atan2(goal.y2 - y1, goal.x2 - x1);
    const x2 = goal.x2 - 4 * Math.cos(a);
    const y2 = goal.y2 - 4 * Math.sin(a);
    const wing = (/** @type {number} */ t) =>
      `M${x2} ${y2}L${x2 - 7 * Math.cos(a + t)} ${y2 - 7 * Math.sin(a + t)}`;
    const tip = message.lost ? cross(x2, y2) : `${wing(0.45)}${wing(-0.45)}`;
    set(path, 'd', `M${x1} ${y1}L${x2} ${y2}${open ? '' : tip}`);
    path.classList.toggle('token', message.token);
    path.classList.toggle('open', open);
    path.classList.toggle('lost', message.lost);
  }

  /**
   * @param {SVGCircleElement} circle
   * @param {number} i
   */
  #event(circle, i) {
    const model = /** @type {View} */ (this.view).model;
    const { node } = model.run.steps[i];
    setAll(circle, { cx: this.scale.x(i + 1), cy: this.scale.y(node) });
    const [title] = circle.children;
    say(title, `${i + 1}: ${model.describe(i)}`);
  }

  /**
   * @param {SVGTextElement} text
   * @param {number} i
   */
  #label(text, i) {
    const { model } = /** @type {View} */ (this.view);
    const { node, got, action } = model.run.steps[i];
    const message = got === null ? undefined : model.messages.get(got);
    // On the side from which its arrow does not come.
    const above = !message || this.scale.y(message.from) > this.scale.y(message.to);
    setAll(text, {
      x: this.scale.x(i + 1),
      y: this.scale.y(node) + (above ? -10 : 19),
      class: message ? '' : 'own',
    });
    say(text, message ? message.label : action);
  }

  /**
   * Marks the causal past, in the window.
   * @param {Set<number>} past
   * @param {number} event
   * @param {number} at
   */
  #mark(past, event, at) {
    const { model } = /** @type {View} */ (this.view);
    const r = this.scale.row >= 16 ? 3 : 2;
    for (const [i, circle] of this.events.parts) {
      const state = `${past.has(i) ? 'past' : ''}${i === event ? ' chosen' : ''}${i >= at ? ' future' : ''}`;
      set(circle, 'class', state);
      set(circle, 'r', i === event ? r + 2 : r);
    }
    for (const [i, text] of this.labels.parts) text.classList.toggle('future', i >= at);
    for (const [id, path] of this.arrows.parts) {
      const message = model.messages.get(id);
      path.classList.toggle('past', message !== undefined && past.has(message.got - 1));
      path.classList.toggle('chosen', this.view?.message === id);
    }
    /** @type {Map<number, number>} */
    const reach = new Map();
    for (const i of past) {
      const { node } = model.run.steps[i];
      if (this.scale.lines.has(node)) reach.set(node, Math.max(reach.get(node) ?? 0, i + 1));
    }
    this.cones.sync(reach);
  }
}

/** @param {Span} span */
function spanKey(span) {
  return `${span.node} ${span.from} ${span.phase}`;
}

/**
 * @param {number} x
 * @param {number} y
 */
function cross(x, y) {
  return `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`;
}

/**
 * The item that is nearest, if one is near enough.
 * @template T
 * @param {T[]} items
 * @param {number} reach
 * @param {(item: T) => number} away
 * @returns {T | undefined}
 */
function nearestTo(items, reach, away) {
  let found;
  let least = reach;
  for (const item of items) {
    const far = away(item);
    if (far > least) continue;
    [found, least] = [item, far];
  }
  return found;
}

/**
 * The distance of a place from a line.
 * @param {{ x1: number, y1: number, x2: number, y2: number }} line
 * @param {number} x
 * @param {number} y
 */
function distance({ x1, y1, x2, y2 }, x, y) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const along = ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1);
  const t = Math.max(0, Math.min(1, along));
  return Math.hypot(x1 + t * dx - x, y1 + t * dy - y);
}
