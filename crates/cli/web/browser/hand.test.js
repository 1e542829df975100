/** By hand, and with a search from where one stands. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  at,
  idle,
  onPage,
  phases,
  play,
  position,
  press,
  scenarios,
  soloist,
  start,
} from './harness.js';

/** @import { Page } from 'playwright-core' */

const act = (/** @type {Page} */ page, /** @type {string} */ name) =>
  page.locator(`[data-act="${name}"]`);

/**
 * Takes the choice that does this step of a scenario.
 * @param {Page} page
 * @param {string} line such as `deliver A B` or `deliver A B FLUSH`
 */
async function take(page, line) {
  const before = await position(page);
  await page.locator(`[data-choice^="${line}"]`).first().locator('button').click();
  await at(page, before + 1);
}

const slowFlush = await readFile(
  join(scenarios, 'lodha-kshemkalyani-as-published-slow-flush.txt'),
  'utf8',
);
const head = slowFlush.slice(0, slowFlush.indexOf('\n> ') + 1);

play('Lodha-Kshemkalyani as published breaks by hand', { text: head }, async ({ page }) => {
  await act(page, 'By hand').click();
  const steps = slowFlush.split('\n').filter((line) => /^> (request|release|deliver)/.test(line));
  for (const step of steps) await take(page, step.slice(2));
  assert.equal(await page.locator('#stage').getAttribute('data-fault'), 'two-inside');
  assert.equal((await phases(page)).filter((phase) => phase === 'inside').length, 2);
  assert.match((await page.locator('.caption.fault').textContent()) ?? '', /two nodes|inside/i);

  const download = page.waitForEvent('download');
  await act(page, 'Save').click();
  const saved = await readFile(await (await download).path(), 'utf8');
  const { code, output } = await soloist(['lab', 'replay', '-'], saved);
  assert.equal(code, 1, 'the replay finds the fault too');
  assert.equal(output, saved, 'the scenario has its transcript');

  await act(page, 'Undo').click();
  await at(page, steps.length - 1);
  assert.equal(await page.locator('#stage').getAttribute('data-fault'), null);
});

test('a search of the command line opens its counterexample', async () => {
  const command = 'lab check -a maekawa --variant as-published -n 4 --shape grid --play';
  const { child, line } = await start(command.split(' '), undefined, /^(http\S+)/);
  try {
    await onPage('check --play', {}, async (page) => {
      await page.goto(line);
      await at(page, 0);
      const end = Number(await page.locator('input[type=range]').getAttribute('max'));
      assert.equal(await page.locator('#stage').getAttribute('data-fault'), null);
      await press(page, 'End');
      await at(page, end);
      assert.equal(await page.locator('#stage').getAttribute('data-fault'), 'deadlock');
      assert.match(
        (await page.locator('.caption.fault').textContent()) ?? '',
        /Deadlock: 1 needs 0, which is locked for 2; 2 needs 3, which is locked for 1\.$/,
      );
      assert.match(
        (await page.locator('.stuck').textContent()) ?? '',
        /^✕ Nothing is in flight, no node is inside, and 3 nodes wait\.$/,
      );
      assert.equal(await page.locator('.now.fault').textContent(), '✕');
      const [zero, one, two] = await page
        .locator('#stage .node .disc')
        .evaluateAll((discs) => discs.map((it) => it.getBoundingClientRect()));
      assert.ok(zero.y === one.y && zero.x === two.x, 'the nodes of a grid stand in a grid');
    });
  } finally {
    child.kill();
  }
});

const grid =
  'algorithm maekawa\nvariant as-published\nnodes 4\nshape grid\n\n> request 1\n> request 2\n';

play('trouble is found from here', { text: grid }, async ({ page }) => {
  await press(page, 'End');
  const from = await position(page);
  await act(page, 'Find trouble from here').click();
  await page.locator('.status.fault').waitFor();
  const status = (await page.locator('.status').textContent()) ?? '';
  const steps = Number(status.match(new RegExp(`(\\d+) steps? from step ${from}:`))?.[1]);
  assert.ok(steps > 0, status);
  assert.equal(await position(page), from, 'one still stands where one stood');
  await press(page, 'End');
  assert.equal(await position(page), from + steps);
  assert.ok(await page.locator('#stage').getAttribute('data-fault'));
  assert.ok((await page.locator('.ring-line').count()) > 1, 'the ring of the deadlock is drawn');
});

play(
  'a search says how far it came, and can be cancelled',
  { text: 'algorithm ricart-agrawala\nnodes 5\n\n> request 0\n' },
  async ({ page }) => {
    await act(page, 'Find trouble from here').click();
    await page.getByText(/Searching: \d+ states/).waitFor();
    await act(page, 'Cancel').click();
    await page.getByText(/Cancelled: nothing within \d+ steps?\./).waitFor();
    await idle(page);
    assert.ok(await act(page, 'Find trouble from here').isEnabled());
  },
);

play(
  'a search of a small cluster finds that nothing is wrong',
  { text: 'algorithm central\nnodes 2\n\n' },
  async ({ page }) => {
    await act(page, 'Find trouble from here').click();
    await page.getByText(/No trouble from step 0: all \d+ states searched/).waitFor();
    assert.ok(await page.getByLabel('Crashes, from here').isHidden(), 'it does not recover');
  },
);

play(
  'a search that reaches its limit says how far it came',
  { text: 'algorithm ricart-agrawala\nnodes 5\n\n> request 0\n' },
  async ({ page }) => {
    await page.route('**/search', (route) => {
      const query = route.request().postDataJSON();
      return route.continue({ postData: JSON.stringify({ ...query, states: 2000 }) });
    });
    await act(page, 'Find trouble from here').click();
    const said = /Nothing within \d+ steps? from step 0: \d+ states searched, and there are more/;
    await page.getByText(said).waitFor();
  },
);

const recovery = `algorithm raymond
variant as-published
names Y X
shape line
home Y
channels fifo

> request X
`;

play('a search may crash nodes', { text: recovery }, async ({ page }) => {
  await act(page, 'Find trouble from here').click();
  await page.getByText('No trouble from step 0').waitFor();
  await page.getByLabel('Crashes, from here').selectOption('1');
  await act(page, 'Find trouble from here').click();
  await page.locator('.status.fault').waitFor();
  await press(page, 'End');
  assert.ok(await page.locator('#stage').getAttribute('data-fault'));
  const past = await page.locator('so-time title').allTextContents();
  assert.ok(
    past.some((title) => / crashes$/.test(title)),
    String(past),
  );
});

const rounds = `algorithm central
nodes 3

> request 1
> run
> release 1
> run
`;

play(
  'the recording that one leaves by hand can be had back',
  { text: rounds },
  async ({ page }) => {
    const range = page.locator('input[type=range]');
    const end = Number(await range.getAttribute('max'));
    await press(page, 'ArrowRight');
    assert.ok(await act(page, 'Back to the recording').isHidden());
    await page.waitForFunction(() => location.hash.endsWith('/1'));
    const recorded = page.url().slice(0, page.url().lastIndexOf('/'));
    for (const way of ['button', 'browser']) {
      await act(page, 'By hand').click();
      await page.locator('.choice').first().waitFor();
      assert.equal(await range.getAttribute('max'), '1');
      await take(page, 'request 2');
      await act(page, 'Undo').click();
      await at(page, 1);
      await page.waitForFunction((old) => !location.href.startsWith(old), recorded);
      if (way === 'button') await act(page, 'Back to the recording').click();
      else await page.goBack();
      await page.locator(`input[type=range][max="${end}"]`).waitFor();
      await at(page, 1);
      assert.ok(await act(page, 'Back to the recording').isHidden());
      await page.waitForFunction((old) => location.href.startsWith(old), recorded);
    }
  },
);

play(
  'one takes over in the middle of a line that did several steps',
  { text: 'algorithm central\nnodes 3\n\n> request 1\n> request 2\n> run\n' },
  async ({ page }) => {
    await press(page, 'End');
    const end = await position(page);
    await page.locator('input[type=range]').fill(String(end - 1));
    await at(page, end - 1);
    await act(page, 'By hand').click();
    await idle(page);
    assert.equal(await page.locator('input[type=range]').getAttribute('max'), String(end - 1));
    await take(page, 'deliver');
    assert.equal(await position(page), end);
  },
);
