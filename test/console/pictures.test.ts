import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import {
  browserPath,
  cookiesOf,
  type Look,
  openBrowser,
  openPage,
  openSignedIn,
} from './browser.ts';
import { type Call, callAs, fill, type Filled, person } from './filled.ts';
import { consoleService, makeAccount, type TestService } from './service.ts';

/** Where `npm run pictures` writes them; if it is not set, none are made. */
const folder = process.env['CONSOLE_PICTURES'] ?? '';

type Uuids = Filled['uuids'];

/** The first is for README, the others are for docs/console.md (those of docs/rules.md below). None shows a token. */
const pictures: { name: string; look: Look; path: (uuids: Uuids) => string; ready: string }[] = [
  {
    name: 'device',
    look: 'light',
    path: ({ boxes }) => `devices/${boxes}`,
    ready: '.shell:has(.chart canvas):has(.alarm)',
  },
  { name: 'fleet', look: 'light', path: () => '', ready: '.shell:has(.fleet-value)' },
  {
    name: 'device-dark',
    look: 'dark',
    path: ({ boxes }) => `devices/${boxes}`,
    ready: '.shell:has(.chart canvas):has(.alarm)',
  },
  { name: 'alarms', look: 'light', path: () => 'alarms', ready: '.alarm-values strong' },
  { name: 'add', look: 'light', path: () => 'add', ready: '.template' },
  { name: 'fleet-phone', look: 'phone', path: () => '', ready: '.shell:has(.fleet-value)' },
  {
    name: 'device-phone',
    look: 'phone',
    path: ({ boxes }) => `devices/${boxes}`,
    ready: '.shell:has(.chart canvas):has(.alarm)',
  },
];

describe.skipIf(folder === '' || browserPath === null)('the pictures of the documentation', () => {
  let service: TestService;
  let browser: Browser;
  let filled: Filled;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    filled = await fill(service, { isTame: true });
    await mkdir(folder, { recursive: true });
  });
  afterAll(async () => {
    await browser?.close();
    await filled?.close();
    await service?.close();
  });

  test.each(pictures)('$name', async ({ name, look, path, ready }) => {
    const cookies = await cookiesOf(service.url, person);
    const { page } = await openPage(browser, look, { cookies });
    await page.goto(`${service.url}/console/${path(filled.uuids)}`);
    await page.locator(ready).first().waitFor();
    await expect.poll(() => page.locator('.skeleton').count()).toBe(0);
    await shoot(page, name, 0);
    await page.context().close();
  });
});

/** What docs/rules.md shows, in its order: four freezers, one of which is warm now and then. */
describe.skipIf(folder === '' || browserPath === null)('the pictures of rules', () => {
  let service: TestService;
  let browser: Browser;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    await mkdir(folder, { recursive: true });
    const call = callAs(service.url, await makeAccount(service.url));
    await call('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en' });
    for (const number of [1, 2, 3, 4]) await addFreezer(call, number);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  test('from a template to devices', async () => {
    const { page } = await openSignedIn(browser, 'light', {
      url: service.url,
      credentials: person,
      path: 'rules',
    });
    const press = (name: string | RegExp) => page.getByRole('button', { name }).last().click();
    const save = async () => {
      await press('Save');
      await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
      await page.getByRole('button', { name: 'Saved' }).waitFor();
    };
    await page.getByRole('button', { name: /^Freezer/ }).waitFor();
    await shoot(page, 'rules-new');
    await press(/^Silent sensor/);
    await page.getByRole('group', { name: 'Diagram of the states' }).waitFor();
    await page.getByText(/^Temperature: nothing for/).waitFor();
    await shoot(page, 'rules-diagram');
    await page.goto(`${service.url}/console/rules`);
    await press(/^Freezer/);
    await page.getByText(/^Temperature above .15.°C/).waitFor();
    await shoot(page, 'rules-form');
    await save();
    await page.getByLabel('Limit, °C').fill('-12');
    await page.getByText(/; choose others/).click();
    await page.getByLabel('All of these').check();
    await page.getByLabel('Compared with').selectOption('stored');
    await press('What would have happened?');
    await page.getByText('Compared with the rule as saved:').waitFor();
    await page.getByText(/; choose others/).click();
    await page.getByText(/on the values shown: \d+ alarm/).waitFor();
    await page.locator('#try').evaluate((title) => title.scrollIntoView());
    await shoot(page, 'rules-try');
    await save();
    await page.getByText('Versions', { exact: true }).click();
    await page.getByText('limit of Temperature').waitFor();
    await page.getByText('Versions', { exact: true }).evaluate((all) => all.scrollIntoView());
    await shoot(page, 'rules-versions');
    await press('Install …');
    await page.getByRole('dialog').getByText('Chosen: 4.').waitFor();
    await shoot(page, 'rules-install');
    await page.context().close();
  });
});

/** A week, a value every ten minutes; the first two freezers are opened for long now and then. */
async function addFreezer(call: Call, number: number): Promise<void> {
  const registration = await call<Registration>('POST', '/v2/devices', {
    device: { name: `Freezer ${number}` },
    module: [
      {
        moduleId: 'm',
        senses: [
          { sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1, min: -60, max: 60 },
          { sId: '0x12', name: 'Door open', decimals: 0, min: 0, max: 1 },
        ],
      },
    ],
  });
  const device = await connectDevice(registration);
  const nowTs = Date.now();
  const values = Array.from({ length: 1_008 }, (_, place) => {
    const isWarm = (place + number * 90) % 250 < (number < 3 ? 8 : 0);
    const peak = place % 500 < 250 ? 4.5 : 8;
    const val = -18 + Math.sin(place / 9 + number) + (isWarm ? peak : 0);
    return { sId: '0x10', ts: nowTs - (1_008 - place) * 600_000, val: Math.round(val * 10) / 10 };
  });
  for (let from = 0; from < values.length; from += 200)
    await device.publish('up/measurements', values.slice(from, from + 200));
  await device.end();
}

/** A quarter of the size of PNG; playwright itself supports only PNG and JPEG. */
async function shoot(page: Page, name: string, afterMs = 5_500): Promise<void> {
  await expect.poll(() => page.locator('.skeleton').count()).toBe(0);
  // What was said about the last step goes, and a dialog has come in.
  await page.waitForTimeout(afterMs);
  const debuggedPage = await page.context().newCDPSession(page);
  const { data } = await debuggedPage.send('Page.captureScreenshot', {
    format: 'webp',
    quality: 82,
  });
  const picture = Buffer.from(data, 'base64');
  await writeFile(join(folder, `${name}.webp`), picture);
  expect(picture.length).toBeLessThan(60_000);
}
