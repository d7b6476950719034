import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  browserPath,
  checkPage,
  openBrowser,
  openPage,
  signIn,
  type Look,
  type Watched,
} from './browser.ts';
import { fill, hostile, person, type Filled } from './filled.ts';
import { consoleService, type TestService } from './service.ts';

// In Chromium, where the machine has it: the last line of the run says so where it does not.
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

  const looks: Look[] = ['light', 'dark', 'phone'];
  const open = async (look: Look): Promise<Watched> => {
    const watched = await openPage(browser, look);
    await signIn(watched.page, service.url, person);
    return watched;
  };

  test.each(looks)('fleet, device, alarms and adding a device, %s', async (look) => {
    const watched = await open(look);
    const { page } = watched;
    await page.locator('.fleet tbody tr').nth(7).waitFor();
    await page.getByText('34.8').waitFor();
    await checkPage(watched, `fleet-${look}`);
    expect(await page.getByText(hostile).isVisible()).toBe(true);

    await page.getByRole('searchbox').fill('no such device');
    await page.getByText('No device matches').waitFor();
    await checkPage(watched, `fleet-none-${look}`);

    await page.goto(`${service.url}/console/devices/${filled.uuids.boxes}`);
    await page.locator('.chart canvas').first().waitFor();
    await page.locator('.events li').first().waitFor();
    await checkPage(watched, `device-${look}`);
    await page.getByRole('link', { name: 'Why not' }).click();
    await page.locator('.why li').first().waitFor();
    await checkPage(watched, `device-why-${look}`);

    await page.goto(`${service.url}/console/devices/${filled.uuids.hostile}?tab=rejections`);
    await page.locator('.rejections li').first().waitFor();
    await checkPage(watched, `device-rejections-${look}`);

    await page.goto(`${service.url}/console/alarms`);
    await page.locator('.alarm').first().waitFor();
    await checkPage(watched, `alarms-${look}`);
    await page.getByRole('button', { name: 'Snooze' }).first().click();
    await page.getByRole('dialog').waitFor();
    await checkPage(watched, `alarms-snooze-${look}`);
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);

    await page.goto(`${service.url}/console/add`);
    await page.locator('.template').first().waitFor();
    await checkPage(watched, `add-${look}`);
    await page.goto(`${service.url}/console/nowhere`);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await checkPage(watched, `not-found-${look}`);
    await page.context().close();
  });

  test('an alarm is snoozed, muted, acknowledged and closed by a person', async () => {
    const { page, faults } = await open('light');
    await page.locator('.badge').waitFor();
    expect(await page.title()).toBe('(1) Sensorium');
    await page.getByRole('link', { name: /^In alarm/ }).click();
    await expect.poll(() => page.locator('.fleet tbody tr').allInnerTexts()).toHaveLength(1);
    await page.getByText(/^Alarm since/).waitFor();
    await page.getByRole('link', { name: /^Alarms/ }).click();
    const act = (name: string) => page.getByRole('button', { name }).click();
    await act('Snooze');
    await page.getByLabel('4 hours').check({ force: true });
    await page.getByLabel('Reason').fill(hostile);
    await page.getByRole('dialog').getByRole('button', { name: 'Snooze' }).click();
    await page.getByText(`: ${hostile}`).waitFor();
    await act('End the snooze');
    await act('Mute device');
    await page.getByRole('dialog').getByRole('button', { name: 'Mute device' }).click();
    await page.getByText(/^Device muted until/).waitFor();
    await act('End the mute');
    await act('Acknowledge');
    await page.getByText('All quiet').waitFor();
    await page.getByRole('link', { name: 'Acknowledged' }).click();
    await act('Close');
    await page.getByText('None is acknowledged').waitFor();
    await page.getByRole('link', { name: 'Closed' }).click();
    await page.getByText('closed by a person').waitFor();
    expect(await page.title()).toBe('Sensorium');
    // Back leads through the lists that were looked at.
    await page.goBack();
    await page.getByText('None is acknowledged').waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('searching and filtering are in the URL; a chart is zoomed into, and Back undoes it', async () => {
    const { page, faults } = await open('light');
    await page.getByRole('searchbox').fill('cr-10');
    await page.locator('.fleet tbody tr').nth(5).waitFor();
    await expect.poll(() => page.locator('.fleet tbody tr').count()).toBe(6);
    await page.getByRole('link', { name: /^Online/ }).click();
    await expect.poll(() => page.locator('.fleet tbody tr').count()).toBe(1);
    expect(new URL(page.url()).searchParams.get('search')).toBe('cr-10');
    await page.reload();
    await page.getByRole('link', { name: 'Cold room 1' }).click();
    const chart = page.locator('.chart .u-over').first();
    await chart.hover({ position: { x: 200, y: 60 } });
    expect(await page.locator('.readout').first().innerText()).toMatch(/\d\s°C$/);
    await chart.dragTo(chart, {
      sourcePosition: { x: 300, y: 60 },
      targetPosition: { x: 500, y: 60 },
    });
    await page.getByRole('button', { name: 'Back to now' }).waitFor();
    await page.goBack();
    await expect.poll(() => page.getByRole('button', { name: 'Back to now' }).count()).toBe(0);
    await page.getByText('As a table').first().click();
    await page.locator('.chart-table tbody tr').nth(20).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
