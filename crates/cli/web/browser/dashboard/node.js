/**
 * A node that plays a script: it speaks the session protocol on a Unix socket, and pushes what the
 * test gives it. For states that a real cluster reaches only by chance or after minutes.
 */

/** @import { Socket } from 'node:net' */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { changes, history, locks, overview, recent } from '../../unit/dashboard/example.js';

/** Of RFC 6455. */
const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** A node sends its overview so often. */
const BEAT_MS = 1000;

export class ScriptedNode {
  /** @param {string} name */
  constructor(name = 'n2') {
    const now = Date.now();
    this.name = name;
    this.overview = { ...overview(now), from: name };
    this.history = history(now);
    this.changes = changes(now);
    this.locks = locks();
    this.recent = recent(now);
    /** Answers nothing, not even pings. */
    this.isSilent = false;
    /** Requests that it refuses, with the reason. @type {Record<string, string>} */
    this.refuses = {};
    /** Sends no overview of its own accord. */
    this.isQuiet = false;
    /** The most rows of a list. */
    this.rowsMax = 1000;
    /** Messages of the page. @type {any[]} */
    this.heard = [];
    /** @type {Set<Socket>} */
    this.sockets = new Set();
    /** @type {Set<Socket>} */
    this.followers = new Set();
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.timer = undefined;
    this.server = createServer((_, response) => response.writeHead(404).end());
    this.server.on('upgrade', (request, socket) => {
      const key = createHash('sha1').update(request.headers['sec-websocket-key'] + MAGIC);
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n' +
          `sec-websocket-accept: ${key.digest('base64')}\r\n\r\n`,
      );
      this.serve(/** @type {Socket} */ (socket));
    });
  }

  /** @param {string} path */
  listen(path) {
    this.timer = setInterval(() => this.beat(), BEAT_MS);
    return new Promise((done) => this.server.listen(path, () => done(undefined)));
  }

  /** Cuts all connections, and accepts no more. */
  async stop() {
    clearInterval(this.timer);
    const closed = new Promise((done) => this.server.close(done));
    this.cut();
    await closed;
  }

  cut() {
    for (const socket of this.sockets) socket.destroy();
  }

  /** @param {Socket} socket */
  serve(socket) {
    this.sockets.add(socket);
    /** @type {Buffer} */
    let buffer = Buffer.alloc(0);
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.followers.delete(socket);
    });
    socket.on('error', () => {});
    socket.on('data', (/** @type {Buffer} */ chunk) => {
      buffer = Buffer.concat([buffer, chunk]);
      for (;;) {
        const frame = takeFrame(buffer);
        if (!frame) return;
        buffer = frame.rest;
        if (frame.code === 8) socket.end();
        if (frame.code === 1) this.answer(socket, JSON.parse(frame.text));
      }
    });
  }

  /**
   * @param {Socket} socket
   * @param {any} message
   */
  answer(socket, message) {
    this.heard.push(message);
    if (this.isSilent) return;
    const [kind, content] = Object.entries(message)[0];
    const { n } = content;
    const send = (/** @type {object} */ it) => socket.write(frameOf(JSON.stringify(it)));
    const detail = this.refuses[kind];
    if (detail) {
      send({ error: { n, code: 'forbidden', detail } });
      return;
    }
    switch (kind) {
      case 'hello':
        send({ welcome: { node: this.name, ping_every_ms: 1000 } });
        break;
      case 'ping':
        send({ pong: { n } });
        break;
      case 'follow':
        this.followers.add(socket);
        send({ done: { n } });
        send({ overview: this.overview });
        send({ history: this.history });
        send({ changes: { changes: this.changes } });
        break;
      case 'list': {
        const { prefix, first, rows } = content;
        const found = this.locks.filter(({ name }) => name.startsWith(prefix));
        const all = found.slice(0, this.rowsMax);
        const isCut = all.length < found.length;
        const part = all.slice(first, first + rows);
        const count = { rows: all.length, total: found.length, is_cut: isCut, silent: [] };
        send({ done: { n } });
        if (rows > 0) send({ listed: { prefix, first, locks: part, ...count } });
        break;
      }
      case 'lock': {
        const lock = this.locks.find(({ name }) => name === content.lock);
        const mine = this.recent.filter((event) => event.lock === content.lock);
        if (lock) send({ lock: { n, lock, recent: mine } });
        else send({ error: { n, code: 'bad-request', detail: 'there is no such lock' } });
        break;
      }
      default:
        send({ done: { n } });
    }
  }

  /**
   * Sends a message to all pages.
   * @param {object} message
   */
  push(message) {
    for (const socket of this.sockets) socket.write(frameOf(JSON.stringify(message)));
  }

  /** Sends the overview again, a second later: as a node does. */
  beat() {
    const { at_ms: before, problems } = this.overview;
    const now = before + BEAT_MS;
    this.overview = {
      ...this.overview,
      at_ms: now,
      problems: problems.map((it) =>
        it.last_seen_ms < before ? it : { ...it, last_seen_ms: now },
      ),
    };
    if (this.isQuiet || this.isSilent) return;
    const frame = frameOf(JSON.stringify({ overview: this.overview }));
    for (const socket of this.followers) socket.write(frame);
  }

  /** Changes the overview, and pushes it. @param {object} differences */
  tell(differences) {
    this.overview = { ...this.overview, ...differences };
    this.push({ overview: this.overview });
  }
}

/** A whole message in one frame. @param {string} text */
function frameOf(text) {
  const content = Buffer.from(text);
  const { length } = content;
  const size = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const head = Buffer.alloc(2 + size);
  head[0] = 0x81;
  head[1] = size === 0 ? length : size === 2 ? 126 : 127;
  if (size === 2) head.writeUInt16BE(length, 2);
  if (size === 8) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, content]);
}

/** The first frame of a client, if all of it is there. @param {Buffer} buffer */
function takeFrame(buffer) {
  if (buffer.length < 2) return null;
  const short = buffer[1] & 127;
  const size = short === 126 ? 2 : short === 127 ? 8 : 0;
  if (buffer.length < 6 + size) return null;
  const length =
    size === 0 ? short : size === 2 ? buffer.readUInt16BE(2) : Number(buffer.readBigUInt64BE(2));
  const begin = 6 + size;
  if (buffer.length < begin + length) return null;
  const mask = buffer.subarray(2 + size, begin);
  const content = Buffer.from(buffer.subarray(begin, begin + length));
  for (let i = 0; i < length; i++) content[i] ^= mask[i % 4];
  return {
    code: buffer[0] & 15,
    text: content.toString(),
    rest: buffer.subarray(begin + length),
  };
}
