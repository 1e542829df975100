/** The scenario text is the only state: a step by hand adds a line, and undo drops one. */

/** @import { Run, Step } from './model.js' */
import { content } from './model.js';

/**
 * The text up to a position, without what comes after it.
 * @param {Run} run
 * @param {number} at
 */
export function cut(run, at) {
  const lines = run.text.split('\n');
  if (at >= run.steps.length) return `${run.text.trimEnd()}\n`;
  const last = at > 0 ? run.steps[at - 1].line : null;
  const next = run.steps[at].line;
  if (last === null) return `${lines.slice(0, headEnd(lines)).join('\n').trimEnd()}\n\n`;
  if (last !== next) return `${lines.slice(0, transcriptEnd(lines, last)).join('\n').trimEnd()}\n`;
  // One line did several steps, as `run` does: the steps up to here become lines of their own.
  const steps = run.steps.slice(0, at);
  const of = steps.filter((step) => step.line === last);
  const own = of.map((step) => lineOf(run, step));
  return `${[...lines.slice(0, last - 1), ...own].join('\n')}\n`;
}

/**
 * The text with one more step.
 * @param {string} text
 * @param {string} step
 */
export function append(text, step) {
  return `${text.trimEnd()}\n${text.includes('\n> ') ? '' : '\n'}> ${step}\n`;
}

/**
 * The run with steps that were added or dropped at its end; what did not change stays the same
 * object, so that it is not drawn again.
 * @param {Run} old
 * @param {Run} fresh whose steps begin at `from`
 * @param {number} from
 * @returns {Run}
 */
export function merge(old, fresh, from) {
  const { plan, names, rows, fields, start, flight } = old;
  const steps = [...old.steps.slice(0, from), ...fresh.steps];
  return { ...fresh, plan, names, rows, fields, start, flight, steps, from: 0 };
}

/** @param {string[]} lines */
function headEnd(lines) {
  const first = lines.findIndex((line) => line.startsWith('> '));
  return first < 0 ? lines.length : first;
}

/**
 * The index after the step's line and the transcript under it.
 * @param {string[]} lines
 * @param {number} line from 1
 */
function transcriptEnd(lines, line) {
  let end = line;
  while (end < lines.length && lines[end] !== '' && !/^[>#]/.test(lines[end])) end++;
  return end;
}

/**
 * The line that does this step alone.
 * @param {Run} run
 * @param {Step} step
 */
function lineOf(run, step) {
  const name = run.names[step.node];
  if (step.got === null) return `> ${step.action} ${name}`;
  const sent = [...run.flight, ...run.steps.flatMap(({ sends }) => sends)];
  const message = sent.find((it) => it.id === step.got);
  if (!message) throw new Error(`the run has no message ${step.got}`);
  return `> ${step.action} ${run.names[message.from]} ${name} ${content(message)}`;
}
