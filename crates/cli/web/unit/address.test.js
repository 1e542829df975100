import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAddress, pack, parseAddress, unpack } from '../src/address.js';

/** @type {import('../src/address.js').Address[]} */
const ADDRESSES = [
  { kind: 'none' },
  { kind: 'gallery', name: 'raymond-figure-7', at: 33 },
  { kind: 'gallery', name: 'a/b #?', at: 0 },
  { kind: 'text', packed: 'eJ-_', at: 12 },
  { kind: 'compare', query: 'raymond,maekawa,9,heavy', at: 5 },
];

test('an address is read as it was written', () => {
  for (const address of ADDRESSES) {
    assert.deepEqual(parseAddress(formatAddress(address)), address);
  }
});

test('a step that is no number is the start', () => {
  assert.deepEqual(parseAddress('#x/y'), { kind: 'gallery', name: 'x', at: 0 });
  assert.deepEqual(parseAddress('#x/-4'), { kind: 'gallery', name: 'x', at: 0 });
});

test('a scenario survives the address', async () => {
  const text = `algorithm central\nnames <b> \u202e\n\n${'> request 1\n'.repeat(5000)}`;
  const packed = await pack(text);
  assert.ok(packed.length < text.length / 50, 'it is compressed');
  assert.match(packed, /^[A-Za-z0-9_-]+$/);
  assert.equal(await unpack(packed), text);
});

test('a damaged link is refused with a sentence', async () => {
  const packed = await pack('algorithm central\n');
  for (const bad of ['%%%', packed.slice(0, -6), 'AAAA', '']) {
    await assert.rejects(unpack(bad), /The link is damaged/);
  }
});

test('a scenario that would fill the memory is refused', async () => {
  await assert.rejects(unpack(await pack('x'.repeat(17 * 1024 * 1024))), /The link is damaged/);
});
