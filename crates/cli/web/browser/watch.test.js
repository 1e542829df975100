/** Watching runs: time, selection, the address, and that the page shows what the lab says. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pack } from '../src/address.js';
import { at, idle, play, position, press, scenarios, soloist } from './harness.js';

/** @import { Page } from 'playwright-core' */
/** @import { Run } from '../src/model.js' */

const figure7 = await readFile(join(scenarios, 'raymond-figure-7.txt'), 'utf8');

/**
 * The run of a text, as the page gets it.
 * @param {Page} page
 * @param {string} text
 * @returns {Promise<Run>}
 */
function runOf(page, text) {
  return page.evaluate(async (scenario) => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ text: scenario, from: 0 });
    return (await fetch('run', { method: 'POST', headers, body })).json();
  }, text);
}

play(
  'the page does not write over an address that it has yet to open',
  { text: figure7, options: { permissions: ['clipboard-read', 'clipboard-write'] } },
  async ({ page }) => {
    await press(page, 'ArrowRight');
    await page.waitForFunction(() => location.hash.endsWith('/1'));
    // The step is to be written when the browser has not yet told of the other address.
    const after = await page.evaluate(async () => {
      location.hash = '#tour-raymond/0';
      document.querySelector('#copy')?.dispatchEvent(new MouseEvent('click'));
      return location.hash;
    });
    assert.equal(after, '#tour-raymond/0');
    await page.locator('#title', { hasText: 'Raymond 1989: one REQUEST' }).waitFor();
  },
);

play(
  'a run plays to its end, as its transcript says',
  { text: figure7, clock: true },
  async ({ page }) => {
    const { output } = await soloist(['lab', 'replay', '-'], figure7);
    const entered = output.split('\n').filter((line) => line.endsWith(' enters'));
    const sent = output.split('\n').filter((line) => / -> /.test(line));
    assert.equal(entered.length, 11, 'Fig. 7 has ten entries, and node 1 enters first');
    const end = Number(await page.locator('input[type=range]').getAttribute('max'));
    await page.keyboard.press(' ');
    /** @type {string[]} */
    const seen = [];
    for (let step = 1; step <= end; step++) {
      await page.clock.runFor(step === 1 ? 200 : 800);
      await at(page, step);
      const did = await page.locator('.did').textContent();
      const entry = did?.match(/, (\S+ enters)$/);
      if (entry) seen.push(entry[1]);
    }
    assert.deepEqual(seen, entered);
    const sum = `${entered.length} entries, ${sent.length} messages`;
    assert.equal(await page.locator('#stage .sum').textContent(), sum);
    await page.clock.runFor(5000);
    assert.equal(await position(page), end, 'it stops at the end');
    assert.equal(await page.locator('.play').getAttribute('aria-label'), 'Play');
  },
);

/** A scenario of each kind of state: a queue, sets and requests, a token on its way, counters. */
const REPLAYED = [
  'raymond-figure-7',
  'maekawa-circular-locking',
  'lodha-kshemkalyani-fig6',
  'chaudhuri-karaata-colours',
  'raymond-recovery-counters-lost',
];

/**
 * Random numbers from 0 to 1, the same for each seed (mulberry32).
 * @param {number} seed
 */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * A value without what only one of page and transcript writes: spaces, and `self` for a name.
 * @param {string} value
 * @param {string} self
 */
function plain(value, self) {
  return value
    .replaceAll(/,\s/g, ',')
    .replaceAll(' ', ',')
    .replaceAll(/\bself\b/g, self);
}

/**
 * The fields of the selected node, as the page shows them.
 * @param {Page} page
 * @returns {Promise<[string, string][]>}
 */
function fieldsOf(page) {
  return page.locator('.groups dl > div:not([hidden])').evaluateAll((rows) =>
    rows.map((row) => {
      const value = row.querySelector('dd')?.cloneNode(true);
      if (value instanceof Element) value.querySelector('.was')?.remove();
      return [row.querySelector('dt')?.textContent ?? '', value?.textContent ?? ''];
    }),
  );
}

REPLAYED.forEach((file, nth) => {
  play(`the page shows the states that a replay shows: ${file}`, {}, async ({ page }) => {
    const text = await readFile(join(scenarios, `${file}.txt`), 'utf8');
    const { steps, names } = await runOf(page, text);
    const lines = text.split('\n');
    await page.evaluate((to) => (location.hash = to), `#z:${await pack(text)}/0`);
    await at(page, 0);
    // Positions whose line has no further step, in an order that goes forward and back.
    const whole = steps.flatMap(({ line }, i) => (steps[i + 1]?.line === line ? [] : [i + 1]));
    const random = randomFrom(nth + 1);
    const positions = Array.from({ length: 5 }, () => whole[Math.floor(random() * whole.length)]);
    let compared = 0;
    for (const step of positions) {
      const upTo = lines.slice(0, steps[step - 1].line);
      const script = [...upTo, ...names.map((name) => `> show ${name}`)].join('\n');
      const { output } = await soloist(['lab', 'replay', '-'], `${script}\n`);
      const shown = output
        .trimEnd()
        .split('\n')
        .slice(-2 * names.length);
      await page.locator('input[type=range]').fill(String(step));
      await at(page, step);
      for (const [i, name] of names.entries()) {
        const state = shown[2 * i + 1].slice(name.length + 2);
        const expected = ` ${state.replaceAll(', ', ',').replaceAll(/\bself\b/g, name)} `;
        await page.locator(`#stage [data-node="${i}"]`).dispatchEvent('click');
        for (const [field, value] of await fieldsOf(page)) {
          // The fence is the lab's own, and a transcript leaves out what is not there.
          if (field === 'fence' || value === 'none') continue;
          const part = ` ${field}=${plain(value, name)} `;
          assert.ok(expected.includes(part), `step ${step}: ${part} is not in ${state}`);
          compared++;
        }
      }
    }
    assert.ok(compared > 20, `${compared} values`);
  });
});

play('a link shows this moment of this run', { text: figure7 }, async ({ page }) => {
  for (const key of ['ArrowRight', 'n', 'ArrowRight', 'ArrowLeft']) await press(page, key);
  const shown = await position(page);
  await page.waitForFunction((step) => location.hash.endsWith(`/${step}`), shown);
  const link = page.url();
  assert.ok(!link.includes('key='), 'the secret left the address bar');
  await page.goto('about:blank');
  await page.goto(link);
  await at(page, shown);
  await page.goto(`${link.slice(0, link.lastIndexOf('/'))}/9999`);
  await at(page, Number(await page.locator('input[type=range]').getAttribute('max')));
  assert.match(
    (await page.locator('#notice').textContent()) ?? '',
    /step 9999, but this run has \d+ steps/,
  );
});

const turns = `algorithm central
nodes 3

# Node 1 asks first.
> request 1
> run
> release 1
> run
> request 2
> run
> release 2
> run
`;

play('the headline has a caption, and then tells each step', { text: turns }, async ({ page }) => {
  const words = page.locator('#stage .words');
  const detail = page.locator('#stage .detail');
  await press(page, 'ArrowRight');
  await at(page, 1);
  assert.equal(await words.textContent(), 'Node 1 asks first.');
  assert.ok(await detail.isHidden());
  await press(page, 'ArrowRight');
  await at(page, 2);
  assert.equal(await words.textContent(), 'Node 1 asks first.', 'it stays for some steps');
  assert.equal(await detail.textContent(), '0 gets REQUEST from 1 and sends GRANT to 1.');
  await press(page, 'End');
  await press(page, 'ArrowLeft');
  const step = await position(page);
  assert.match((await words.textContent()) ?? '', /^2 leaves and sends RELEASE to 0\.$/);
  assert.equal(await page.locator('#stage .mark').textContent(), String(step));
});

play('a message shows what it carries and what caused it', { text: figure7 }, async ({ page }) => {
  await press(page, 'ArrowRight');
  await press(page, 'ArrowRight');
  await page.locator('#stage [data-message]').first().click();
  assert.match((await page.locator('.title').textContent()) ?? '', /2 → 1REQUEST/);
  await page.locator('.subject .link').click();
  await at(page, 2);
});

play('what has not happened yet is veiled', { text: figure7 }, async ({ page }) => {
  for (const step of [20, 21, 0]) {
    await page.locator('input[type=range]').fill(String(step));
    await at(page, step);
    const events = await page.locator('[data-event]').evaluateAll((circles) =>
      circles.map((circle) => ({
        event: Number(/** @type {SVGElement} */ (circle).dataset.event),
        isVeiled: circle.classList.contains('future'),
      })),
    );
    assert.ok(events.length > 30, 'past and future are drawn');
    for (const { event, isVeiled } of events) assert.equal(isVeiled, event >= step, `${event}`);
    const veil = await page.locator('so-time .veil').getAttribute('x');
    assert.equal(veil, await page.locator('so-time .head').getAttribute('x1'));
  }
});

play('an event marks its causal past', { text: figure7 }, async ({ page }) => {
  await press(page, 'End');
  const { steps } = await runOf(page, figure7);
  const event = steps.findIndex((step) => step.enter && step.cause !== null);
  await press(page, 'Home');
  await page.locator(`[data-event="${event}"]`).click();
  await at(page, event + 1);
  const past = await page
    .locator('.events .past')
    .evaluateAll((circles) =>
      circles.map((circle) => Number(/** @type {SVGElement} */ (circle).dataset.event)),
    );
  /** @type {Set<number>} */
  const expected = new Set();
  const add = (/** @type {number} */ i) => {
    if (i < 0 || expected.has(i)) return;
    expected.add(i);
    add(steps[i].cause ?? -1);
    add(steps.findLastIndex((step, j) => j < i && step.node === steps[i].node));
  };
  add(event);
  assert.deepEqual(
    past.sort((a, b) => a - b),
    [...expected].sort((a, b) => a - b),
  );
  assert.ok(expected.size < event + 1, 'not everything before it is its cause');
  await press(page, 'ArrowRight');
  assert.match((await page.locator('so-inspector').textContent()) ?? '', /kept marked/);
});

play(
  'a click in the diagram jumps, or selects what is there',
  { text: figure7 },
  async ({ page }) => {
    const { steps } = await runOf(page, figure7);
    await press(page, 'End');
    const place = (/** @type {number} */ event) =>
      page.locator(`[data-event="${event}"]`).evaluate((circle) => {
        const { x, y, width, height } = circle.getBoundingClientRect();
        return { x: x + width / 2, y: y + height / 2 };
      });
    const click = async (/** @type {number} */ x, /** @type {number} */ y) => {
      await page.mouse.click(x, y);
      await idle(page);
    };
    // Above the lines there is neither an event nor an arrow.
    const top = await page.locator('so-time svg').first().boundingBox();
    assert.ok(top);
    const tenth = await place(9);
    await click(tenth.x + 2, top.y + 6);
    assert.equal(await position(page), 10);
    await click(tenth.x + 6, tenth.y + 3);
    assert.match(
      (await page.locator('so-inspector').textContent()) ?? '',
      /Causal past of step 10/,
    );
    await press(page, 'Escape');

    const arrival = steps.findIndex(
      ({ cause, node }, i) => cause !== null && cause <= i - 3 && node === 0,
    );
    const [from, to] = await Promise.all([place(steps[arrival].cause ?? 0), place(arrival)]);
    await click((from.x + to.x) / 2, (from.y + to.y) / 2);
    const title = (await page.locator('.title').textContent()) ?? '';
    assert.match(title, new RegExp(`${steps[steps[arrival].cause ?? 0].node + 1} → 1REQUEST`));

    const name = await page.locator('so-time .names text').nth(4).boundingBox();
    assert.ok(name);
    await click(name.x + 2, name.y + name.height / 2);
    assert.match((await page.locator('.title').textContent()) ?? '', /^Node 3/, 'in tree order');
  },
);

play(
  'a message arrives before the next ones leave',
  { text: figure7, options: { reducedMotion: 'no-preference' } },
  async ({ page }) => {
    const { steps } = await runOf(page, figure7);
    const both = steps.findIndex((step) => step.got !== null && step.sends.length > 0);
    await page.locator('input[type=range]').fill(String(both));
    await at(page, both);
    const timings = await page.evaluate(() => {
      document.body.dispatchEvent(
        new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }),
      );
      return [...document.querySelectorAll('[data-message]')].flatMap((g) =>
        g.getAnimations().map(({ effect }) => {
          const { delay, duration } = /** @type {AnimationEffect} */ (effect).getTiming();
          const frames = /** @type {KeyframeEffect} */ (effect).getKeyframes();
          return {
            delay: Number(delay),
            duration: Number(duration),
            last: Number(frames[1].opacity),
          };
        }),
      );
    });
    const arriving = timings.filter((it) => it.last === 0);
    const leaving = timings.filter((it) => it.last === 1 && it.delay > 0);
    assert.equal(arriving.length, 1);
    assert.equal(leaving.length, steps[both].sends.length);
    for (const it of leaving) assert.ok(it.delay >= arriving[0].duration, 'they overlap');
    await idle(page);
    assert.equal(
      await page.locator('[data-message]').count(),
      await page.locator('[data-flight]').count(),
    );
  },
);

for (const reducedMotion of /** @type {const} */ (['reduce', 'no-preference'])) {
  const moves = reducedMotion === 'no-preference';
  play(
    `a step ${moves ? 'moves and flashes' : 'neither moves nor flashes'} if the reader prefers ${moves ? 'no less' : 'less'} motion`,
    { text: figure7, options: { reducedMotion } },
    async ({ page }) => {
      const range = page.locator('input[type=range]');
      await range.fill('20');
      await at(page, 20);
      const moving = await page.evaluate(() => {
        const key = new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true });
        let most = 0;
        for (let i = 0; i < 3; i++) {
          document.body.dispatchEvent(key);
          most = Math.max(most, document.getAnimations().length);
        }
        return most;
      });
      assert.equal(moving > 0, moves, `${moving} animations`);
      await idle(page);
    },
  );
}
