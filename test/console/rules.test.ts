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
  let registration: Registration;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    call = callAs(service.url, await makeAccount(service.url));
    await call('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en', name: 'Ada' });
    registration = await call<Registration>('POST', '/v2/devices', {
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

  test.each(['light', 'phone'] as const)(
    'what trying a rule shows is beside its event, and groups of conditions are in words, %s',
    async (look) => {
      const above = (isGt: number) => ({ sId: '0x10', thresholds: { isGt } });
      const open = { sId: '0x12', thresholds: { isOneOf: [1] } };
      const { purposeUuid } = await call<{ purposeUuid: string }>('POST', '/v2/purposes', {
        puId: 1,
        initStId: 1,
        states: [
          {
            stId: 1,
            events: [
              {
                evId: 1,
                name: 'Warm',
                actions: { alarm: false, cloud: { sendPush: true } },
                anyOf: [[above(8)], [above(5), open]],
              },
            ],
          },
        ],
      });
      const signedIn = { url: service.url, credentials: person, path: `rules/${purposeUuid}` };
      const watched = await openSignedIn(browser, look, signedIn);
      const { page } = watched;
      const told = 'While a value stays the same, people are notified again and again.';
      await page.getByText(told).first().waitFor();
      await page.getByText('For example: 0x10 is 9, 60 times, 1 min apart.').first().waitFor();
      await expect.poll(() => page.locator('.rule-group').count()).toBe(2);
      const second = page.getByRole('group', { name: 'Group 2' });
      await second.getByText('or when').waitFor();
      expect(await second.getByLabel('Limit').first().inputValue()).toBe('5');
      // Other changes leave them as they are.
      await page.getByLabel('What messages call it').fill('Too warm');
      await page.getByText('As JSON', { exact: true }).click();
      expect(await page.getByRole('textbox', { name: 'As JSON' }).inputValue()).toContain(
        '"anyOf"',
      );
      await checkPage(watched, `rules-groups-${look}`);
      await page.context().close();
      await call('DELETE', `/v2/purposes/${purposeUuid}`);
    },
  );

  test.each(['light', 'dark', 'phone'] as const)(
    'the diagram of states, by pointer and keyboard, %s',
    async (look) => {
      const to = (evId: number, name: string, gotoStId?: number) => ({
        evId,
        name,
        eventLog: true,
        causes: [{ sId: '0x10', orderId: 1, thresholds: { isGt: 20 } }],
        actions: gotoStId === undefined ? { alarm: true } : { engine: { gotoStId } },
      });
      const { purposeUuid } = await call<{ purposeUuid: string }>('POST', '/v2/purposes', {
        puId: 1,
        name: 'Washing machine',
        initStId: 1,
        states: [
          { stId: 1, name: 'Off', events: [to(1, 'Started', 2)] },
          {
            stId: 2,
            name: 'Running',
            events: [to(1, 'Finished, after a very long programme', 3), to(2, 'Too hot')],
          },
          { stId: 3, name: 'Done', events: [to(1, 'Emptied', 1), to(2, 'Started again', 2)] },
          { stId: 4, name: 'Always', isGlobal: true, events: [to(1, 'Switched off', 1)] },
        ],
      });
      const watched = await openSignedIn(browser, look, {
        url: service.url,
        credentials: person,
        path: `rules/${purposeUuid}`,
      });
      const { page } = watched;
      const diagram = page.getByRole('group', { name: 'Diagram of the states' });
      const part = (name: string) => diagram.getByRole('button', { name, exact: true });
      const pressed = () => diagram.locator('[aria-pressed=true]').allTextContents();
      await part('Finished, after a very long programme → Done').click();
      await expect
        .poll(() => page.getByLabel('What messages call it').inputValue())
        .toMatch(/^Fin/);
      await page.waitForTimeout(500);
      await checkPage(watched, `rules-diagram-${look}`);
      // Down to where it leads, and opened there.
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      expect(await page.getByLabel('Name of the state').inputValue()).toBe('Done');
      expect(await pressed()).toEqual(['Done']);
      const width = async () => (await part('Done').boundingBox())?.width ?? 0;
      const fitting = await width();
      await page.getByRole('button', { name: 'Zoom in' }).click();
      await page.getByRole('button', { name: 'Zoom in' }).click();
      expect((await width()) / fitting).toBeCloseTo(1.25 ** 2, 1);
      if (look !== 'phone') {
        // A drag moves it, and selects nothing.
        const before = await part('Too hot').boundingBox();
        await part('Too hot').hover();
        await page.mouse.down();
        await page.mouse.move((before?.x ?? 0) + 20, (before?.y ?? 0) - 40, { steps: 5 });
        await page.mouse.up();
        expect((await part('Too hot').boundingBox())?.y).toBeLessThan((before?.y ?? 0) - 10);
        expect(await pressed()).toEqual(['Done']);
      }
      await page.getByRole('button', { name: 'Fit' }).click();
      expect(await width()).toBeCloseTo(fitting, 1);
      expect(watched.faults).toEqual([]);
      await page.context().close();
      await call('DELETE', `/v2/purposes/${purposeUuid}`);
    },
  );

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
    await page.getByText('the device did not have this rule then').waitFor();
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
      (
        await call<{ profiles: { pId: string; purposes: { name: string }[] }[] }>(
          'GET',
          '/v2/profiles',
        )
      ).profiles;
    await expect.poll(async () => (await installed())[0]?.purposes[0]?.name).toBe('Freezer');
    // Once the device has it, what was recorded is about this rule.
    const device = await connectDevice(registration);
    await device.publish('up/profile', { pId: (await installed())[0]?.pId, state: 'current' });
    await device.end();
    const uuid = registration.deviceAuthUuid;
    const had = async () =>
      (await call<{ profiles: object[] }>('GET', `/v2/devices/${uuid}/profiles`)).profiles.length;
    await expect.poll(had, { timeout: 10_000 }).toBe(1);
    await page.getByRole('button', { name: 'What would have happened?' }).click();
    await page.getByText('Compared with the alarms that were recorded').waitFor();
    // Back to -15 °C: as another version, which is taken back.
    await page.getByLabel('Limit, °C').fill('-15');
    // Beside the rule as it is saved, which was never violated.
    await page.getByLabel('Compared with').selectOption('stored');
    await page.getByRole('button', { name: 'What would have happened?' }).click();
    await page.getByText('Compared with the rule as saved: 1 more, 0 fewer').waitFor();
    await page.locator('.try-list').getByText('only now').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Saved' }).waitFor();
    // Opened again, it is what was saved, and can be saved.
    await page.getByRole('main').getByRole('link', { name: 'Rules' }).click();
    await page
      .getByRole('main')
      .getByRole('link', { name: 'Freezer', exact: true })
      .first()
      .click();
    await page.getByLabel('Limit, °C').waitFor();
    expect(await page.getByLabel('Limit, °C').inputValue()).toBe('-15');
    await page.getByLabel('Limit, °C').fill('-14');
    await page.getByText(/^Temperature above .14.°C/).waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').getByText('limit of Temperature -15 °C → -14 °C').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByRole('button', { name: 'Saved' }).waitFor();
    await page.getByText('Versions', { exact: true }).click();
    await page.getByText('Reason: Summer').waitFor();
    await page.getByText('Freezer too warm: limit of Temperature -15 °C → -14 °C').waitFor();
    await page.getByText('It begins with this one.').waitFor();
    await page.getByLabel('Limit, °C').fill('-13.5');
    await page.getByRole('button', { name: 'Restore version 1' }).click();
    const asked = page.getByRole('dialog');
    await asked.getByText('What you have changed and not saved is lost.').waitFor();
    await asked.getByRole('button', { name: 'Restore version 1' }).click();
    await expect.poll(() => page.getByLabel('Limit, °C').inputValue()).toBe('-12');
    // A draft goes when its author signs out.
    await page.getByLabel('Limit, °C').fill('-11');
    const kept = () =>
      page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes('rule/')).length);
    await expect.poll(kept).toBeGreaterThan(0);
    expect(watched.faults).toEqual([]);
    await page.locator('.foot > summary').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Password').first().waitFor();
    expect(await kept()).toBe(0);
    await page.context().close();
  });

  test('JSON of any form is shown, and what is typed in one field is one step to undo', async () => {
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', {
      url,
      credentials: person,
      path: 'rules',
    });
    const { page } = watched;
    await page.getByRole('button', { name: /^Freezer/ }).click();
    await page.getByLabel('Limit, °C').waitFor();
    await page.getByText('As JSON', { exact: true }).click();
    const json = page.getByRole('textbox', { name: 'As JSON' });
    const before = await json.inputValue();
    const undo = page.getByRole('button', { name: 'Undo' });
    for (const corners of ['[null]', '[null, 1, {"lat": "north"}]'])
      await json.fill(before.replace(/"isGt": -15/, `"isInsideGeo": ${corners}`));
    expect(await page.getByLabel('Corners of the area').inputValue()).toBe(', \n, \n, ');
    await undo.click();
    expect(await json.inputValue()).toBe(before);
    await page.getByLabel('Send an SMS').check();
    const numbers = page.getByLabel('Telephone numbers, with commas between them');
    await numbers.fill('+49 171 2345678,');
    expect(await numbers.inputValue()).toBe('+49 171 2345678,');
    await undo.click();
    expect(await numbers.inputValue()).toBe('');
    expect(watched.faults).toEqual([]);
    await page.context().close();
  });

  test('a chart that cannot be loaded says so, and is asked for again by hand only', async () => {
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', {
      url,
      credentials: person,
      path: 'rules',
    });
    const { page } = watched;
    let asked = 0;
    await page.route(/\/v2\/measurements\?/, async (route) => {
      asked += 1;
      const error = { code: 'internal', message: 'Broken.', requestId: 'r' };
      await route.fulfill({ status: 500, json: error });
    });
    await page.getByRole('button', { name: /^Freezer/ }).click();
    await page.getByRole('button', { name: 'What would have happened?' }).click();
    const again = page.getByRole('region', { name: 'Try it' }).getByRole('button', {
      name: 'Try again',
    });
    await again.waitFor();
    expect(await page.getByText(/on the values shown/).count()).toBe(0);
    expect(asked).toBe(1);
    await page.unroute(/\/v2\/measurements\?/);
    await again.click();
    await page.getByText(/on the values shown: 1 alarm\./).waitFor();
    await page.context().close();
  });
});
