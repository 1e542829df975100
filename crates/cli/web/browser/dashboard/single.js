/** Real nodes: a cluster of one node, and requests to any node over its Unix socket. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { binary, soloist } from '../start.js';

/** Longer than any change of epoch takes on a busy machine. */
export const TIMEOUT = 60_000;

/** Ports that are free now. @param {number} count @returns {Promise<number[]>} */
export async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = [];
  for (const server of servers) {
    await new Promise((done) => server.listen(0, '127.0.0.1', () => done(undefined)));
    const address = server.address();
    ports.push(typeof address === 'object' && address ? address.port : 0);
  }
  for (const server of servers) server.close();
  return ports;
}

/** Waits until something is true. @param {() => boolean | Promise<boolean>} holds */
export async function until(holds) {
  const end = Date.now() + TIMEOUT;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `not in time: ${holds}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

/**
 * Sends a request to a node's HTTP API.
 * @param {string} socketPath
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<{ status: number, content: any }>} status 0 if the node cannot be reached
 */
export function ask(socketPath, method, path, body) {
  const headers = { 'content-type': 'application/json' };
  return new Promise((done) => {
    const sent = request({ agent, socketPath, method, path, headers }, (response) => {
      let text = '';
      response.on('data', (part) => (text += part));
      response.on('end', () => {
        const isJson = response.headers['content-type']?.includes('json');
        done({ status: response.statusCode ?? 0, content: isJson ? JSON.parse(text) : text });
      });
    });
    sent.on('error', () => done({ status: 0, content: null }));
    sent.end(body && JSON.stringify(body));
  });
}

/**
 * Acquires a lock.
 * @param {string} socket
 * @param {string} lock
 * @param {object} [options] `owner`, `wait_ms`, `ttl_ms`
 * @returns {Promise<string | null>} the hold
 */
export async function acquire(socket, lock, options = {}) {
  const path = `/v1/locks/${encodeURIComponent(lock)}/acquire`;
  const { status, content } = await ask(socket, 'POST', path, options);
  return status === 200 || status === 201 ? content.hold : null;
}

/** @param {string} socket @param {string} hold */
export function release(socket, hold) {
  return ask(socket, 'DELETE', `/v1/holds/${hold}`);
}

/** A cluster of one node. */
export class SingleNode {
  /**
   * @param {string} [api] lines of its section `[api]`
   * @param {Record<string, string>} [files] beside its configuration
   */
  static async start(api = '', files = {}) {
    const folder = await mkdtemp(join(tmpdir(), 'soloist-page-'));
    const [port] = await freePorts(1);
    const out = join(folder, 'c');
    const made = await soloist(['init', '--nodes', `a=127.0.0.1:${port}`, '--out', out]);
    assert.equal(made.code, 0, made.output);
    const config = join(out, 'a/soloist.toml');
    const written = await readFile(config, 'utf8');
    await writeFile(config, written.replace('[api]\n', `[api]\n${api}`));
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(out, 'a', name), text, { mode: 0o600 });
    }
    return new SingleNode(folder, config);
  }

  /**
   * @param {string} folder
   * @param {string} config
   */
  constructor(folder, config) {
    this.folder = folder;
    this.socket = join(folder, 'c/a/soloist.sock');
    this.process = spawn(binary, ['node', '--config', config], { stdio: 'ignore' });
  }

  async ready() {
    await until(async () => (await ask(this.socket, 'GET', '/readyz')).status === 200);
  }

  async stop() {
    this.process.kill('SIGKILL');
    await rm(this.folder, { recursive: true });
  }
}
