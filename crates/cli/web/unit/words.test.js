import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isolate, isolator, listed, shortenName } from '../src/words.js';

test('a name that is cut keeps both ends', () => {
  assert.equal(shortenName('(0,0,0)', 7), '(0,0,0)');
  assert.notEqual(shortenName('server-eu-west-01', 8), shortenName('server-eu-west-02', 8));
  assert.equal(shortenName('abcdefgh', 5), 'ab…gh');
  assert.equal(shortenName('😀😀😀😀', 3), '😀…😀');
});

test('items are listed', () => {
  assert.deepEqual([[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map(listed), [
    '',
    'a',
    'a and b',
    'a, b and c',
  ]);
});

test('a name that could turn the text is isolated, and cannot end its isolate', () => {
  assert.equal(isolate('node-1'), 'node-1');
  assert.equal(isolate('אב'), '\u2068אב\u2069');
  assert.equal(isolate('\u2069\u202eexe'), '\u2068\u202eexe\u2069');
});

test('names are isolated in texts, the longest first', () => {
  const said = isolator(['A', 'é', 'éa', 'ü.*']);
  assert.equal(said('A waits for éa, é and ü.*'), 'A waits for ⁨éa⁩, ⁨é⁩ and ⁨ü.*⁩');
  assert.equal(isolator(['A'])('A waits'), 'A waits');
});
