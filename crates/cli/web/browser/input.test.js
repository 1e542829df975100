/** What cannot be shown, and names that look like something else. */

import assert from 'node:assert/strict';
import { pack } from '../src/address.js';
import { idle, play, press } from './harness.js';

/** @import { Page } from 'playwright-core' */

const text = 'algorithm central\nnodes 2\n\n> request 1\n';

play('too many nodes are refused with a sentence', { text, silent: false }, async ({ page }) => {
  const large = await pack('algorithm raymond\nnodes 5000\n\n> request 1\n');
  const said = await trouble(page, `#z:${large}/0`);
  assert.match(said, /the player supports at most 4096 nodes in memory, not 5000/);
  await page.getByRole('link', { name: 'All runs' }).click();
  await page.locator('body[data-mode=gallery]').waitFor();
});

play('a server that was stopped is said so', { text, silent: false }, async ({ page, stop }) => {
  await stop();
  await press(page, 'h');
  await page.getByText(/server does not answer.*lab play/).waitFor();
  assert.equal(await page.locator('body').getAttribute('data-mode'), 'run', 'the run stays');
  await press(page, 'f');
  await page.locator('.status.fault').getByText('server does not answer').waitFor();
  assert.match(await trouble(page, '#tour-raymond/0'), /server does not answer/);
});

/**
 * Visits an address that cannot be shown, and returns what the page says.
 * @param {Page} page
 * @param {string} hash
 */
async function trouble(page, hash) {
  await page.evaluate((to) => (location.hash = to), hash);
  await page.locator('body[data-mode=error][data-idle=true]').waitFor({ state: 'attached' });
  return (await page.locator('#trouble').textContent()) ?? '';
}

play('a damaged link is said in a sentence', { text }, async ({ page }) => {
  assert.match(await trouble(page, '#z:%%%/0'), /The link is damaged/);
  assert.match(await trouble(page, '#%zz/0'), /^The link is damaged: "%zz" is not the name/);
  // Also if the page begins with it.
  await page.reload();
  await page.locator('#trouble', { hasText: 'The link is damaged: "%zz"' }).waitFor();
});

play('an unknown name is said in a sentence', { text, silent: false }, async ({ page }) => {
  assert.match(await trouble(page, '#no-such-run/0'), /no run "no-such-run"/);
  assert.match(await trouble(page, '#compare:raymond,nonsense,5,burst/0'), /nonsense/);
});

play('a mistake in a scenario is said with its line', { text, silent: false }, async ({ page }) => {
  const bad = await pack('algorithm central\nnodes 2\n\n> dance 1\n');
  assert.match(await trouble(page, `#z:${bad}/0`), /^line 4: .*dance/);
});

play('a scenario that is too long is said so', { text, silent: false }, async ({ page }) => {
  const long = await pack(
    `algorithm central\nnodes 2\n\n${'> request 1\n> run\n> release 1\n> run\n'.repeat(60_000)}`,
  );
  assert.match(await trouble(page, `#z:${long}/0`), /longer than 100000 steps/);
});

play(
  'names are text, whatever they look like',
  {
    text: 'algorithm central\nnames <img/src=x/onerror=alert(1)> \u202egnp.exe &amp;\n\n> request &amp;\n',
  },
  async ({ page }) => {
    let alerts = 0;
    page.on('dialog', (dialog) => {
      alerts++;
      return dialog.dismiss();
    });
    await press(page, 'ArrowRight');
    for (const node of await page.locator('#stage [data-node]').all()) {
      await node.dispatchEvent('click');
    }
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(alerts, 0);
    await page.locator('#stage [data-node="0"]').dispatchEvent('click');
    const title = (await page.locator('.title').textContent()) ?? '';
    assert.ok(title.includes('Node <img/src=x/onerror=alert(1)>'), title);
    const names = await page.locator('#stage .node .name').allTextContents();
    const shown = names.map((name) => name.replaceAll(/[\u2068\u2069]/g, ''));
    assert.deepEqual(shown, ['<img/src…ert(1)>', '\u202egnp.exe', '&amp;']);
  },
);

/** Texts of a page in which a name that is not isolated would turn what stands around it. */
const SENTENCES = [
  '.words',
  '.did',
  '.why',
  '.title',
  '.detail',
  '.status',
  '.list button',
  '.groups dd',
  '#stage text',
  'so-time text',
  'so-time title',
].join(', ');

/**
 * What of the page's sentences is within a mark that changes the direction, and yet not isolated.
 * @param {Page} page
 * @returns {Promise<string[]>}
 */
function turned(page) {
  return page.evaluate((selector) => {
    const texts = [...document.querySelectorAll(selector)].map((it) => it.textContent ?? '');
    const labels = [...document.querySelectorAll('[aria-label]')].map(
      (it) => it.getAttribute('aria-label') ?? '',
    );
    const isolates = /\u2068[^\u2066-\u2069]*\u2069/g;
    const unusual = /[\u202a-\u202e\u2066-\u2069\u0590-\u05ff]/;
    return [...texts, ...labels].filter((it) => unusual.test(it.replaceAll(isolates, '')));
  }, SENTENCES);
}

play(
  'names do not turn the text around them',
  {
    text: `algorithm maekawa
variant as-published
names A \u202eexe.png אבג \u2069\u202egnp
shape grid

> request \u202eexe.png
> request אבג
> request \u2069\u202egnp
`,
  },
  async ({ page }) => {
    const visit = async (/** @type {string} */ where) => {
      await idle(page);
      assert.deepEqual(await turned(page), [], where);
    };
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight']) {
      await press(page, key);
      await visit('a request');
      const align = await page.locator('.did').evaluate((it) => {
        const range = document.createRange();
        range.selectNodeContents(it);
        return range.getBoundingClientRect().left - it.getBoundingClientRect().left;
      });
      assert.ok(align < 2, 'sentences begin at the left');
    }
    for (const node of [0, 1, 2, 3]) {
      await page.locator(`#stage [data-node="${node}"]`).dispatchEvent('click');
      await visit(`node ${node}`);
    }
    await page.locator('#stage [data-message]').first().dispatchEvent('click');
    await visit('a message');
    await press(page, 'h');
    await page.locator('.choice').first().waitFor();
    await visit('choices');
    await press(page, 'f');
    await page.locator('.status.fault').waitFor();
    await visit('a search');
    await press(page, 'End');
    assert.equal(await page.locator('#stage').getAttribute('data-fault'), 'deadlock');
    await visit('a fault');
  },
);
