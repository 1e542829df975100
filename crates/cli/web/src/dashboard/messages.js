/**
 * What a node sends, as the page uses it: docs/sessions.md, and the rustdoc of
 * `soloist_api::dashboard`. Times are milliseconds since 1970 by the node's clock.
 */

/**
 * @typedef {Object} Command
 * @property {string} label
 * @property {string} command
 */

/**
 * @typedef {Object} Problem
 * @property {string} code
 * @property {'critical' | 'warning'} level
 * @property {string} title
 * @property {number} since_ms
 * @property {number} last_seen_ms before the overview's at_ms, if it could not be examined since
 * @property {boolean} is_over
 * @property {string} text
 * @property {string | null} link an anchor in operations.md
 * @property {string | null} [lock]
 * @property {string | null} [node]
 * @property {string | null} [from] of a link
 * @property {Command[]} commands
 */

/**
 * @typedef {Object} Keeper
 * @property {string} name
 * @property {'leads' | 'follows' | 'down' | 'unknown'} state
 * @property {number | null} [since_ms]
 */

/**
 * @typedef {Object} Member
 * @property {string} name
 * @property {boolean} is_keeper
 * @property {number | null} lease_left_ms
 * @property {number | null} holds
 * @property {number | null} waiters
 * @property {number | null} [answered_in_ms]
 * @property {string | null} [version]
 */

/**
 * @typedef {Object} Outside
 * @property {string} name
 * @property {boolean} is_keeper
 * @property {string} state
 * @property {string | null} [reason]
 * @property {number | null} [since_ms]
 */

/**
 * @typedef {Object} BrokenLink
 * @property {string} from
 * @property {string} to
 * @property {number | null} [since_ms]
 */

/**
 * @typedef {Object} Overview
 * @property {string} from
 * @property {string} version
 * @property {number} at_ms
 * @property {number} epoch
 * @property {number} lease_ms
 * @property {number | null} [lease_left_ms]
 * @property {number | null} [without_lease_for_ms] null while the node has a lease
 * @property {string | null} [leader]
 * @property {'ok' | 'warning' | 'critical' | 'unknown'} level
 * @property {string} verdict
 * @property {string} detail
 * @property {Problem[]} problems
 * @property {string[]} well
 * @property {Keeper[]} keepers
 * @property {Member[]} members
 * @property {Outside[]} outside
 * @property {BrokenLink[]} links_down
 * @property {string[]} silent
 */

/**
 * One second of the whole cluster.
 * @typedef {Object} Point
 * @property {number} entries
 * @property {number | null} wait_p50_ms
 * @property {number | null} wait_p99_ms
 * @property {number | null} hand_over_p50_ms
 * @property {number | null} hand_over_p99_ms
 * @property {number} lost
 */

/**
 * @typedef {Object} History
 * @property {number} from_s
 * @property {(Point | null)[]} points one per second; null where nothing is known
 */

/**
 * @typedef {Object} Change
 * @property {string} id
 * @property {number} at_ms
 * @property {string} kind joined, left, evicted, elected, epoch, lost, link-down or link-up
 * @property {string | null} [node]
 * @property {number | null} [epoch]
 * @property {string} what
 * @property {string} why
 * @property {boolean} is_bad
 */

/**
 * @typedef {Object} Holder
 * @property {string} owner
 * @property {string} node
 * @property {string} fence
 * @property {number} held_for_ms
 * @property {number} since_unix_ms
 */

/**
 * @typedef {Object} Waiter
 * @property {string} owner
 * @property {string} node
 * @property {number} waited_for_ms
 */

/**
 * @typedef {Object} Lock
 * @property {string} name
 * @property {'free' | 'held' | 'changing' | 'unknown'} state
 * @property {string} algorithm
 * @property {Holder} [holder]
 * @property {Waiter[]} waiters longest wait first; may be truncated
 * @property {number} waiting
 * @property {string[]} silent
 * @property {string} [reason]
 */

/**
 * @typedef {Object} LockEvent
 * @property {string} event waiting, gave-up, acquired, released, lost or missed
 * @property {number} at_unix_ms
 * @property {string} node
 * @property {string} lock
 * @property {string} owner
 * @property {string} [fence]
 * @property {number} [after_us]
 * @property {string} [reason]
 * @property {number} [missed]
 */

/**
 * The rows of the list of locks that the node sends.
 * @typedef {Object} ListQuery
 * @property {string} prefix
 * @property {number} first
 * @property {number} rows 0 for none
 */

/**
 * @typedef {Object} Listed
 * @property {string} prefix
 * @property {number} first
 * @property {Lock[]} locks
 * @property {number} rows of the whole list
 * @property {number} total
 * @property {boolean} [is_cut] whether locks were left out; older nodes do not say it
 * @property {string[]} silent
 * @property {string} [reason]
 */

/** The node sends an overview each second. Without one for so long, what is shown is old. */
export const OLD_MS = 5000;
/** How far back the page looks. */
export const REACH_MS = 15 * 60 * 1000;
