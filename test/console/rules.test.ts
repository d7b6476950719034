import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { browserPath, checkPage, openBrowser, openSignedIn } from './browser.ts';
import { type Call, callAs } from './filled.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

const senses = [
  { sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1, min: -60, max: 60 },
  { sId: '0x12', name: 'Door open', decimals: 0, min: 0, max: 1 },
];

describe.skipIf(browserPath === null)('the page where rules are written', () => {
  let service: TestService;
  let browser: Browser;
  let call: Call;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    call = callAs(service.url, await makeAccount(service.url));
    await call('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en', name: 'Ada' });
    const registration = await call<Registration>('POST', '/v2/devices', {
      device: { name: 'Freezer 3' },
      module: [{ moduleId: 'm', senses }],
    });
    const device = await connectDevice(registration);
    const nowTs = Date.now();
    // Every five minutes of six hours, warm for the last but one.
    const values = Array.from({ length: 72 }, (_, place) => ({
      sId: '0x10',
      ts: nowTs - (72 - place) * 300_000,
      val: place >= 48 && place < 60 ? -13 : -18,
    }));
    await device.publish('up/measurements', values);
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

  test('a rule is made without JSON, tried, moved on the chart, kept as a draft and saved', async () => {
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', {
      url,
      credentials: person,
      path: 'rules',
    });
    const { page } = watched;
    await page.getByRole('button', { name: /^Freezer/ }).click();
    await page.getByLabel('Limit, °C').waitFor();
    await page.getByText(/^Temperature above .15.°C, for 10 min/).waitFor();
    await page
      .getByText(
        /Opens an alarm .warning.\. Notifies people\. Notifies again every .*\. Is recorded\./i,
      )
      .waitFor();
    await page.getByLabel('What messages call it').fill('Freezer too warm');
    await page.getByRole('button', { name: 'What would have happened?' }).click();
    await page.getByText('Alarms: 1.').waitFor();
    await page.getByText('only with this rule').waitFor();
    const limit = page.getByRole('slider', { name: 'Limit of the rule' });
    await page.getByText(/With the limit .15.0.°C, on the values shown: 1 alarm\./).waitFor();
    await checkPage(watched, 'rules-try-light');
    const before = await limit.boundingBox();
    expect(before).not.toBeNull();
    // Ten times 0.1 °C each, by the keyboard: the values are colder than that.
    await limit.focus();
    for (let step = 0; step < 3; step += 1) await page.keyboard.press('PageUp');
    await page.getByText(/With the limit .12.0.°C, on the values shown: 0 alarms\./).waitFor();
    expect(await page.getByLabel('Limit, °C').inputValue()).toBe('-12');
    await page.getByText(/^Temperature above .12.°C, for 10 min/).waitFor();
    // What the service would refuse is not said in words, and not played.
    await page.getByText('As JSON', { exact: true }).click();
    await page.getByRole('textbox', { name: 'As JSON' }).fill('{ "states": [{ "stId": 1 }] }');
    await page.getByText('No event has a limit that can be moved on a chart.').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText(/With the limit .12.0.°C/).waitFor();
    const json = await page.getByRole('textbox', { name: 'As JSON' }).inputValue();
    await page
      .getByRole('textbox', { name: 'As JSON' })
      .fill(JSON.stringify({ ...JSON.parse(json), puId: undefined }));
    await page.getByText('The rule is not complete: it cannot be played.').waitFor();
    await expect.poll(() => page.getByText(/^Temperature above/).count()).toBe(0);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText(/With the limit .12.0.°C/).waitFor();
    await page.reload();
    await page.getByLabel('Limit, °C').waitFor();
    expect(await page.getByLabel('Limit, °C').inputValue()).toBe('-12');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByLabel('Why (for the list of versions)').fill('Summer');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('The rule is saved.').waitFor();
    const { purposeUuids } = await call<{ purposeUuids: string[] }>('GET', '/v2/purposes');
    expect(page.url()).toContain(`rules/${purposeUuids[0]}`);
    const stored = await call<{ states: { events: object[] }[] }>(
      'GET',
      `/v2/purposes/${purposeUuids[0]}`,
    );
    expect(stored.states[0]?.events[0]).toMatchObject({
      name: 'Freezer too warm',
      causes: [{ sId: '0x10', threshold: { forMs: 600_000 }, thresholds: { isGt: -12 } }],
      actions: { alarm: true, cloud: { sendPush: true }, repeatMs: 3_600_000 },
    });
    await page.getByRole('button', { name: 'Install …' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('Freezer 3').isChecked()).toBe(true);
    await dialog.getByRole('button', { name: 'Continue' }).click();
    await dialog.getByText('New: Freezer.').waitFor();
    await dialog.getByRole('button', { name: 'Install' }).click();
    await page.getByText('The rule is being installed.').waitFor();
    const installed = async () =>
      (await call<{ profiles: { purposes: { name: string }[] }[] }>('GET', '/v2/profiles'))
        .profiles;
    await expect.poll(async () => (await installed())[0]?.purposes[0]?.name).toBe('Freezer');
    // Back to -15 °C: as another version, which is taken back.
    await page.getByLabel('Limit, °C').fill('-15');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Saved' }).waitFor();
    await page.getByText('Versions', { exact: true }).click();
    await page.getByText('Reason: Summer').waitFor();
    await page.getByRole('button', { name: 'Restore version 1' }).click();
    await expect.poll(() => page.getByLabel('Limit, °C').inputValue()).toBe('-12');
    expect(watched.faults).toEqual([]);
    await page.context().close();
  });
});
