/** Tours: captions, and predictions that are checked against the next step. */

import assert from 'node:assert/strict';
import { at, play, position, press } from './harness.js';

const tour = `# A coordinator.
algorithm central
nodes 2

# 1 asks the coordinator.
> request 1
# ? What does 0 do?
> deliver 1 0
> run
`;

play(
  'a tour waits for a prediction, and says whether it is right',
  { text: tour, clock: true },
  async ({ page }) => {
    await page.keyboard.press(' ');
    await page.clock.runFor(5000);
    await at(page, 1);
    assert.equal(await page.locator('.play').getAttribute('aria-label'), 'Play', 'it waits');
    assert.equal(await page.locator('#stage .caption.ask .words').textContent(), 'What does 0 do?');

    assert.ok(await page.locator('[data-event="0"]').isVisible());
    assert.ok(await page.locator('[data-event="1"]').isHidden(), 'it would give the answer away');

    await page.getByLabel('Who', { exact: true }).selectOption({ value: '1' });
    await page.getByLabel('Does what').selectOption('enters');
    await page.getByRole('button', { name: 'Check' }).click();
    await page.locator('#stage').getByText('Not what happens').waitFor();
    assert.equal(await position(page), 1);

    await page.getByLabel('Who', { exact: true }).selectOption({ value: '0' });
    await page.getByLabel('Does what').selectOption('GRANT');
    await page.getByLabel('To whom').selectOption({ value: '1' });
    await page.getByRole('button', { name: 'Check' }).click();
    await at(page, 2);
    await page.locator('#stage .caption.right').getByText('Right: 0 sends GRANT to 1.').waitFor();
  },
);

play('clicks on nodes fill in a prediction', { text: tour }, async ({ page }) => {
  await press(page, 'ArrowRight');
  await page.locator('#stage [data-node="0"]').click();
  await page.locator('#stage [data-node="1"]').click();
  assert.equal(await page.getByLabel('Who', { exact: true }).inputValue(), '0');
  assert.equal(await page.getByLabel('To whom').inputValue(), '1');
});
