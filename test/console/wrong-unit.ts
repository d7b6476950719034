import { setTimeout } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

/** If only the unit is changed, the page asks about the limits, and shows that they reject the next value too. */
export async function changeUnitAlone(page: Page, sendNext: () => Promise<void>): Promise<void> {
  const form = page.getByRole('group', { name: 'Temperature' });
  await form.getByLabel('Unit').fill('°F');
  await form.getByText('Do they fit °F?').waitFor();
  // However slow the page learns what there was before, it is waiting only once it knows.
  await page.route('**/rejections*', (route) => setTimeout(500).then(() => route.continue()));
  await page.getByRole('button', { name: 'Save name and sensors' }).click();
  await page.getByText('Waiting for the next value').waitFor();
  await sendNext();
  await page.getByText('rejected too: Temperature was 98.7 °F; at most 85 °F').waitFor();
  await form.getByLabel('Maximum').fill('-50');
  await expect.poll(() => form.getByText('fit °F?').count()).toBe(0);
}
