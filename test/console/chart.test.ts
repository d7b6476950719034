import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { browserPath, checkPage, openBrowser, openPage, signIn, type Look, type Watched } from './browser.ts';
import { openCharted, type Charted } from './charted.ts';
import { consoleService, person, type TestService } from './service.ts';

describe.skipIf(browserPath === null)('what a device measured', () => {
  let service: TestService;
  let browser: Browser;
  let charted: Charted;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    charted = await openCharted(service);
  });
  afterAll(async () => {
    await browser?.close();
    await charted?.close();
    await service?.close();
  });

  const open = async (look: Look, path = ''): Promise<Watched> => {
    const watched = await openPage(browser, look);
    await signIn(watched.page, service.url, person);
    await watched.page.goto(`${service.url}/console/devices/${charted.uuid}${path}`);
    return watched;
  };
  test.each(['light', 'dark', 'phone'] as const)('states, limits, alarms and events, %s', async (look) => {
    const watched = await open(look, '?range=6h');
    const { page } = watched;
    await page.locator('.strip-state .part').first().waitFor();
    await page.locator('.chart canvas').first().waitFor();
    await page.locator('.mark').first().click();
    await page.locator('.opened').waitFor();
    await page.locator('.map-land').waitFor({ state: 'attached' });
    await checkPage(watched, `chart-${look}`);
    await page.context().close();
  });

  const card = (page: Page) => page.locator('.card').filter({ hasText: 'Temperature' });

  test('values are live; a tab that is hidden has no stream, and goes on where it was', async () => {
    const { page, faults } = await open('light');
    const asked: { lastEventId?: string; filters: object }[] = [];
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/v2/streams'))
        asked.push(request.postDataJSON());
    });
    await card(page).getByText('4.2 °C').waitFor();
    await charted.publish({ sId: '0x10', val: 5.1 });
    await card(page).getByText('5.1 °C').waitFor();
    const closed = page.waitForEvent('requestfailed', (it) => it.url().includes('?ticket='));
    await show(page, 'hidden');
    await closed;
    asked.length = 0;
    await charted.publish({ sId: '0x10', val: 5.2 });
    await show(page, 'visible');
    await card(page).getByText('5.2 °C').waitFor();
    await charted.publish({ sId: '0x10', val: 4.2 });
    await card(page).getByText('4.2 °C').waitFor();
    expect(asked).toMatchObject([
      { lastEventId: expect.stringMatching(/m=/), filters: { measurementDevices: [charted.uuid] } },
    ]);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});

/** As a browser does with a tab that is put behind another. */
const show = (page: Page, state: 'hidden' | 'visible') =>
  page.evaluate(`
    Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'))`);
