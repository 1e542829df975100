/**
 * The page's session with a node (docs/sessions.md). It holds no lock. A lost connection is opened
 * again, with a new session: there is nothing to resume.
 */

/** How long to wait before each further attempt, in ms. */
const PAUSES = [500, 1000, 2000, 4000, 5000];

/** A node that is silent for so many pings, and at least this long, is lost. */
const PINGS_MISSED = 5;
const SILENCE_MS_MIN = 5000;

/** Tells the local server that the node is silent, so that it tries the next one. */
const CLOSE_SILENT = 4000;

/**
 * @typedef {{ kind: 'connecting' } | { kind: 'open', node: string }
 *   | { kind: 'lost', why: string, retryAt: number }} State
 */

/**
 * What the session needs of its surroundings.
 * @typedef {Object} World
 * @property {() => WebSocket} connect
 * @property {() => number} now in ms, from any origin
 * @property {(call: () => void, ms: number) => number} after
 * @property {(timer: number) => void} cancel
 */

/**
 * @typedef {Object} Listener
 * @property {(state: State) => void} state
 * @property {(kind: string, content: any) => void} push
 */

/** The node refused a request. */
export class Refused extends Error {}

export class Session {
  /**
   * @param {World} world
   * @param {Listener} listener
   */
  constructor(world, listener) {
    this.world = world;
    this.listener = listener;
    /** @type {WebSocket | null} */
    this.socket = null;
    this.isOpen = false;
    this.failures = 0;
    this.timer = 0;
    /** @type {Map<number, { resolve: (content: any) => void, reject: (why: Error) => void }>} */
    this.pending = new Map();
    this.n = 0;
    this.seen = 0;
    this.pingEvery = 1000;
    this.sentAt = 0;
    this.heardAt = 0;
    /** Why the node closed the connection, if it said so. */
    this.why = '';
  }

  /** Connects, and again whenever the connection is lost. */
  start() {
    this.world.cancel(this.timer);
    this.close();
    this.listener.state({ kind: 'connecting' });
    this.why = '';
    const socket = this.world.connect();
    this.socket = socket;
    socket.onopen = () => this.put({ hello: { name: 'soloist ui' } });
    socket.onmessage = ({ data }) => this.socket === socket && this.receive(String(data));
    socket.onclose = () => this.socket === socket && this.lose('');
    this.heardAt = this.world.now();
    this.watch();
  }

  /**
   * Sends a request. The promise has the content of the answer.
   * @param {string} kind
   * @param {Record<string, unknown>} [fields]
   * @returns {Promise<any>}
   */
  ask(kind, fields = {}) {
    if (!this.isOpen) return Promise.reject(new Error('There is no connection.'));
    const n = ++this.n;
    return new Promise((resolve, reject) => {
      this.pending.set(n, { resolve, reject });
      this.put({ [kind]: { n, seen: this.seen, ...fields } });
    });
  }

  /** @param {object} message */
  put(message) {
    this.sentAt = this.world.now();
    this.socket?.send(JSON.stringify(message));
  }

  /** @param {string} text */
  receive(text) {
    this.heardAt = this.world.now();
    const [kind, content] = Object.entries(JSON.parse(text))[0];
    this.seen = Math.max(this.seen, content.seq ?? 0);
    if (kind === 'welcome') this.open(content);
    else if (kind === 'closed') this.why = content.detail;
    else if (!this.answer(kind, content)) this.listener.push(kind, content);
    this.ping();
  }

  /** @param {{ node: string, ping_every_ms: number }} welcome */
  open({ node, ping_every_ms: pingEvery }) {
    this.isOpen = true;
    this.failures = 0;
    this.n = 0;
    this.seen = 0;
    this.pingEvery = pingEvery;
    this.listener.state({ kind: 'open', node });
  }

  /**
   * @param {string} kind
   * @param {any} content
   */
  answer(kind, content) {
    const waiting = this.pending.get(content.n);
    if (!waiting) return kind === 'pong' || kind === 'done';
    this.pending.delete(content.n);
    if (kind === 'error') waiting.reject(new Refused(content.detail));
    else waiting.resolve(content);
    return true;
  }

  /**
   * Pings if it is time to. Called for every message too, because a browser slows down the timers
   * of a page that is hidden.
   */
  ping() {
    if (this.isOpen && this.world.now() - this.sentAt >= this.pingEvery) {
      this.put({ ping: { n: ++this.n, seen: this.seen } });
    }
  }

  /** Looks after the connection, now and then. */
  watch() {
    const silence = Math.max(SILENCE_MS_MIN, PINGS_MISSED * this.pingEvery);
    if (this.world.now() - this.heardAt > silence) {
      this.lose('The node does not answer.', CLOSE_SILENT);
      return;
    }
    this.ping();
    this.timer = this.world.after(() => this.watch(), this.pingEvery);
  }

  /**
   * @param {string} why
   * @param {number} [code]
   */
  lose(why, code) {
    const said = this.why || why || 'The connection was closed.';
    const pause = PAUSES[Math.min(this.failures, PAUSES.length - 1)];
    this.failures += 1;
    this.close(code);
    this.world.cancel(this.timer);
    this.timer = this.world.after(() => this.start(), pause);
    this.listener.state({ kind: 'lost', why: said, retryAt: this.world.now() + pause });
  }

  /** @param {number} [code] */
  close(code) {
    const { socket } = this;
    this.socket = null;
    this.isOpen = false;
    socket?.close(code);
    for (const { reject } of this.pending.values()) reject(new Error('The connection was lost.'));
    this.pending.clear();
  }
}
