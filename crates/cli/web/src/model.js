/**
 * One run: what happened, as steps whose changes can be folded in either direction. Nothing here
 * knows a rule of any algorithm.
 */

import { isolate, isolator, NO_BREAK } from './words.js';

/**
 * A value in a node's state: nodes are indices, and null is none, or not there now.
 * @typedef {{ sequence: number, node: number }} Request
 * @typedef {string | number | boolean | null | Request | (number | Request)[]} Value
 *
 * @typedef {Object} Field
 * @property {string} name as the paper names it
 * @property {string} kind flag, number, numbers, node, queue, set, request, requests or text
 * @property {string | null} role phase, token, queue, clock, pointer, fence or another
 * @property {string | null} group the part of the node that it belongs to
 * @property {string} help
 *
 * @typedef {Object} Plan
 * @property {string} kind
 * @property {number} width
 * @property {number} height
 * @property {[number, number][]} nodes
 * @property {[number, number][]} edges
 * @property {[number, number, number][]} stubs
 * @property {number[][] | null} sets
 *
 * @typedef {{ id: number, from: number, to: number, label: string, content: string, token: boolean }} Send
 * @typedef {{ node: number, field: string, before: Value, after: Value }} Change
 * @typedef {{ kind: string, text: string, ring: [number, number, string][] }} Fault
 *
 * @typedef {Object} Step
 * @property {number} line in the scenario's text, from 1; several steps may share one
 * @property {string} action
 * @property {number} node
 * @property {number} time
 * @property {number | null} cause the step that sent the message
 * @property {number | null} got the message that arrived or was lost
 * @property {Send[]} sends
 * @property {boolean} enter
 * @property {boolean} leave
 * @property {Change[]} changes
 * @property {Fault | null} fault
 * @property {string | null} caption
 * @property {string} told what it did, in a sentence
 * @property {{ text: string } | null} ask
 *
 * @typedef {{ text: string, label: string, node: number, from: number | null, message: number | null }} Choice
 *
 * @typedef {Object} Run
 * @property {string} title
 * @property {string | null} intro
 * @property {string} text the whole scenario
 * @property {string} algorithm
 * @property {string} variant
 * @property {string} paper
 * @property {string[]} names
 * @property {Plan} plan
 * @property {[number, number][]} rows nodes in the order of the diagram, with their depth
 * @property {Field[]} fields
 * @property {Record<string, Value>[]} start
 * @property {Send[]} flight messages before the first step
 * @property {Fault | null} fault of the first state
 * @property {number} from index of the first of the steps
 * @property {Step[]} steps
 * @property {Choice[]} may
 * @property {string | null} closing
 * @property {string | null} ended
 *
 * @typedef {Object} Fate
 * @property {number} sent position at which it is in flight for the first time
 * @property {number} got position at which it has arrived; Infinity if it never does
 * @property {boolean} lost
 * @typedef {Send & Fate} Message
 *
 * @typedef {{ node: number, phase: string, from: number, to: number }} Span
 */

/** @type {Record<string, string>} */
const VERBS = {
  request: 'requests',
  release: 'leaves',
  crash: 'crashes',
  restart: 'restarts',
  settled: 'has recovered',
  forget: 'is forgotten and recreated',
  'forget-all': 'and all others are forgotten and recreated',
};

/** A run and a position in it: position p is after p steps. */
export class Model {
  /** @param {Run} run */
  constructor(run) {
    this.run = run;
    this.at = 0;
    /** The names of the nodes, for use in sentences. */
    this.names = run.names.map(isolate);
    /** Isolates the names in a text of the lab. */
    this.said = isolator(run.names);
    /** The state of each node at this position. */
    this.nodes = run.start.map((node) => ({ ...node }));
    /** @type {Map<number, Message>} */
    this.messages = new Map();
    /** Messages in flight at this position. @type {Map<number, Message>} */
    this.flight = new Map();
    /** The step before each at the same node, or -1. @type {number[]} */
    this.previous = [];
    /** Counts up to each position. */
    this.entries = [0];
    this.sent = [0];
    /** The last step with a caption before each position, or -1. */
    this.captioned = [-1];
    /** @type {Span[]} */
    this.spans = [];
    /** @type {(role: string) => string | undefined} */
    const name = (role) => run.fields.find((field) => field.role === role)?.name;
    this.phaseKey = name('phase') ?? 'phase';
    this.tokenKey = name('token') ?? '';
    this.queue = run.fields.find((field) => field.role === 'queue');
    this.pointers = run.fields.filter((field) => field.role === 'pointer');
    this.#index();
  }

  get length() {
    return this.run.steps.length;
  }

  /** The step that led to this position. */
  get step() {
    return this.at > 0 ? this.run.steps[this.at - 1] : undefined;
  }

  #index() {
    const { steps, names } = this.run;
    const last = names.map(() => -1);
    for (const send of this.run.flight) {
      const message = { ...send, sent: 0, got: Infinity, lost: false };
      this.messages.set(send.id, message);
      this.flight.set(send.id, message);
    }
    steps.forEach((step, i) => {
      for (const send of step.sends) {
        const message = { ...send, sent: i + 1, got: Infinity, lost: false };
        this.messages.set(send.id, message);
      }
      const got = step.got === null ? undefined : this.messages.get(step.got);
      if (got) {
        got.got = i + 1;
        got.lost = step.action === 'lose';
      }
      this.previous.push(last[step.node]);
      last[step.node] = i;
      this.entries.push(this.entries[i] + Number(step.enter));
      this.sent.push(this.sent[i] + step.sends.length);
      this.captioned.push(step.caption === null ? this.captioned[i] : i);
    });
    this.#spread();
  }

  /** Finds how long each node was in each phase. */
  #spread() {
    const { steps, start } = this.run;
    const open = start.map((node) => ({ phase: String(node[this.phaseKey]), from: 0 }));
    /** @type {(node: number, to: number) => void} */
    const close = (node, to) => {
      const { phase, from } = open[node];
      if (phase !== 'idle') this.spans.push({ node, phase, from, to });
    };
    steps.forEach((step, i) => {
      for (const { node, field, after } of step.changes) {
        if (field !== this.phaseKey) continue;
        close(node, i + 1);
        open[node] = { phase: String(after), from: i + 1 };
      }
    });
    open.forEach((_, node) => close(node, Infinity));
  }

  /**
   * Moves to a position, step by step, and returns the nodes that changed.
   * @param {number} position
   */
  go(position) {
    const { steps } = this.run;
    const to = Math.max(0, Math.min(this.length, Math.trunc(position) || 0));
    const touched = new Set();
    while (this.at < to) {
      const step = steps[this.at++];
      for (const { node, field, after } of step.changes) {
        this.nodes[node][field] = after;
        touched.add(node);
      }
      if (step.got !== null) this.flight.delete(step.got);
      for (const { id } of step.sends) this.#fly(id);
    }
    while (this.at > to) {
      const step = steps[--this.at];
      for (const { node, field, before } of step.changes.toReversed()) {
        this.nodes[node][field] = before;
        touched.add(node);
      }
      for (const { id } of step.sends) this.flight.delete(id);
      if (step.got !== null) this.#fly(step.got);
    }
    return touched;
  }

  /** @param {number} id */
  #fly(id) {
    const message = this.messages.get(id);
    if (message) this.flight.set(id, message);
  }

  /** Messages in flight, oldest first. */
  inFlight() {
    return [...this.flight.values()].sort((a, b) => a.id - b.id);
  }

  /** @param {number} node */
  phase(node) {
    return String(this.nodes[node][this.phaseKey]);
  }

  /** @param {number} node */
  hasToken(node) {
    return this.nodes[node][this.tokenKey] === true;
  }

  /** @param {string} phase */
  count(phase) {
    return this.nodes.reduce((sum, node) => sum + Number(node[this.phaseKey] === phase), 0);
  }

  /**
   * The steps that may have influenced a step: along messages, and along the line of each node.
   * @param {number} step
   * @returns {Set<number>}
   */
  causalPast(step) {
    const past = new Set();
    const open = step >= 0 ? [step] : [];
    for (let i = open.pop(); i !== undefined; i = open.pop()) {
      if (past.has(i)) continue;
      past.add(i);
      const { cause } = this.run.steps[i];
      if (cause !== null) open.push(cause);
      if (this.previous[i] >= 0) open.push(this.previous[i]);
    }
    return past;
  }

  /**
   * The position after the next entry, or the end.
   * @param {number} from
   */
  nextEntry(from) {
    const step = this.run.steps.findIndex((it, i) => i >= from && it.enter);
    return step < 0 ? this.length : step + 1;
  }

  /**
   * A value as the paper writes it, with the names of the nodes.
   * @param {Field} field
   * @param {Value | undefined} value
   * @param {number} me the node whose value it is
   * @returns {string}
   */
  text(field, value, me) {
    const { names } = this;
    const named = field.kind !== 'numbers' && field.kind !== 'number';
    /** @param {Value} item */
    const one = (item) => {
      if (typeof item === 'number' && named)
        return item === me ? 'self' : (names[item] ?? `${item}`);
      if (isRequest(item)) return `(${item.sequence},${NO_BREAK}${names[item.node] ?? item.node})`;
      return String(item);
    };
    if (value === null || value === undefined) return 'none';
    if (!Array.isArray(value)) return one(value);
    const list = value.map(one).join(' ');
    return field.kind === 'set' ? `{${list}}` : `[${list}]`;
  }

  /**
   * The nodes in a node's queue, for the picture. Empty if there are none.
   * @param {number} me
   */
  queueText(me) {
    const value = this.queue && this.nodes[me][this.queue.name];
    if (!this.queue || !Array.isArray(value) || value.length === 0) return '';
    const nodes = value.map((item) => (isRequest(item) ? item.node : item));
    return this.text({ ...this.queue, kind: 'queue' }, nodes, me);
  }

  /**
   * What a step did, in a sentence of the lab.
   * @param {number} i
   */
  told(i) {
    return this.said(this.run.steps[i].told);
  }

  /**
   * What a step did, in one line.
   * @param {number} i
   */
  describe(i) {
    const { action, node, got } = this.run.steps[i];
    const message = got === null ? undefined : this.messages.get(got);
    if (message) return `${this.letter(message)} ${message.lost ? 'is lost' : 'arrives'}`;
    return `${this.names[node]} ${VERBS[action] ?? action}`;
  }

  /**
   * A message with its ends and what it carries.
   * @param {Send} message
   */
  letter({ from, to, ...rest }) {
    return `${this.names[from]} → ${this.names[to]} ${this.said(content(rest))}`;
  }
}

/**
 * A message with what it carries.
 * @param {{ label: string, content: string }} message
 */
export function content(message) {
  return `${message.label} ${message.content}`.trimEnd();
}

/**
 * @param {Value} value
 * @returns {value is Request}
 */
function isRequest(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
