/** The page on nodes that play a script. */

import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import { healthy } from '../../unit/dashboard/example.js';
import { seenFrom, ui, verdict } from './harness.js';

/** @import { AddressInfo } from 'node:net' */
/** @import { Page } from 'playwright-core' */

/** @param {Page} page @param {string} selector */
const textOf = async (page, selector) => (await page.locator(selector).textContent()) ?? '';

ui('problems come first, with what they mean and commands to copy', {}, async ({ page }) => {
  await verdict(page, 'Working. Three things need you.');
  assert.deepEqual(await page.locator('.problems h3').allTextContents(), [
    'Keeper n4 is down',
    'n7 was evicted',
    'billing/close-month is waited for',
  ]);
  const first = page.locator('[data-code=keeper-down]');
  assert.match((await first.locator('time').textContent()) ?? '', /^for 4 min 0\d s, since /);
  assert.deepEqual(await first.locator('.label').allTextContents(), [
    'See why',
    'If it is gone for good',
  ]);
  assert.match(await textOf(page, '.fine span'), /Looked at and well: clocks/);
  assert.match(await page.title(), /^✕ 3 problems/);
  assert.equal(await page.locator('[data-keeper=n4].down').count(), 1);
  assert.equal(await page.locator('[data-member]').count(), 6);
  assert.equal(await page.locator('[data-member=n6] .low').count(), 1, 'a lease below a third');
  assert.equal(await page.locator('[data-outside]').count(), 2);
  assert.match(await textOf(page, '[data-figure="Holds lost"] .value'), /^3 /);
  assert.equal(await page.locator('[data-figure=Entries] .mark text').count(), 2);
});

ui('the manual’s entry unfolds below its problem', {}, async ({ page }) => {
  const problem = page.locator('[data-code=keeper-down]');
  const button = problem.getByRole('button', { name: 'What to do' });
  await button.click();
  await problem.locator('pre', { hasText: 'level' }).waitFor();
  assert.equal(await button.getAttribute('aria-expanded'), 'true');
  await button.click();
  await problem.locator('pre').waitFor({ state: 'hidden' });
});

ui('what could not be examined is not over', {}, async ({ page, nodes: [node] }) => {
  const [first, second, third] = node.overview.problems;
  const ago = { last_seen_ms: node.overview.at_ms - 12_000 };
  const over = { ...second, ...ago, is_over: true };
  node.tell({ problems: [{ ...first, ...ago }, third, over] });
  const said = (/** @type {string} */ code) => page.locator(`[data-code=${code}] time`);
  await page.locator('[data-code=keeper-down][data-state=unexamined]').waitFor();
  assert.match(
    (await said('keeper-down').textContent()) ?? '',
    /^not examined, last seen 1\d s ago$/,
  );
  assert.match((await said('node-outside').textContent()) ?? '', /^over, last seen 1\d s ago$/);
  assert.match((await said('long-wait').textContent()) ?? '', /^for 3 min/);
  assert.equal(await page.locator('[data-code=node-outside] .command').count(), 0);
  assert.match(await page.title(), /^✕ 2 problems/);
});

ui('pushes change the page in place', {}, async ({ page, nodes: [node] }) => {
  const copy = page.locator('[data-code=keeper-down] button').first();
  await copy.focus();
  const { problems } = node.overview;
  node.tell({ verdict: 'Working. Two things need you.', problems: problems.slice(0, 2) });
  await verdict(page, 'Two things');
  assert.equal(await page.locator('.problems li').count(), 2);
  assert.ok(await copy.evaluate((it) => it === document.activeElement), 'the focus stays');
  const moved = [{ ...problems[2], level: 'critical' }, problems[0]];
  node.tell({ verdict: 'The order changed.', problems: moved });
  await verdict(page, 'The order changed.');
  assert.deepEqual(
    await page
      .locator('.problems li')
      .evaluateAll((items) => items.map((it) => /** @type {HTMLElement} */ (it).dataset.code)),
    ['long-wait', 'keeper-down'],
  );
  node.tell(healthy(Date.now()));
  await verdict(page, 'All is well.');
  assert.match(await page.title(), /^✓ Well/);
  node.push({
    changes: {
      changes: [
        {
          id: 'x',
          at_ms: Date.now(),
          kind: 'joined',
          node: 'n9',
          epoch: 42,
          what: 'n9 joined',
          why: '',
          is_bad: false,
        },
      ],
    },
  });
  await page.locator('[data-change=joined] strong', { hasText: 'n9 joined' }).waitFor();
  assert.equal(
    await page.locator('#changed tbody tr').first().locator('strong').textContent(),
    'n9 joined',
  );
  assert.equal(await page.locator('[data-lane=n9] .join').count(), 1);
});

ui('of many changes the last ones are shown first', {}, async ({ page, nodes: [node] }) => {
  const [first] = node.changes;
  const changes = Array.from({ length: 100 }, (_, i) => ({
    ...first,
    id: `x${i}`,
    at_ms: Date.now() - 1000 * (100 - i),
    what: `change ${i}`,
  }));
  node.push({ changes: { changes } });
  const rows = page.locator('#changed tbody tr');
  await rows.first().locator('strong', { hasText: 'change 99' }).waitFor();
  assert.equal(await rows.count(), 24);
  await page.getByRole('button', { name: /^Show \d+ earlier changes$/ }).click();
  await page.locator('#changed strong', { hasText: 'n7 evicted' }).waitFor();
  assert.ok((await rows.count()) > 100);
});

ui(
  'seen from a minority, the page is red and says so first',
  {},
  async ({ page, nodes: [node] }) => {
    assert.match(
      await textOf(page, '#seen'),
      /^Seen from n2, epoch 41, \d+\.\d s ago; n4 and n7 silent$/,
    );
    node.tell({
      level: 'unknown',
      members: [],
      outside: [],
      well: [],
      without_lease_for_ms: 9000,
      lease_left_ms: null,
      verdict: 'From n2 one cannot tell.',
      detail:
        'n2 reaches 1 of 5 keepers and has lost its holds. What follows is what it knew 9 s ago.',
      problems: [
        {
          code: 'no-lease',
          level: 'critical',
          title: 'n2 has no lease',
          since_ms: Date.now() - 9000,
          last_seen_ms: Date.now(),
          is_over: false,
          text: 'Ask another node.',
          link: null,
          commands: [{ label: 'Look from n3', command: 'soloist ui --api https://n3:7402' }],
        },
        {
          code: 'majority-lost',
          level: 'critical',
          title: 'No majority of the keepers answers',
          since_ms: Date.now() - 9000,
          last_seen_ms: node.overview.at_ms,
          is_over: false,
          text: 'n2 reaches 1 of 5 keepers.',
          link: null,
          commands: [],
        },
        ...node.overview.problems,
      ],
    });
    await page.locator('body.minority').waitFor({ state: 'attached' });
    await verdict(page, 'From n2 one cannot tell.');
    assert.match(await textOf(page, '#seen'), /^Seen from n2, which has had no lease for \d/);
    const red = await page.locator('header').evaluate((it) => getComputedStyle(it).backgroundColor);
    assert.equal(red, 'rgb(192, 38, 28)');
    const filter = (/** @type {string} */ selector) =>
      page.locator(selector).evaluate((it) => getComputedStyle(it).filter);
    assert.equal(await filter('[data-code=keeper-down]'), 'grayscale(1)');
    // The node no longer knows the members: the page keeps those that it knew.
    assert.match(await textOf(page, '.members thead'), /^Members: 6, .* ago/);
    assert.equal(await page.locator('[data-lane=n1] .lane:not(.out)').count(), 1);
    assert.equal(await filter('[data-code=no-lease]'), 'none');
    assert.equal(await filter('[data-code=majority-lost]'), 'none', 'the node sees this now');
  },
);

ui('an old overview does not look fresh', {}, async ({ page, nodes: [node] }) => {
  node.tell(healthy(Date.now()));
  await verdict(page, 'All is well.');
  assert.equal(await page.locator('#seen.fault').count(), 0);
  // It still answers pings, so the session stays open.
  node.isQuiet = true;
  await page.locator('body.lost[data-state=open]').waitFor({ state: 'attached' });
  assert.match(
    await textOf(page, '#seen.fault'),
    /^Seen from n2 \d.* s ago\. It has sent nothing newer: what follows is old\.$/,
  );
  assert.match(await page.title(), /^\? Old/);
  const filter = await page.locator('#lock').evaluate((it) => getComputedStyle(it).filter);
  assert.equal(filter, 'grayscale(1)');
  node.isQuiet = false;
  await page.locator('body:not(.lost)').waitFor({ state: 'attached' });
  assert.match(await page.title(), /^✓ Well/);
});

ui(
  'a lost connection says so and comes back',
  {},
  async ({ page, nodes: [node], sockets: [socket] }) => {
    await page.locator('.one .inside', { hasText: 'deploy on n5 is inside' }).waitFor();
    await node.stop();
    await page.locator('body.lost[data-state=lost]').waitFor({ state: 'attached' });
    await page.locator('#seen', { hasText: /^No connection for .* Next attempt in/ }).waitFor();
    assert.match(await page.title(), /^\? No connection/);
    await verdict(page, 'Working. Three things need you.');
    const inside = page.locator('.one p.inside');
    await inside.filter({ hasText: /was inside for 3 min .*, as of \d/ }).waitFor();
    const before = await inside.textContent();
    await page.waitForTimeout(1500);
    assert.equal(await inside.textContent(), before, 'its time stands still');
    assert.match(await page.title(), /^\? No connection/, 'while it connects too');
    node.overview = { ...node.overview, verdict: 'Back again.' };
    await node.listen(socket);
    await seenFrom(page, 'n2');
    await verdict(page, 'Back again.');
    await inside.filter({ hasText: 'deploy on n5 is inside for 3 min' }).waitFor();
    assert.equal(await page.locator('body.lost').count(), 0);
    assert.ok(node.heard.filter((message) => message.follow).length >= 2, 'it follows again');
  },
);

ui('if a node is lost, the page looks from the next', { count: 2 }, async ({ page, nodes }) => {
  await nodes[0].stop();
  await seenFrom(page, 'n2');
});

ui('if a node is silent, the page looks from the next', { count: 2 }, async ({ page, nodes }) => {
  nodes[0].isSilent = true;
  await seenFrom(page, 'n2');
});

ui('a refusal is a sentence on the page', {}, async ({ page, nodes: [node] }) => {
  node.answer = (_, message) => {
    const [kind, { n }] = Object.entries(message)[0];
    if (kind === 'hello') node.push({ welcome: { node: 'n2', ping_every_ms: 1000 } });
    else node.push({ error: { n, code: 'bad-request', detail: 'not for you' } });
  };
  node.cut();
  const sentence = 'The node does not send what this page shows: not for you';
  await page.locator('#notice', { hasText: sentence }).waitFor();
});

const NO_RIGHTS = 'this token may not look at the cluster';

ui(
  'a page that may not follow says so',
  { script: (node) => (node.refuses = { follow: NO_RIGHTS }), before: () => {} },
  async ({ page }) => {
    const sentence = `The node does not send what this page shows: ${NO_RIGHTS}`;
    await page.locator('#notice', { hasText: sentence }).waitFor();
  },
);

ui(
  'a page that may not list locks says so beside the list, and shows the rest',
  { script: (node) => (node.refuses = { list: NO_RIGHTS }) },
  async ({ page }) => {
    await page.locator('.locks [role=status]', { hasText: NO_RIGHTS }).waitFor();
    await verdict(page, 'Working. Three things need you.');
    assert.ok(await page.locator('#notice').isHidden());
  },
);

ui(
  'a list that was cut says how to find the others',
  { script: (node) => (node.rowsMax = 8) },
  async ({ page }) => {
    await page.locator('.locks .head', { hasText: '8 of 10, longest wait first' }).waitFor();
    const note = page.locator('.locks [role=status]');
    await note.filter({ hasText: 'Type the beginning of a name' }).waitFor();
    await page.locator('input[type=search]').fill('mail');
    await note.filter({ hasText: /^$/ }).waitFor({ state: 'attached' });
    const rows = await page.locator('.locks .rows').boundingBox();
    assert.equal(rows?.height, 2 * 28, 'a short list leaves no gap');
    assert.match(await textOf(page, '.locks .head'), /^2, longest wait first/);
  },
);

ui(
  'the incident is plain text',
  { options: { permissions: ['clipboard-read', 'clipboard-write'] } },
  async ({ page }) => {
    await page.locator('[data-lock="billing/close-month"]').click();
    await page.locator('.one .inside', { hasText: 'deploy on n5 is inside' }).waitFor();
    await page.locator('#incident').click();
    await page.locator('#said.on', { hasText: 'Copied' }).waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /seen from n2, epoch 41/);
    assert.match(text, /Keeper n4 is down/);
    assert.match(text, /Lock billing\/close-month: inside is deploy on n5/);
    assert.doesNotMatch(text, /</);
  },
);

ui('a lock: holder, waiters in order, and its last events', {}, async ({ page, nodes: [node] }) => {
  await page.locator('.one .inside', { hasText: 'deploy on n5 is inside for 3 min' }).waitFor();
  assert.match(
    await textOf(page, '.one .queue'),
    /^3 wait, longest wait first: ledger on n6, then deploy on n1, then ledger on n2$/,
  );
  assert.equal(
    await page.locator('.chain .box.inside').count(),
    5,
    'the holder, and four before it',
  );
  // The holder’s own wait of 0.9 s is too short to be seen.
  assert.equal(await page.locator('.chain .box.waiting').count(), 4);
  assert.deepEqual(await page.locator('.boxes span').allTextContents(), [
    'inside',
    'waits',
    'gave up',
    'lost it',
  ]);
  assert.equal(await page.locator('.chain .box.bad').count(), 1, 'one gave up');
  assert.equal(
    await textOf(page, '.one .command code'),
    'soloist watch --all --lock billing/close-month',
  );
  node.locks[0] = { ...node.locks[0], holder: undefined, state: 'free', waiters: [], waiting: 0 };
  node.push({
    event: {
      event: 'released',
      at_unix_ms: Date.now(),
      node: 'n5',
      lock: 'billing/close-month',
      owner: 'deploy',
      after_us: 2e8,
    },
  });
  await page
    .locator('.one tr[data-event=released]', { hasText: 'leaves after 3 min 20 s' })
    .waitFor();
  await page.locator('.one .inside', { hasText: 'Nobody is inside.' }).waitFor();
});

ui('a problem leads to its lock, and the address to it too', {}, async ({ page }) => {
  await page.locator('[data-lock="deploy/api"]').click();
  await page.locator('.one .name', { hasText: 'deploy/api' }).waitFor();
  assert.match(page.url(), /#lock:deploy%2Fapi$/);
  await page.getByText('Show this lock').click();
  await page.locator('.one .name', { hasText: 'billing/close-month' }).waitFor();
  await page.goto(`${page.url().split('#')[0]}#lock:search%2Freindex`);
  await page.reload();
  await page.locator('.one .inside', { hasText: 'indexer on n6' }).waitFor();
});

ui(
  'names are text, whatever they look like',
  {
    script: (node) => {
      const evil = '<img src=x onerror=alert(1)>\u202egnp';
      const [lock] = node.locks;
      node.locks = [
        {
          ...lock,
          name: evil,
          waiters: [{ owner: `${evil}2`, node: 'n1', waited_for_ms: 9 }],
          waiting: 1,
        },
      ];
      const problem = {
        ...node.overview.problems[2],
        title: `${evil} is waited for`,
        text: evil,
        lock: evil,
        link: null,
      };
      problem.commands = [{ label: evil, command: `echo '${evil}'` }];
      node.overview = {
        ...node.overview,
        verdict: evil,
        well: [evil],
        problems: [problem],
        outside: [{ name: evil, is_keeper: true, state: evil, reason: evil, since_ms: 1 }],
        silent: [evil],
      };
      node.changes = [
        {
          id: evil,
          at_ms: Date.now(),
          kind: 'evicted',
          node: evil,
          epoch: 1,
          what: evil,
          why: evil,
          is_bad: true,
        },
      ];
      node.recent = [
        { event: 'waiting', at_unix_ms: Date.now(), node: evil, lock: evil, owner: evil },
      ];
    },
  },
  async ({ page }) => {
    let alerts = 0;
    page.on('dialog', (dialog) => {
      alerts++;
      return dialog.dismiss();
    });
    const evil = '<img src=x onerror=alert(1)>\u202egnp';
    await page.locator('.one .queue', { hasText: 'onerror' }).waitFor();
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(alerts, 0);
    assert.equal(await textOf(page, '.verdict'), evil);
    assert.equal(await textOf(page, '.rows .row bdi.mono'), evil);
    assert.equal(await textOf(page, '.one .command code'), `soloist watch --all --lock '${evil}'`);
    for (const selector of [
      '.rows bdi.mono',
      '.one .queue bdi',
      '.chain .who',
      '.command code',
      '.members bdi',
    ]) {
      const bidi = await page
        .locator(selector)
        .first()
        .evaluate((it) => getComputedStyle(it).unicodeBidi);
      assert.match(
        bidi,
        /isolate|plaintext/,
        `${selector}: marks of direction do not reach the rest`,
      );
    }
  },
);

const withoutWebSocket = () => {
  // @ts-expect-error: an old browser
  delete globalThis.WebSocket;
};

ui(
  'a browser without WebSocket gets a sentence',
  { before: withoutWebSocket },
  async ({ page }) => {
    await page.locator('#notice', { hasText: 'This browser has no WebSocket' }).waitFor();
  },
);

/**
 * The status of the answer to a WebSocket's handshake.
 * @param {URL} page
 * @param {Record<string, string>} headers
 * @returns {Promise<number | undefined>}
 */
function handshake(page, headers) {
  const { port } = page;
  const path = new URL('../v1/session', page).pathname;
  const fixed = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  };
  return new Promise((done, fail) => {
    const sent = request({ port, path, headers: { ...fixed, ...headers } });
    sent.on('response', (response) => done(response.resume().statusCode));
    sent.on('upgrade', (response, socket) => {
      socket.destroy();
      done(response.statusCode);
    });
    sent.on('error', fail).end();
  });
}

ui('other origins and hosts cannot use the session', {}, async ({ page }) => {
  const address = new URL(page.url());
  const { host, port, origin } = address;
  const [{ name, value }] = await page.context().cookies();
  const cookie = `${name}=${value}`;
  assert.equal(await handshake(address, { host, origin, cookie }), 101);
  for (const wrong of [
    { host, origin, cookie: '' },
    { host, origin, cookie: `${name}=0` },
    { host, origin: 'https://evil.example', cookie },
    { host, origin: 'null', cookie },
    { host: `evil.example:${port}`, origin, cookie },
    { host: `evil.example:${port}`, origin: `http://evil.example:${port}`, cookie },
  ]) {
    assert.equal(await handshake(address, wrong), 403, JSON.stringify(wrong));
  }
});

ui('another port of the same host does not get the secret', {}, async ({ page }) => {
  /** @type {string[]} */
  const sent = [];
  const other = createServer(({ url, headers }, response) => {
    sent.push(`${url} ${headers.cookie ?? ''}`);
    response.setHeader('content-type', 'text/html').end('<title>Another user</title>');
  });
  await new Promise((done) => other.listen(0, '127.0.0.1', () => done(undefined)));
  const { port } = /** @type {AddressInfo} */ (other.address());
  try {
    for (const path of ['', 'ui/', 'v1/session']) {
      await page.goto(`http://127.0.0.1:${port}/${path}`);
    }
    // A page of the other port is on the same site.
    await page.evaluate(() => fetch('/ui/', { credentials: 'include' }));
  } finally {
    other.close();
  }
  assert.ok(sent.length >= 4, sent.join('\n'));
  assert.deepEqual(
    sent.filter((it) => it.includes('=')),
    [],
  );
});

ui('a session of the page takes no lock', {}, async ({ page, nodes: [node] }) => {
  const refused = await page.evaluate(
    () =>
      new Promise((done) => {
        const address = new URL('../v1/session', location.href.replace(/^http/, 'ws'));
        const socket = new WebSocket(address);
        socket.onopen = () => socket.send(JSON.stringify({ hello: {} }));
        socket.onmessage = ({ data }) => {
          const { welcome, error } = JSON.parse(data);
          if (welcome) socket.send(JSON.stringify({ acquire: { n: 1, lock: 'a' } }));
          if (error) done(error);
        };
      }),
  );
  assert.equal(refused.n, 1);
  assert.match(refused.detail, /the page may not send "acquire"/);
  assert.ok(!node.heard.some((message) => 'acquire' in message));
});
