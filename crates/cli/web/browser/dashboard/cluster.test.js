/** The page on real clusters, while nodes are killed, cut off and come back. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { onPage, start } from '../harness.js';
import { Cluster, missing } from './cluster.js';
import { seenFrom } from './harness.js';
import { acquire, freePorts, release, SingleNode, TIMEOUT, until } from './single.js';

/** @import { Page } from 'playwright-core' */

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

test('the page of the cluster that `soloist up --ui` starts', async () => {
  // The socket is announced in this folder: a cluster that is up already is left alone.
  const folder = await mkdtemp(join(tmpdir(), 'soloist-up-'));
  const { child, line } = await start(
    ['up', '--ui', '--nodes', '3'],
    undefined,
    /In the browser: (http\S+)/,
    { XDG_RUNTIME_DIR: folder },
  );
  try {
    await onPage('up', { timezoneId: 'UTC' }, async (page) => {
      await page.goto(line);
      await appears(page, 'body[data-state=open][data-level=ok]');
      assert.equal(await page.locator('[data-member]').count(), 3);
      assert.match(await page.title(), /^✓ Well/);
      const socket = join(folder, `soloist-${process.getuid?.()}`, 'up.sock');
      assert.ok(await acquire(socket, 'nightly', { owner: 'deploy', ttl_ms: 60_000 }));
      await page.locator('[data-lock=nightly]').click();
      await page.locator('.one .inside', { hasText: 'deploy on' }).waitFor();
    });
  } finally {
    const gone = once(child, 'exit');
    child.kill();
    await gone;
    await rm(folder, { recursive: true });
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

test('a node serves the page, and the page asks for the node’s token', async () => {
  const [api] = await freePorts(1);
  const text = `listen = "127.0.0.1:${api}"\ntoken_file = "token"\nui = true\n`;
  const node = await SingleNode.start(text, { token: 'correct-horse-battery' });
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
    await node.stop();
  }
});

const LOCKS = 10_000;
const EVIL = '<img src=x onerror=alert(1)>\u202egnp';

test('a real node with 10,000 locks, and names that are hostile', async () => {
  const node = await SingleNode.start();
  try {
    await node.ready();
    const forever = { ttl_ms: 3_600_000 };
    /** @type {(string | null)[]} */
    const holds = [];
    const worker = async (/** @type {number} */ first) => {
      for (let i = first; i < LOCKS; i += 32) {
        holds[i] = await acquire(node.socket, `${i % 2 === 0 ? 'even' : 'odd'}/${i}`, forever);
      }
    };
    await Promise.all(Array.from({ length: 32 }, (_, i) => worker(i)));
    assert.equal(holds.filter(Boolean).length, LOCKS);
    assert.ok(await acquire(node.socket, EVIL, { ...forever, owner: EVIL }));
    const waits = acquire(node.socket, EVIL, { owner: `${EVIL}2`, wait_ms: 3_600_000 });
    await lookFrom('a real node with 10,000 locks', node.socket, async (page) => {
      let alerts = 0;
      page.on('dialog', (dialog) => {
        alerts++;
        return dialog.dismiss();
      });
      const total = (/** @type {number} */ n) => appears(page, `.rows[data-total="${n}"]`);
      const drawn = () => page.locator('.rows .row').count();
      await total(LOCKS + 1);
      assert.match((await page.locator('.locks .head').textContent()) ?? '', /^1,000 of 10,001/);
      assert.ok((await drawn()) < 30, `${await drawn()} rows`);

      // It is waited for, so it comes first, and was selected.
      assert.equal(await page.locator('.rows .row bdi.mono').first().textContent(), EVIL);
      await page.locator('.one .inside', { hasText: 'onerror' }).waitFor();
      await page.locator('.one .queue', { hasText: 'onerror' }).waitFor();
      await page.locator('.chain .who').first().waitFor();
      assert.equal(await page.locator('img').count(), 0);
      assert.equal(alerts, 0);
      for (const selector of ['.rows bdi.mono', '.one .queue bdi', '.chain .who']) {
        const bidi = await page
          .locator(selector)
          .first()
          .evaluate((it) => getComputedStyle(it).unicodeBidi);
        assert.match(bidi, /isolate|plaintext/, selector);
      }

      // The end of the list, and then the locks with a prefix.
      await page.locator('.rows').evaluate((it) => (it.scrollTop = it.scrollHeight));
      await appears(page, '.rows .row[aria-posinset="1000"]');
      assert.ok((await drawn()) < 30, `${await drawn()} rows`);
      await page.locator('input[type=search]').fill('odd/99');
      await total(56);
      await page.locator('.rows').focus();
      await page.keyboard.press('End');
      await appears(page, '.rows .row[aria-posinset="56"][aria-selected=true]');

      // The node sends what changes.
      await release(node.socket, holds[99] ?? '');
      await total(55);
    });
    node.process.kill('SIGKILL');
    await waits;
  } finally {
    await node.stop();
  }
});
