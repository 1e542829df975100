import assert from 'node:assert/strict';
import { test } from 'node:test';
import { closed, isolate, isolator, listed, shortenName, unbroken } from '../src/words.js';

test('a name that is cut keeps both ends', () => {
  assert.equal(shortenName('(0,0,0)', 7), '(0,0,0)');
  assert.notEqual(shortenName('server-eu-west-01', 8), shortenName('server-eu-west-02', 8));
  assert.equal(shortenName('abcdefgh', 5), 'ab…gh');
  assert.equal(shortenName('😀😀😀😀', 3), '😀…😀');
});

test('a number stays with the word before it', () => {
  assert.equal(unbroken('Karaata, Figs. 2 and 3'), 'Karaata, Figs.\u00a02\u00a0and\u00a03');
  assert.equal(unbroken('Lodha and Kshemkalyani 2000'), 'Lodha and Kshemkalyani\u00a02000');
  assert.equal(unbroken('Maekawa, §5'), 'Maekawa, §5');
});

test('a sentence ends with one full stop', () => {
  assert.deepEqual(['a', 'a.', 'a?'].map(closed), ['a.', 'a.', 'a?']);
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
