/** Where a tour asks: who does what next. The answer is checked against the next step. */

/** @import { Model, Step } from './model.js' */
/** @import { View } from './player.js' */
import { html, say, set } from './dom.js';

const NOTHING = 'sends nothing';
const ENTERS = 'enters';

/** @typedef {{ who: number, what: string, whom: number | null }} Answer */

/**
 * Returns whether a step is what was predicted.
 * @param {Step} step
 * @param {Answer} answer
 */
export function isRight(step, { who, what, whom }) {
  if (step.node !== who) return false;
  if (what === ENTERS) return step.enter;
  if (what === NOTHING) return step.sends.length === 0 && !step.enter;
  return step.sends.some((send) => send.label === what && send.to === whom);
}

/**
 * What a step does, as the answer to a prediction.
 * @param {Model} model
 * @param {number} i
 */
export function solution(model, i) {
  const { node, enter, sends } = model.run.steps[i];
  const { names } = model;
  const sent = sends.map((send) => `sends ${send.label} to ${names[send.to]}`);
  const did = [...(enter ? [ENTERS] : []), ...sent];
  return `${names[node]} ${did.length > 0 ? did.join(' and ') : NOTHING}`;
}

export class Prediction {
  /** @param {(answer: Answer) => void} check */
  constructor(check) {
    this.who = html('select', { 'aria-label': 'Who' });
    this.what = html('select', { 'aria-label': 'Does what' });
    this.whom = html('select', { 'aria-label': 'To whom' });
    this.check = html('button', { type: 'button', 'data-act': 'Check' }, 'Check');
    this.check.addEventListener('click', () => check(this.answer()));
    for (const part of [this.who, this.what, this.whom]) {
      part.addEventListener('change', () => this.#fit());
    }
    this.score = html('p', { class: 'muted' });
    this.element = html(
      'section',
      { class: 'ask', 'aria-label': 'Prediction' },
      html('h2', {}, 'Your prediction: click nodes, or choose'),
      html('div', { class: 'row' }, this.who, this.what, this.whom, this.check),
      this.score,
    );
    /** @type {number | undefined} */
    this.at = undefined;
    /** Which choice the next click on a node fills. */
    this.turn = 0;
  }

  /** @param {View} view */
  show({ model, asks, score }) {
    set(this.element, 'hidden', !asks);
    if (!asks) return;
    if (this.run !== model.run) this.#fill(model);
    if (this.at !== model.at) this.#clear();
    this.at = model.at;
    say(this.score, score.asked > 0 ? `${score.right} of ${score.asked} right so far` : '');
  }

  #clear() {
    this.turn = 0;
    for (const part of [this.who, this.what, this.whom]) part.value = '';
    this.#fit();
  }

  /** @param {Model} model */
  #fill(model) {
    this.run = model.run;
    const { names } = model.run;
    const nodes = (/** @type {string} */ asks) => [
      html('option', { value: '' }, asks),
      ...names.map((name, i) => html('option', { value: i }, name)),
    ];
    const labels = new Set([...model.messages.values()].map((message) => message.label));
    const sends = [...labels].map((it) => html('option', { value: it }, `sends ${it}`));
    const other = [ENTERS, NOTHING].map((it) => html('option', { value: it }, it));
    this.who.replaceChildren(...nodes('who?'));
    this.what.replaceChildren(html('option', { value: '' }, 'does what?'), ...sends, ...other);
    this.whom.replaceChildren(...nodes('to whom?'));
    this.#fit();
  }

  /** Asks for a receiver only of what is sent, and checks only a whole answer. */
  #fit() {
    this.whom.disabled = [ENTERS, NOTHING].includes(this.what.value);
    const { who, what, whom } = this;
    const given = [who, what, ...(whom.disabled ? [] : [whom])];
    this.check.disabled = given.some(({ value }) => value === '');
  }

  /**
   * A click on a node: first who acts, then to whom.
   * @param {number} node
   */
  point(node) {
    const field = this.turn === 0 ? this.who : this.whom;
    field.value = String(node);
    this.turn = 1 - this.turn;
    this.#fit();
  }

  /** @returns {Answer} */
  answer() {
    const whom = this.whom.disabled ? null : Number(this.whom.value);
    return { who: Number(this.who.value), what: this.what.value, whom };
  }
}
