/** The local server: a pure function of the scenario's text. */

/** @import { Run } from './model.js' */
/** @import { Thumbnail } from './thumbnail.js' */
/** @typedef {{ name: string, group: string, title: string, sentence: string, picture: Thumbnail }} Entry */
/** @typedef {{ states: number, depth: number }} Progress */
/** @typedef {{ requests: number, crashes: number }} Quota what may happen from here on */
/**
 * @typedef {{ found: { text: string, steps: number, fault: { kind: string, text: string } } }
 *   | { nothing: { depth: number, states: number, complete: boolean } }
 *   | { error: string }} Outcome
 */

/** Why the server refused; the message says so in a sentence. */
export class Refusal extends Error {}

export class Server {
  /**
   * @param {string} text
   * @param {number} from
   * @returns {Promise<Run>}
   */
  run(text, from) {
    return post('run', { text, from });
  }

  /**
   * The scenario with what the nodes do at each step.
   * @param {string} text
   * @returns {Promise<{ text: string }>}
   */
  transcript(text) {
    return post('transcript', { text });
  }

  /**
   * @param {Object} query
   * @returns {Promise<{ runs: [Run, Run] }>}
   */
  compare(query) {
    return post('compare', query);
  }

  /** @returns {Promise<Entry[]>} */
  gallery() {
    return get('gallery');
  }

  /**
   * @param {string} name
   * @returns {Promise<{ text: string }>}
   */
  scenario(name) {
    return get(`gallery/${encodeURIComponent(name)}`);
  }

  /**
   * What the command line asked for.
   * @returns {Promise<{ text: string | null, at: number, algorithms: string[] }>}
   */
  start() {
    return get('start');
  }

  /**
   * @param {Quota & { text: string, states: number, seconds: number }} query
   * @param {(progress: Progress) => void} progress
   * @param {AbortSignal} signal
   * @returns {Promise<Outcome>}
   */
  async search(query, progress, signal) {
    const response = await send('search', query, signal);
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    let rest = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Refusal('The search ended without a result: is the server still there?');
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const message = JSON.parse(line);
        if (!message.progress) return message;
        progress(message.progress);
      }
    }
  }
}

/** @param {string} path */
async function get(path) {
  return (await answer(fetch(path))).json();
}

/**
 * @param {string} path
 * @param {Object} body
 */
async function post(path, body) {
  return (await send(path, body)).json();
}

/**
 * @param {string} path
 * @param {Object} body
 * @param {AbortSignal} [signal]
 */
function send(path, body, signal) {
  const headers = { 'content-type': 'application/json' };
  return answer(fetch(path, { method: 'POST', headers, body: JSON.stringify(body), signal }));
}

/**
 * @param {Promise<Response>} request
 * @returns {Promise<Response>}
 */
async function answer(request) {
  const response = await request.catch((error) => {
    if (error.name === 'AbortError') throw error;
    throw new Refusal('The server does not answer: is `soloist lab play` still running?');
  });
  if (response.ok) return response;
  const refused = await response.json().catch(() => ({}));
  throw new Refusal(refused.error ?? `The server answered with status ${response.status}.`);
}
