/**
 * Tests in a real browser: each has its own server, started as a user would, and its own page.
 * Nothing sleeps: tests wait for `data-step` and `data-idle`, and play against a clock that they
 * drive. What a failed test did is kept as a trace.
 *
 * SOLOIST_BINARY is the program, CHROMIUM the browser, SOLOIST_TRACES the folder of traces.
 */

/** @import { BrowserContextOptions, Page } from 'playwright-core' */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { root, soloist, start } from './start.js';

export { soloist, start };
const traces = process.env.SOLOIST_TRACES ?? join(root, 'target/player-traces');
export const scenarios = join(root, 'crates/lab/tests/scenarios');

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  // Chromium's sandbox refuses to run as root.
  args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
});
after(() => browser.close());

/**
 * @typedef {Object} Bench
 * @property {Page} page
 * @property {string} link
 * @property {string} folder removed after the test
 * @property {() => Promise<void>} stop stops the program
 */

/**
 * @typedef {Object} What
 * @property {string[]} [args] of `soloist lab play`
 * @property {string} [text] a scenario, given as a file
 * @property {string} [hash] of the address
 * @property {boolean} [clock] whether the test drives the page's clock
 * @property {boolean} [silent] false if the server refuses something, which the browser reports
 * @property {BrowserContextOptions} [options]
 */

/**
 * A test with a page on which `soloist lab play` shows something.
 * @param {string} name
 * @param {What} what
 * @param {(bench: Bench) => Promise<void>} body
 */
export function play(name, { args = [], text, hash = '', clock, silent = true, options }, body) {
  test(name, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'soloist-player-'));
    const given = text === undefined ? args : [join(folder, 'scenario.txt'), ...args];
    if (text !== undefined) await writeFile(given[0], text);
    const { child, line } = await start(['lab', 'play', ...given]);
    try {
      await onPage(name, { silent, ...options }, async (page) => {
        if (clock) {
          await page.clock.install({ time: 0 });
          await page.clock.pauseAt(1000);
        }
        await page.goto(line + hash);
        await idle(page);
        const stop = async () => {
          const gone = once(child, 'exit');
          child.kill();
          await gone;
        };
        await body({ page, link: line, folder, stop });
      });
    } finally {
      child.kill();
      await rm(folder, { recursive: true });
    }
  });
}

/**
 * Runs the body on a fresh page. It fails if the page reports an error, as it does when the policy
 * forbids something.
 * @param {string} name
 * @param {BrowserContextOptions & { silent?: boolean }} options
 * @param {(page: Page) => Promise<void>} body
 */
export async function onPage(name, { silent = true, ...options }, body) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    ...options,
  });
  await context.tracing.start({ screenshots: true, snapshots: true });
  const page = await context.newPage();
  /** @type {string[]} */
  const errors = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (silent && message.type() === 'error') errors.push(message.text());
  });
  let passed = false;
  try {
    await body(page);
    assert.deepEqual(errors, []);
    passed = true;
  } finally {
    const path = join(traces, `${name.replaceAll(/\W+/g, '-')}.zip`);
    await context.tracing.stop(passed ? {} : { path });
    if (!passed) console.error(`the trace is in ${path}`);
    await context.close();
  }
}

/** @param {Page} page */
export async function idle(page) {
  await page.locator('body[data-idle=true]').waitFor({ state: 'attached' });
}

/**
 * Waits until the page shows a step and nothing moves.
 * @param {Page} page
 * @param {number} step
 */
export async function at(page, step) {
  await page.locator(`body[data-step="${step}"]`).waitFor({ state: 'attached' });
  await idle(page);
}

/** @param {Page} page */
export async function position(page) {
  return Number(await page.locator('body').getAttribute('data-step'));
}

/**
 * Presses a key, once the page is idle.
 * @param {Page} page
 * @param {string} key
 */
export async function press(page, key) {
  await idle(page);
  await page.keyboard.press(key);
}

/**
 * The phases of all nodes, as the picture shows them.
 * @param {Page} page
 */
export function phases(page) {
  return page
    .locator('#stage [data-node]')
    .evaluateAll((nodes) => nodes.map((node) => /** @type {SVGElement} */ (node).dataset.phase));
}
