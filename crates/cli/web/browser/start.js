/** Starts the program. SOLOIST_BINARY is its path. */

import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const root = resolve(import.meta.dirname, '../../../..');
export const binary = process.env.SOLOIST_BINARY ?? join(root, 'target/debug/soloist');

/**
 * Starts the program and returns the first line that it prints, or the part of a line that the
 * pattern's group takes.
 * @param {string[]} args
 * @param {string} [input]
 * @param {RegExp} [pattern]
 * @param {Record<string, string>} [env] variables beside those of this process
 */
export async function start(args, input, pattern = /(.*)/, env = {}) {
  const child = spawn(binary, args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  child.stdin.end(input);
  for await (const text of createInterface({ input: child.stdout })) {
    const found = pattern.exec(text);
    if (!found) continue;
    child.stdout.resume();
    return { child, line: found[1] };
  }
  throw new Error(`soloist ${args.join(' ')} printed nothing`);
}

/**
 * Runs the program to its end and returns what it printed.
 * @param {string[]} args
 * @param {string} [input]
 * @returns {Promise<{ code: number | null, output: string }>}
 */
export async function soloist(args, input) {
  const child = spawn(binary, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(input);
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  const code = await new Promise((done) => child.on('close', done));
  return { code, output };
}
