/** Another way from here: by hand, or found by a search. The text is the only state. */

/** @import { Address } from './address.js' */
/** @import { Choice, Run } from './model.js' */
/** @import { Player } from './player.js' */
/** @import { Outcome, Progress, Quota } from './server.js' */
import { pack } from './address.js';
import { Model } from './model.js';
import { append, cut, merge } from './scenario.js';
import { many, sentence } from './words.js';

/** Where a search gives up. */
const SEARCH = { states: 2_000_000, seconds: 20 };

/** @typedef {{ run: Run, at: number, address: Address }} Recording */

export class Branch {
  /** @type {AbortController | undefined} */
  searching;
  /** The run that was left for another way. @type {Recording | undefined} */
  recording;

  /** @param {Player} player */
  constructor(player) {
    this.player = player;
  }

  /** The run and the server, if there are both. */
  #here() {
    const { model, server, pair } = this.player;
    return model && server && !pair ? { model, server } : undefined;
  }

  /**
   * Runs a text whose first `from` steps are those of this run.
   * @param {string} text
   * @param {number} from
   */
  async #extend(text, from) {
    const here = this.#here();
    if (!here) return;
    const { player } = this;
    const fresh = await here.server.run(text, from);
    const model = new Model(merge(here.model.run, fresh, from));
    model.go(Math.min(player.at, model.length));
    player.replace(model, { kind: 'text', packed: await pack(text), at: model.at });
  }

  /**
   * Does something that asks the server, and says if it fails.
   * @param {() => Promise<void>} act
   */
  async #attempt(act) {
    try {
      await this.player.busy(act());
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.#say('fault', text);
    }
  }

  /**
   * @param {'plain' | 'fault'} tone
   * @param {string} text
   */
  #say(tone, text) {
    const { model } = this.player;
    this.player.status = { tone, text: model?.said(text) ?? text };
    this.player.show();
  }

  /** Keeps the run, here and in the browser's history, before another one takes its place. */
  #keep() {
    const { player } = this;
    const { model, address } = player;
    if (!model) return;
    this.recording ??= { run: model.run, at: player.at, address };
    player.leaveMark();
  }

  /** Shows the run again that was left. */
  back() {
    const { player, recording } = this;
    if (!recording) return;
    player.leaveMark();
    player.open(recording.run, recording.at, recording.address);
  }

  /** From here on one chooses what happens: the recorded rest is kept for the way back. */
  async takeOver() {
    const { player } = this;
    const here = this.#here();
    if (!here) return;
    player.pause();
    const ends = player.handed && player.at === player.length;
    await this.#attempt(async () => {
      if (player.at < player.length) {
        const rest = cut(here.model.run, player.at);
        this.#keep();
        await this.#extend(rest, player.at);
      }
      player.handed = !ends;
      player.show();
    });
  }

  /** @param {Choice} choice */
  async take(choice) {
    const here = this.#here();
    if (!here) return;
    const { run, length } = here.model;
    await this.#attempt(async () => {
      await this.#extend(append(run.text, choice.text), length);
      this.player.go(Infinity);
    });
  }

  async undo() {
    const { player } = this;
    const here = this.#here();
    if (!here || here.model.length === 0) return;
    const { run, length } = here.model;
    await this.#attempt(async () => {
      player.go(length - 1);
      await this.#extend(cut(run, length - 1), length - 1);
      player.handed = true;
      player.show();
    });
  }

  /** Saves the run up to here as a scenario, with what the nodes did. */
  async save() {
    const here = this.#here();
    if (!here) return;
    const { run, at } = here.model;
    await this.#attempt(async () => {
      const { text } = await here.server.transcript(cut(run, at));
      const link = document.createElement('a');
      link.href = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
      link.download = `${run.algorithm}.txt`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  }

  /**
   * Finds the shortest way to a fault from here.
   * @param {Quota} quota requests of each node, and crashes, from here on
   */
  async search(quota) {
    const here = this.#here();
    if (!here || this.searching) return;
    const { run, at } = here.model;
    this.player.pause();
    const stop = new AbortController();
    this.searching = stop;
    this.#say('plain', 'Searching…');
    let searched = '';
    const progress = (/** @type {Progress} */ { states, depth }) => {
      searched = many(depth, 'step', 'steps');
      this.#say('plain', `Searching: ${states} states, ${searched} deep.`);
    };
    await this.#attempt(async () => {
      try {
        const query = { text: cut(run, at), ...quota, ...SEARCH };
        const outcome = await here.server.search(query, progress, stop.signal);
        this.searching = undefined;
        await this.#conclude(outcome, at);
      } catch (error) {
        if (!stop.signal.aborted) throw error;
        this.searching = undefined;
        this.#say('plain', searched ? `Cancelled: nothing within ${searched}.` : 'Cancelled.');
      } finally {
        this.searching = undefined;
      }
    });
  }

  cancel() {
    this.searching?.abort();
  }

  /** Another run is shown: there is no way back to the one before. */
  forget() {
    this.cancel();
    this.recording = undefined;
  }

  /**
   * @param {Outcome} outcome
   * @param {number} from
   */
  async #conclude(outcome, from) {
    if ('error' in outcome) throw new Error(outcome.error);
    if ('nothing' in outcome) {
      const { depth, states, complete } = outcome.nothing;
      const searched = many(states, 'state', 'states');
      const text = complete
        ? `No trouble from step ${from}: all ${searched} searched.`
        : `Nothing within ${many(depth, 'step', 'steps')} from step ${from}: ${searched} searched, and there are more.`;
      this.#say('plain', text);
      return;
    }
    const { text, steps, fault } = outcome.found;
    if (from < this.player.length) this.#keep();
    await this.#extend(text, from);
    this.player.handed = false;
    this.#say(
      'fault',
      `${sentence(fault.kind.replaceAll('-', ' '))}, ${many(steps, 'step', 'steps')} from step ${from}: press → there to see how.`,
    );
  }
}
