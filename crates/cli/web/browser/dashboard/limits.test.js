/** Many locks, keyboards, narrow screens and screen readers. */

import assert from 'node:assert/strict';
import { seriousViolations } from '../axe.js';
import { ui } from './harness.js';

/** @import { Page } from 'playwright-core' */
/** @import { ScriptedNode } from './node.js' */

const ELEMENTS_MAX = 1500;

/** @param {ScriptedNode} node */
function manyLocks(node) {
  const [lock] = node.locks;
  node.locks = Array.from({ length: 10_000 }, (_, i) => ({
    ...lock,
    name: `${i % 2 === 0 ? 'even' : 'odd'}/${i}`,
    waiters: [{ owner: 'w', node: 'n1', waited_for_ms: 20_000 - i }],
    waiting: 1,
  }));
}

ui(
  '10,000 locks stay usable: only rows in view are drawn',
  { script: manyLocks },
  async ({ page }) => {
    const view = page.locator('.rows[data-total="10000"]');
    await view.waitFor();
    assert.match((await page.locator('.locks .head').textContent()) ?? '', /^1,000 of 10,000/);
    const drawn = () => page.locator('.rows .row').count();
    assert.ok((await drawn()) < 30, `${await drawn()} rows`);
    assert.ok((await page.locator('*').count()) < ELEMENTS_MAX);
    await view.evaluate((it) => (it.scrollTop = it.scrollHeight));
    await page.locator('[data-lock="odd/999"]').waitFor();
    assert.ok((await drawn()) < 30, `${await drawn()} rows`);
    await page.locator('input[type=search]').fill('odd/99');
    await page.locator('.rows[data-total="56"]').waitFor();
    assert.equal(await page.locator('.rows .row').first().getAttribute('data-lock'), 'odd/99');
  },
);

ui('everything can be done with the keyboard', {}, async ({ page }) => {
  const focus = async (/** @type {string} */ selector) => {
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press('Tab');
      if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector))
        return;
    }
    assert.fail(`Tab does not reach ${selector}`);
  };
  await page.locator('[data-lock="mail/bounce"]').waitFor();
  await focus('nav a[href="#changed"]');
  await focus('#incident');
  await focus('#theme');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.documentElement.style.colorScheme), 'dark');
  await focus('[data-code=keeper-down] [aria-expanded]');
  await page.keyboard.press('Enter');
  await page.locator('[data-code=keeper-down] .manual:not(:empty)').waitFor();
  await focus('[data-code=long-wait] .link');
  await page.keyboard.press('Enter');
  await page.keyboard.press('/');
  await page.keyboard.type('mail');
  await page.locator('.rows[data-total="2"]').waitFor();
  await focus('.rows');
  await page.keyboard.press('End');
  await page.locator('.one .name', { hasText: 'mail/bounce' }).waitFor();
  await page.keyboard.press('ArrowUp');
  await page.locator('.one .name', { hasText: 'mail/outbox' }).waitFor();
  const active = await page.locator('.rows').getAttribute('aria-activedescendant');
  assert.equal(await page.locator(`#${active}`).getAttribute('aria-selected'), 'true');
});

/** @param {Page} page @param {ScriptedNode} node @param {string} where */
async function check(page, node, where) {
  assert.deepEqual(await seriousViolations(page), [], where);
  node.tell({ without_lease_for_ms: 9000, level: 'unknown' });
  await page.locator('body.minority').waitFor({ state: 'attached' });
  assert.deepEqual(await seriousViolations(page), [], `${where}, from a minority`);
}

const phone = { viewport: { width: 390, height: 844 } };

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
  const bypass = { colorScheme, bypassCSP: true };
  ui(
    `axe finds nothing serious, ${colorScheme}`,
    { options: bypass },
    async ({ page, nodes: [node] }) => {
      await page.locator('.chain .box').first().waitFor();
      await check(page, node, colorScheme);
    },
  );
  ui(
    `axe finds nothing serious on a phone, ${colorScheme}`,
    { options: { ...bypass, ...phone } },
    async ({ page, nodes: [node] }) => {
      await page.locator('.chain .box').first().waitFor();
      await check(page, node, colorScheme);
    },
  );
}

ui('a phone’s width is enough', { options: phone }, async ({ page }) => {
  await page.locator('.chain .box').first().waitFor();
  const { scroll, client } = await page.evaluate(() => ({
    scroll: document.documentElement.scrollWidth,
    client: document.documentElement.clientWidth,
  }));
  assert.equal(scroll, client, 'nothing sticks out');
});
