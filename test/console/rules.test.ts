import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { connectDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { browserPath, checkPage, openBrowser, openSignedIn } from './browser.ts';
import { callAs } from './filled.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

const senses = [
  { sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1, min: -60, max: 60 },
  { sId: '0x12', name: 'Door open', decimals: 0, min: 0, max: 1 },
];

describe.skipIf(browserPath === null)('the page where rules are written', () => {
  let service: TestService;
  let browser: Browser;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    const call = callAs(service.url, await makeAccount(service.url));
    await call('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en', name: 'Ada' });
    const registration = await call<Registration>('POST', '/v2/devices', {
      device: { name: 'Freezer 3' },
      module: [{ moduleId: 'm', senses }],
    });
    const device = await connectDevice(registration);
    await device.publish('up/measurements', [{ sId: '0x10', val: -18 }]);
    await device.end();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  test.each(['light', 'dark', 'phone'] as const)('a look, %s', async (look) => {
    const watched = await openSignedIn(browser, look, {
      url: service.url,
      credentials: person,
      path: 'rules',
    });
    const { page } = watched;
    await page.getByRole('button', { name: /^Freezer/ }).waitFor();
    await checkPage(watched, `rules-list-${look}`);
    await page.getByRole('button', { name: /^Freezer/ }).click();
    await page.getByLabel('Name of the rule').waitFor();
    await page.waitForTimeout(700);
    await checkPage(watched, `rules-editor-${look}`);
    await page.goto(`${service.url}/console/rules`);
    await page.getByRole('button', { name: /^Tank/ }).click();
    await page.getByLabel('Name of the rule').waitFor();
    await page.getByText('As JSON', { exact: true }).click();
    await page.waitForTimeout(700);
    await checkPage(watched, `rules-tank-${look}`);
    await page.context().close();
  });
});
