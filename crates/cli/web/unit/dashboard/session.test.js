import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Refused, Session } from '../../src/dashboard/session.js';

class FakeSocket {
  constructor() {
    /** @type {any[]} */
    this.sent = [];
    this.onopen = () => {};
    /** @type {(event: { data: string }) => void} */
    this.onmessage = () => {};
    this.onclose = () => {};
    /** @type {number | undefined | null} */
    this.closed = null;
  }

  /** @param {string} text */
  send(text) {
    this.sent.push(JSON.parse(text));
  }

  /** @param {number} [code] */
  close(code) {
    this.closed = code;
  }

  /** @param {object} message */
  hear(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
}

/** A world whose time passes only when the test says so. */
class World {
  constructor() {
    this.time = 0;
    /** @type {FakeSocket[]} */
    this.sockets = [];
    /** @type {Map<number, { at: number, call: () => void }>} */
    this.timers = new Map();
    this.last = 0;
    /** @type {any[]} */
    this.states = [];
    /** @type {[string, any][]} */
    this.pushes = [];
    this.session = new Session(
      {
        connect: () => {
          const socket = new FakeSocket();
          this.sockets.push(socket);
          return /** @type {any} */ (socket);
        },
        now: () => this.time,
        after: (call, ms) => {
          this.timers.set(++this.last, { at: this.time + ms, call });
          return this.last;
        },
        cancel: (timer) => this.timers.delete(timer),
      },
      {
        state: (state) => this.states.push(state),
        push: (kind, content) => this.pushes.push([kind, content]),
      },
    );
  }

  /** @param {number} ms */
  pass(ms) {
    const end = this.time + ms;
    for (;;) {
      const [timer, next] =
        [...this.timers].sort(([, a], [, b]) => a.at - b.at).find(([, { at }]) => at <= end) ?? [];
      if (timer === undefined || next === undefined) break;
      this.timers.delete(timer);
      this.time = next.at;
      next.call();
    }
    this.time = end;
  }

  socket() {
    return this.sockets[this.sockets.length - 1];
  }

  open() {
    this.socket().onopen();
    this.socket().hear({ welcome: { node: 'n1', ping_every_ms: 1000 } });
  }
}

test('it says hello first, numbers its requests, and pings', async () => {
  const world = new World();
  world.session.start();
  await assert.rejects(world.session.ask('follow'), /no connection/);
  world.open();
  assert.deepEqual(world.states.at(-1), { kind: 'open', node: 'n1' });
  const answer = world.session.ask('follow');
  assert.deepEqual(world.socket().sent, [
    { hello: { name: 'soloist ui' } },
    { follow: { n: 1, seen: 0 } },
  ]);
  world.socket().hear({ done: { n: 1, seq: 4 } });
  await answer;
  world.pass(1000);
  assert.deepEqual(world.socket().sent.at(-1), { ping: { n: 2, seen: 4 } });
});

test('a hidden page, whose timers are late, pings when something comes', () => {
  const world = new World();
  world.session.start();
  world.open();
  world.timers.clear();
  world.time = 1500;
  world.socket().hear({ overview: {} });
  assert.deepEqual(world.pushes, [['overview', {}]]);
  assert.deepEqual(world.socket().sent.at(-1), { ping: { n: 1, seen: 0 } });
});

test('a refusal rejects its request, and a loss all of them', async () => {
  const world = new World();
  world.session.start();
  world.open();
  const refused = world.session.ask('lock', { lock: '' });
  world.socket().hear({ error: { n: 1, code: 'bad-request', detail: 'empty name' } });
  await assert.rejects(refused, new Refused('empty name'));
  const lost = world.session.ask('locks');
  world.socket().onclose();
  await assert.rejects(lost, /lost/);
});

test('a lost connection says why, and is opened again after longer and longer pauses', () => {
  const world = new World();
  world.session.start();
  world.open();
  world.socket().hear({ closed: { code: 'stopping', detail: 'this node stops' } });
  world.socket().onclose();
  assert.deepEqual(world.states.at(-1), { kind: 'lost', why: 'this node stops', retryAt: 500 });
  /** @type {number[]} */
  const pauses = [];
  for (let i = 0; i < 7; i++) {
    const { retryAt } = world.states.at(-1);
    pauses.push(retryAt - world.time);
    world.pass(retryAt - world.time);
    assert.equal(world.sockets.length, i + 2);
    world.socket().onclose();
  }
  assert.deepEqual(pauses, [500, 1000, 2000, 4000, 5000, 5000, 5000]);
  world.pass(5000);
  world.open();
  assert.equal(world.states.at(-1).kind, 'open');
  world.socket().onclose();
  assert.equal(world.states.at(-1).retryAt - world.time, 500, 'a good connection counts anew');
});

test('a node that is silent is left, and the local server is told', () => {
  const world = new World();
  world.session.start();
  world.open();
  const first = world.socket();
  world.pass(4900);
  assert.equal(first.closed, null);
  world.pass(1500);
  assert.equal(first.closed, 4000);
  assert.equal(world.states.at(-1).why, 'The node does not answer.');
  // What the old connection says no longer counts.
  first.hear({ overview: {} });
  first.onclose();
  assert.deepEqual(world.pushes, []);
  assert.equal(world.states.filter(({ kind }) => kind === 'lost').length, 1);
});
