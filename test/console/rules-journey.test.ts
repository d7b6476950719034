import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { browserPath, checkPage, cookiesOf, openBrowser, openPage } from './browser.ts';
import { type Call, callAs } from './filled.ts';
import { expectFocus, tabTo } from './keyboard.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

const senses = [{ sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1, min: -60, max: 60 }];
const widths = { wide: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };

describe.skipIf(browserPath === null)('rules for somebody without a pointer', () => {
  let service: TestService;
  let browser: Browser;
  let call: Call;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    // Before that its page gets 503, which would be a fault.
    call = callAs(service.url, await makeAccount(service.url));
    await call('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en', name: 'Ada' });
    for (let number = 1; number <= 12; number += 1) {
      const name = number <= 10 ? `Freezer ${number}` : `Door ${number}`;
      const registration = await call<Registration>('POST', '/v2/devices', {
        device: { name },
        module: [{ moduleId: 'm', senses }],
      });
      if (number > 2) continue;
      const device = await connectDevice(registration);
      const nowTs = Date.now();
      // Every five minutes of six hours, warm for an hour; the second one less so.
      const warm = number === 1 ? -7 : -13;
      const values = Array.from({ length: 72 }, (_, place) => ({
        sId: '0x10',
        ts: nowTs - (72 - place) * 300_000,
        val: place >= 48 && place < 60 ? warm : -18,
      }));
      await device.publish('up/measurements', values);
      await device.end();
    }
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  test.each(['wide', 'phone'] as const)(
    'from a template to ten devices, by the keyboard alone, %s',
    async (width) => {
      const cookies = await cookiesOf(service.url, person);
      const watched = await openPage(browser, 'light', { cookies, viewport: widths[width] });
      const { page } = watched;
      const press = (...keys: string[]) => pressAll(page, keys);
      await page.goto(`${service.url}/console/rules`);
      await page.getByRole('button', { name: /^Freezer/ }).waitFor();
      await tabTo(page, 'FreezerToo warm');
      await press('Enter');
      await expectFocus(page, 'Freezer');
      await page.getByLabel('Limit, °C').waitFor();
      await tabTo(page, 'Limit, °C');
      await press('Control+a');
      await page.keyboard.type('-12');
      await tabTo(page, 'Add an event to');
      await press('Enter');
      await expectFocus(page, 'What messages call it');
      await press('Control+a');
      await page.keyboard.type('Much too warm');
      await tabTo(page, 'Limit, °C');
      await press('Control+a');
      await page.keyboard.type('-8');
      await tabTo(page, 'Severity');
      await press('ArrowDown');
      await page.getByText(/Opens an alarm .critical./i).waitFor();
      // Another possibility, and back.
      await tabTo(page, 'Add another possibility');
      await press('Enter');
      await expectFocus(page, 'Sensor');
      await tabTo(page, 'Limit, °C');
      await press('Control+a');
      await page.keyboard.type('5');
      await page.getByText(/^Temperature above .8.°C – or: Temperature above 5.°C/).waitFor();
      await tabTo(page, 'Remove this condition');
      await press('Enter');
      await page.getByText(/ – or: Temperature/).waitFor({ state: 'detached' });
      await expectFocus(page, 'Add another possibility');
      await tabTo(page, 'On Freezer');
      await press('Enter');
      await tabTo(page, 'Search by name');
      await page.keyboard.type('Freezer');
      await page.getByRole('checkbox', { name: 'Door 11' }).waitFor({ state: 'detached' });
      await tabTo(page, 'All of these');
      await press('Space');
      await page.getByText('Chosen: 10.').waitFor();
      await tabTo(page, 'What would have happened?');
      await press('Enter');
      await page.getByText('Alarms: 2.').waitFor();
      await page.getByText(/on the values shown: \d alarm/).waitFor();
      await page.waitForTimeout(300);
      await checkPage(watched, `rules-journey-tried-${width}`);
      // The values of the second device, whose alarm is milder.
      await tabTo(page, 'Freezer 2');
      await press('Enter');
      expect(
        await page.getByRole('button', { name: 'Freezer 2' }).getAttribute('aria-pressed'),
      ).toBe('true');
      await page.getByRole('slider').waitFor();
      await tabTo(page, 'Limit of the rule');
      await press('PageUp');
      await page.getByText(/With the limit .7.0.°C, on the values shown/).waitFor();
      await press('Control+s');
      await expectFocus(page, 'Why (for the list of versions)');
      await page.keyboard.type('First try');
      await press('Enter');
      await page.getByText('The rule is saved.').waitFor();
      await expectFocus(page, 'Freezer');
      await tabTo(page, 'Install …');
      await press('Enter');
      const dialog = page.getByRole('dialog');
      await dialog.waitFor();
      // Those that it was tried on.
      await dialog.getByText('Chosen: 10.').waitFor();
      await checkPage(watched, `rules-journey-install-${width}`);
      await tabTo(page, 'Continue');
      await press('Enter');
      await dialog.getByText('10 devices').waitFor();
      await expectFocus(page, 'Install');
      await press('Enter');
      await page.getByText('The rule is being installed.').waitFor();
      await expectFocus(page, 'Install …');
      const pending = async () =>
        (await call<{ profiles: { pending: number }[] }>('GET', '/v2/profiles')).profiles[0]
          ?.pending;
      await expect.poll(pending, { timeout: 10_000 }).toBe(10);
      await page.goto(`${service.url}/console/rules`);
      await page.getByText('10 devices of them still wait for it.').first().waitFor();
      await page.getByText('How the saved rule differs').first().click();
      await page.getByText('It is the same.').waitFor();
      await checkPage(watched, `rules-journey-installed-${width}`);
      expect(watched.faults).toEqual([]);
      await page.context().close();
    },
  );
});

async function pressAll(page: Page, keys: readonly string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key);
}
