import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserPath, cookiesOf, openBrowser, openPage, type Look } from './browser.ts';
import { fill, person, type Filled } from './filled.ts';
import { consoleService, type TestService } from './service.ts';

/** Where `npm run pictures` writes them; if it is not set, none are made. */
const folder = process.env['CONSOLE_PICTURES'] ?? '';

type Uuids = Filled['uuids'];

/** The first is for README, the others are for docs/console.md. None shows a token. */
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
    // A quarter of the size of PNG; playwright itself supports only PNG and JPEG.
    const debuggedPage = await page.context().newCDPSession(page);
    const { data } = await debuggedPage.send('Page.captureScreenshot', {
      format: 'webp',
      quality: 82,
    });
    const picture = Buffer.from(data, 'base64');
    await writeFile(join(folder, `${name}.webp`), picture);
    expect(picture.length).toBeLessThan(60_000);
    await page.context().close();
  });
});
