/** What a step did, as a sentence, for steps that no comment of the scenario describes. */

/** @import { Model, Send, Step } from './model.js' */
import { listed, many } from './words.js';

/** More receivers than this are counted, not named. */
const NAMED_MAX = 4;
/** Roles of the values that are worth a sentence, the most telling first. */
const TOLD = ['queue', 'pointer', null];

/**
 * @param {Model} model
 * @param {number} i
 */
export function story(model, i) {
  const step = model.run.steps[i];
  const message = step.got === null ? undefined : model.messages.get(step.got);
  if (message?.lost) return `${model.describe(i)}.`;
  const { names } = model;
  const opening = message
    ? `${names[step.node]} gets ${message.label} from ${names[message.from]}`
    : model.describe(i);
  const acts = [...(step.enter ? ['enters'] : []), ...sending(model, step.sends)];
  if (acts.length > 0) {
    const [first, ...rest] = acts;
    return rest.length === 0 ? `${opening} and ${first}.` : `${opening}, ${listed(acts)}.`;
  }
  const noted = change(model, step);
  if (message) return noted ? `${opening}. ${noted}.` : `${opening}, and nothing changes.`;
  const isAction = step.action === 'request' || step.action === 'release';
  const silent = isAction ? `${opening} and sends nothing` : opening;
  return noted && isAction ? `${silent}. ${noted}.` : `${silent}.`;
}

/**
 * What was sent to whom. Messages to the same nodes are said together.
 * @param {Model} model
 * @param {Send[]} sends
 */
function sending({ names }, sends) {
  /** @type {Map<string, number[]>} */
  const receivers = new Map();
  for (const { label, to } of sends) receivers.set(label, [...(receivers.get(label) ?? []), to]);
  /** @type {Map<string, string[]>} */
  const labels = new Map();
  for (const [label, to] of receivers) {
    const others = names.length - 1;
    const named = listed(to.map((node) => names[node]));
    const few = to.length <= NAMED_MAX ? named : many(to.length, 'node', 'nodes');
    const whom = to.length === others && others > 1 ? 'all others' : few;
    labels.set(whom, [...(labels.get(whom) ?? []), label]);
  }
  const all = [...labels].map(([whom, what]) => `${listed(what)} to ${whom}`);
  return all.length > 0 ? [`sends ${listed(all)}`] : [];
}

/**
 * The change that tells most, if something changed that the picture does not show by itself.
 * @param {Model} model
 * @param {Step} step
 */
function change(model, { changes }) {
  const { fields } = model.run;
  for (const role of TOLD) {
    const told = fields.find(
      (field) => field.role === role && changes.some((it) => it.field === field.name),
    );
    const found = changes.find((it) => it.field === told?.name);
    if (told && found) return `${told.name} is now ${model.text(told, found.after, found.node)}`;
  }
  return '';
}
