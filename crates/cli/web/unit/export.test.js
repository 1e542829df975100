import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const SOURCE = join(import.meta.dirname, '../src');
const DECLARED = /^(?:export )?(?:async )?(?:const|let|class|function) (\w+)/gm;

test('an export is all modules in one scope: no two declare the same name', () => {
  const files = readdirSync(SOURCE).filter((name) => name.endsWith('.js'));
  const names = files.flatMap((file) =>
    [...readFileSync(join(SOURCE, file), 'utf8').matchAll(DECLARED)].map(([, name]) => name),
  );
  assert.ok(names.length > 100);
  const twice = names.filter((name, i) => names.indexOf(name) !== i);
  assert.deepEqual(twice, []);
});
