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
    [service, browser] = await Promise.all([consoleService(), openBrowser()]);
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

    await page.goto(`${service.url}/console/add`);
    await page.locator('.template').first().waitFor();
    await checkPage(watched, `add-${look}`);
    await page.goto(`${service.url}/console/nowhere`);
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await checkPage(watched, `not-found-${look}`);
    await page.context().close();
  });
});
