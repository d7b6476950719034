import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { type TestService, testService } from '../journeys/service.ts';

describe.skipIf(!hasChromium)('the page of the reference, in a browser', () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;
  /** What the browser refused or could not load. */
  const complaints: string[] = [];
  beforeAll(async () => {
    [service, browser] = await Promise.all([testService(), startChromium()]);
  });
  // A new page for each try: one that was left midway has operations open already.
  beforeEach(async () => {
    complaints.length = 0;
    page = await browser.newPage();
    page.setDefaultTimeout(120_000);
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    page.on('pageerror', ({ message }) => complaints.push(message));
    await page.goto(`${service.url}/docs`);
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  /** Opens an operation and executes it as it is filled in. Returns status and body. */
  async function tryOut(
    tag: string,
    operationId: string,
  ): Promise<{ status: string; body: string }> {
    const operation = page.locator(`[id="operations-${tag}-${operationId}"]`);
    await operation.locator('.opblock-summary-control').click();
    await operation.getByRole('button', { name: 'Try it out' }).click();
    await operation.getByRole('button', { name: 'Execute' }).click();
    const answer = operation.locator('.live-responses-table .response');
    const status = await answer.locator('.response-col_status').first().innerText();
    return { status: status.trim(), body: await answer.locator('pre').first().innerText() };
  }

  test('its example creates an account, whose token opens what it owns', async () => {
    const registered = await tryOut('Accounts', 'registerAccount');
    expect(registered.status).toBe('200');
    const { accountAuthToken } = JSON.parse(registered.body) as { accountAuthToken: string };
    expect((await tryOut('Devices', 'listDevices')).status).toBe('401');

    await page.getByRole('button', { name: 'Authorize' }).click();
    const dialog = page.locator('.auth-container').filter({ hasText: 'accountAuthToken' });
    await dialog.getByRole('textbox').fill(accountAuthToken);
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await page.locator('.modal-ux .btn-done').first().click();

    for (const [tag, operationId] of [
      ['Accounts', 'getAccount'],
      ['Devices', 'registerDevice'],
      ['Purposes', 'registerPurpose'],
      ['Alarms', 'listAlarms'],
    ] as const)
      expect([operationId, (await tryOut(tag, operationId)).status]).toEqual([operationId, '200']);
    expect(complaints.filter((text) => !text.includes('401'))).toEqual([]);
  });
});
