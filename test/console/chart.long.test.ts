import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  browserPath,
  checkPage,
  cookiesOf,
  openBrowser,
  openPage,
  openSignedIn,
  type Look,
  type Watched,
} from './browser.ts';
import { hourMs, lengthOf, longestTask, show, touch, type Trace } from './chart-hands.ts';
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
    const { url } = service;
    const at = `devices/${charted.uuid}${path}`;
    return openSignedIn(browser, look, { url, credentials: person, path: at });
  };
  test.each(['light', 'dark', 'phone'] as const)(
    'states, limits, alarms and events, %s',
    async (look) => {
      const watched = await open(look, '?range=6h');
      const { page } = watched;
      await page.locator('.strip-state .part').first().waitFor();
      await page.locator('.chart canvas').first().waitFor();
      await page.locator('.mark').first().click();
      await page.locator('.opened').waitFor();
      await page.locator('.map-land').waitFor({ state: 'attached' });
      await checkPage(watched, `chart-${look}`);
      await page.context().close();
    },
  );

  const card = (page: Page) => page.locator('.card').filter({ hasText: 'Temperature' });

  test('values are live; a hidden tab has no stream, and resumes it', async () => {
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

  test('keys, fingers and Back move through time; the URL has the range', async () => {
    const { page, faults } = await open('phone', '?range=6h');
    const chart = page.locator('.chart-keys').first();
    await page.locator('.chart canvas').first().waitFor();
    const rangeOf = () => {
      const { searchParams } = new URL(page.url());
      return { from: Number(searchParams.get('from')), to: Number(searchParams.get('to')) };
    };
    await chart.focus();
    await page.keyboard.press('+');
    await expect.poll(lengthOf(rangeOf)).toBe(3 * hourMs);
    const zoomed = rangeOf();
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => rangeOf().from).toBe(zoomed.from - 0.75 * hourMs);
    await page.keyboard.press('-');
    await expect.poll(lengthOf(rangeOf)).toBe(6 * hourMs);
    await page.goBack();
    await page.goBack();
    expect(rangeOf()).toEqual(zoomed);
    await page.reload();
    await page.locator('.chart canvas').first().waitFor();
    await touch(page, chart, [[0.4], [0.5], [0.6], [0.7]]);
    await expect.poll(() => rangeOf().from).toBeLessThan(zoomed.from);
    expect(lengthOf(rangeOf)()).toBeCloseTo(3 * hourMs, -2);
    const pairs = [0.1, 0.2, 0.3].map((by) => [0.5 - by, 0.5 + by]);
    await touch(page, chart, pairs);
    await expect.poll(lengthOf(rangeOf)).toBeLessThan(1.5 * hourMs);
    await page.goBack();
    await page.goBack();
    expect(rangeOf()).toEqual(zoomed);
    await page.goBack();
    expect(new URL(page.url()).search).toBe('?range=6h');
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('a table contains what is drawn, a CSV what was measured, and both what arrives meanwhile', async () => {
    const { page, faults } = await open('light', '?range=6h&senses=0x10');
    await page.getByText('Show as table').first().click();
    const rows = page.locator('.chart-table tbody tr');
    await rows.nth(199).waitFor();
    await charted.publish({ sId: '0x10', val: 3.3 });
    await rows.first().getByText('3.3').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as CSV' }).click(),
    ]);
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n');
    expect(lines[0]).toBe('\ufefftime,device,sensor,value,unit,sId');
    const ofSense = lines.filter((line) => line.endsWith(',0x10'));
    expect(ofSense.at(-1)).toMatch(/,Van 12,Temperature,3.3,°C,0x10$/);
    expect(lines.length).toBeGreaterThan(200);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('another device and one that was removed beside it; the CSV has all of them, and positions', async () => {
    const range = '?range=6h&senses=0x10,0x11';
    const { page, faults } = await open('light', `${range}&with=${charted.beside},${randomUUID()}`);
    const tools = page.locator('.chart-tools');
    await tools.getByRole('button', { name: 'Remove Van 13 from the charts' }).waitFor();
    await page.locator('.chart .legend').getByText('Van 13').waitFor();
    const strip = page.getByRole('img', { name: /^Door open: .*\boff \d.*; on \d/ });
    await strip.waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as CSV' }).click(),
    ]);
    const csv = await readFile(await download.path(), 'utf8');
    expect(csv).toMatch(/,Van 12,Temperature,/);
    expect(csv).toContain(',Van 13,Temperature,7.7,°C,0x10\r\n');
    expect(csv).toContain(',Van 12,Position,"52.5, 13.4",,0x12\r\n');
    await tools.getByRole('button', { name: 'Remove Removed device from the charts' }).click();
    await expect.poll(() => new URL(page.url()).searchParams.get('with')).toBe(charted.beside);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test('the page says when the stream is down, and reconnects by itself', async () => {
    const { page } = await open('light');
    await card(page).locator('.value').waitFor();
    await page.route('**/v2/streams', (route) => route.abort());
    await show(page, 'hidden');
    await show(page, 'visible');
    await page.getByText(/^No live data since \d\d:\d\d/).waitFor();
    await page.unroute('**/v2/streams');
    await page.getByText(/^No live data since/).waitFor({ state: 'detached' });
    await charted.publish({ sId: '0x10', val: 2.5 });
    await card(page).getByText('2.5 °C').waitFor();
    await page.context().close();
  });

  test('an alarm leads to the chart at its time, and a mark to its reason', async () => {
    const { page, faults } = await open('light');
    await page.goto(`${service.url}/console/alarms?state=closed`);
    await page.getByRole('link', { name: 'Chart at that time' }).first().click();
    await page.locator('.strip-alarm').getByText('Too warm').first().waitFor({ state: 'attached' });
    await page
      .getByRole('button', { name: /^2 events/ })
      .first()
      .click();
    await page.locator('.opened').getByText('Temperature was 9.0 °C, above 8 °C.').waitFor();
    expect(new URL(page.url()).searchParams.get('from')).not.toBe(null);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test("on the day when 2 to 3 o'clock comes twice the axis shows both, and days begin at midnight", async () => {
    const cookies = await cookiesOf(service.url, person);
    const { page } = await openPage(browser, 'light', { cookies });
    // There is no other way to read the text of a canvas.
    await page.addInitScript(`globalThis.drawn = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...more) {
        drawn.push(text);
        return fillText.call(this, text, ...more);
      }`);
    const drawnOver = async (start: string, hours: number, one: string) => {
      const from = Date.parse(start);
      const query = `senses=0x10&from=${from}&to=${from + hours * hourMs}`;
      await page.goto(`${service.url}/console/devices/${charted.uuid}?${query}`);
      const drawn = () => page.evaluate<string[]>('drawn');
      await expect.poll(drawn, { timeout: 60_000 }).toContain(one);
      return drawn();
    };
    const days = await drawnOver('2026-10-24T00:00:00+02:00', 73, '12:00');
    expect(days).toEqual(expect.arrayContaining(['24 Oct', '25 Oct', '26 Oct', '27 Oct']));
    expect(days).not.toContain('23:00');
    const night = await drawnOver('2026-10-25T00:00:00+02:00', 6, '03:00');
    const first = night.slice(night.indexOf('01:00'), night.indexOf('03:00') + 1);
    expect(first.filter((text) => text.endsWith(':00'))).toEqual([
      '01:00',
      '02:00',
      '02:00',
      '03:00',
    ]);
    await page.context().close();
  });

  test('90 days are zoomed to minutes without a long task', async () => {
    const { page } = await open('light');
    await page.locator('.chart canvas').first().waitFor();
    await browser.startTracing(page, { categories: ['toplevel', 'disabled-by-default-toplevel'] });
    const settled = () =>
      Promise.all([
        page.waitForResponse((it) => it.url().includes('bucket=')),
        page.waitForResponse((it) => it.url().includes('/v2/events?')),
      ]);
    const [whole] = await Promise.all([settled(), page.getByTitle('90 days').click()]);
    expect(whole.map((it) => it.status())).toEqual([200, 200]);
    await page.locator('.chart-keys').first().focus();
    for (let step = 0; step < 12; step += 1)
      await Promise.all([settled(), page.keyboard.press('+')]);
    await page.locator('.chart-keys').first().press('ArrowLeft');
    const trace = JSON.parse((await browser.stopTracing()).toString()) as Trace;
    const longestMs = longestTask(trace);
    console.log(`The longest task took ${longestMs.toFixed(1)} ms of processor time.`);
    expect(longestMs).toBeGreaterThan(0);
    // On an idle machine it takes half of that, or less.
    expect(longestMs).toBeLessThan(100);
    const { searchParams } = new URL(page.url());
    const minutes = (Number(searchParams.get('to')) - Number(searchParams.get('from'))) / 60_000;
    expect(minutes).toBeLessThan(60);
    await page.context().close();
  });
});
