/** A cluster of eight nodes with three problems, and its last 15 minutes: what a node would push. */

/** @import { Change, Lock, LockEvent, Overview, Point } from '../../src/dashboard/messages.js' */

/**
 * @param {number} now
 * @returns {Overview}
 */
export function overview(now) {
  const member = (
    /** @type {string} */ name,
    /** @type {number} */ left,
    /** @type {number} */ holds,
    /** @type {number} */ waiters,
    /** @type {boolean} */ isKeeper,
  ) => ({
    name,
    is_keeper: isKeeper,
    lease_left_ms: left,
    holds,
    waiters,
    answered_in_ms: 0.4,
    version: '0.1.0',
  });
  return {
    from: 'n2',
    version: '0.1.0',
    at_ms: now,
    epoch: 41,
    lease_ms: 3000,
    lease_left_ms: 2655,
    without_lease_for_ms: null,
    leader: 'n3',
    level: 'critical',
    verdict: 'Working. Three things need you.',
    detail: 'Locks are granted. 2 of 8 nodes are out; 4 of 5 keepers agree.',
    problems: [
      {
        code: 'keeper-down',
        level: 'critical',
        title: 'Keeper n4 is down',
        since_ms: now - 242_000,
        last_seen_ms: now,
        is_over: false,
        text: 'Four of five keepers are left. One more may fail; with two more gone nobody joins, leases run out and all holds are lost.',
        link: 'the-log',
        lock: null,
        node: 'n4',
        commands: [
          { label: 'See why', command: 'ssh n4 systemctl status soloist' },
          {
            label: 'If it is gone for good',
            command: 'soloist cluster promote n6 && soloist cluster demote n4',
          },
        ],
      },
      {
        code: 'node-outside',
        level: 'critical',
        title: 'n7 was evicted',
        since_ms: now - 40_000,
        last_seen_ms: now,
        is_over: false,
        text: 'n6 and n7 do not reach each other, though both reach the keepers. n7 lost 2 holds. It joins again by itself once the link works.',
        link: 'the-log',
        lock: null,
        node: 'n7',
        commands: [{ label: 'Try the link', command: 'ssh n7 nc -vz 10.0.0.6 7401' }],
      },
      {
        code: 'long-wait',
        level: 'warning',
        title: 'billing/close-month is waited for',
        since_ms: now - 184_000,
        last_seen_ms: now,
        is_over: false,
        text: 'deploy on n5 has been inside for 3 min 12 s; in the last 15 minutes nobody else stayed longer than 2.1 s. Three wait.',
        link: null,
        lock: 'billing/close-month',
        node: 'n5',
        commands: [
          { label: 'See the process', command: 'ssh n5 ps -o lstart,stat,wchan,args -p 4127' },
        ],
      },
    ],
    well: [
      'clocks (0.02 % apart)',
      'certificates (the first ends in 9 years)',
      'stores of 4 keepers',
      'configurations and versions of 6 members',
    ],
    keepers: [
      { name: 'n1', state: 'follows', since_ms: null },
      { name: 'n2', state: 'follows', since_ms: null },
      { name: 'n3', state: 'leads', since_ms: now - 241_000 },
      { name: 'n4', state: 'down', since_ms: now - 242_000 },
      { name: 'n5', state: 'follows', since_ms: null },
    ],
    members: [
      member('n1', 2412, 6, 1, true),
      member('n2', 2655, 9, 1, true),
      member('n3', 1800, 4, 0, true),
      member('n5', 2208, 8, 0, true),
      member('n6', 880, 5, 2, false),
      member('n8', 2591, 5, 0, false),
    ],
    outside: [
      { name: 'n4', is_keeper: true, state: 'down', reason: 'no contact', since_ms: now - 242_000 },
      {
        name: 'n7',
        is_keeper: false,
        state: 'evicted',
        reason: 'no link to n6',
        since_ms: now - 40_000,
      },
    ],
    links_down: [{ from: 'n6', to: 'n7', since_ms: now - 52_000 }],
    silent: ['n4', 'n7'],
  };
}

/**
 * @param {number} now
 * @returns {Overview}
 */
export function healthy(now) {
  const all = overview(now);
  const { members, keepers } = all;
  return {
    ...all,
    level: 'ok',
    verdict: 'All is well.',
    detail: 'Locks are granted. All 8 nodes are members; 5 of 5 keepers agree.',
    problems: [],
    keepers: keepers.map((it) => (it.name === 'n4' ? { ...it, state: 'follows' } : it)),
    members: ['n1', 'n2', 'n3', 'n4', 'n5', 'n6', 'n7', 'n8'].map((name, i) => ({
      ...members[0],
      name,
      is_keeper: i < 5,
      lease_left_ms: 2500,
    })),
    outside: [],
    links_down: [],
    silent: [],
  };
}

/**
 * @param {number} now
 * @returns {Change[]}
 */
export function changes(now) {
  const change = (
    /** @type {number} */ ago,
    /** @type {string} */ kind,
    /** @type {string | null} */ node,
    /** @type {number | null} */ epoch,
    /** @type {string} */ what,
    /** @type {string} */ why,
    isBad = false,
  ) => ({
    id: `${kind}:${ago}`,
    at_ms: now - ago * 1000,
    kind,
    node,
    epoch,
    what,
    why,
    is_bad: isBad,
  });
  return [
    change(2000, 'elected', 'n4', null, 'n4 leads', 'Elected by n1, n2 and n4.'),
    change(1999, 'epoch', null, 38, 'Epoch 38', 'Locks stood still for 20 ms.'),
    change(751, 'joined', 'n8', 39, 'n8 joined', 'Epoch 39; locks stood still for 22 ms.'),
    change(
      241,
      'elected',
      'n3',
      null,
      'n3 leads',
      'Elected by n1, n2, n3 and n5 in 0.8 s, after n4.',
    ),
    change(
      238,
      'evicted',
      'n4',
      40,
      'n4 evicted',
      'Its lease ran out. Epoch 40; locks stood still for 41 ms. 1 hold lost: deploy/web.',
      true,
    ),
    {
      ...change(52, 'link-down', 'n7', null, 'Link n6 to n7 broke', 'No frame either way.', true),
      id: 'n6:14',
    },
    change(
      40,
      'evicted',
      'n7',
      41,
      'n7 evicted',
      'n6 and n7 do not reach each other. Epoch 41; locks stood still for 38 ms. 2 holds lost: cache/rebuild-eu, reports/nightly.',
      true,
    ),
  ];
}

/**
 * 900 seconds, with what the two evictions did to them.
 * @param {number} now
 */
export function history(now) {
  let seed = 7;
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  const near = (/** @type {number} */ t, /** @type {number} */ at, /** @type {number} */ width) =>
    Math.max(0, 1 - Math.abs(t - at) / width);
  /** @type {Point[]} */
  const points = Array.from({ length: 900 }, (_, i) => {
    const t = 899 - i;
    const busy = (430 + 40 * Math.sin(t / 70) + 30 * (random() - 0.5)) * (t < 236 ? 0.94 : 1);
    return {
      entries: Math.round(busy * (1 - 0.92 * near(t, 240, 9)) * (1 - 0.85 * near(t, 40, 8))),
      wait_p50_ms: 3,
      wait_p99_ms: 150 + 50 * random() + 3050 * near(t, 236, 12) + 1900 * near(t, 38, 10),
      hand_over_p50_ms: 1.9,
      hand_over_p99_ms: 7 + 2 * random() + 26 * near(t, 237, 9) + 22 * near(t, 39, 8),
      lost: t === 238 ? 1 : t === 40 ? 2 : 0,
    };
  });
  return { from_s: Math.floor(now / 1000) - 900, points };
}

/** @returns {Lock[]} */
export function locks() {
  const free = { state: /** @type {const} */ ('held'), algorithm: 'raymond', silent: [] };
  const lock = (
    /** @type {string} */ name,
    /** @type {string} */ owner,
    /** @type {string} */ node,
    /** @type {number} */ seconds,
    /** @type {[string, string, number][]} */ waiters = [],
  ) => ({
    ...free,
    name,
    holder: {
      owner,
      node,
      fence: '43980465111158',
      held_for_ms: seconds * 1000,
      since_unix_ms: 0,
    },
    waiters: waiters.map(([who, where, since]) => ({
      owner: who,
      node: where,
      waited_for_ms: since * 1000,
    })),
    waiting: waiters.length,
  });
  return [
    lock('billing/close-month', 'deploy', 'n5', 192, [
      ['ledger', 'n6', 184],
      ['deploy', 'n1', 80],
      ['ledger', 'n2', 12],
    ]),
    lock('search/reindex', 'indexer', 'n6', 4.2, [['indexer', 'n6', 1.9]]),
    lock('mail/outbox', 'worker', 'n1', 0.31),
    lock('cache/rebuild-eu', 'worker', 'n8', 22),
    lock('reports/nightly', 'worker', 'n3', 33),
    lock('billing/invoice-7731', 'worker', 'n2', 0.12),
    lock('billing/invoice-7732', 'worker', 'n5', 0.08),
    lock('cron/rotate-logs', 'worker', 'n8', 6.4),
    lock('deploy/api', 'worker', 'n2', 71),
    lock('mail/bounce', 'worker', 'n1', 0.05),
  ];
}

/**
 * The last events of billing/close-month, oldest first.
 * @param {number} now
 * @returns {LockEvent[]}
 */
export function recent(now) {
  const event = (
    /** @type {number} */ ago,
    /** @type {string} */ kind,
    /** @type {string} */ owner,
    /** @type {string} */ node,
    /** @type {number | undefined} */ after = undefined,
  ) => ({
    event: kind,
    at_unix_ms: now - ago * 1000,
    node,
    lock: 'billing/close-month',
    owner,
    after_us: after === undefined ? undefined : after * 1e6,
    fence: kind === 'acquired' ? '43980465111158' : undefined,
  });
  return [
    event(230.6, 'released', 'ledger', 'n6', 1.4),
    event(226, 'released', 'ledger', 'n2', 2),
    event(215.2, 'released', 'deploy', 'n1', 0.8),
    event(201.4, 'released', 'ledger', 'n6', 1.6),
    event(192, 'acquired', 'deploy', 'n5', 0.9),
    event(184, 'waiting', 'ledger', 'n6'),
    event(80, 'waiting', 'deploy', 'n1'),
    event(30, 'gave-up', 'report', 'n8', 25),
    event(12, 'waiting', 'ledger', 'n2'),
  ];
}
