/**
 * The pictures in docs/player.md: each is a moment of a run that the test checks. With
 * SOLOIST_PICTURES, the pictures are written into that folder.
 */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { at, idle, play, position, press, scenarios } from './harness.js';

/** @import { Page } from 'playwright-core' */

const folder = process.env.SOLOIST_PICTURES;
const figure7 = await readFile(join(scenarios, 'raymond-figure-7.txt'), 'utf8');

/**
 * @param {Page} page
 * @param {string} name
 */
async function picture(page, name) {
  await idle(page);
  // A focus ring would show where the test clicked last.
  await page.evaluate(() => /** @type {HTMLElement} */ (document.activeElement)?.blur());
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`) });
}

const grid = `algorithm maekawa
variant as-published
nodes 4
shape grid

> request 1
> request 2
> request 3
`;

play('picture: a deadlock of Maekawa’s rules as printed', { text: grid }, async ({ page }) => {
  await press(page, 'End');
  await page.locator('[data-act="Find trouble from here"]').click();
  await page.locator('.status.fault').waitFor();
  await press(page, 'End');
  assert.equal(await page.locator('#stage').getAttribute('data-fault'), 'deadlock');
  assert.ok((await page.locator('.ring-line').count()) > 1);
  await picture(page, 'player-maekawa');
});

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  const options = { colorScheme };
  play(`picture: Raymond’s tree, ${colorScheme}`, { text: figure7, options }, async ({ page }) => {
    await page.locator('input[type=range]').fill('33');
    await at(page, 33);
    assert.equal(await page.locator('#stage .message.token').count(), 1, 'the privilege travels');
    await picture(page, `player-raymond-${colorScheme}`);
  });
}

const torus = `algorithm torus
nodes 16

> request 3
> request 5
> request 9
> request 14
> run
`;

play('picture: a torus', { text: torus }, async ({ page }) => {
  await page.locator('input[type=range]').fill('10');
  await at(page, 10);
  assert.ok((await page.locator('#stage .stub').count()) >= 16, 'links wrap around');
  assert.ok((await page.locator('#stage .message').count()) > 2, 'messages are in flight');
  await picture(page, 'player-torus');
});

play('picture: a tour', { hash: '#tour-raymond/0' }, async ({ page }) => {
  while ((await page.locator('#stage .caption.ask').count()) === 0) {
    const before = await position(page);
    await press(page, 'ArrowRight');
    assert.equal(await position(page), before + 1, 'the tour ends without a question');
  }
  await picture(page, 'player-tour');
});

play(
  'picture: a comparison',
  { hash: '#compare:raymond,ricart-agrawala,9,poisson:0.1/150' },
  async ({ page }) => {
    assert.equal(await page.locator('so-stage:visible').count(), 2);
    await picture(page, 'player-compare');
  },
);

play('picture: the gallery', {}, async ({ page }) => {
  assert.ok((await page.locator('[data-run]').count()) > 40);
  await picture(page, 'player-gallery');
});
