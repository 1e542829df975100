/**
 * A real cluster: each node is a process in a network namespace of its own, so that nft can cut it
 * off. Needs root, iproute2, nftables and util-linux.
 */

/** @import { ChildProcess } from 'node:child_process' */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { binary } from '../start.js';

const TOOLS = [
  ['unshare', '--net', 'true'],
  ['nsenter', '--version'],
  ['ip', '-Version'],
  ['nft', '--version'],
];

/** What is missing for such clusters, or an empty text. Under `./check` it is an error. */
export function missing() {
  const found = TOOLS.filter(([program, ...args]) => {
    try {
      execFileSync(program, args, { stdio: 'ignore' });
      return false;
    } catch {
      return true;
    }
  });
  const text = found.map((command) => command.join(' ')).join(', ');
  if (text && process.env.SOLOIST_ALL_TESTS) throw new Error(`these tests need: ${text}`);
  return text && `needs ${text}; \`./check\` runs all tests`;
}

/** @param {number} node counted from 1 */
const host = (node) => `10.78.0.${node}`;

/** A process whose namespace others enter. */
class Namespace {
  constructor() {
    this.process = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep infinity'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  }

  async ready() {
    const { stdout } = this.process;
    for await (const line of createInterface({ input: stdout })) if (line === 'ready') return this;
    throw new Error('no network namespace');
  }

  get enter() {
    return `--net=/proc/${this.process.pid}/ns/net`;
  }

  /** @param {string} script */
  run(script) {
    execFileSync('nsenter', [this.enter, 'sh', '-ec', script]);
  }
}

export class Cluster {
  /**
   * @param {number} count
   * @param {{ lease?: string, keepers?: number, later?: number[] }} [options] `later` are nodes that
   * the caller launches
   */
  static async start(count, options = {}) {
    const cluster = new Cluster();
    await cluster.#start(count, options);
    return cluster;
  }

  constructor() {
    this.folder = '';
    /** @type {Namespace[]} */
    this.namespaces = [];
    /** @type {(ChildProcess | null)[]} */
    this.nodes = [];
  }

  /**
   * @param {number} count
   * @param {{ lease?: string, keepers?: number, later?: number[] }} options
   */
  async #start(count, { lease = '1s', keepers = Math.min(count, 3), later = [] }) {
    this.folder = await mkdtemp(join(tmpdir(), 'soloist-cluster-'));
    const numbers = Array.from({ length: count }, (_, i) => i + 1);
    const list = numbers.map((node) => `n${node}=${host(node)}:7401`).join(',');
    execFileSync(binary, [
      'init',
      '--nodes',
      list,
      '--keepers',
      numbers
        .slice(0, keepers)
        .map((node) => `n${node}`)
        .join(','),
      '--lease',
      lease,
      '--out',
      join(this.folder, 'c'),
    ]);
    const all = await Promise.all([0, ...numbers].map(() => new Namespace().ready()));
    this.namespaces = all;
    const [hub] = all;
    hub.run('ip link add hub type bridge; ip link set hub up');
    for (const node of numbers) {
      all[node].run(
        `ip link set lo up
         ip link add cable type veth peer name n${node} netns ${hub.process.pid}
         ip address add ${host(node)}/24 dev cable
         ip link set cable up`,
      );
      hub.run(`ip link set n${node} master hub up`);
      if (!later.includes(node)) this.launch(node);
    }
  }

  /** @param {number} node */
  launch(node) {
    const config = join(this.folder, 'c', `n${node}`, 'soloist.toml');
    const args = [this.namespaces[node].enter, binary, 'node', '--config', config];
    this.nodes[node] = spawn('nsenter', args, { stdio: 'ignore' });
  }

  /** @param {number} node */
  socket(node) {
    return join(this.folder, 'c', `n${node}`, 'soloist.sock');
  }

  /** Kills a node, as a machine that loses its power. @param {number} node */
  kill(node) {
    this.nodes[node]?.kill('SIGKILL');
  }

  /** Drops all packets from and to a node. @param {number} node */
  cut(node) {
    this.namespaces[node].run(
      `nft 'table ip cut {
         chain input { type filter hook input priority 0; iifname != "lo" drop; }
         chain output { type filter hook output priority 0; oifname != "lo" drop; }
       }'`,
    );
  }

  /** @param {number} node */
  heal(node) {
    this.namespaces[node].run('nft delete table ip cut');
  }

  async stop() {
    for (const node of this.nodes) node?.kill('SIGKILL');
    for (const { process: it } of this.namespaces) it.kill('SIGKILL');
    await rm(this.folder, { recursive: true, force: true });
  }
}
