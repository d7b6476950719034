import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  browserPath,
  findWide,
  openBrowser,
  openSignedIn,
  pageLoaded,
  takePicture,
} from './browser.ts';
import { fill, person, type Filled } from './filled.ts';
import { consoleService, type TestService } from './service.ts';
import { findBroken } from './truth.ts';

// What the page says, against the API and the data. Only if the machine has Chromium; if not, the run says so.
describe.skipIf(browserPath === null)('the console tells the truth', () => {
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

  const open = async (path: string) => {
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', { url, credentials: person, path });
    onTestFinished(() => watched.page.context().close());
    return watched;
  };

  test('at every width: nothing beyond the edge, no word cut in two, no value cut off', async () => {
    const { page, faults } = await open('');
    const pages = [
      { path: '', ready: '.fleet tbody tr:nth-child(8)' },
      { path: 'alarms', ready: '.alarm' },
      { path: `devices/${filled.uuids.boxes}`, ready: '.chart canvas' },
      { path: 'account/profile', ready: '.shell form' },
      { path: `watch/${filled.uuids.boxes}`, ready: '.shell form' },
    ];
    const wrong: string[] = [];
    for (const { path, ready } of pages) {
      await page.goto(`${service.url}/console/${path}`);
      await page.locator(ready).first().waitFor();
      await pageLoaded(page);
      // 720 px is a window of 1440 px at a zoom of 200 %.
      for (const width of [320, 390, 600, 720, 768, 1024, 1280, 1440, 2560]) {
        await page.setViewportSize({ width, height: 800 });
        const found = [...(await findWide(page)), ...(await findBroken(page))];
        wrong.push(...found.map((one) => `${path} at ${width} px: ${one}`));
        await takePicture(page, `width-${path.split('/')[0] || 'fleet'}-${width}`);
      }
    }
    expect([wrong, faults]).toEqual([[], []]);
  });
});
