/** The page on real clusters, while nodes are killed, cut off and come back. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { binary, onPage, soloist, start } from '../harness.js';
import { Cluster, missing } from './cluster.js';
import { seenFrom } from './harness.js';

/** @import { Page } from 'playwright-core' */

/** Longer than any change of epoch takes on a busy machine. */
const TIMEOUT = 60_000;

/** @param {Page} page @param {string} selector */
const appears = (page, selector) =>
  page.locator(selector).first().waitFor({ state: 'attached', timeout: TIMEOUT });

/**
 * Opens `soloist ui` on a node.
 * @param {string} name
 * @param {string} api
 * @param {(page: Page) => Promise<void>} body
 */
async function lookFrom(name, api, body) {
  const { child, line } = await start(['ui', '--api', api]);
  try {
    await onPage(name, { timezoneId: 'UTC' }, async (page) => {
      await page.goto(line);
      await body(page);
    });
  } finally {
    child.kill();
  }
}

test('the page while a node is killed and comes back', async () => {
  const { child, line } = await start(
    ['demo', '--kill', '--ui', '--nodes', '5', '--seconds', '20', '--lease', '2s'],
    undefined,
    /in the browser: (http\S+)/,
  );
  try {
    await onPage('killed', { timezoneId: 'UTC' }, async (page) => {
      await page.goto(line);
      await appears(page, '[data-member=n5]');
      await appears(page, '[data-change=evicted]');
      assert.match(
        (await page.locator('[data-change=evicted] strong').first().textContent()) ?? '',
        /n5/,
      );
      await appears(page, '[data-change=joined]');
      await appears(page, '[data-member=n5]');
      await appears(page, '[data-lane=n5] .cross');
    });
  } finally {
    child.kill();
  }
});

test(
  'the page while a node is cut off and comes back; seen from a minority',
  { skip: missing() || false },
  async () => {
    const cluster = await Cluster.start(3);
    try {
      await until(() => [1, 2, 3].every((node) => existsSync(cluster.socket(node))));
      await lookFrom('majority', cluster.socket(1), async (page) => {
        await seenFrom(page, 'n1');
        for (const node of ['n1', 'n2', 'n3']) await appears(page, `[data-member=${node}]`);
        await lookFrom('minority', cluster.socket(3), async (alone) => {
          await seenFrom(alone, 'n3');
          await appears(alone, 'body:not(.minority) [data-member=n3]');
          cluster.cut(3);
          await appears(page, '[data-outside=n3]');
          await appears(page, '[data-code=node-outside], [data-code=keeper-down]');
          await appears(alone, 'body.minority[data-level=unknown]');
          await appears(alone, '[data-code=no-lease] .command');
          cluster.heal(3);
          await appears(page, '[data-member=n3]');
          await appears(alone, 'body:not(.minority) [data-member=n3]');
        });
      });
    } finally {
      await cluster.stop();
    }
  },
);

/** Ports that are free now. @param {number} count @returns {Promise<number[]>} */
async function freePorts(count) {
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
async function until(holds) {
  const end = Date.now() + TIMEOUT;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `not in time: ${holds}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

test('a node serves the page, and the page asks for the node’s token', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'soloist-page-'));
  const [port, api] = await freePorts(2);
  const made = await soloist([
    'init',
    '--nodes',
    `a=127.0.0.1:${port}`,
    '--out',
    join(folder, 'c'),
  ]);
  assert.equal(made.code, 0, made.output);
  const config = join(folder, 'c/a/soloist.toml');
  await writeFile(join(folder, 'c/a/token'), 'correct-horse-battery', { mode: 0o600 });
  const text = `listen = "127.0.0.1:${api}"\ntoken_file = "token"\nui = true\n`;
  const written = await readFile(config, 'utf8');
  await writeFile(config, written.replace('[api]\n', `[api]\n${text}`));
  const node = spawn(binary, ['node', '--config', config], { stdio: 'ignore' });
  try {
    const link = `http://127.0.0.1:${api}/ui`;
    await until(() =>
      fetch(link).then(
        () => true,
        () => false,
      ),
    );
    // The browser reports the refusals.
    await onPage('served by a node', { silent: false }, async (page) => {
      await page.goto(link);
      const field = page.locator('#token');
      await field.fill('wrong');
      await page.keyboard.press('Enter');
      await page.locator('#login p', { hasText: 'This is not the token.' }).waitFor();
      await field.fill('correct-horse-battery');
      await page.keyboard.press('Enter');
      await seenFrom(page, 'a');
      await field.waitFor({ state: 'hidden' });
      await page.reload();
      await seenFrom(page, 'a');
    });
  } finally {
    node.kill('SIGKILL');
    await rm(folder, { recursive: true });
  }
});
