import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { checkPage, type Look, type Watched } from './browser.ts';

export const rows = (page: Page) => page.locator('.fleet tbody tr');
export const names = (page: Page) => page.locator('.row-link').allInnerTexts();
export const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).click();
export const search = (page: Page, text: string) => page.getByRole('searchbox').fill(text);

/** Mutes two devices of the page with a reason, finds them by the filter, and undoes it. */
export async function muteTwo(page: Page, db: Database): Promise<void> {
  for (const box of ['Box 00101', 'Box 00102']) await page.getByLabel(`Select ${box}`).check();
  await button(page, 'Mute');
  await page.getByLabel('4 hours').check({ force: true });
  await page.getByLabel('Reason').fill('defrosting');
  await page.getByRole('dialog').getByRole('button', { name: 'Mute' }).click();
  await page.getByText(/^Muted until .*: 2 devices$/).waitFor();
  const { rows: mutes } = await db.query('select reason from device_mute');
  expect(mutes).toEqual([{ reason: 'defrosting' }, { reason: 'defrosting' }]);
  await page.getByRole('link', { name: /^Muted 2$/ }).click();
  await expect.poll(() => names(page)).toEqual(['Box 00101', 'Box 00102']);
  expect(
    await rows(page)
      .getByText(/^Muted until .*: defrosting$/)
      .count(),
  ).toBe(2);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByText('Unmuted: 2 devices').waitFor();
  await page.getByText('No matching devices').waitFor();
}

/** Checks the fleet page with many devices, with some selected, each dialog, and filtered. */
export async function checkLooks(watched: Watched, look: Look): Promise<void> {
  const { page } = watched;
  await checkPage(watched, `fleet-many-${look}`);
  // Fewer rows for axe to check.
  await search(page, 'Box 0777');
  await page.getByText('1 to 10 of 10').waitFor();
  await page.getByLabel('Select this page').check({ force: true });
  await page.getByText('10 selected').waitFor();
  await checkPage(watched, `fleet-selected-${look}`);
  for (const [name, confirm] of [
    ['Add label', 'Add the label'],
    ['Mute', 'Mute'],
    ['Remove …', 'Remove permanently'],
  ] as const) {
    await page.locator('.selection').getByRole('button', { name, exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: confirm }).waitFor();
    await checkPage(watched, `fleet-${name.split(' ', 1)[0]?.toLowerCase()}-${look}`);
    await page.keyboard.press('Escape');
  }
  await button(page, 'Clear');
  await page.getByRole('link', { name: /^In alarm/ }).click();
  await search(page, '');
  await expect.poll(() => rows(page).count()).toBe(1);
  await checkPage(watched, `fleet-alarm-${look}`);
}
