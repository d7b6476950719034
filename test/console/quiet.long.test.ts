import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Registration } from '../journeys/app.ts';
import { browserPath, checkPage, openBrowser, openSignedIn } from './browser.ts';
import { callAs, type Call } from './filled.ts';
import { createHuman } from './human.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

const devices = 500;
/** Those that a cut line leaves too warm. */
const inAlarm = 431;
const atOnce = 8;

// Only if the machine has Chromium; if not, the run says so.
describe.skipIf(browserPath === null)('431 alarms at once', () => {
  let service: TestService;
  let browser: Browser;
  let call: Call;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    call = callAs(service.url, await makeAccount(service.url));
    await breakLine();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  /** Freezers with a limit, of which most become too warm. */
  async function breakLine(): Promise<void> {
    const sense = { sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1 };
    const body = Array.from({ length: devices }, (_, place) => ({
      protocol: 'http',
      device: { name: `Freezer ${String(place + 1).padStart(3, '0')}` },
      module: [{ moduleId: 'm', senses: [sense] }],
      labels: [place % 2 === 0 ? 'Berlin' : 'Munich'],
    }));
    type Batch = { devices: Registration[] };
    const batch = await call<Batch>('POST', '/v2/devices/batch', { devices: body });
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: -15 } }];
    const events = [
      { evId: 1, name: 'too warm', eventLog: true, actions: { alarm: true }, causes },
    ];
    const purposes = [{ puId: 1, initStId: 1, states: [{ stId: 1, events }] }];
    const deviceAuthUuids = batch.devices.map((each) => each.deviceAuthUuid);
    await call('POST', '/v2/devices/profile', { deviceAuthUuids, purposes });
    const left = batch.devices.map((device, place) => ({ device, place }));
    const send = async () => {
      for (let next = left.pop(); next; next = left.pop()) {
        const { deviceAuthUuid, deviceAuthToken } = next.device;
        const values = next.place < inAlarm ? [-20, -11.5] : [-20];
        for (const val of values)
          await fetch(`${service.url}/devices/${deviceAuthUuid}/up/measurements`, {
            method: 'POST',
            headers: {
              Authorization: `Bearer ${deviceAuthToken}`,
              'Content-Type': 'application/json',
            },
            body: JSON.stringify({ sId: '0x10', val }),
          });
      }
    };
    await Promise.all(Array.from({ length: atOnce }, send));
  }

  test('are readable at every width, in light and dark', async () => {
    for (const colorScheme of ['light', 'dark'] as const)
      for (const width of [390, 768, 1440]) {
        const watched = await openSignedIn(browser, 'light', {
          url: service.url,
          credentials: person,
          path: 'alarms',
        });
        const { page } = watched;
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        await page.locator('.alarm-row').nth(49).waitFor();
        await page.locator('.alarm-row input').first().check({ force: true });
        await checkPage(watched, `many-alarms-${width}-${colorScheme}`);
        await page.goto(`${service.url}/console/`);
        await page.locator('.fleet tbody tr').nth(49).waitFor();
        await checkPage(watched, `many-devices-${width}-${colorScheme}`);
        await page.context().close();
      }
  });

  test('are quiet again after a few clicks, and every count is exact', async () => {
    const watched = await openSignedIn(browser, 'light', { url: service.url, credentials: person });
    const { page, faults } = watched;
    const human = createHuman(page);
    const startedMs = performance.now();
    await human.click(page.getByRole('link', { name: /^Alarms/ }));
    await page.getByRole('link', { name: /^Open\s*431$/ }).waitFor();
    expect(await page.title()).toContain('(431)');
    await human.click(page.getByLabel('Select this page'));
    const bar = page.locator('.selection');
    await human.click(bar.getByRole('button', { name: 'Select all 431 matching alarms' }));
    await human.click(bar.getByRole('button', { name: 'Acknowledge', exact: true }));
    const dialog = page.getByRole('dialog', { name: 'Acknowledge 431 alarms?' });
    await dialog.getByLabel(/^Note/).fill('A power cut.');
    await human.click(dialog.getByRole('button', { name: 'Acknowledge', exact: true }));
    await page.getByText('Acknowledged: 431 alarms').waitFor({ timeout: 60_000 });
    await page.getByText('Nothing new needs your attention').waitFor();
    const { clicks } = human.figure();
    const seconds = (performance.now() - startedMs) / 1_000;
    process.stdout.write(`431 alarms: ${clicks} clicks and ${seconds.toFixed(1)} s of the page.\n`);
    expect(clicks).toBeLessThanOrEqual(10);
    type Alarms = { total: number };
    const total = async (state: string) =>
      (await call<Alarms>('GET', `/v2/alarms?state=${state}&counts=true&limit=1`)).total;
    expect([await total('open'), await total('acknowledged')]).toEqual([0, inAlarm]);
    type Noted = { alarms: { notes: { text: string }[] }[] };
    const noted = await call<Noted>('GET', '/v2/alarms?state=acknowledged&limit=100&sort=oldest');
    expect(new Set(noted.alarms.flatMap(({ notes }) => notes.map(({ text }) => text)))).toEqual(
      new Set(['A power cut.']),
    );
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
