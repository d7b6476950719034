import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserPath, openBrowser, openPage, signIn, type Look, type Watched } from './browser.ts';
import { fill, person, type Filled } from './filled.ts';
import { consoleService, type TestService } from './service.ts';

// Only if the machine has Chromium; if not, the last line of the run says so.
describe.skipIf(browserPath === null)('the pages of the console', () => {
  let service: TestService;
  let browser: Browser;
  let filled: Filled;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    filled = await fill(service);
  });
  afterAll(async () => {
    await browser?.close();
    await filled?.close();
    await service?.close();
  });

  const open = async (look: Look): Promise<Watched> => {
    const watched = await openPage(browser, look);
    await signIn(watched.page, service.url, person);
    return watched;
  };

  test('search and filters are in the URL; a chart is zoomed, and Back undoes it', async () => {
    const { page, faults } = await open('light');
    await page.getByRole('searchbox').fill('cr-10');
    await page.locator('.fleet tbody tr').nth(5).waitFor();
    await expect.poll(() => page.locator('.fleet tbody tr').count()).toBe(6);
    await page.getByRole('link', { name: /^Online/ }).click();
    await expect.poll(() => page.locator('.fleet tbody tr').count()).toBe(5);
    expect(new URL(page.url()).searchParams.get('search')).toBe('cr-10');
    await page.reload();
    await page.getByRole('link', { name: 'Cold room 1' }).click();
    const chart = page.locator('.chart .u-over').first();
    await chart.hover({ position: { x: 200, y: 60 } });
    await expect.poll(() => page.locator('.tip').first().innerText()).toMatch(/\d\s°C/);
    await chart.dragTo(chart, {
      sourcePosition: { x: 300, y: 60 },
      targetPosition: { x: 500, y: 60 },
    });
    await page.getByRole('button', { name: 'Back to now' }).waitFor();
    await page.goBack();
    await expect.poll(() => page.getByRole('button', { name: 'Back to now' }).count()).toBe(0);
    await page.getByText('Show as table').first().click();
    await page.locator('.chart-table tbody tr').nth(20).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
