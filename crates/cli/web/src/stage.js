/** The cluster in its own shape: nodes, where they point, and messages on their links. */

/** @import { Model } from './model.js' */
/** @import { Box } from './geometry.js' */
/** @import { Player, View } from './player.js' */
import { diamond, glyph, html, Keyed, say, set, setAll, svg } from './dom.js';
import { boxOf, Layout } from './geometry.js';
import { Letters } from './letters.js';
import { isolate, many, shorten, shortenName } from './words.js';

/** @typedef {{ d: string, nth: number, ringed: boolean }} Pointer the nth kind of pointer */

/** Where the label of an arrow in a ring of waiting nodes is, from its start (0) to its end (1). */
const LABEL_AT = 0.35;

export class Stage extends HTMLElement {
  /** @type {Model | undefined} */
  model;
  /** @type {Layout | undefined} */
  layout;
  /** Of the picture. Undefined until it is known. @type {{ width: number, height: number } | undefined} */
  size;
  /** @type {Player | undefined} */
  player;
  /** @type {View | undefined} */
  view;
  chosen = 0;
  /** Of the labels beside nodes. @type {Box[]} */
  boxes = [];

  mark = html('span', { class: 'mark', 'aria-hidden': 'true' });
  words = html('p', { class: 'words' });
  detail = html('p', { class: 'detail' });
  caption = html(
    'div',
    { class: 'caption', 'aria-live': 'polite' },
    this.mark,
    html('div', {}, this.words, this.detail),
  );
  layers = {
    edges: svg('g', { class: 'edges' }),
    links: svg('g', { class: 'links' }),
    pointers: svg('g', { class: 'pointers' }),
    ring: svg('g', { class: 'ring' }),
    nodes: svg('g', { class: 'nodes' }),
    labels: svg('g', { class: 'labels' }),
    messages: svg('g', { class: 'messages' }),
  };
  picture = svg(
    'svg',
    { role: 'group', 'aria-label': 'Cluster', class: 'cluster' },
    Object.values(this.layers),
  );
  waiting = html('span');
  inside = html('span');
  sum = html('span', { class: 'sum' });
  legend = html('div', { class: 'legend' });

  discs = new Keyed(
    this.layers.nodes,
    (/** @type {number} */ i) => this.#disc(i),
    (g, i) => this.#paintNode(g, i),
  );
  queues = new Keyed(
    this.layers.labels,
    () => svg('text', { class: 'queue', 'aria-hidden': 'true' }),
    (text, /** @type {string} */ words, /** @type {number} */ i) => {
      const { x, y, anchor } = this.#laid().label(i);
      setAll(text, { x, y, 'text-anchor': anchor });
      say(text, words);
    },
  );
  arrows = new Keyed(
    this.layers.pointers,
    () => svg('path'),
    (path, /** @type {Pointer} */ { d, nth, ringed }) =>
      setAll(path, { d, 'data-kind': nth, class: ringed ? 'points ringed' : 'points' }),
  );
  letters = new Letters(this.layers.messages);

  /** @param {Player} player */
  connect(player) {
    this.player = player;
    this.letters.player = player;
    this.append(this.caption, this.picture, this.legend);
    new ResizeObserver(([entry]) => {
      this.size = entry.contentRect;
      this.layout = undefined;
      if (this.view) this.show(this.view);
    }).observe(this.picture);
  }

  #laid() {
    if (!this.layout) throw new Error('the picture has no size yet');
    return this.layout;
  }

  #modelled() {
    if (!this.model) throw new Error('there is no run yet');
    return this.model;
  }

  /** @param {number} i */
  #disc(i) {
    const choose = () => this.player?.chooseNode(i);
    return svg(
      'g',
      {
        class: 'node',
        tabindex: 0,
        role: 'button',
        'data-node': i,
        onclick: choose,
        onkeydown: (/** @type {KeyboardEvent} */ event) =>
          [' ', 'Enter'].includes(event.key) && choose(),
      },
      svg('circle', { class: 'disc' }),
    );
  }

  /** @param {View} view */
  show(view) {
    this.view = view;
    if (!this.size || this.size.width === 0) return;
    const { model } = view;
    const isNew =
      this.model?.run.plan !== model.run.plan || this.model?.run.names !== model.run.names;
    if (isNew || !this.layout) {
      this.layout = new Layout(model.run.plan, this.size.width, this.size.height, model.run.names);
      this.#rebuild(model, isNew);
    }
    this.model = model;
    this.#showNodes(view);
    this.#showPointers(view);
    this.#showRing(view);
    this.#showLinks(view);
    this.letters.show(view, this.layout, this.boxes);
    this.#say(view);
    this.#count(view);
  }

  /**
   * Draws what stays the same while a run is played.
   * @param {Model} model
   * @param {boolean} isNew whether this is another cluster
   */
  #rebuild(model, isNew) {
    const layout = this.#laid();
    const { edges, stubs } = model.run.plan;
    const drawn = layout.isBare ? [] : edges;
    const lines = drawn.map(([i, j]) => {
      const { x1, y1, x2, y2 } = layout.between(i, j);
      return svg('line', { x1, y1, x2, y2 });
    });
    const ends = stubs.map(([i, dx, dy]) => {
      const { x, y } = layout.spots[i];
      const d = Math.hypot(dx, dy) || 1;
      const u = { x: dx / d, y: dy / d };
      const from = layout.r;
      const to = layout.r + (layout.dots ? 6 : 14);
      const at = { x1: x + u.x * from, y1: y + u.y * from, x2: x + u.x * to, y2: y + u.y * to };
      return svg('line', { class: 'stub', ...at });
    });
    this.layers.edges.replaceChildren(...lines, ...ends);
    this.layers.links.replaceChildren();
    this.layers.links.removeAttribute('data-key');
    set(this, 'data-dots', layout.dots);
    if (isNew) {
      this.discs.clear();
      this.arrows.clear();
      this.queues.clear();
      this.#explain(model);
    }
    this.letters.clear();
  }

  /** @param {Model} model */
  #explain(model) {
    const mono = (/** @type {string} */ text) => html('span', { class: 'mono' }, text);
    const signs = ['→', '⇢', '⤏'];
    const entry = (/** @type {string} */ sign, /** @type {string} */ text) =>
      html('span', {}, glyph(sign), text);
    const tokens = [...model.messages.values()].find((message) => message.token);
    const { queue } = model;
    const shown = [
      html('span', {}, glyph('waiting'), this.waiting),
      html('span', {}, glyph('inside'), this.inside),
      ...(tokens ? [entry('token', tokens.label)] : []),
      entry('message', 'message'),
      ...model.pointers.map((field, i) => mono(`${signs[i] ?? '→'} ${field.name}`)),
      ...(queue ? [mono(`[ ] ${queue.name}`)] : []),
    ];
    this.legend.replaceChildren(html('span', { class: 'keys-of-run' }, shown), this.sum);
  }

  /** @param {View} view */
  #showNodes({ model, node }) {
    this.chosen = node;
    this.model = model;
    this.discs.sync(model.nodes.map((_, i) => [i, i]));
    const layout = this.#laid();
    /** @type {[number, string][]} */
    const labels = [];
    if (!layout.dots && layout.r >= 12) {
      model.nodes.forEach((_, i) => {
        const text = model.queueText(i);
        if (text) labels.push([i, shorten(text, 16)]);
      });
    }
    this.queues.sync(labels);
    this.boxes = labels.map(([i, text]) => boxOf(text, layout.label(i)));
  }

  /**
   * @param {SVGGElement} g
   * @param {number} i
   */
  #paintNode(g, i) {
    const model = this.#modelled();
    const layout = this.#laid();
    const phase = model.phase(i);
    const token = model.hasToken(i);
    const chosen = this.chosen === i;
    const labelled = !layout.dots || phase !== 'idle' || token || chosen;
    const key = `${phase} ${token} ${chosen} ${layout.r}`;
    const at = `translate(${layout.spots[i].x} ${layout.spots[i].y})`;
    set(g, 'transform', at);
    if (g.dataset.key === key) return;
    g.dataset.key = key;
    const name = model.run.names[i];
    const { r, dots } = layout;
    setAll(g, {
      class: `node ${phase}${chosen ? ' chosen' : ''}`,
      'data-phase': phase,
      'data-token': token,
      'aria-label': `Node ${model.names[i]}, ${phase}${token ? ', has the token' : ''}`,
    });
    set(g.children[0], 'r', dots && phase !== 'idle' ? r + 2 : r);
    const halo = optional(g, 'circle', 'halo', chosen || !dots);
    if (halo) set(halo, 'r', r + (dots ? 4 : 6));
    const text = optional(g, 'text', 'name', labelled);
    if (text) {
      const { at: where, most } = layout.names;
      const { x, y, anchor } = layout.name(i);
      setAll(text, { x, y, 'text-anchor': anchor });
      set(text, 'class', `name ${where}`);
      say(text, isolate(shortenName(name, most)));
    }
    const sign = optional(g, 'path', 'diamond', token);
    if (sign) set(sign, 'd', diamond(dots ? 6 : Math.max(6, r * 0.52), r * 0.8, -r * 0.8));
    const cross = optional(g, 'path', 'cross', phase === 'down');
    if (cross) set(cross, 'd', `M${-r / 2} ${-r / 2}l${r} ${r}m0 ${-r}l${-r} ${r}`);
  }

  /** @param {View} view */
  #showPointers({ model, node }) {
    const layout = this.#laid();
    const ring = model.step?.fault?.ring ?? [];
    /** @type {[string, Pointer][]} */
    const items = [];
    model.pointers.forEach((field, nth) => {
      model.nodes.forEach((state, i) => {
        const to = state[field.name];
        if (typeof to !== 'number' || to === i || !layout.spots[to]) return;
        if (layout.dots && i !== node && model.phase(i) === 'idle') return;
        const ringed = ring.some(([a, b]) => a === i && b === to);
        items.push([`${nth} ${i}`, { d: layout.pointer(i, to, nth * 28), nth, ringed }]);
      });
    });
    this.arrows.sync(items);
  }

  /** @param {View} view */
  #showRing({ model }) {
    const layout = this.#laid();
    const ring = model.step?.fault?.ring ?? [];
    const parts = ring.map(([i, j, label]) => {
      const { u, ...line } = layout.between(i, j, 6);
      const out = { x: u.y * 16, y: -u.x * 16 };
      // Two arrows between two nodes stand side by side.
      const both = ring.some(([a, b]) => a === j && b === i);
      const side = both ? { x: out.x / 4, y: out.y / 4 } : { x: 0, y: 0 };
      const [x1, x2] = [line.x1 + side.x, line.x2 + side.x];
      const [y1, y2] = [line.y1 + side.y, line.y2 + side.y];
      const anchor = out.x < -8 ? 'end' : out.x > 8 ? 'start' : 'middle';
      // Not in the middle, where lines across a circle meet.
      const x = x1 + (x2 - x1) * LABEL_AT + out.x;
      const y = y1 + (y2 - y1) * LABEL_AT + out.y + 4;
      const arrow = svg('line', { class: 'ring-line', x1, y1, x2, y2 });
      return svg(
        'g',
        {},
        arrow,
        svg('text', { class: 'ring-label', x, y, 'text-anchor': anchor }, label),
      );
    });
    const layer = this.layers.ring;
    if (parts.length > 0 || layer.hasChildNodes()) layer.replaceChildren(...parts);
    set(this, 'data-fault', model.step?.fault?.kind);
  }

  /**
   * Shows the links of the selection, where not all links are drawn.
   * @param {View} view
   */
  #showLinks({ model, node, message: id }) {
    const layout = this.#laid();
    const layer = this.layers.links;
    const message = id === undefined ? undefined : model.messages.get(id);
    const key = `${node} ${id}`;
    if (layer.dataset.key === key) return;
    layer.dataset.key = key;
    /** @type {(from: number, to: number, name: string) => SVGLineElement} */
    const link = (from, to, name) => {
      const { x1, y1, x2, y2 } = layout.between(from, to);
      return svg('line', { class: name, x1, y1, x2, y2 });
    };
    const { from, to } = message ?? { from: node, to: node };
    const ends = message ? (layout.isBare ? [to] : []) : layout.linked(node);
    layer.replaceChildren(...ends.map((end) => link(from, end, message ? 'chosen' : '')));
  }

  /** @param {View} view */
  #say({ headline }) {
    const { mark, words, caption } = this;
    const size = headline.text.length > 110 ? ' long' : '';
    set(caption, 'class', `caption ${headline.tone}${size}`);
    const signs = {
      fault: '✕',
      ask: '?',
      right: '✓',
      plain: headline.step ? String(headline.step) : '',
    };
    say(mark, signs[headline.tone]);
    // A comment may be in any language.
    set(words, 'dir', headline.quoted && 'auto');
    say(words, headline.text);
    say(this.detail, headline.detail ?? '');
    set(this.detail, 'hidden', !headline.detail);
  }

  /** @param {View} view */
  #count({ model }) {
    say(this.waiting, `waiting ${model.count('waiting')}`);
    say(this.inside, `inside ${model.count('inside')}`);
    const entries = many(model.entries[model.at], 'entry', 'entries');
    say(this.sum, `${entries}, ${many(model.sent[model.at], 'message', 'messages')}`);
  }
}

/**
 * The child of this class, if it is wanted; otherwise there is none.
 * @param {SVGGElement} g
 * @param {'circle' | 'path' | 'text'} tag
 * @param {string} name its class
 * @param {boolean} wanted
 * @returns {SVGElement | undefined}
 */
function optional(g, tag, name, wanted) {
  const found = g.getElementsByClassName(name)[0];
  if (!wanted) {
    found?.remove();
    return undefined;
  }
  if (found instanceof SVGElement) return found;
  const made = svg(tag, { class: name });
  g.append(made);
  return made;
}
