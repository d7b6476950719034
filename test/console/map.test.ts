import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { browserPath, checkPage, openBrowser, openSignedIn } from './browser.ts';
import { acceptProfile, callAs } from './filled.ts';
import { box, coldRoom } from './filled-data.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);
const places = [
  ['Van 1', 52.52, 13.4],
  ['Van 2', 52.53, 13.42],
  ['Van 3', 48.14, 11.58],
] as const;

describe.skipIf(browserPath === null)('maps', () => {
  const asked: { url: string; referrer: string | undefined }[] = [];
  const tiles = createServer((request, response) => {
    asked.push({ url: request.url ?? '', referrer: request.headers.referer });
    response.setHeader('Content-Type', 'image/png').end(pixel);
  });
  let service: TestService;
  let browser: Browser;
  let first: string;

  beforeAll(async () => {
    await new Promise<void>((resolve) => void tiles.listen(0, '127.0.0.1', resolve));
    const { port } = tiles.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/{z}/{x}/{y}.png`;
    service = await consoleService((config) => ({
      ...config,
      console: { ...config.console, tiles: { url, attribution: 'Maps of somebody' } },
    }));
    browser = await openBrowser();
    const call = callAs(service.url, await makeAccount(service.url));
    for (const [name, lat, long] of places) {
      const registration = await call<Registration>('POST', '/v2/devices', {
        device: { name },
        module: [{ moduleId: 'm', senses: [{ sId: '0x12', name: 'Position' }] }],
      });
      first ??= registration.deviceAuthUuid;
      const device = await connectDevice(registration);
      await device.publish('up/measurements', { sId: '0x12', val: { lat, long } });
      await device.end();
    }
    // Sends once a minute and sleeps between; is too warm.
    const {
      device: named,
      module: [climate],
    } = box('Van 4', '');
    const senses = [...(climate?.senses ?? []), { sId: '0x12', name: 'Position' }];
    const sleeper = await call<Registration>('POST', '/v2/devices', {
      device: named,
      module: [{ moduleId: 'm', senses }],
    });
    const device = await connectDevice(sleeper);
    await call('POST', '/v2/devices/profile', {
      deviceAuthUuids: [sleeper.deviceAuthUuid],
      purposes: [coldRoom],
    });
    await acceptProfile(device);
    const now = Date.now();
    for (const ago of [120_000, 60_000, 0])
      await device.publish('up/measurements', [
        { sId: '0x10', val: 12, ts: now - ago },
        { sId: '0x12', val: { lat: 41.9, long: 12.5 }, ts: now - ago },
      ]);
    await device.end();
  });
  afterAll(async () => {
    await browser?.close();
    await service?.close();
    tiles.close();
  });

  const open = (look: 'light' | 'dark' | 'phone', path: string) =>
    openSignedIn(browser, look, { url: service.url, credentials: person, path });

  test.each(['light', 'dark', 'phone'] as const)(
    'of the fleet: near devices are one, and a key takes them apart, %s',
    async (look) => {
      const watched = await open(look, 'map');
      const { page } = watched;
      if (look === 'phone') await page.setViewportSize({ width: 320, height: 640 });
      const both = page.getByRole('button', { name: '2 devices here' });
      await both.waitFor();
      await page.getByText('4 devices with a position').first().waitFor();
      await page.getByRole('button', { name: 'Van 4, in alarm' }).waitFor();
      await page.getByText('Maps of somebody').waitFor();
      await checkPage(watched, `map-${look}`);
      await both.focus();
      await page.keyboard.press('Enter');
      for (const name of ['Van 1', 'Van 2'])
        await page.getByRole('button', { name, exact: true }).waitFor();
      const names = () => page.locator('.map-list a').allInnerTexts();
      await expect.poll(names).toEqual(['Van 1', 'Van 2']);
      await page.getByRole('link', { name: 'Van 1' }).click();
      await page.getByRole('heading', { name: 'Van 1' }).waitFor();
      expect(watched.faults).toEqual([]);
      await page.context().close();
    },
  );

  test('a place that was chosen stays chosen; it says how its device stands, and can be zoomed to', async () => {
    const { page, faults } = await open('light', 'map');
    const mark = page.getByRole('button', { name: 'Van 4, in alarm' });
    await mark.click();
    const entry = page.locator('.map-list li');
    // Its next value is not overdue: it is asleep, not away.
    await entry.getByText('Asleep').waitFor();
    const scale = () => page.locator('.map-scale text').innerHTML();
    expect(await scale()).toContain('km');
    await Promise.all([
      page.waitForResponse((response) => response.url().includes('/v2/measurements/latest?limit')),
      page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`),
    ]);
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))');
    expect(await mark.getAttribute('aria-pressed')).toBe('true');
    await entry.getByRole('button', { name: 'Zoom in' }).click();
    await expect.poll(scale).toMatch(/\d m$/);
    await page.getByRole('button', { name: 'All devices' }).click();
    await expect.poll(scale).toContain('km');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('without the server of tiles there are outlines, and it is said why', async () => {
    const { page } = await open('light', 'map');
    await page.getByText('Maps of somebody').waitFor();
    expect(await page.locator('.map-land').count()).toBe(0);
    await page.route(/\/\d+\/\d+\/\d+\.png$/, (route) => route.abort());
    await page.reload();
    await page.getByText('The map server is not responding').waitFor();
    expect(await page.locator('.map-land').count()).toBe(1);
    expect(await page.getByText('Maps of somebody').count()).toBe(0);
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Maps of somebody').waitFor();
    await expect.poll(() => page.locator('.map-land').count()).toBe(0);
    expect(await page.getByText('The map server is not responding').count()).toBe(0);
    await page.context().close();
  });

  test('a device has tiles of the one server that is set, and links to other maps', async () => {
    asked.length = 0;
    const watched = await open('light', `devices/${first}`);
    const { page } = watched;
    await page.locator('.map-tiles img').first().waitFor();
    const geo = page.getByRole('link', { name: 'Open in maps' });
    expect(await geo.getAttribute('href')).toBe('geo:52.52,13.4');
    // No dot lies under a button.
    const [dot, buttons] = await Promise.all(
      ['.map-newest', '.map-buttons'].map((each) => page.locator(each).boundingBox()),
    );
    expect(dot?.y ?? 0).toBeGreaterThan((buttons?.y ?? 0) + (buttons?.height ?? 0));
    await expect.poll(() => asked.length).toBeGreaterThan(3);
    for (const { url, referrer } of asked)
      expect([url, referrer]).toEqual([
        expect.stringMatching(/^\/\d+\/\d+\/\d+\.png$/),
        `${service.url}/`,
      ]);
    await checkPage(watched, 'map-device-light');
    await page.context().close();
  });
});
