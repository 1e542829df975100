/** One position in one run, or in two; every part shows the same view of it. */

/** @import { Run, Step } from './model.js' */
/** @import { Answer } from './prediction.js' */
/** @import { Address } from './address.js' */
/** @import { Server } from './server.js' */
/** @import { Stage } from './stage.js' */
/** @import { Inspector } from './inspector.js' */
/** @import { SpaceTime } from './spacetime.js' */
/** @import { Track, Transport } from './transport.js' */
/** @import { Counts } from './compare.js' */
import { formatAddress } from './address.js';
import { Branch } from './branch.js';
import { Pair } from './compare.js';
import { Model } from './model.js';
import { isRight, solution } from './prediction.js';
import { closed, many, sentence } from './words.js';

/**
 * @typedef {Object} Headline
 * @property {'plain' | 'fault' | 'ask' | 'right'} tone
 * @property {string} text
 * @property {number} [step] that it is about
 * @property {boolean} [quoted] whether it is a comment of the scenario
 * @property {string} [detail] what else there is to say
 *
 * @typedef {Object} View
 * @property {Model} model
 * @property {number} at
 * @property {number} node the selected node
 * @property {number | undefined} message the selected message
 * @property {number} event the step whose causal past is marked
 * @property {boolean} pinned whether it stays marked while one steps on
 * @property {Set<number>} past
 * @property {Headline} headline
 * @property {{ text: string } | null} asks
 * @property {{ asked: number, right: number }} score
 * @property {boolean} hand whether one chooses what happens next
 * @property {boolean} served whether a server is there to run and search
 * @property {boolean} searching
 * @property {boolean} left whether there is a recording to go back to
 * @property {{ tone: 'plain' | 'fault', text: string }} status
 *
 * @typedef {Object} Parts
 * @property {Stage} stage
 * @property {Stage} other
 * @property {Inspector} inspector
 * @property {SpaceTime} time
 * @property {Counts} counts
 * @property {Transport} transport
 * @property {(mode: string, title: string, detail: string) => void} head
 * @property {(text: string) => void} notice
 */

/** A caption stays for this number of steps. Then each step is told by itself. */
const CAPTION_STEPS = 5;
/** Time between two steps, in ms, at speed 1. */
const INTERVAL = 800;
/** The address follows when nothing moved for this long: browsers limit how often it may change. */
const ADDRESS_AFTER = 300;

export class Player {
  /** @type {Model | undefined} */
  model;
  /** @type {Pair | undefined} */
  pair;
  /** @type {Address} */
  address = { kind: 'none' };
  speed = 1;
  moving = 0;
  score = { asked: 0, right: 0 };
  /** @type {{ tone: 'plain' | 'fault', text: string }} */
  status = { tone: 'plain', text: '' };
  /** @type {number | undefined} */
  node;
  /** @type {number | undefined} */
  message;
  /** @type {number | undefined} */
  event;
  /** @type {Headline | undefined} */
  answered;
  handed = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  addressTimer;
  /** The address that the page has opened or written. */
  written = '';
  /** @type {Track | undefined} */
  track;

  /**
   * @param {Parts} parts
   * @param {Server | null} server null in an export
   */
  constructor(parts, server) {
    this.parts = parts;
    this.server = server;
    this.branch = new Branch(this);
  }

  get at() {
    return this.pair?.at ?? this.model?.at ?? 0;
  }

  get length() {
    return this.pair?.length ?? this.model?.length ?? 0;
  }

  /** How much faster than usual messages move, so that a step ends before the next one. */
  get pace() {
    return this.timer === undefined ? 1 : Math.min(1, (0.9 * INTERVAL) / this.speed / 480);
  }

  /**
   * Shows a run at a position.
   * @param {Run} run
   * @param {number} at
   * @param {Address} address
   */
  open(run, at, address) {
    this.#reset();
    this.pair = undefined;
    this.model = new Model(run);
    this.address = address;
    const variant = run.variant ? `, ${run.variant}` : '';
    const isSaid = run.title.startsWith(run.algorithm);
    this.written = location.hash;
    this.parts.head('run', run.title, isSaid ? '' : `${run.algorithm}${variant}`);
    const beyond = at > run.steps.length;
    const has = many(run.steps.length, 'step', 'steps');
    this.parts.notice(beyond ? `The link points to step ${at}, but this run has ${has}.` : '');
    this.go(at);
  }

  /**
   * Shows two runs with the same demands.
   * @param {[Run, Run]} runs
   * @param {number} at
   * @param {Address} address
   */
  openPair(runs, at, address) {
    this.#reset();
    this.written = location.hash;
    this.pair = new Pair(runs);
    this.model = this.pair.models[0];
    this.address = address;
    const title = runs.map((run) => run.algorithm).join(' and ');
    this.parts.head('compare', title, 'the same demands');
    this.parts.notice('');
    this.go(at);
  }

  /**
   * Shows another continuation of the same run.
   * @param {Model} model
   * @param {Address} address
   */
  replace(model, address) {
    this.model = model;
    this.address = address;
    this.track = undefined;
    this.event = this.answered = undefined;
    this.status = { tone: 'plain', text: '' };
  }

  /** Leaves the run, for the gallery or an error. */
  close() {
    this.#reset();
    this.model = undefined;
    this.pair = undefined;
    this.address = { kind: 'none' };
  }

  #reset() {
    this.pause();
    this.branch.forget();
    this.track = undefined;
    this.node = this.message = this.event = this.answered = undefined;
    this.handed = false;
    this.score = { asked: 0, right: 0 };
    this.status = { tone: 'plain', text: '' };
  }

  /** @param {number} to */
  go(to) {
    const { model } = this;
    if (!model) return;
    const goal = to === Infinity ? this.length : to;
    const before = this.at;
    (this.pair ?? model).go(goal);
    if (this.at !== before) {
      this.answered = undefined;
      this.node = undefined;
      if (this.message !== undefined && !model.flight.has(this.message)) this.message = undefined;
    }
    this.show();
  }

  show() {
    const { model, pair, parts } = this;
    if (!model) return;
    if (pair) {
      parts.stage.show(this.#view(pair.models[0]));
      parts.other.show(this.#view(pair.models[1]));
      parts.counts.show(pair);
    } else {
      const view = this.#view(model);
      parts.stage.show(view);
      parts.inspector.show(view);
      parts.time.show(view);
    }
    parts.transport.show(this.#track(), this.timer !== undefined);
    document.body.dataset.step = String(this.at);
    this.#follow();
  }

  /** @returns {Track} */
  #track() {
    const { at, length } = this;
    if (this.track && this.track.length === length) return (this.track = { ...this.track, at });
    const { model, pair } = this;
    /** @type {(of: (step: Step) => unknown) => number[]} */
    const positions = (of) =>
      pair || !model ? [] : model.run.steps.flatMap((step, i) => (of(step) ? [i + 1] : []));
    const entries = positions((step) => step.enter && !step.fault);
    const captions = positions((step) => step.caption);
    this.track = { at, length, entries, captions, faults: positions((step) => step.fault) };
    return this.track;
  }

  /**
   * @param {Model} model
   * @returns {View}
   */
  #view(model) {
    const { at, step } = model;
    const event = this.event ?? at - 1;
    const asks = this.pair ? null : (model.run.steps[at]?.ask ?? null);
    return {
      model,
      at,
      node: this.node ?? step?.node ?? 0,
      message: this.message,
      event,
      pinned: this.event !== undefined,
      past: this.pair ? new Set() : model.causalPast(event),
      headline: this.#headline(model, asks),
      asks,
      score: this.score,
      hand: this.handed && at === model.length,
      served: this.server !== null,
      searching: this.branch.searching !== undefined,
      left: this.branch.recording !== undefined,
      status: this.status,
    };
  }

  /**
   * @param {Model} model
   * @param {{ text: string } | null} asks
   * @returns {Headline}
   */
  #headline(model, asks) {
    const { run, step, at } = model;
    if (this.answered) return this.answered;
    if (this.pair) {
      const text = run.variant ? `${run.algorithm}, ${run.variant}` : run.algorithm;
      return { tone: 'plain', text, detail: at > 0 ? model.told(at - 1) : '' };
    }
    const quote = (/** @type {string} */ text) => ({ text: model.said(text), quoted: true });
    if (asks) return { tone: 'ask', ...quote(asks.text) };
    if (step?.fault) {
      const detail = step.caption === null ? '' : model.said(step.caption);
      return { tone: 'fault', text: closed(sentence(model.said(step.fault.text))), detail };
    }
    if (at === model.length && run.closing)
      return { tone: 'plain', ...quote(run.closing), step: at };
    if (at === 0) return { tone: 'plain', ...quote(run.intro ?? run.paper) };
    const last = model.captioned[at];
    const caption = last >= 0 && at - last <= CAPTION_STEPS ? run.steps[last].caption : null;
    const told = model.told(at - 1);
    if (caption === null) return { tone: 'plain', text: told, step: at };
    const detail = last === at - 1 ? '' : told;
    return { tone: 'plain', ...quote(caption), step: last + 1, detail };
  }

  /** Writes the run and the step into the address, soon. */
  #follow() {
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => this.writeAddress(), ADDRESS_AFTER);
  }

  writeAddress() {
    clearTimeout(this.addressTimer);
    if (this.address.kind === 'none') return;
    this.address = { ...this.address, at: this.at };
    // The reader has gone to another address, which the page has not opened yet.
    if (this.server && location.hash !== this.written) return;
    const hash = formatAddress(this.address);
    if (location.hash !== hash) history.replaceState(null, '', hash);
    this.written = location.hash;
  }

  /** Lets the browser's way back lead to this moment of this run. */
  leaveMark() {
    this.writeAddress();
    history.pushState(null, '', location.hash);
  }

  /* ---- Time ---- */

  toggle() {
    if (this.timer === undefined) this.play();
    else this.pause();
  }

  play() {
    if (this.at === this.length) this.go(0);
    const tick = () => {
      this.go(this.at + 1);
      if (this.at === this.length || this.#asks()) this.pause();
      else this.timer = setTimeout(tick, INTERVAL / this.speed);
    };
    if (!this.#asks()) this.timer = setTimeout(tick, INTERVAL / 5 / this.speed);
    this.show();
  }

  #asks() {
    return !this.pair && this.model?.run.steps[this.at]?.ask;
  }

  pause() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.show();
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
  }

  nextEntry() {
    const of = this.pair ?? this.model;
    if (of) this.go(of.nextEntry(this.at));
  }

  /**
   * Keeps the page marked as busy until the promise is done.
   * @param {Promise<unknown>} promise
   */
  async busy(promise) {
    this.moving++;
    document.body.dataset.idle = 'false';
    try {
      return await promise;
    } finally {
      if (--this.moving === 0) document.body.dataset.idle = 'true';
    }
  }

  /* ---- Selection ---- */

  /** @param {number} node */
  chooseNode(node) {
    if (this.#asks()) this.parts.inspector.prediction?.point(node);
    this.node = node;
    this.message = undefined;
    this.show();
  }

  /** @param {number} message */
  chooseMessage(message) {
    this.message = this.message === message ? undefined : message;
    this.show();
  }

  /**
   * Jumps to an event and keeps its causal past marked while one steps on. Picked once more, it is
   * let go.
   * @param {number} step
   */
  pick(step) {
    const again = this.event === step;
    this.go(step + 1);
    this.event = again ? undefined : step;
    this.show();
  }

  letGo() {
    this.event = this.message = this.node = undefined;
    this.show();
  }

  /** @param {Answer} answer */
  predict(answer) {
    const { model } = this;
    const next = model?.run.steps[this.at];
    if (!model || !next?.ask) return;
    this.score.asked++;
    if (isRight(next, answer)) {
      this.score.right++;
      const text = `Right: ${solution(model, this.at)}.`;
      this.go(this.at + 1);
      this.answered = { tone: 'right', text };
    } else {
      this.answered = { tone: 'ask', text: 'Not what happens. Try again, or step to see.' };
    }
    this.show();
  }
}
