import { pino } from 'pino';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { long, short } from '../support/share.ts';
import { browserPath, checkPage, openBrowser, openSignedIn, type Look } from './browser.ts';
import { fill, hostile, person, type Filled } from './filled.ts';
import { addOverHttp } from './over-http.ts';
import { consoleService, type TestService } from './service.ts';
import { changeUnitAlone } from './wrong-unit.ts';

const thermometer = {
  device: { name: 'Greenhouse' },
  module: [
    {
      moduleId: 'm',
      senses: [{ sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1, min: -40, max: 85 }],
    },
  ],
};

// Only if the machine has Chromium; if not, the last line of the run says so.
describe.skipIf(browserPath === null)('a device in the console', () => {
  const logged: Record<string, unknown>[] = [];
  const write = (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>);
  let service: TestService;
  let browser: Browser;
  let filled: Filled;
  let token: string;

  beforeAll(async () => {
    service = await consoleService(undefined, pino({ level: 'warn' }, { write }));
    browser = await openBrowser();
    filled = await fill(service);
    const login = await post<{ accountAuthToken: string }>('/v2/accounts/login', person, '');
    token = login.accountAuthToken;
  });
  afterAll(async () => {
    await browser?.close();
    await filled?.close();
    await service?.close();
  });

  async function post<T>(path: string, body: unknown, as = token): Promise<T> {
    const headers = { Authorization: `Bearer ${as}`, 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(service.url + path, init);
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as T;
  }
  const addDevice = (name: string) =>
    post<Registration>('/v2/devices', { ...thermometer, device: { name } });
  const open = (look: Look, path: string) =>
    openSignedIn(browser, look, { url: service.url, credentials: person, path });
  const publish = async (registration: Registration, payload: unknown) => {
    const device = await connectDevice(registration);
    await device.publish('up/measurements', payload);
    await device.end();
  };
  const tab = (page: Page, name: string) =>
    page.locator('.tabs').getByRole('link', { name, exact: true }).click();

  /** A device whose event requests an SMS that this account may not send. */
  async function ringInVain(): Promise<string> {
    const device = await addDevice('Roof');
    const events = [
      {
        evId: 1,
        name: 'Too hot',
        eventLog: true,
        actions: { sms: { text: 'Open the window', phoneNumber: ['+4915112345611'] } },
        causes: [{ sId: '0x10', orderId: 1, thresholds: { isGt: 30 } }],
      },
    ];
    const states = [{ stId: 1, name: 'watched', events }];
    const purposes = [{ puId: 1, name: 'Heat', initStId: 1, states }];
    const deviceAuthUuids = [device.deviceAuthUuid];
    await post('/v2/devices/profile', { deviceAuthUuids, purposes });
    for (const val of [20, 31]) await publish(device, { sId: '0x10', val });
    return device.deviceAuthUuid;
  }

  short('after setting a wrong unit one sees why values are rejected, and fixes it', async () => {
    const device = await addDevice('Greenhouse');
    await publish(device, { sId: '0x10', val: 98.6 });
    const watched = await open('light', '');
    const { page } = watched;
    await page.locator(`.row-link[href$="${device.deviceAuthUuid}"]`).click();
    await page.getByText('Temperature was 98.6 °C; at most 85 °C is allowed.').first().waitFor();
    await checkPage(watched, 'device-trouble-light');
    await page.getByRole('link', { name: 'What to do' }).click();
    // The tabs are below the chart: a link to one scrolls to it.
    await expect.poll(() => page.evaluate('scrollY')).toBeGreaterThan(0);
    await page.getByText('Does the device measure in another unit?').waitFor();
    await checkPage(watched, 'device-refused-light');
    await page.getByRole('link', { name: 'Change the allowed range' }).click();
    const form = page.getByRole('group', { name: 'Temperature' });
    await changeUnitAlone(page, () => publish(device, { sId: '0x10', val: 98.7 }));
    await page.getByRole('button', { name: 'Save name and sensors' }).click();
    await form.getByText('“Minimum” is greater than “Maximum”').waitFor();
    await checkPage(watched, 'device-settings-wrong-light');
    await form.getByLabel('Maximum').fill('185');
    await page.getByRole('button', { name: 'Save name and sensors' }).click();
    await page.getByText('Waiting for the next value').waitFor();
    await publish(device, { sId: '0x10', val: 99.1 });
    await page.getByText('It works. Stored: Temperature 99.1 °F').waitFor();
    await checkPage(watched, 'device-stored-light');
    await page.locator('.card').getByText('99.1 °F').waitFor();
    // It was rejected today, but no longer is.
    await page.getByText(/rejected in the last 24 hours/).waitFor();
    expect(await page.locator('.trouble').count()).toBe(1);
    expect(watched.faults).toEqual([]);
    await page.context().close();
  });

  short('a message outside the topics of its device: reported by REST, log and page', async () => {
    const device = await addDevice('Attic');
    const uuid = device.deviceAuthUuid;
    const topic = `devices/${filled.uuids.boxes}/up/measurements`;
    const { client } = await connectDevice(device);
    const closed = new Promise<void>((resolve) => void client.once('close', () => resolve()));
    client.publish(topic, '{"sId":"0x10","val":4321}', { qos: 0 });
    await closed;
    const init = { headers: { Authorization: `Bearer ${token}` } };
    const rejections = async () => {
      const response = await fetch(`${service.url}/v2/devices/${uuid}/rejections`, init);
      return await response.json();
    };
    await expect.poll(rejections).toMatchObject({
      rejections: [{ reason: 'foreign-topic', topic, payload: '{"sId":"0x10","val":4321}' }],
    });
    expect(logged).toContainEqual(
      expect.objectContaining({ event: 'mqtt.foreign-topic', device: uuid, topic }),
    );
    const watched = await open('light', `devices/${uuid}?tab=rejections`);
    const { page } = watched;
    await page.locator('.rejections summary').click();
    await page.locator('.rejections').getByText(topic).waitFor();
    await page.getByText(/^Publish to the topic on the tab/).waitFor();
    expect(watched.faults).toEqual([]);
    await page.context().close();
  });

  long('a refused login: from where, why, what to do; a new password works', async () => {
    const device = await addDevice('Cellar');
    await expect(connectDevice({ ...device, deviceAuthToken: 'wrong' })).rejects.toThrow(
      'Not authorized',
    );
    const watched = await open('light', `devices/${device.deviceAuthUuid}?tab=rejections`);
    const { page } = watched;
    await page.locator('.rejections').getByText('Wrong password').waitFor();
    await page.getByText('From 127.0.0.1').waitFor();
    await page.getByText(/^The device's login was refused/).waitFor();
    await checkPage(watched, 'device-logins-light');
    await page.getByRole('link', { name: 'Show how this device signs in' }).click();
    await page.getByText(String(device.port)).first().waitFor();
    expect(await page.locator('main').innerText()).not.toContain(device.deviceAuthToken);
    await page.getByRole('button', { name: 'Show password' }).click();
    await page.getByText(device.deviceAuthToken).first().waitFor();
    await checkPage(watched, 'device-access-light');
    await page.getByRole('button', { name: 'Create new password' }).click();
    await page.getByLabel(/^stops working now/).check();
    await checkPage(watched, 'device-rotate-light');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Create new password' }).click();
    await expect.poll(() => page.locator('main').innerText()).not.toContain(device.deviceAuthToken);
    const shown = page.locator('.facts > div', { hasText: 'Password' }).locator('dd');
    const deviceAuthToken = await shown.innerText();
    await publish({ ...device, deviceAuthToken }, { sId: '0x10', val: 7 });
    await page.locator('.card').getByText('7.0 °C').waitFor();
    await expect.poll(() => page.locator('.trouble').count(), { timeout: 60_000 }).toBe(0);
    expect(watched.faults).toEqual([]);
    await page.context().close();
  });

  short('why, why not, who was notified and the profile, in sentences', async () => {
    const watched = await open('dark', `devices/${filled.uuids.boxes}`);
    const { page } = watched;
    await page
      .getByText(/^Temperature was .*\s°C, above 8\s°C; 2 of the last 2 matched, 2 needed\.$/)
      .first()
      .waitFor();
    await tab(page, 'Why not');
    await page.getByText(/^Humidity: .*above 90\s%/).waitFor();
    await checkPage(watched, 'device-whynot-dark');
    await tab(page, 'Notified');
    await page.getByText('Nobody has been notified yet').waitFor();
    await checkPage(watched, 'device-told-dark');
    await page.goto(`${service.url}/console/devices/${await ringInVain()}?tab=told`);
    await page
      .getByText(/^SMS to .*11: not sent .*has not allowed this account to send SMS\.$/)
      .waitFor();
    await checkPage(watched, 'device-told-failed-dark');
    await page.goto(`${service.url}/console/devices/${filled.uuids.boxes}`);
    await tab(page, 'Profile');
    await page.locator('.profiles').getByText('Cold room', { exact: true }).waitFor();
    await page.getByText(/^Active since/).waitFor();
    await checkPage(watched, 'device-profile-dark');
    await page.context().close();
  });

  short('earlier profiles say from when to when, why, and their limits of then', async () => {
    const device = await addDevice('Vault');
    const install = (isGt: number, reason: string) => {
      const causes = [{ sId: '0x10', orderId: 1, thresholds: { isGt } }];
      const events = [{ evId: 1, name: `Above ${isGt}`, eventLog: true, actions: {}, causes }];
      const states = [{ stId: 1, name: 'watched', events }];
      const purposes = [{ puId: 1, name: `Heat ${isGt}`, initStId: 1, states }];
      const deviceAuthUuids = [device.deviceAuthUuid];
      return post(`/v2/devices/profile?reason=${reason}`, { deviceAuthUuids, purposes });
    };
    for (const [limit, reason] of [
      [30, 'first'],
      [40, 'summer'],
    ] as const) {
      await install(limit, reason);
      await publish(device, { sId: '0x10', val: 20 });
    }
    const watched = await open('light', `devices/${device.deviceAuthUuid}?tab=profile`);
    const { page } = watched;
    await page.getByText('Heat 40', { exact: true }).waitFor();
    await page.getByText('Earlier profiles').click();
    const former = page.locator('li', { hasText: 'In force from' });
    await former.getByText('Heat 30', { exact: true }).waitFor();
    expect(await former.count()).toBe(1);
    await former.getByText('By somebody who was logged in. Reason: first').waitFor();
    await former.getByText('What it said').click();
    await former
      .getByText(/30\s°C/)
      .first()
      .waitFor();
    await checkPage(watched, 'device-former-profiles-light');
    await page.context().close();
  });

  short('labels are saved, and a device is removed by typing its name', async () => {
    const { deviceAuthUuid: uuid } = await addDevice(hostile);
    const watched = await open('phone', `devices/${uuid}?tab=settings`);
    const { page } = watched;
    await page.getByLabel('Separated by commas').fill('cellar, cold chain, cellar');
    await page.getByRole('button', { name: 'Save labels' }).click();
    await page.locator('.label').nth(1).waitFor();
    expect(await page.locator('.label').allInnerTexts()).toEqual(['cellar', 'cold chain']);
    await checkPage(watched, 'device-settings-phone');
    await page.getByRole('button', { name: 'Remove device' }).click();
    const dialog = page.getByRole('dialog');
    const remove = dialog.getByRole('button', { name: 'Remove device' });
    await dialog.getByRole('textbox').fill('something else');
    expect(await remove.isDisabled()).toBe(true);
    await dialog.getByRole('textbox').fill(hostile);
    await checkPage(watched, 'device-remove-phone');
    await remove.click();
    await page.getByText(`${hostile} was removed.`).waitFor();
    expect(new URL(page.url()).pathname).toBe('/console/');
    await page.context().close();
  });

  long('a new device: the program to copy, and refusals meanwhile', async () => {
    const watched = await open('phone', 'add');
    const { page } = watched;
    await page.getByLabel('Name').fill('Pump');
    await page.getByRole('button', { name: 'Add the device' }).click();
    for (const [name, says] of [
      ['Python', 'from paho.mqtt import publish'],
      ['Arduino', 'PubSubClient mqtt(network);'],
      ['MicroPython', 'from umqtt.simple import MQTTClient'],
      ['Terminal', 'mosquitto_pub -h 127.0.0.1'],
    ] as const) {
      await page.getByRole('button', { name, exact: true }).click();
      await page.locator('.copy-text').getByText(says).waitFor();
    }
    const uuid = await page.locator('.facts dd').nth(2).innerText();
    const [host = '', port = ''] = await page.locator('.facts dd').allInnerTexts();
    const registration = { protocol: 'mqtt', host, port: Number.parseInt(port, 10) };
    const login = { deviceAuthUuid: uuid, deviceAuthToken: 'wrong' };
    await expect(connectDevice({ ...registration, ...login } as Registration)).rejects.toThrow(
      'Not authorized',
    );
    await page.getByText('Wrong password').waitFor();
    await checkPage(watched, 'connect-refused-phone');
    await page.context().close();
  });

  long('a new device over HTTP: a URL, and its first value', async () => {
    const watched = await open('phone', 'add');
    await addOverHttp(watched);
    await watched.page.context().close();
  });

  long(
    'of a profile with states the numbers change; the rest only after confirmation',
    async () => {
      const { boxes } = filled.uuids;
      const watched = await open('light', `watch/${boxes}`);
      const { page } = watched;
      const installed = async () => {
        const headers = { Authorization: `Bearer ${token}` };
        const path = `${service.url}/v2/devices/${boxes}/configuration`;
        const answer = await fetch(path, { headers });
        const { currentProfile, pendingProfile } = (await answer.json()) as Record<
          'currentProfile' | 'pendingProfile',
          { purposes?: unknown }
        >;
        return JSON.stringify(pendingProfile.purposes ?? currentProfile.purposes);
      };
      const before = await installed();
      expect(before).toContain('"isGt":8');
      const save = page.getByRole('button', { name: 'Save limits' });
      const saveAndComeBack = async () => {
        await save.click();
        await page.getByText(/^Saved\./).waitFor();
        await page.goto(`${service.url}/console/watch/${boxes}`);
      };
      await page.getByLabel(/above/).first().fill('7');
      await saveAndComeBack();
      expect(await installed()).toBe(before.replace('"isGt":8', '"isGt":7'));

      const dialog = page.getByRole('dialog');
      const replace = page.getByRole('button', { name: 'Use simple limits instead' });
      await replace.click();
      await dialog.getByText('Cold room').waitFor();
      await checkPage(watched, 'watch-replace-light');
      await dialog.getByRole('button', { name: 'Cancel' }).click();
      await replace.click();
      await dialog.getByRole('button', { name: 'Enter simple limits' }).click();
      await page.getByText(/^Saving replaces the whole profile/).waitFor();
      expect(await installed()).toContain('"isGt":7');
      await page.getByLabel('Alarm above').first().fill('9');
      await saveAndComeBack();
      const replaced = await installed();
      expect(replaced).toContain('"isGt":9');
      expect(replaced).not.toContain('Cold room');
      await page.context().close();
    },
  );
});
