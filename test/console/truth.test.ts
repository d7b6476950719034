import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Purpose } from '../../src/contract/purpose.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import {
  browserPath,
  findWide,
  openBrowser,
  openSignedIn,
  pageLoaded,
  takePicture,
} from './browser.ts';
import { callAs, fill, person, type Call, type Filled } from './filled.ts';
import { consoleService, makeAccount, type TestService } from './service.ts';
import { runOn, schema } from '../support/template.ts';
import { findBroken } from './truth.ts';

// What the page says, against the API and the data. Only if the machine has Chromium; if not, the run says so.
describe.skipIf(browserPath === null)('the console tells the truth', () => {
  let service: TestService;
  let browser: Browser;
  let filled: Filled;
  let call: Call;
  let token: string;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    filled = await fill(service);
    type Login = { accountAuthToken: string };
    const login = await callAs(service.url, '')<Login>('POST', '/v2/accounts/login', person);
    token = login.accountAuthToken;
    call = callAs(service.url, token);
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

  /** An account of its own, and a page of it. */
  const openOwn = async (path: string) => {
    const credentials = { email: `own-${randomUUID()}@example.com`, password: 'correct horse' };
    const own = callAs(service.url, await makeAccount(service.url, credentials));
    const { url } = service;
    const watched = await openSignedIn(browser, 'light', { url, credentials, path });
    onTestFinished(() => watched.page.context().close());
    return { own, ...watched };
  };

  const sqlRun = (text: string, values: unknown[]) =>
    runOn(service.databaseUrl, (client) => client.query(text, values));

  /** A device over HTTP with these senses; sends values as it. */
  async function addDevice(name: string, senses: object[]) {
    const body = { protocol: 'http', device: { name }, module: [{ moduleId: 'm', senses }] };
    const device = await call<Registration>('POST', '/v2/devices', body);
    const { deviceAuthUuid: uuid, deviceAuthToken } = device;
    const send = async (...values: object[]) => {
      const response = await fetch(`${service.url}/devices/${uuid}/up/measurements`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${deviceAuthToken}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(values),
      });
      expect(response.status).toBe(200);
    };
    return { uuid, send };
  }
  const temperature = {
    sId: '0x10',
    name: 'Temperature',
    unit: '°C',
    decimals: 1,
    min: -40,
    max: 85,
  };
  const door = { sId: '0x11', name: 'Door open', min: 0, max: 1, decimals: 0 };
  type Installed = {
    currentProfile: { purposes: Purpose[] };
    pendingProfile: { purposes?: Purpose[] };
  };
  /** The thresholds of the newest profile, by event. */
  const limitsOf = async (uuid: string) => {
    const found = await call<Installed>('GET', `/v2/devices/${uuid}/configuration`);
    const { purposes } = found.pendingProfile.purposes
      ? found.pendingProfile
      : found.currentProfile;
    return (purposes ?? []).flatMap(({ states }) =>
      states.flatMap(({ events }) =>
        events.map(({ name, causes }) => [
          name,
          causes[0]?.thresholds,
          causes[0]?.threshold?.forMs,
        ]),
      ),
    );
  };

  test('limits are the numbers that were typed, and impossible ones are refused', async () => {
    const { uuid, send } = await addDevice('Freezer', [temperature, door]);
    await send({ sId: '0x10', val: -20.4 }, { sId: '0x11', val: 0 });
    await call('PUT', '/v2/accounts', { language: 'de' });
    onTestFinished(() => call('PUT', '/v2/accounts', { language: 'en' }).then(() => undefined));
    // The browser is in English.
    const { page, faults } = await open(`watch/${uuid}`);
    await page.getByText('jetzt -20,4 °C').waitFor();
    const field = (name: string) => page.getByLabel(name, { exact: true }).first();
    expect(await field('Alarm unter').getAttribute('inputmode')).toBe('text');
    const save = () => page.getByRole('button', { name: 'Grenzen speichern' }).click();
    await field('Alarm unter').fill('10,5');
    await field('Alarm über').fill('9');
    await save();
    await page.getByText('Muss kleiner sein als 9 °C').waitFor();
    await field('Alarm über').fill('99');
    await field('Alarm unter').fill('acht');
    await save();
    await page.getByText('Geben Sie eine Zahl ein, etwa 21,5').waitFor();
    await field('Alarm unter').fill('\u221230,5');
    await save();
    await page.getByText('Der Sensor nimmt keinen Wert jenseits von 85 °C an').waitFor();
    expect(await limitsOf(uuid)).toEqual([]);
    await field('Alarm über').fill('-10,5');
    const doors = page.getByRole('group', { name: /^Door open/ });
    expect(await doors.getByRole('textbox').count()).toBe(0);
    await doors.getByLabel('Alarm im Zustand').selectOption('an');
    await save();
    await page.getByText('Gespeichert.').waitFor();
    expect(await limitsOf(uuid)).toEqual([
      ['Temperature über -10,5\u00a0°C', { isGt: -10.5 }, undefined],
      ['Temperature unter -30,5\u00a0°C', { isLt: -30.5 }, undefined],
      ['Door open: an', { isOneOf: [1] }, 600_000],
    ]);
    await page.goto(`${service.url}/console/watch/${uuid}`);
    await expect.poll(() => field('Alarm über').inputValue()).toBe('-10,5');
    expect(faults).toEqual([]);
  });

  test('a value that jitters about a limit with a margin is one alarm', async () => {
    const { uuid, send } = await addDevice('Cold room', [temperature, door]);
    const { page, faults } = await open(`watch/${uuid}`);
    const field = (name: string) => page.getByLabel(name, { exact: true }).first();
    await field('Alarm above').fill('8');
    await page.getByText('Delay, margin and rate of change').first().click();
    await field('Over once back by').fill('1.5');
    await field('Alarm when it rises by more than').fill('20');
    await page.getByLabel('Alarm when the device sends nothing for').selectOption('900000');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('Saved.').waitFor();
    await page.goto(`${service.url}/console/watch/${uuid}`);
    await expect.poll(() => field('Over once back by').inputValue()).toBe('1.5');
    expect(await field('Alarm when it rises by more than').inputValue()).toBe('20');
    for (const val of [4, 8.1, 7.9, 8.2, 7.8, 8.1]) await send({ sId: '0x10', val });
    type Alarms = { alarms: { eventName: string; firings: number; state: string }[] };
    const alarms = () =>
      call<Alarms>('GET', `/v2/alarms?device=${uuid}`).then(({ alarms }) => alarms);
    expect(await alarms()).toMatchObject([
      { eventName: 'Temperature above 8.0\u00a0°C', firings: 1, state: 'open' },
    ]);
    await send({ sId: '0x10', val: 6.4 });
    const { states } = (await call<Installed>('GET', `/v2/devices/${uuid}/configuration`))
      .currentProfile.purposes[0] ?? { states: [] };
    expect(states.map(({ name }) => name)).toEqual([
      'within the limits',
      'above the limit',
      'within the limits',
    ]);
    expect(faults).toEqual([]);
  });

  test('of a profile with states the numbers change, and nothing else', async () => {
    const { uuid } = await addDevice('Cellar', [temperature]);
    const purpose = JSON.parse(await readFile('examples/cold-room.json', 'utf8')) as Purpose;
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
    const { page, faults } = await open(`watch/${uuid}`);
    const installed = async () => {
      const found = await call<Installed>('GET', `/v2/devices/${uuid}/configuration`);
      return found.pendingProfile.purposes ?? found.currentProfile.purposes;
    };
    const before = await installed();
    await page.getByText('Leads from “cold” to “warm”').waitFor();
    await page.getByLabel('Temperature below').fill('9');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('Must be at most the limit above').waitFor();
    expect(await installed()).toEqual(before);
    await page.getByLabel('Temperature below').fill('5,5');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('Saved.').waitFor();
    const expected = JSON.stringify(before).replace('"isLt":6', '"isLt":5.5');
    expect(await installed()).toEqual(JSON.parse(expected));
    expect(faults).toEqual([]);
  });

  /** 31 days with a value every 15 minutes that end now, as the page of a meter has them. */
  async function fillMonth(uuid: string, valueAt: (place: number) => number) {
    const count = 31 * 96;
    const endTs = Math.floor(Date.now() / 900_000) * 900_000;
    const rows = Array.from({ length: count }, (_, place) => ({
      deviceAuthUuid: uuid,
      sId: '0x10',
      ts: endTs - (count - 1 - place) * 900_000,
      val: valueAt(place),
    }));
    const { ok } = await fetch(`${service.url}/v2/measurements/import`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/x-ndjson' },
      body: rows.map((row) => JSON.stringify(row)).join('\n'),
    });
    expect(ok).toBe(true);
    return rows;
  }

  test('a chart has whole numbers at its axis, its peaks, and the values of the API', async () => {
    const volume = { sId: '0x10', name: 'Volume', unit: 'l', decimals: 0 };
    const { uuid } = await addDevice('Water meter', [volume]);
    const rows = await fillMonth(
      uuid,
      (place) => 1_200_000 + place * 150 + (place === 1_500 ? 400_000 : 0),
    );
    const { page, faults } = await open('');
    // There is no other way to read the text of a canvas.
    await page.addInitScript(`globalThis.drawn = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
        drawn.push([text, this.textAlign === 'right' ? x - this.measureText(text).width : x]);
        return fillText.call(this, text, x, ...more);
      }`);
    await page.goto(`${service.url}/console/devices/${uuid}?range=30d`);
    await pageLoaded(page);
    const drawn = async () => new Map(await page.evaluate<[string, number][]>('drawn'));
    await expect.poll(async () => [...(await drawn()).keys()]).toContain('1,600,000');
    // None begins left of the canvas.
    await expect.poll(async () => [...(await drawn()).values()].every((x) => x >= 0)).toBe(true);
    const shown = page.locator('.card .value');
    expect(await shown.innerText()).toBe(`${rows.at(-1)?.val.toLocaleString('en-GB')}\u00a0l`);

    // What is said at the pointer, against the API.
    const chart = page.locator('.u-over');
    const box = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const tip = page.locator('.tip');
    await tip.waitFor();
    const [from = 0, to = 0] =
      (await tip.innerText())
        .split('\n')[1]
        ?.match(/[\d,]+/g)
        ?.map((text) => Number(text.replaceAll(',', ''))) ?? [];
    type Buckets = { buckets: { min: number; max: number }[] };
    const start = Date.now() - 30 * 86_400_000;
    const path = `/v2/measurements/${uuid}?start=${start}&end=${Date.now()}&bucket=1h`;
    const { buckets } = await call<Buckets>('GET', path);
    expect(buckets.some(({ min, max }) => min === from && max === to)).toBe(true);
    const { x } = (await tip.boundingBox()) ?? { x: 0 };
    expect(Math.abs(x - box.x - box.width / 2)).toBeLessThan(200);

    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(
      /^Water meter \d{4}-\d\d-\d\d \d{4}-\d\d-\d\d\.csv$/,
    );
    const lines = (await readFile(await download.path(), 'utf8')).slice(1).trimEnd().split('\r\n');
    const peak = rows[1_500];
    const peakLine = lines.find((line) => line.includes(String(peak?.val))) ?? '';
    const [time = '', ...rest] = peakLine.split(',');
    expect([Date.parse(time), rest.join()]).toEqual([
      peak?.ts,
      `Water meter,Volume,${peak?.val},l,0x10`,
    ]);
    // In the account's zone.
    expect(time).toMatch(/\+0[12]:00$/);
    expect(lines.length - 1).toBe(
      rows.filter(({ ts }) => ts >= Date.now() - 30 * 86_400_000).length,
    );

    await page.getByRole('button', { name: 'From – to …' }).click();
    await page.getByRole('button', { name: 'Last month' }).click();
    const { searchParams } = new URL(page.url());
    const wall = (name: string) =>
      new Date(Number(searchParams.get(name))).toLocaleString('sv', { timeZone: 'Europe/Berlin' });
    expect([wall('from'), wall('to')].map((text) => text.slice(8))).toEqual([
      '01 00:00:00',
      '01 00:00:00',
    ]);

    // Beside it another device, and the week before.
    await page.goto(`${service.url}/console/devices/${uuid}?range=7d&compare=7d&with=${uuid}`);
    await page.locator('.legend').getByText('The week before').waitFor();
    await page.locator('.legend').getByText('Water meter').waitFor();
    expect(faults).toEqual([]);
  });

  test('a page opened while offline loads by itself once it is online', async () => {
    const { page } = await open('alarms');
    await page.locator('.alarm').first().waitFor();
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Devices', exact: true }).click();
    await page.getByText('The service is not responding').first().waitFor();
    await page.context().setOffline(false);
    await page.locator('.fleet tbody tr').first().waitFor();
    await expect.poll(() => page.getByText('The service is not responding').count()).toBe(0);
    // So does one whose script is missing too.
    await page.context().setOffline(true);
    await page.getByRole('link', { name: 'Cold room 1', exact: true }).click();
    await page.getByText('The service is not responding').first().waitFor();
    await page.context().setOffline(false);
    await page.locator('.card .value').first().waitFor();
    // And one whose service was away, of which the browser says nothing.
    await page.goto(`${service.url}/console/alarms`);
    await page.route('**/*', (route) => route.abort());
    await page.getByRole('link', { name: 'Add device', exact: true }).click();
    await page.getByText('The service is not responding').first().waitFor();
    await page.unrouteAll();
    await page.getByRole('heading', { name: 'Add a device' }).waitFor();
  });

  test('a session that ends keeps what was typed, and says that it ended', async () => {
    const { uuid } = await addDevice('Barn', [temperature]);
    const { page } = await open(`watch/${uuid}`);
    await page.getByLabel('Alarm above', { exact: true }).fill('31.5');
    type Sessions = { sessions: { id: string; current: boolean }[] };
    const { sessions } = await call<Sessions>('GET', '/v2/accounts/sessions');
    for (const { id, current } of sessions)
      if (!current) await call('DELETE', `/v2/accounts/sessions/${id}`);
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Your session has ended').waitFor();
    // Chromium closes a dialog by itself on the second Escape.
    for (const _ of [1, 2, 3]) await page.keyboard.press('Escape');
    await dialog.getByText('Your session has ended').waitFor();
    await dialog.getByLabel('E-mail address').fill(person.email);
    await dialog.getByLabel('Password', { exact: true }).fill(person.password);
    await dialog.getByRole('button', { name: 'Sign in' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Alarm above', { exact: true }).inputValue()).toBe('31.5');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('Saved.').waitFor();
    expect(await limitsOf(uuid)).toMatchObject([
      ['Temperature above 31.5\u00a0°C', { isGt: 31.5 }, undefined],
    ]);
  });

  test('with a wrong clock the page says so, and shows what was measured', async () => {
    const { uuid, send } = await addDevice('Attic', [temperature]);
    await send({ sId: '0x10', val: 19.5 });
    const { page, faults } = await open('');
    await page.addInitScript(`const { now } = Date; Date.now = () => now() + 26 * 3_600_000;`);
    await page.goto(`${service.url}/console/devices/${uuid}`);
    await page.getByText('The clock of this device is 1 day 2').waitFor();
    await page.locator('.chart canvas').waitFor();
    expect(await page.getByText('Nothing was measured').count()).toBe(0);
    await page
      .locator('.card')
      .getByText(/just now|min/)
      .waitFor();
    expect(faults).toEqual([]);
  });

  test('the next page begins at its top, and a device leads back to the list as it was', async () => {
    const names = Array.from({ length: 60 }, (_, place) => `Shelf ${place + 100}`);
    const devices = names.map((name) => ({ device: { name }, module: [], labels: ['shelf'] }));
    await call('POST', '/v2/devices/batch', { devices });
    const { page, faults } = await open('?label=shelf');
    await page.getByText('1 to 50 of 60').waitFor();
    await page.getByRole('link', { name: 'Next page' }).click();
    await page.getByText('51 to 60 of 60').waitFor();
    expect(await page.evaluate('scrollY')).toBe(0);
    await page.getByRole('link', { name: 'Shelf 155' }).click();
    await page.getByRole('heading', { name: 'Shelf 155' }).waitFor();
    await page.getByRole('link', { name: 'All devices' }).click();
    await page.getByText('51 to 60 of 60').waitFor();
    expect(new URL(page.url()).searchParams.get('label')).toBe('shelf');
    expect(faults).toEqual([]);
  });

  test('an alarm says what it was about, not what is measured now, and is not closed by mistake', async () => {
    const { uuid, send } = await addDevice('Vault', [temperature]);
    const actions = { alarm: true };
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: 38 } }];
    const events = [{ evId: 1, name: 'too warm', eventLog: true, actions, causes }];
    const purpose = {
      puId: 1,
      name: 'Vault',
      initStId: 1,
      states: [{ stId: 1, name: 'watched', events }],
    };
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
    const beganTs = Date.now() - 3 * 3_600_000;
    const at = (minutes: number, val: number) => ({
      sId: '0x10',
      val,
      ts: beganTs + minutes * 60_000,
    });
    await send(at(-10, 30));
    // It came late, in one message: what counts is when it was measured.
    await send(at(0, 39.5), at(30, 41.5), at(65, 35), at(120, 12));
    const { page, faults } = await open(`alarms?state=closed&device=${uuid}`);
    const card = page.locator('.alarm');
    await card.getByText('up to 41.5\u00a0°C').waitFor();
    const text = await card.innerText();
    expect(text).toContain('Temperature above 38\u00a0°C');
    expect(text).toMatch(/, 1 hr 5 mins/);
    expect(text).not.toContain('12.0');
    const wall = (ts: number) =>
      new Date(ts).toLocaleTimeString('en-GB', {
        timeZone: 'Europe/Berlin',
        hour: '2-digit',
        minute: '2-digit',
      });
    for (const ts of [beganTs, beganTs + 65 * 60_000]) expect(text).toContain(wall(ts));
    // The chart shades that hour, and no other.
    await page.goto(`${service.url}/console/devices/${uuid}?range=6h`);
    const shaded = page.locator('.strip-alarm .part');
    await shaded.waitFor();
    const [part, strip] = await Promise.all([
      shaded.boundingBox(),
      page.locator('.strip-alarm').boundingBox(),
    ]);
    expect((part?.width ?? 0) / (strip?.width ?? 1)).toBeCloseTo(65 / 360, 2);

    await send({ sId: '0x10', val: 39.2 });
    await page.locator('.alarm').getByText('now: Temperature 39.2\u00a0°C').waitFor();
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    const why = page.getByRole('dialog').getByText('It is 39.2\u00a0°C, above 38\u00a0°C.');
    expect(await why.innerText()).toMatch(/ Measured: \d\d:\d\d\. /);
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    type Alarms = { alarms: { state: string }[] };
    const { alarms } = await call<Alarms>('GET', `/v2/alarms?device=${uuid}`);
    expect(alarms.map(({ state }) => state)).toEqual(['open', 'closed']);
    // Closed all the same, with a note; and taken back.
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await page.getByLabel('Note (optional)').fill('Sensor in the sun');
    await page.getByRole('button', { name: 'Close anyway' }).click();
    await page.locator('.alarm').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.locator('.alarm').getByText('Sensor in the sun').waitFor();
    const again = await call<Alarms>('GET', `/v2/alarms?device=${uuid}`);
    expect(again.alarms.map(({ state }) => state)).toEqual(['open', 'closed']);
    expect(faults).toEqual([]);
  });

  test('the state of its purpose, silence and a limit that is passed are seen at a glance', async () => {
    const { uuid, send } = await addDevice('Pantry', [temperature]);
    const purpose = JSON.parse(await readFile('examples/cold-room.json', 'utf8')) as Purpose;
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
    const { page, faults } = await open(`devices/${uuid}`);
    for (const val of [4, 9, 13.4]) await send({ sId: '0x10', val });
    type One = { device: { state: { stId: number; ts: number } } };
    const { state } = (await call<One>('GET', `/v2/devices/${uuid}`)).device;
    expect(state.stId).toBe(2);
    await page
      .locator('.purpose-state')
      .getByText(/^warm since \d\d:\d\d$/)
      .waitFor();
    await page.locator('.card .beyond').getByText('13.4\u00a0°C').waitFor();
    // Its profile in words: both states, where it stands, when an event fires, and what it does.
    await page.getByRole('link', { name: 'Profile', exact: true }).click();
    const states = page.locator('.purpose-of-state');
    await expect.poll(() => states.count()).toBe(2);
    const [cold, warm] = await states.allInnerTexts();
    expect(cold).toContain('begins here');
    for (const part of [
      'too warm',
      'Temperature above 8\u00a0°C, in 2 of 2 values',
      'Opens an alarm (Warning). Shows “Too warm: close the door” on the device. Moves the device to “warm”. Is recorded.',
    ])
      expect(cold).toContain(part);
    expect(warm).toMatch(/^warm\s*now/);
    expect(warm).toContain('Temperature below 6\u00a0°C, in 2 of 2 values');
    await page.getByText('As JSON').click();
    expect(JSON.parse(await page.locator('.watch-json pre').innerText())).toMatchObject([
      { name: 'Cold room', states: [{ name: 'cold' }, { name: 'warm' }] },
    ]);
    const quiet = {
      device: { name: 'Pantry door' },
      module: [{ moduleId: 'm', senses: [temperature] }],
    };
    const client = await connectDevice(await call<Registration>('POST', '/v2/devices', quiet));
    onTestFinished(() => client.end());
    await page.goto(`${service.url}/console/?search=pantry`);
    const row = (name: string) =>
      page
        .locator('.fleet tbody tr')
        .filter({ has: page.getByRole('link', { name, exact: true }) });
    await row('Pantry')
      .getByText(/^too warm, since \d\d:\d\d$/)
      .waitFor();
    await row('Pantry')
      .getByText(/^warm since \d\d:\d\d$/)
      .waitFor();
    await row('Pantry').locator('.beyond').getByText('13.4\u00a0°C').waitFor();
    await row('Pantry door').getByText('Online, no values yet').waitFor();
    expect(await row('Pantry door').locator('.beyond').count()).toBe(0);
    expect(faults).toEqual([]);
  });

  test('many alarms are rows; those selected are acknowledged and closed in one go', async () => {
    const { own, page, faults } = await openOwn('alarms');
    // Nothing is quiet where nobody listens.
    await page.getByText('Nothing is being watched').waitFor();
    const devices = Array.from({ length: 12 }, (_, place) => ({
      protocol: 'http',
      device: { name: `Freezer ${place + 10}` },
      module: [{ moduleId: 'm', senses: [temperature] }],
    }));
    type Batch = { devices: Registration[] };
    const batch = await own<Batch>('POST', '/v2/devices/batch', { devices });
    const deviceAuthUuids = batch.devices.map((each) => each.deviceAuthUuid);
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: -15 } }];
    const events = [
      { evId: 1, name: 'too warm', eventLog: true, actions: { alarm: true }, causes },
    ];
    const purposes = [{ puId: 1, initStId: 1, states: [{ stId: 1, events }] }];
    await own('POST', '/v2/devices/profile', {
      deviceAuthUuids: deviceAuthUuids.slice(1),
      purposes,
    });
    await page.reload();
    // None of them has taken its profile yet, so nothing is watched.
    await page.getByText('11 devices have not accepted their new profile yet').waitFor();
    await page.getByText('Nothing is being watched').waitFor();
    const watched = batch.devices.slice(1);
    const sendAll = async (valueOf: (place: number) => number) => {
      for (const [place, { deviceAuthUuid, deviceAuthToken }] of watched.entries())
        await fetch(`${service.url}/devices/${deviceAuthUuid}/up/measurements`, {
          method: 'POST',
          headers: {
            Authorization: `Bearer ${deviceAuthToken}`,
            'Content-Type': 'application/json',
          },
          body: JSON.stringify({ sId: '0x10', val: valueOf(place) }),
        });
    };
    await sendAll(() => -20);
    await page.reload();
    await page.getByText('All quiet').waitFor();
    await page.getByText('The profiles of 11 devices watch their values').waitFor();
    await page.getByRole('link', { name: '1 device has no limits' }).click();
    await page.getByText('1 to 1 of 1').waitFor();
    await page.getByRole('link', { name: 'Freezer 10', exact: true }).waitFor();
    await page.getByText('Without a profile').waitFor();
    await page.goBack();
    await sendAll((place) => -11.5 - place / 10);
    const rows = page.locator('.alarm-row');
    await expect.poll(() => rows.count()).toBe(11);
    await expect.poll(() => page.getByRole('link', { name: /^Open/ }).innerText()).toContain('11');
    for (const row of await rows.all()) {
      const { height = 0 } = (await row.boundingBox()) ?? {};
      expect(height).toBeGreaterThanOrEqual(36);
      expect(height).toBeLessThanOrEqual(44);
    }
    await rows.filter({ hasText: 'Freezer 13' }).getByText('up to -11.7\u00a0°C').waitFor();
    await page.getByRole('searchbox').fill('freezer 13');
    await expect.poll(() => page.locator('.alarm').count()).toBe(1);
    await expect.poll(() => page.getByRole('link', { name: /^Open/ }).innerText()).toMatch(/\n1$/);
    await page.getByRole('searchbox').fill('');
    await page.getByRole('combobox', { name: 'Groups' }).selectOption('By event');
    await page.locator('.alarm-group').getByText('11').waitFor();
    await page.getByRole('combobox', { name: 'Groups' }).selectOption('No groups');
    await rows.nth(10).waitFor();
    await page.getByLabel('Select this page').check();
    const bar = page.locator('.selection');
    await bar.getByText('11 selected').waitFor();
    await bar.getByRole('button', { name: 'Acknowledge', exact: true }).click();
    await page.getByText('Acknowledged: 11 alarms').waitFor();
    type Alarms = { alarms: { state: string }[] };
    const states = async () =>
      (await own<Alarms>('GET', '/v2/alarms?limit=50')).alarms.map(({ state }) => state);
    expect(new Set(await states())).toEqual(new Set(['acknowledged']));
    await page.getByRole('link', { name: 'Show acknowledged alarms' }).click();
    await rows.nth(10).waitFor();
    const closeOne = async (said = '') => {
      await page.getByLabel('Select too warm, Freezer 12').check();
      await bar.getByRole('button', { name: 'Close' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText(said).first().waitFor();
      await dialog.getByLabel('Also close alarms that are not over').check();
      await dialog.getByRole('button', { name: 'Close' }).click();
      await expect.poll(() => rows.count()).toBe(10);
    };
    // None is over, so none is closed; which value keeps it open is said of each.
    await page.getByLabel('Select this page').check();
    await bar.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('dialog').getByText('11 of them are not over.').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByText('11 alarms did not change').click();
    await page
      .locator('.failures li', { hasText: 'Freezer 13' })
      .getByText(/not over, so it stays open\. Temperature -11\.7\u00a0°C \(\d\d:\d\d\)/)
      .waitFor();
    expect(await rows.count()).toBe(11);
    await closeOne('1 of them is not over.');
    await page
      .locator('.job', { hasText: 'Closed: 1 alarm' })
      .getByRole('button', { name: 'Undo' })
      .click();
    await expect.poll(() => rows.count()).toBe(11);
    await closeOne();
    expect((await states()).filter((state) => state === 'closed')).toHaveLength(1);
    // Fewer than five alarms stay rows, and nothing that somebody types goes while they close.
    const act = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await rows.filter({ hasText: 'Freezer 20' }).getByRole('button').click();
    await act('Snooze');
    await page.getByRole('dialog').getByLabel('Reason').fill('being defrosted');
    const { alarms: listed } = await own<{
      alarms: { alarmId: number; deviceName: string; state: string }[];
    }>('GET', '/v2/alarms?limit=50');
    for (const { alarmId, deviceName, state } of listed)
      if (state !== 'closed' && !/20|21/.test(deviceName))
        await own('POST', `/v2/alarms/${alarmId}/close`, { force: true });
    await expect.poll(() => rows.count()).toBe(2);
    expect(await page.getByRole('dialog').getByLabel('Reason').inputValue()).toBe(
      'being defrosted',
    );
    await act('Cancel');
    // What is said next does not take the way back away.
    await act('Close');
    await act('Close anyway');
    await expect.poll(() => rows.count()).toBe(1);
    await rows.filter({ hasText: 'Freezer 21' }).getByRole('button').click();
    await act('Mute device');
    await page.getByRole('dialog').getByRole('button', { name: 'Mute device' }).click();
    await page.getByText('The device is muted.').waitFor();
    await page.locator('.toast').getByRole('button', { name: 'Undo' }).click();
    await expect.poll(() => rows.count()).toBe(2);
    for (const width of [320, 768, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      expect([width, await findWide(page)]).toEqual([width, []]);
    }
    expect(faults).toEqual([]);
  });

  test('a device has all its alarms, however many newer ones others have, and says how many more', async () => {
    const { own, page, faults } = await openOwn('alarms');
    const add = (name: string) =>
      own<Registration>('POST', '/v2/devices', {
        protocol: 'http',
        device: { name },
        module: [{ moduleId: 'm', senses: [temperature] }],
      });
    const [old, busy] = [await add('Old'), await add('Busy')];
    const insert = (uuid: string, count: number, hoursAgo: number, acknowledged: boolean) =>
      sqlRun(
        `insert into ${schema}.alarm
           (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global,
            since_at, last_firing_at, began_at, event, actions, s_ids, event_name, acknowledged_at)
         select d.account_id, d.id, d.uuid, 'p', 1, 1, n, 'silent-alarm', false, false, now(), now(),
                now() - $3 * interval '1 hour', '{}', '{}', '{}', 'event ' || n,
                case when $4 then now() end
           from ${schema}.device d, generate_series(1, $2::integer) n
          where d.uuid = $1`,
        [uuid, count, hoursAgo, acknowledged],
      );
    await insert(old.deviceAuthUuid, 1, 30, false);
    await insert(busy.deviceAuthUuid, 130, 1, false);
    await sqlRun(`update ${schema}.alarm set ev_id = ev_id + 1000 where device_uuid = $1`, [
      old.deviceAuthUuid,
    ]);
    await insert(old.deviceAuthUuid, 1, 20, true);
    await page.goto(`${service.url}/console/`);
    const row = (name: string) =>
      page
        .locator('.fleet tbody tr')
        .filter({ has: page.getByRole('link', { name, exact: true }) });
    // Named, counted with those acknowledged, and by when it began: yesterday, so with its day.
    await row('Old')
      .getByText(/^event 1 and 1 more, the oldest since \d+ \w+/)
      .waitFor();
    await row('Busy')
      .getByText(/^event 1 and 129 more, the oldest since/)
      .waitFor();
    await row('Old').getByRole('link', { name: 'Old', exact: true }).click();
    await expect.poll(() => page.locator('.alarm').count()).toBe(2);
    await page
      .locator('.alarm')
      .getByText(/Acknowledged at/)
      .waitFor();
    await page.goto(`${service.url}/console/devices/${busy.deviceAuthUuid}`);
    await page.getByRole('link', { name: '30 more alarms of this device' }).waitFor();
    expect(await page.locator('.alarm').count()).toBe(100);
    // Closed, and nobody recorded when it was over: it says so, with its day, and no duration.
    await sqlRun(
      `update ${schema}.alarm set closed_at = now(), closed_by = 'cleared' where device_uuid = $1`,
      [busy.deviceAuthUuid],
    );
    await page.goto(`${service.url}/console/alarms?state=closed`);
    const time = page.locator('.alarm-row-time').first();
    await time.getByText(/^.+ · end not recorded$/).waitFor();
    expect(faults).toEqual([]);
  });

  test('chips count within the search and the label, as the API does', async () => {
    const devices = ['Wagon 1', 'Wagon 2', 'Cart 3'].map((name) => ({
      device: { name },
      module: [],
      labels: ['rolling', name.slice(0, 4)],
    }));
    await call('POST', '/v2/devices/batch', { devices });
    const { page, faults } = await open('?label=rolling');
    const chip = (name: RegExp) => page.locator('.chips').getByRole('link', { name });
    await chip(/^All 3$/).waitFor();
    await page.getByRole('searchbox').fill('wagon');
    await chip(/^All 2$/).waitFor();
    await chip(/^Not connected 2$/).click();
    await page.getByText('1 to 2 of 2').waitFor();
    await chip(/^Online 0$/).click();
    await chip(/^All 2$/).waitFor();
    await page.getByText('No matching devices').waitFor();
    await page
      .getByRole('button', { name: 'Show all devices' })
      .or(page.getByRole('link', { name: 'Show all devices' }))
      .waitFor();
    // A view is a name for what the URL says; it is there again after a reload, and on its list only.
    await page.getByRole('link', { name: /^All 2$/ }).click();
    await page.getByText('Views', { exact: true }).click();
    await page.getByLabel('Name of this view').fill('Wagons');
    await page.getByRole('button', { name: 'Save view' }).click();
    await page.goto(`${service.url}/console/alarms?state=closed`);
    await page.getByText('Views', { exact: true }).click();
    await page.getByLabel('Name of this view').waitFor();
    expect(await page.getByRole('link', { name: 'Wagons' }).count()).toBe(0);
    await page.goto(`${service.url}/console/`);
    await page.getByText('Views', { exact: true }).click();
    await page.getByRole('link', { name: 'Wagons' }).click();
    await page.getByText('1 to 2 of 2').waitFor();
    expect(await page.getByRole('searchbox').inputValue()).toBe('wagon');
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      label: 'rolling',
      search: 'wagon',
    });
    await page.getByRole('button', { name: 'Remove the view Wagons' }).click();
    await page.getByRole('link', { name: 'Wagons' }).waitFor({ state: 'detached' });
    type Counts = { counts: Record<string, number> };
    type Configured = { device: object; module: object[] };
    // By a value, by one beyond its limit, and by the version of the software.
    const { uuid: hot, send } = await addDevice('Kettle', [temperature]);
    const kettle = await call<Configured>('GET', `/v2/devices/${hot}/configuration`);
    await call('PUT', `/v2/devices/${hot}/configuration`, {
      device: { ...kettle.device, swVersion: '2.7' },
      module: kettle.module,
    });
    await send({ sId: '0x10', val: 81.5 });
    await page.goto(`${service.url}/console/?search=kettle`);
    await page.getByText('1 to 1 of 1').waitFor();
    const found = async (value: string, filter: string) => {
      await page.getByText('More filters', { exact: true }).click();
      await page.getByLabel('Number').fill(value);
      await page.getByLabel('Software version').fill('2.7');
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.getByText(filter).waitFor();
    };
    await found('81', '0x10 above 81');
    await page.getByText('Software 2.7').waitFor();
    await page.getByText('1 to 1 of 1').waitFor();
    await found('82', '0x10 above 82');
    await page.getByText('No matching devices').waitFor();
    await chip(/^All 0$/).waitFor();
    const { counts } = await call<Counts>(
      'GET',
      '/v2/devices?counts=true&label=rolling&search=wagon&presence=online',
    );
    expect(counts).toMatchObject({ within: 2, matching: 0, offline: 2, online: 0 });
    expect(faults).toEqual([]);
  });
});
