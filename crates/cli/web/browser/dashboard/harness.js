/** Tests of the dashboard: the real local server, on a node that plays a script or a real one. */

/** @import { BrowserContextOptions, Page } from 'playwright-core' */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { onPage, start } from '../harness.js';
import { ScriptedNode } from './node.js';

/**
 * @typedef {Object} Bench
 * @property {Page} page
 * @property {string} link
 * @property {ScriptedNode[]} nodes
 * @property {string[]} sockets
 */

/**
 * @typedef {Object} What
 * @property {number} [count] how many nodes there are
 * @property {(node: ScriptedNode) => void} [script]
 * @property {string} [hash]
 * @property {() => void} [before] runs on the page before its own script; then the test waits itself
 * @property {boolean} [silent] false if the browser reports refused connections
 * @property {BrowserContextOptions} [options]
 */

/**
 * A test with a page of `soloist ui` that looks from scripted nodes.
 * @param {string} name
 * @param {What} what
 * @param {(bench: Bench) => Promise<void>} body
 */
export function ui(name, { count = 1, script, hash = '', before, silent, options }, body) {
  test(name, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'soloist-ui-'));
    const sockets = Array.from({ length: count }, (_, i) => join(folder, `n${i + 1}.sock`));
    const nodes = sockets.map((_, i) => new ScriptedNode(count === 1 ? 'n2' : `n${i + 1}`));
    for (const [i, node] of nodes.entries()) {
      script?.(node);
      await node.listen(sockets[i]);
    }
    const { child, line } = await start(['ui', '--api', sockets.join(',')]);
    try {
      const all = { silent, timezoneId: 'UTC', ...options };
      await onPage(name, all, async (page) => {
        if (before) await page.addInitScript(before);
        await page.goto(line + hash);
        if (!before) await seenFrom(page, nodes[0].name);
        await body({ page, link: line, nodes, sockets });
      });
    } finally {
      child.kill();
      for (const node of nodes) if (node.server.listening) await node.stop();
      await rm(folder, { recursive: true });
    }
  });
}

/**
 * Waits until the page is connected and shows what a node sees.
 * @param {Page} page
 * @param {string} node
 */
export async function seenFrom(page, node) {
  await page.locator(`body[data-state=open][data-from="${node}"]`).waitFor({ state: 'attached' });
}

/**
 * Waits until the verdict matches.
 * @param {Page} page
 * @param {string | RegExp} text
 */
export async function verdict(page, text) {
  await page.locator('.verdict', { hasText: text }).waitFor();
}
