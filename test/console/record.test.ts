import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { browserPath, checkPage, openBrowser, openSignedIn } from './browser.ts';
import { acceptProfile, callAs, type Call } from './filled.ts';
import { readPdf } from './pdf-text.ts';
import { consoleService, makeAccount, person, type TestService } from './service.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** The middle of a day of last month, at noon UTC. */
const now = new Date();
const day = (date: number, hours = 0) =>
  Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, date, hours);
const monthId = new Date(day(15)).toISOString().slice(0, 7);

const senses = [
  { sId: '0x10', name: 'Temperature', unit: '°C', decimals: 1, min: -40, max: 60 },
  { sId: '0x11', name: 'Humidity', unit: '%', decimals: 0, min: 0, max: 100 },
  { sId: '0x12', name: 'Door open', decimals: 0, min: 0, max: 1 },
];
const cause = { sId: '0x10', orderId: 1, thresholds: { isGt: 8 } };
const warm = {
  evId: 1,
  name: 'Too warm',
  eventLog: true,
  actions: { alarm: true },
  causes: [cause],
};
const purposes = [
  { puId: 1, name: 'Cold', initStId: 1, states: [{ stId: 1, name: 'watched', events: [warm] }] },
];

type Bucket = { sId: string; ts: number; min: number; avg: number; max: number; count: number };

describe.skipIf(browserPath === null)('the month of a device on paper', () => {
  let service: TestService;
  let browser: Browser;
  let call: Call;
  let uuid: string;

  beforeAll(async () => {
    service = await consoleService();
    browser = await openBrowser();
    call = callAs(service.url, await makeAccount(service.url));
    await call('PUT', '/v2/accounts', { timeZone: 'Europe/Berlin', language: 'en', name: 'Ada' });
    const registration = await call<Registration>('POST', '/v2/devices', {
      device: { name: 'Cold room 7', serial: 'CR-7' },
      module: [{ moduleId: 'm', senses }],
    });
    uuid = registration.deviceAuthUuid;
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });
    const device = await connectDevice(registration);
    await acceptProfile(device);
    const publish = (values: object[]) => device.publish('up/measurements', values);
    // Nothing from 10 to 13 o'clock of the 5th, and nothing on the 7th.
    for (let ts = day(3); ts < day(9); ts += 10 * minuteMs) {
      if ((ts >= day(5, 10) && ts < day(5, 13)) || (ts >= day(7) && ts < day(8))) continue;
      const wave = Math.sin(ts / hourMs);
      await publish([
        { sId: '0x10', ts, val: Math.round((4 + wave) * 10) / 10 },
        { sId: '0x11', ts, val: Math.round(60 + 5 * wave) },
        { sId: '0x12', ts, val: 0 },
      ]);
    }
    await publish([{ sId: '0x10', ts: day(10, 12), val: 9.5 }]);
    await publish([{ sId: '0x10', ts: day(10, 12.5), val: 11.7 }]);
    const { alarms } = await call<{ alarms: { alarmId: number }[] }>('GET', '/v2/alarms');
    const [{ alarmId } = { alarmId: 0 }] = alarms;
    await call('POST', `/v2/alarms/${alarmId}/acknowledge`, { note: 'The door was open.' });
    await publish([{ sId: '0x10', ts: day(10, 13), val: 4 }]);
    await device.end();
  });
  test('a chart leads to the month that it shows', async () => {
    const path = `devices/${uuid}?from=${day(4)}&to=${day(6)}`;
    const { url } = service;
    const { page } = await openSignedIn(browser, 'light', { url, credentials: person, path });
    await page.getByRole('link', { name: 'Month for printing' }).click();
    await page.locator('.record-signature').waitFor();
    expect(new URL(page.url()).searchParams.get('month')).toBe(monthId);
    await page.context().close();
  });

  afterAll(async () => {
    await browser?.close();
    await service?.close();
  });

  test.each(['en', 'de'] as const)(
    'its figures are those of the interface, %s',
    async (language) => {
      await call('PUT', '/v2/accounts', { language });
      const path = `record/${uuid}?month=${monthId}`;
      const watched = await openSignedIn(browser, 'light', {
        url: service.url,
        credentials: person,
        path,
      });
      const { page } = watched;
      await page.locator('.record-signature').waitFor();
      await checkPage(watched, `record-${language}-light`);
      const pages = readPdf(await page.pdf({ preferCSSPageSize: true }));
      for (const { widthPt, heightPt } of pages)
        expect([Math.round(widthPt), Math.round(heightPt)]).toEqual([595, 842]);
      const text = pages
        .map((each) => each.text)
        .join(' ')
        .replaceAll(/\s+/g, '');
      const query = `start=${day(1)}&end=${day(25)}&bucket=1d&tz=Europe/Berlin`;
      const { buckets } = await call<{ buckets: Bucket[] }>(
        'GET',
        `/v2/measurements/${uuid}?${query}`,
      );
      const say = (value: number, digits: number) =>
        new Intl.NumberFormat(language, {
          minimumFractionDigits: digits,
          maximumFractionDigits: digits,
        }).format(value);
      const both = Map.groupBy(buckets, ({ ts }) => ts);
      expect(both.size).toBeGreaterThan(5);
      for (const own of both.values()) {
        const cells = [
          ['0x10', 1],
          ['0x11', 0],
        ].map(([sId, digits]) => {
          const found = own.find((each) => each.sId === sId);
          if (!found) return language === 'en' ? 'novalues' : 'keineWerte';
          return [found.min, found.avg, found.max]
            .map((each) => say(each, Number(digits)))
            .join('');
        });
        expect(text).toContain(cells.join(''));
      }
      // What the month was, what happened, and who took care of it.
      const words = {
        en: [
          'Signature',
          'Toowarm',
          'above8°C',
          'upto11.7°C',
          '(1hr)',
          'Ada',
          'Doorwasopen',
          '3hr',
          'Asof',
          '1/',
        ],
        de: [
          'Unterschrift',
          'Toowarm',
          'über8°C',
          'Stand',
          'bis11,7°C',
          '(1Std.)',
          'Ada',
          'doorwasopen',
          '3Std.',
          '1/',
        ],
      }[language];
      for (const word of words) expect(text.toLowerCase()).toContain(word.toLowerCase());
      // A switch has no mean that anybody signs.
      expect(text).not.toContain('Dooropen');
      expect(text).not.toContain('PDF');
      // What was measured before it was added says that there was one.
      expect(text).not.toContain(language === 'en' ? 'notaddedyet' : 'nochnichtangelegt');
      expect(text).not.toContain(language === 'en' ? 'wasadded' : 'angelegt');
      expect(watched.faults).toEqual([]);
      await page.context().close();
    },
  );

  test('days before there was a device are neither without values nor a gap', async () => {
    await call('PUT', '/v2/accounts', { language: 'en' });
    const body = { protocol: 'http', device: { name: 'New' }, module: [{ moduleId: 'm', senses }] };
    const added = await call<Registration>('POST', '/v2/devices', body);
    const sent = await fetch(`${service.url}/devices/${added.deviceAuthUuid}/up/measurements`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${added.deviceAuthToken}`,
        'Content-Type': 'application/json',
      },
      body: JSON.stringify([
        { sId: '0x10', val: 4 },
        { sId: '0x11', val: 60 },
        { sId: '0x12', val: 0 },
      ]),
    });
    expect(sent.status).toBe(200);
    const watched = await openSignedIn(browser, 'light', {
      url: service.url,
      credentials: person,
      path: `record/${added.deviceAuthUuid}`,
    });
    const { page } = watched;
    await page.locator('.record-signature').waitFor();
    const rows = await page.locator('.record-days tbody tr').allInnerTexts();
    const before = rows.slice(0, -1);
    for (const row of before) expect(row.match(/not added yet/g), row).toHaveLength(2);
    expect(rows.join(' ')).not.toContain('no values');
    const gaps = page.locator('.record-part', { hasText: 'Periods without data' });
    const said = await gaps.innerText();
    expect(said).toMatch(/The device was added on .*\. Periods before that are not listed\./);
    expect(said).toContain('There are none of the kind described below.');
    expect(watched.faults).toEqual([]);
    await page.context().close();
  });
});
