/** The address holds the run and the step, so that a link shows this moment of this run. */

/**
 * @typedef {{ kind: 'none' }
 *   | { kind: 'gallery', name: string, at: number }
 *   | { kind: 'text', packed: string, at: number }
 *   | { kind: 'step', at: number }
 *   | { kind: 'compare', query: string, at: number }} Address
 */

/** A longer scenario is refused before it fills the memory. */
const TEXT_MAX = 16 * 1024 * 1024;

/**
 * @param {string} hash what follows the `#`, with or without it
 * @returns {Exclude<Address, { kind: 'step' }>} a step alone is the address of an export
 */
export function parseAddress(hash) {
  const text = hash.replace(/^#/, '');
  if (text === '') return { kind: 'none' };
  const slash = text.lastIndexOf('/');
  const what = slash < 0 ? text : text.slice(0, slash);
  const at = slash < 0 ? 0 : Math.max(0, Number.parseInt(text.slice(slash + 1), 10) || 0);
  if (what.startsWith('z:')) return { kind: 'text', packed: what.slice(2), at };
  if (what.startsWith('compare:')) return { kind: 'compare', query: what.slice(8), at };
  return { kind: 'gallery', name: decoded(what), at };
}

/** @param {string} name */
function decoded(name) {
  try {
    return decodeURIComponent(name);
  } catch {
    throw new Error(
      `The link is damaged: "${name}" is not the name of a run. Copy the whole link again.`,
    );
  }
}

/**
 * @param {Address} address
 * @returns {string}
 */
export function formatAddress(address) {
  switch (address.kind) {
    case 'none':
      return '#';
    case 'gallery':
      return `#${encodeURIComponent(address.name)}/${address.at}`;
    case 'text':
      return `#z:${address.packed}/${address.at}`;
    case 'step':
      return `#${address.at}`;
    default:
      return `#compare:${address.query}/${address.at}`;
  }
}

/**
 * Compresses a scenario for the address.
 * @param {string} text
 */
export async function pack(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * The scenario of an address.
 * @param {string} packed
 * @returns {Promise<string>}
 */
export async function unpack(packed) {
  try {
    const binary = atob(packed.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    const decoder = new TextDecoder('utf-8', { fatal: true });
    const reader = stream.getReader();
    let text = '';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return text + decoder.decode();
      text += decoder.decode(value, { stream: true });
      if (text.length > TEXT_MAX) throw new Error('too long');
    }
  } catch {
    throw new Error('The link is damaged: its scenario cannot be read. Copy the whole link again.');
  }
}
