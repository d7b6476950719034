import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { checkPage, type Look, type Watched } from './browser.ts';

export const rows = (page: Page) => page.locator('.fleet tbody tr');
export const names = (page: Page) => page.locator('.row-link').allInnerTexts();
export const button = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).click();
export const search = (page: Page, text: string) => page.getByRole('searchbox').fill(text);

/** The fleet with many devices, with some selected, each dialog, and filtered: each as a page should be. */
export async function checkLooks(watched: Watched, look: Look): Promise<void> {
  const { page } = watched;
  await checkPage(watched, `fleet-many-${look}`);
  // Fewer rows for axe to look at.
  await search(page, 'Box 0777');
  await page.getByText('1 to 10 of 10').waitFor();
  await page.getByLabel('Select this page').check({ force: true });
  await page.getByText('10 selected').waitFor();
  await checkPage(watched, `fleet-selected-${look}`);
  for (const [name, confirm] of [
    ['Add label', 'Add the label'],
    ['Mute', 'Mute'],
    ['Remove …', 'Remove for good'],
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
