/**
 * Makes the pictures in docs/dashboard.md: a real cluster of eight nodes for a quarter of an hour,
 * with clients that enter locks, and towards the end a keeper that dies, a node that is cut off,
 * and a client that holds on to a lock. Run by
 * `contrib/test-player.sh --pictures`. Arguments: the folder, and the minutes that it takes.
 */

import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { start } from '../start.js';
import { Cluster, missing } from './cluster.js';
import { acquire, ask, release, until } from './single.js';

/** @import { Page } from 'playwright-core' */

const [folder, minutes = '16'] = process.argv.slice(2);
const TOTAL_MS = Number(minutes) * 60_000;
/** Before the end. */
const KILLED_MS = Math.min(240_000, TOTAL_MS * 0.4);
const STUCK_MS = Math.min(190_000, TOTAL_MS * 0.35);
const CUT_MS = Math.min(60_000, TOTAL_MS * 0.2);

const NODES = [1, 2, 3, 4, 5, 6, 7, 8];
/** The node that joins later, and the one that is cut off. */
const LATE = 8;
const CUT = 7;
/** Looks, and so it is not killed. */
const SEEN_FROM = 2;

const LOCKS = [
  'mail/outbox',
  'mail/bounce',
  'cache/rebuild-eu',
  'reports/nightly',
  'billing/invoice-7731',
  'billing/invoice-7732',
  'cron/rotate-logs',
  'deploy/api',
  'search/reindex',
];
const CLIENTS = 2;
const STUCK = 'billing/close-month';

const sleep = (/** @type {number} */ ms) => new Promise((done) => setTimeout(done, ms));
let isOver = false;
let seed = 7;
const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;

/** Enters locks on a node, one after the other, until the end. @param {string} socket */
async function work(socket) {
  while (!isOver) {
    const lock = LOCKS[Math.floor(random() * LOCKS.length)];
    const hold = await acquire(socket, lock, { owner: 'worker', wait_ms: 10_000, ttl_ms: 60_000 });
    if (!hold) {
      await sleep(500);
      continue;
    }
    await sleep(5 + 60 * random() ** 3);
    await release(socket, hold);
    await sleep(20 + 300 * random());
  }
}

/**
 * Holds a lock from some time on and waits for it elsewhere, on nodes that live to the end.
 * @param {Cluster} cluster
 * @param {number} killed
 */
async function getStuck(cluster, killed) {
  const forever = { ttl_ms: 3_600_000, wait_ms: 3_600_000 };
  const enter = (/** @type {number} */ node, /** @type {string} */ owner) =>
    acquire(cluster.socket(node), STUCK, { ...forever, owner });
  const keeper = [3, 4].find((node) => node !== killed) ?? 3;
  await until(async () => (await enter(6, 'deploy')) !== null);
  await sleep(STUCK_MS * 0.04);
  void enter(keeper, 'ledger');
  await sleep(STUCK_MS * 0.55);
  void enter(LATE, 'deploy');
  await sleep(STUCK_MS * 0.2);
  void enter(SEEN_FROM, 'ledger');
}

/** The keepers' leader. @param {Cluster} cluster @returns {Promise<number>} */
async function leader(cluster) {
  const { content } = await ask(cluster.socket(SEEN_FROM), 'GET', '/v1/overview');
  return Number(content.leader.slice(1));
}

const skipped = missing();
if (skipped) throw new Error(skipped);
const cluster = await Cluster.start(NODES.length, { lease: '5s', keepers: 5, later: [LATE] });
try {
  const began = Date.now();
  const before = (/** @type {number} */ ms) => sleep(began + TOTAL_MS - ms - Date.now());
  await until(async () => (await ask(cluster.socket(SEEN_FROM), 'GET', '/readyz')).status === 200);
  const workers = NODES.flatMap((node) =>
    Array.from({ length: CLIENTS }, () => work(cluster.socket(node))),
  );
  await before(TOTAL_MS * 0.8);
  cluster.launch(LATE);

  await before(KILLED_MS);
  const first = await leader(cluster);
  // The pictures show the page of this node.
  const killed = first === SEEN_FROM ? 4 : first;
  cluster.kill(killed);
  await before(STUCK_MS);
  const stuck = getStuck(cluster, killed);
  await before(CUT_MS);
  cluster.cut(CUT);
  await stuck;

  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
  const { child, line } = await start(['ui', '--api', cluster.socket(SEEN_FROM)]);
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
  });
  const page = await context.newPage();
  await page.goto(line);
  await page.locator('[data-code=node-outside]').waitFor({ timeout: TOTAL_MS });
  await page.locator(`[data-lock="${STUCK}"]`).click();
  await page.locator('.chain .box.waiting').first().waitFor();
  await before(0);
  await picture(page, 'dashboard-light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture(page, 'dashboard-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 390, height: 844 });
  await picture(page, 'dashboard-phone');
  child.kill();
  await browser.close();
  isOver = true;
  await Promise.race([Promise.all(workers), sleep(1000)]);
} finally {
  isOver = true;
  await cluster.stop();
}
process.exit(0);

/** @param {Page} page @param {string} name */
async function picture(page, name) {
  await page.evaluate(() => scrollTo(0, 0));
  // The charts are drawn for the width that there is.
  await sleep(1000);
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
