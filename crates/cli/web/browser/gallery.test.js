/** The gallery, its tours, and comparisons. */

import assert from 'node:assert/strict';
import { at, idle, play, position, press } from './harness.js';

/** @import { Page } from 'playwright-core' */
/** @import { Run, Step } from '../src/model.js' */

/**
 * @param {Page} page
 * @returns {Promise<{ name: string, group: string }[]>}
 */
function gallery(page) {
  return page.evaluate(async () => (await fetch('gallery')).json());
}

/**
 * Opens a run of the gallery at a step.
 * @param {Page} page
 * @param {string} name
 * @param {number} step
 */
async function open(page, name, step) {
  await page.evaluate((hash) => (location.hash = hash), `#${name}/${step}`);
  await page.locator('body[data-mode=run]').waitFor();
  await at(page, step);
}

/** @param {Page} page */
async function leave(page) {
  await page.locator('header h1 a').click();
  await page.locator('body[data-mode=gallery][data-idle=true]').waitFor();
}

play('the gallery opens every run', {}, async ({ page }) => {
  const entries = await gallery(page);
  assert.ok(entries.length > 40, `only ${entries.length} runs`);
  assert.equal(await page.locator('[data-run]').count(), entries.length);
  for (const { name } of entries) {
    await open(page, name, 1);
    assert.notEqual(await page.locator('#title').textContent(), '', name);
    await leave(page);
  }
});

const wide = { viewport: { width: 1440, height: 900 } };

play('the inspector of every run fits the window', { options: wide }, async ({ page }) => {
  const entries = await gallery(page);
  for (const { name } of entries) {
    await open(page, name, 0);
    const end = Number(await page.locator('input[type=range]').getAttribute('max'));
    for (const step of [Math.floor(end / 2), end]) {
      await page.locator('input[type=range]').fill(String(step));
      await at(page, step);
      const hidden = await page
        .locator('so-inspector')
        .evaluate((it) => it.scrollHeight - it.clientHeight);
      assert.equal(hidden, 0, `${name} at step ${step}`);
    }
  }
});

play('the lines of a quorum end at its nodes after another run', {}, async ({ page }) => {
  for (const [name, step] of /** @type {const} */ ([
    ['fault-m1', 4],
    ['tour-maekawa', 6],
    ['maekawa-heavy', 5],
  ])) {
    await open(page, name, step);
    const gaps = await page.evaluate(() => {
      const nodes = [...document.querySelectorAll('#stage .node')].map((g) => {
        const [x, y] = (g.getAttribute('transform') ?? '').match(/[-\d.]+/g)?.map(Number) ?? [];
        return { x, y, r: Number(g.querySelector('.disc')?.getAttribute('r')) };
      });
      return [...document.querySelectorAll('#stage .links line')].flatMap((line) => {
        const place = (/** @type {string} */ key) => Number(line.getAttribute(key));
        return [1, 2].map((end) =>
          Math.min(
            ...nodes.map(({ x, y, r }) =>
              Math.abs(Math.hypot(place(`x${end}`) - x, place(`y${end}`) - y) - r),
            ),
          ),
        );
      });
    });
    assert.ok(gaps.length > 0, `${name}: no quorum is drawn`);
    assert.ok(Math.max(...gaps) < 1, `${name}: ${gaps}`);
  }
});

play('where not all links are drawn, the selection shows its own', {}, async ({ page }) => {
  const links = page.locator('#stage .links line');
  await open(page, 'ricart-agrawala-heavy', 12);
  assert.equal(await page.locator('#stage .edges line').count(), 0);
  assert.equal(await links.count(), 8, 'the selected node has a link to every other');
  const inFlight = await page.locator('#stage .message').count();
  const faded = await page.locator('#stage .message.faded').count();
  assert.ok(faded > 0 && faded < inFlight, `${faded} of ${inFlight} are faded`);
  const letter = page.locator('#stage .message.faded').first();
  const id = await letter.getAttribute('data-message');
  await letter.dispatchEvent('click');
  await page.locator(`#stage .message.chosen[data-message="${id}"]:not(.faded)`).waitFor();
  assert.equal(await links.count(), 1, 'the link of the message');
  await leave(page);
  await open(page, 'le-lann-heavy', 3);
  assert.equal(await links.count(), 2, 'a node of a ring has two neighbours');
  assert.equal(await page.locator('[data-flight="0"] .glyph.token').count(), 1, 'its own sign');
});

play('the names of a mesh can be told apart, and none is cut by its disc', {}, async ({ page }) => {
  for (const name of ['tour-chaudhuri-karaata', 'chaudhuri-karaata-colours']) {
    await open(page, name, 4);
    const rows = await page.locator('so-time .names text').allTextContents();
    assert.ok(rows.length >= 8, `${name} has ${rows.length} rows`);
    assert.equal(new Set(rows).size, rows.length, String(rows));
    const { covered, cut } = await page.evaluate(() => {
      const line = document.querySelector('so-time .rows line')?.getBoundingClientRect().left ?? 0;
      const ends = [...document.querySelectorAll('so-time .names text')];
      const nodes = [...document.querySelectorAll('#stage .node')];
      return {
        covered: ends.filter((text) => text.getBoundingClientRect().right > line).length,
        cut: nodes.flatMap((node) => {
          const text = node.querySelector('.name');
          const disc = node.querySelector('.disc')?.getBoundingClientRect();
          const box = text?.getBoundingClientRect();
          if (!box || !disc || box.top >= disc.bottom || box.width <= disc.width) return [];
          return [text?.textContent];
        }),
      };
    });
    assert.equal(covered, 0, `${name}: names reach into the diagram`);
    assert.deepEqual(cut, [], `${name}: names cross their discs`);
  }
});

/**
 * Fills in a prediction of this step.
 * @param {Page} page
 * @param {Pick<Step, 'node' | 'sends' | 'enter'>} step
 */
async function predict(page, step) {
  const [send] = step.sends;
  await page.getByLabel('Who', { exact: true }).selectOption({ value: String(step.node) });
  const what = send ? send.label : step.enter ? 'enters' : 'sends nothing';
  await page.getByLabel('Does what').selectOption({ value: what });
  if (send) await page.getByLabel('To whom').selectOption({ value: String(send.to) });
  await page.getByRole('button', { name: 'Check' }).click();
}

play('every tour asks, and takes a right and a wrong prediction', {}, async ({ page }) => {
  const tours = (await gallery(page)).filter(({ group }) => group === 'tours');
  assert.ok(tours.length >= 5, 'a tour for each of five papers');
  for (const { name } of tours) {
    /** @type {Run} */
    const { steps } = await page.evaluate(async (tour) => {
      const { text } = await (await fetch(`gallery/${tour}`)).json();
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ text, from: 0 });
      return (await fetch('run', { method: 'POST', headers, body })).json();
    }, name);
    const asks = steps.findIndex((step) => step.ask);
    assert.ok(asks >= 0, `${name} asks nothing`);
    await open(page, name, asks);
    const next = steps[asks];
    await predict(page, { node: next.node, sends: [], enter: !next.enter });
    await page.locator('#stage').getByText('Not what happens').waitFor();
    assert.equal(await position(page), asks, name);
    await predict(page, next);
    await at(page, asks + 1);
    await page.locator('#stage .caption.right').getByText('Right: ').waitFor();
    await leave(page);
  }
});

play('two algorithms are compared on one axis of time', {}, async ({ page }) => {
  await page.getByLabel('First algorithm').selectOption('raymond');
  await page.getByLabel('Second algorithm').selectOption('ricart-agrawala');
  await page.getByLabel('Nodes').fill('7');
  await page.getByLabel('Load').selectOption('burst');
  await page.getByRole('button', { name: 'Compare' }).click();
  await page.locator('body[data-mode=compare]').waitFor();
  await idle(page);
  await press(page, 'End');
  const sums = await page.locator('so-stage .sum').allTextContents();
  const counts = sums.map((sum) => sum.match(/\d+/g)?.map(Number) ?? []);
  const [[entries, raymond], [others, ricart]] = counts;
  assert.deepEqual([entries, others], [7, 7], 'the same demands');
  assert.equal(ricart, 7 * 2 * 6, 'Ricart and Agrawala: 2(N-1) messages per entry');
  assert.ok(raymond < ricart);
  const values = await page.locator('so-counts .value').allTextContents();
  assert.deepEqual(values, [
    `raymond${raymond} of ${raymond}`,
    `ricart-agrawala${ricart} of ${ricart}`,
  ]);
  await press(page, 'Home');
  await press(page, 'n');
  const first = await page.locator('so-stage .sum').allTextContents();
  assert.ok(
    first.some((sum) => sum.startsWith('1 entry')),
    String(first),
  );
});

play(
  'a simulated run is played with its times',
  { args: ['--algorithm', 'raymond', '--nodes', '15'] },
  async ({ page }) => {
    await press(page, 'End');
    const sum = (await page.locator('#stage .sum').textContent()) ?? '';
    assert.match(sum, /^30 entries, \d+ messages$/);
  },
);
