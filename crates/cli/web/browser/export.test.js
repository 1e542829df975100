/** A run as one file, opened without a server. */

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { at, onPage, press, scenarios, soloist } from './harness.js';

test('an export opens without a server', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'soloist-export-'));
  t.after(() => rm(folder, { recursive: true }));
  const write = async (/** @type {string} */ name) => {
    const file = join(folder, name);
    const scenario = join(scenarios, 'raymond-figure-7.txt');
    const { code } = await soloist(['lab', 'play', scenario, '--export', file]);
    assert.equal(code, 0);
    return file;
  };
  const file = await write('run.html');
  const again = await write('again.html');
  assert.equal(await readFile(file, 'utf8'), await readFile(again, 'utf8'), 'it is deterministic');
  await onPage(t.name, { offline: true }, async (page) => {
    await page.goto(`file://${file}#3`);
    await at(page, 3);
    await press(page, 'End');
    await page.locator('input[type=range]').evaluate((range) => {
      const { value, max } = /** @type {HTMLInputElement} */ (range);
      if (value !== max) throw new Error(`${value} of ${max}`);
    });
    assert.ok(await page.locator('so-inspector .actions').isHidden(), 'no server can search');
    assert.equal(await page.locator('#stage .sum').textContent(), '11 entries, 36 messages');
  });
});
