/** What happened, the selected node or message in the paper's own names, and what may happen. */

/** @import { Choice, Field, Message, Model } from './model.js' */
/** @import { Player, View } from './player.js' */
import { glyph, html, Keyed, say, set } from './dom.js';
import { DOTS_ABOVE } from './geometry.js';
import { Prediction } from './prediction.js';
import { many } from './words.js';

/** Longer lists say how many entries they leave out. */
const LIST_MAX = 24;
/** The width of a row of the list beside its text, in px: sign, gap, padding and border. */
const LETTER_MORE = 40;
/** The width of a character in the list, the gap between its columns, and its most rows. */
const LETTER_WIDTH = 7.3;
const LIST_GAP = 16;
const LIST_ROWS_MAX = 6;
/** A choice that is longer is cut. */
const LETTERS = 28;

export class Inspector extends HTMLElement {
  /** @type {Player | undefined} */
  player;
  /** @type {View | undefined} */
  view;

  heading = html('h2');
  did = html('p', { class: 'did' });
  stuck = html('p', { class: 'stuck' });
  why = html('p', { class: 'muted' });
  cone = html('p', { class: 'muted' });
  cause = link('', () => {
    const cause = this.view?.model.step?.cause;
    if (typeof cause === 'number') this.player?.pick(cause);
  });
  name = html('h3', { class: 'title' });
  fields = html('div', { class: 'groups' });
  /** The values, in the order of the fields. @type {HTMLElement[]} */
  values = [];
  next = html('h2');
  list = html('ul', { class: 'list' });
  more = html('p', { class: 'muted' });
  /** Characters of a message that has room in a column. */
  letterWidth = LETTERS;
  status = html('p', { class: 'status', role: 'status' });
  hand = button('By hand', () => this.player?.branch.takeOver());
  undo = button('Undo', () => this.player?.branch.undo());
  back = button('Back to the recording', () => this.player?.branch.back());
  save = button('Save', () => this.player?.branch.save());
  search = button('Find trouble from here', () => this.player?.branch.search(this.quota));
  requests = html(
    'select',
    { 'aria-label': 'Requests per node, from here' },
    [1, 2, 3].map((n) => html('option', { value: n }, many(n, 'request each', 'requests each'))),
  );
  crashes = html(
    'select',
    { 'aria-label': 'Crashes, from here', hidden: true },
    ['no crash', '1 crash', '2 crashes'].map((name, n) => html('option', { value: n }, name)),
  );
  cancel = button('Cancel', () => this.player?.branch.cancel());
  prediction = new Prediction((answer) => this.player?.predict(answer));
  actions = html(
    'section',
    { class: 'actions', 'aria-label': 'By hand and search' },
    html('div', { class: 'row' }, this.hand, this.undo, this.save, this.back),
    html('div', { class: 'row' }, this.search, this.requests, this.crashes, this.cancel),
    this.status,
  );

  letters = new Keyed(
    this.list,
    (/** @type {Message} */ message) => {
      const choose = html('button', { class: 'row-button', type: 'button' });
      choose.addEventListener('click', () => this.player?.chooseMessage(message.id));
      choose.append(glyph('message'), html('span'));
      return html('li', { 'data-flight': message.id }, choose);
    },
    (li, message) => {
      const { model, message: chosen } = /** @type {View} */ (this.view);
      const [choose] = li.children;
      const text = model.letter(message);
      // Another run has other messages of the same numbers.
      const sign = message.token ? 'token' : 'message';
      if (!choose.children[0].classList.contains(sign)) choose.children[0].replaceWith(glyph(sign));
      say(choose.children[1], text);
      set(choose, 'aria-pressed', String(chosen === message.id));
      set(choose, 'title', `${text}, sent in step ${message.sent}`);
      set(li, 'class', text.length > this.letterWidth && 'whole');
    },
  );
  choices = new Keyed(
    this.list,
    (/** @type {Choice} */ choice) => {
      const take = html('button', { class: 'choice', type: 'button' });
      take.addEventListener('click', () => this.player?.branch.take(choice));
      return html('li', { 'data-choice': choice.text }, take);
    },
    (li, choice) => {
      const { model } = /** @type {View} */ (this.view);
      say(li.children[0], model.said(choice.label));
    },
  );

  /** What may happen in a search. */
  get quota() {
    const crashes = this.crashes.hidden ? 0 : Number(this.crashes.value);
    return { requests: Number(this.requests.value), crashes };
  }

  /** @param {Player} player */
  connect(player) {
    this.player = player;
    this.append(
      html('section', {}, this.heading, this.did, this.stuck, this.why, this.cone),
      this.prediction.element,
      html('section', { class: 'subject', 'aria-label': 'Selection' }, this.name, this.fields),
      html('section', { class: 'next', 'aria-label': 'Next' }, this.next, this.list, this.more),
      this.actions,
    );
  }

  /** @param {View} view */
  show(view) {
    const before = this.view;
    this.view = view;
    this.#showStep(view);
    this.prediction.show(view);
    if (view.message === undefined) this.#showNode(view, before);
    else this.#showMessage(view);
    this.#showNext(view);
    this.#showActions(view);
  }

  /** @param {View} view */
  #showStep({ model, event, past, pinned, asks }) {
    const { heading, did, why, cone } = this;
    const { step, at } = model;
    say(heading, at > 0 ? `Step ${at}` : 'Start');
    const enters = step?.enter ? `, ${model.names[step.node]} enters` : '';
    say(did, step ? model.describe(at - 1) + enters : 'Nothing has happened yet');
    const isStuck = step?.fault?.kind === 'deadlock' && step.fault.ring.length > 0;
    say(this.stuck, isStuck ? stuckText(model) : '');
    set(this.stuck, 'hidden', !isStuck);
    const cause = step?.cause ?? null;
    if (cause === null) {
      say(why, step ? 'No message caused this: it was chosen.' : 'Press → to step, space to play.');
    } else {
      say(this.cause, `step ${cause + 1}`);
      why.replaceChildren('Sent in ', this.cause, `: ${model.describe(cause)}.`);
    }
    const kept = pinned ? ', kept marked (Esc lets go).' : '.';
    const size = `${past.size - 1} of ${many(event, 'step', 'steps')} before it`;
    say(cone, step && event > 0 && !asks ? `Causal past of step ${event + 1}: ${size}${kept}` : '');
  }

  /**
   * @param {View} view
   * @param {View | undefined} before
   */
  #showNode({ model, node }, before) {
    const { name: title } = this;
    const phase = model.phase(node);
    const token = model.hasToken(node) ? '◆ has the token' : '';
    const name = `Node ${model.names[node]}`;
    const key = `${name} ${phase} ${token}`;
    if (title.dataset.key !== key) {
      title.dataset.key = key;
      title.replaceChildren(
        glyph(phase),
        html('bdi', {}, name),
        html('span', { class: `phase ${phase}` }, phase),
        html('span', { class: 'token' }, token),
      );
    }
    const shown = model.run.fields.filter(({ role }) => role !== 'phase' && role !== 'token');
    if (before?.model.run.fields !== model.run.fields || before.message !== undefined) {
      this.#layFields(shown);
    }
    const changes = model.step?.changes.filter((change) => change.node === node) ?? [];
    shown.forEach((field, i) => {
      const dd = this.values[i];
      const change = changes.find((it) => it.field === field.name);
      const now = model.text(field, model.nodes[node][field.name], node);
      const was = change ? model.text(field, change.before, node) : '';
      // A value that is not there now has no line, unless it plays a part in the picture.
      const isAbsent = now === 'none' && !change && field.role === null;
      set(/** @type {Element} */ (dd.parentElement), 'hidden', isAbsent);
      const state = `${model.at} ${was} ${now}`;
      if (dd.dataset.state === (change ? state : now)) return;
      dd.dataset.state = change ? state : now;
      dd.replaceChildren(...(change ? [html('span', { class: 'was' }, was)] : []), now);
      set(dd, 'class', change ? 'changed' : '');
    });
  }

  /**
   * Lays out the names and places of values, group by group.
   * @param {Field[]} fields
   */
  #layFields(fields) {
    this.values = fields.map(() => html('dd'));
    const groups = [...new Set(fields.map((field) => field.group))];
    const lists = groups.map((group) => {
      const rows = fields.flatMap((field, i) =>
        field.group === group
          ? [html('div', {}, html('dt', { title: field.help }, field.name), this.values[i])]
          : [],
      );
      const isWide = group === null;
      return html(
        'div',
        { class: isWide && 'whole' },
        !isWide && html('h4', {}, group),
        html('dl', {}, rows),
      );
    });
    this.fields.replaceChildren(...lists);
    const shape = groups.length > 1 ? 'groups parted' : 'groups';
    set(this.fields, 'class', shape);
  }

  /** @param {View} view */
  #showMessage({ model, message: id }) {
    const { name: title, fields } = this;
    const message = model.messages.get(/** @type {number} */ (id));
    if (!message) return;
    const { names } = model;
    title.dataset.key = '';
    title.replaceChildren(
      glyph(message.token ? 'token' : 'message'),
      html('span', { class: 'ends' }, `${names[message.from]} → ${names[message.to]}`),
      html('span', { class: 'mono' }, message.label),
    );
    const sent = link(`step ${message.sent}`, () => this.player?.pick(message.sent - 1));
    const rows = [
      row('carries', model.said(message.content) || 'nothing'),
      message.sent > 0
        ? row('sent in', sent, `: ${model.describe(message.sent - 1)}`)
        : row('sent', 'at the start'),
      row('then', this.#fate(model, message)),
    ];
    fields.replaceChildren(html('dl', {}, rows));
  }

  /**
   * @param {Model} model
   * @param {Message} message
   */
  #fate(model, message) {
    if (model.at < message.got)
      return message.got === Infinity ? 'in flight to the end' : 'in flight';
    return `${message.lost ? 'lost' : 'arrived'} in step ${message.got}`;
  }

  /** @param {View} view */
  #showNext({ model, hand }) {
    const { next, more } = this;
    const flight = hand ? [] : model.inFlight();
    const choices = hand ? model.run.may : [];
    // As many columns as there is room for most of the messages. A longer one has a row of its own.
    const lengths = flight.map((message) => model.letter(message).length).sort((a, b) => a - b);
    const letters = hand ? LETTERS : (lengths[Math.floor(lengths.length * 0.75)] ?? LETTERS);
    this.letterWidth = letters;
    this.list.style.setProperty('--letter', `calc(${letters}ch + ${LETTER_MORE}px)`);
    const listed = hand ? flight : this.#fitting(flight, letters);
    this.letters.sync(listed.map((message) => [message.id, message]));
    this.choices.sync(choices.slice(0, 4 * LIST_MAX).map((choice) => [choice.text, choice]));
    const left = hand ? choices.length - 4 * LIST_MAX : 0;
    const part = listed.length < flight.length ? `, the oldest ${listed.length} are listed` : '';
    say(next, hand ? 'What may happen next' : `In flight: ${flight.length || 'nothing'}${part}`);
    const small = model.run.names.length <= DOTS_ABOVE;
    const none = small
      ? 'Nothing: the run has ended.'
      : `By hand takes at most ${DOTS_ABOVE} nodes.`;
    const ended = hand && choices.length === 0 ? none : '';
    say(more, left > 0 ? `and ${left} more` : ended);
  }

  /**
   * The oldest messages, as many as have room in the rows of the list.
   * @param {Message[]} flight oldest first
   * @param {number} letters of a column
   */
  #fitting(flight, letters) {
    const column = letters * LETTER_WIDTH + LETTER_MORE + LIST_GAP;
    const columns = Math.max(1, Math.floor((this.list.clientWidth + LIST_GAP) / column));
    let room = LIST_ROWS_MAX * columns;
    const isIn = (/** @type {Message} */ message) => {
      const isWhole = (this.view?.model.letter(message).length ?? 0) > letters;
      room -= isWhole ? columns : 1;
      return room >= 0;
    };
    const end = flight.findIndex((message) => !isIn(message));
    return end < 0 ? flight : flight.slice(0, end);
  }

  /** @param {View} view */
  #showActions({ model, hand, served, searching, left, status, asks }) {
    // While the page asks, only the prediction is to be made.
    set(this.actions, 'hidden', !served || asks !== null);
    set(this.hand, 'aria-pressed', String(hand));
    this.undo.disabled = !hand || model.length === 0;
    this.search.disabled = searching;
    set(this.cancel, 'hidden', !searching);
    set(this.back, 'hidden', !left);
    // What may happen by hand may happen in a search.
    const crash = model.run.may.some(({ text }) => text.startsWith('crash '));
    set(this.crashes, 'hidden', !crash);
    say(this.status, status.text);
    set(this.status, 'hidden', status.text === '');
    set(this.status, 'class', `status ${status.tone}`);
  }
}

/**
 * What a deadlock is.
 * @param {Model} model
 */
function stuckText(model) {
  const waiting = many(model.count('waiting'), 'node waits', 'nodes wait');
  return `✕ Nothing is in flight, no node is inside, and ${waiting}.`;
}

/**
 * @param {string} name
 * @param {(string | Node)[]} value
 */
function row(name, ...value) {
  return html('div', {}, html('dt', {}, name), html('dd', {}, ...value));
}

/**
 * @param {string} name
 * @param {() => void} act
 */
function button(name, act) {
  return html('button', { type: 'button', 'data-act': name, onclick: act }, name);
}

/**
 * @param {string} name
 * @param {() => void} act
 */
function link(name, act) {
  return html('button', { class: 'link', type: 'button', onclick: act }, name);
}
