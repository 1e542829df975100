/** Checks a page with axe-core. */

/** @import { Page } from 'playwright-core' */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const axe = await readFile(
  join(import.meta.dirname, '../node_modules/axe-core/axe.min.js'),
  'utf8',
);

/**
 * The serious and critical violations on a page. Its policy must be bypassed.
 * @param {Page} page
 * @returns {Promise<string[]>}
 */
export async function seriousViolations(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => /** @type {any} */ (globalThis).axe.run());
  return violations
    .filter((/** @type {any} */ it) => ['serious', 'critical'].includes(it.impact))
    .map((/** @type {any} */ it) => `${it.id}: ${it.nodes[0].html}`);
}
