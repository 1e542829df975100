/** Messages on their links: where they wait, their labels, and how they move. */

/** @import { Box, Layout, Place, Point } from './geometry.js' */
/** @import { Message, Model } from './model.js' */
/** @import { Player, View } from './player.js' */
import { diamond, Keyed, say, set, setAll, svg } from './dom.js';
import { declutter, queued } from './geometry.js';
import { content } from './model.js';

/** Motion of a message, in ms. A message that arrives stops before the next ones start. */
const MOVE = 240;
const EASE = 'cubic-bezier(.16, 1, .3, 1)';
/** With more messages in flight than this, only the selected one has a label. */
const LABELS_MAX = 40;
/** With more messages in flight than this, links that are not drawn hide where they go. */
const CROWD = 8;
/** Among smaller nodes, only the selected message has a label. */
const SMALL = 10;
/** Longer contents are shown when the message is selected. */
const CONTENT_MAX = 8;

const still = globalThis.matchMedia?.('(prefers-reduced-motion: reduce)');

export class Letters {
  /** @type {Player | undefined} */
  player;
  /** @type {Model | undefined} */
  model;
  /** Position that is drawn. */
  shown = 0;
  /** @type {Map<number, Place>} */
  places = new Map();
  /** @type {Animation[]} */
  moving = [];
  /** Arrows of a fault, labels of nodes, and links. @type {Record<'lines' | 'boxes' | 'links', Box[]>} */
  others = { lines: [], boxes: [], links: [] };

  /** @param {SVGGElement} layer */
  constructor(layer) {
    this.parts = new Keyed(
      layer,
      (/** @type {Message} */ message) => this.#create(message),
      () => {},
    );
  }

  clear() {
    this.parts.clear();
    this.places.clear();
  }

  /** @param {Message} message */
  #create(message) {
    const choose = () => this.player?.chooseMessage(message.id);
    const label = this.model?.letter(message) ?? '';
    const d = message.token ? diamond(11) : 'M-6 -5L7 0L-6 5Z';
    return svg(
      'g',
      {
        class: message.token ? 'message token' : 'message',
        tabindex: 0,
        role: 'button',
        'aria-label': `Message from ${label}`,
        'data-message': message.id,
        onclick: choose,
        onkeydown: (/** @type {KeyboardEvent} */ event) =>
          [' ', 'Enter'].includes(event.key) && choose(),
      },
      svg('circle', { class: 'halo', r: 14 }),
      svg('path', { class: 'sign', d }),
      svg('text'),
    );
  }

  /**
   * Drops the messages of another branch of the run, and all of another run.
   * @param {Model} model
   */
  #forget(model) {
    const before = this.model;
    if (before?.run === model.run) return;
    if (before?.run.names !== model.run.names) {
      this.clear();
      this.shown = model.at;
      return;
    }
    for (const id of [...this.parts.parts.keys()]) {
      const old = before?.messages.get(id);
      const now = model.messages.get(id);
      const isSame = old?.from === now?.from && old?.to === now?.to && old?.label === now?.label;
      if (isSame) continue;
      this.parts.drop(id);
      this.places.delete(id);
    }
  }

  /**
   * Draws the messages in flight. After a single step, those that moved slide from where they were.
   * @param {View} view
   * @param {Layout} layout
   * @param {Box[]} boxes that no label may cover
   */
  show({ model, node, message: chosen }, layout, boxes) {
    this.#forget(model);
    this.model = model;
    for (const animation of this.moving) animation.finish();
    this.moving = [];
    const near = Math.abs(model.at - this.shown) === 1 && !still?.matches;
    const flight = model.inFlight();
    const counts = queued(flight);
    const before = this.places;
    this.places = new Map(flight.map((it, i) => [it.id, layout.waiting(it, counts[i])]));
    const gone = near ? [...before.keys()].filter((id) => !this.places.has(id)) : [];
    const kept = gone.flatMap((id) => model.messages.get(id) ?? []);
    this.parts.sync([...flight, ...kept].map((it) => [it.id, it]));
    const ring = model.step?.fault?.ring ?? [];
    const linked = chosen === undefined ? layout.linked(node) : [];
    this.others = {
      lines: ring.map(([from, to]) => layout.between(from, to)),
      boxes,
      links: linked.map((end) => layout.between(node, end)),
    };
    this.#label(flight, { node, chosen }, layout);
    for (const it of flight) {
      const place = this.places.get(it.id);
      const g = this.parts.parts.get(it.id);
      if (g && place) set(g, 'transform', `translate(${place.x} ${place.y})`);
    }
    if (near) this.#move(flight, kept, before, layout);
    this.shown = model.at;
  }

  /**
   * Moves first what leaves the picture, then what comes into it.
   * @param {Message[]} flight
   * @param {Message[]} kept those that are not in flight any longer
   * @param {Map<number, Place>} before
   * @param {Layout} layout
   */
  #move(flight, kept, before, layout) {
    const at = this.model?.at ?? 0;
    const forward = at > this.shown;
    const duration = MOVE * (this.player?.pace ?? 1);
    const delay = kept.length > 0 ? duration : 0;
    for (const { id, from, to } of kept) {
      const end = layout.spots[forward ? to : from];
      this.#slide(id, before.get(id), end, { duration, fades: 'out' });
    }
    for (const { id, from, to } of flight) {
      const place = /** @type {Place} */ (this.places.get(id));
      const was = before.get(id);
      if (!was) {
        const start = layout.spots[forward ? from : to];
        this.#slide(id, start, place, { duration, delay, fades: 'in' });
      } else if (was.x !== place.x || was.y !== place.y) {
        this.#slide(id, was, place, { duration });
      }
    }
  }

  /**
   * @param {number} id
   * @param {Point | undefined} from
   * @param {Point} to
   * @param {{ duration: number, delay?: number, fades?: 'in' | 'out' }} motion
   */
  #slide(id, from, to, { duration, delay = 0, fades }) {
    const g = this.parts.parts.get(id);
    if (!g || !from) return;
    const at = (/** @type {Point} */ p) => `translate(${p.x}px, ${p.y}px)`;
    const animation = g.animate(
      [
        { transform: at(from), opacity: fades === 'in' ? 0 : 1 },
        { transform: at(to), opacity: fades === 'out' ? 0 : 1 },
      ],
      { duration, delay, easing: EASE, fill: 'backwards' },
    );
    this.moving.push(animation);
    const drop = () => fades === 'out' && !this.model?.flight.has(id) && this.parts.drop(id);
    this.player?.busy(animation.finished.then(drop, drop));
  }

  /**
   * Labels messages as far as there is room: the selected one first, then those of the selected
   * node. Where links are not drawn, a crowd of other messages is faded.
   * @param {Message[]} flight
   * @param {{ node: number, chosen: number | undefined }} selected
   * @param {Layout} layout
   */
  #label(flight, { node, chosen }, layout) {
    const rank = (/** @type {Message} */ { id, from, to }) =>
      id === chosen ? 2 : Number(chosen === undefined && (from === node || to === node));
    const isSmall = layout.r < SMALL;
    const isCrowd = layout.isBare && flight.length > CROWD;
    const all = flight.length <= LABELS_MAX && !isSmall && !isCrowd;
    const shown = flight.filter(
      (it) => all || it.id === chosen || (isCrowd && !isSmall && rank(it) > 0),
    );
    shown.sort((a, b) => rank(b) - rank(a));
    const marks = shown.map((message) => ({
      place: /** @type {Place} */ (this.places.get(message.id)),
      text: this.#name(message),
      away: (message.token ? 17 : 12) * layout.scale,
      // A node often sends the same to many others.
      group: message.id === chosen ? undefined : `${message.from} ${this.#name(message)}`,
    }));
    const labels = new Map(
      declutter(marks, layout, this.others).map((label, i) => [shown[i].id, label]),
    );
    for (const message of flight) {
      const g = this.parts.parts.get(message.id);
      if (!g) continue;
      const [, sign, text] = g.children;
      const label = labels.get(message.id);
      if (label) setAll(text, { x: label.x, y: label.y, 'text-anchor': label.anchor });
      say(text, label ? this.#name(message) : '');
      const turn = this.places.get(message.id)?.turn ?? 0;
      set(sign, 'transform', `rotate(${message.token ? 0 : turn}) scale(${layout.scale})`);
      g.classList.toggle('chosen', message.id === chosen);
      g.classList.toggle('faded', isCrowd && rank(message) === 0);
    }
  }

  /**
   * A message's name, with what it carries if that is short.
   * @param {Message} message
   */
  #name(message) {
    if (message.content.length > CONTENT_MAX) return message.label;
    return this.model?.said(content(message)) ?? '';
  }
}
