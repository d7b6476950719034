import { readFile } from 'node:fs/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Purpose } from '../../../src/contract/purpose.ts';
import { browserPath, pageLoaded, takePicture } from '../browser.ts';
import { door, type Installed, limitsOf, temperature, useWorld } from './world.ts';

// What the page says, against the API and the data. Only if the machine has Chromium; if not, the run says so.
describe.skipIf(browserPath === null)('the console tells the truth of limits and values', () => {
  const { addDevice, call, open, token, url } = useWorld();

  test('limits are the numbers that were typed, and impossible ones are refused', async () => {
    const { uuid, send } = await addDevice('Freezer', [temperature, door]);
    await send({ sId: '0x10', val: -20.4 }, { sId: '0x11', val: 0 });
    await call('PUT', '/v2/accounts', { language: 'de' });
    onTestFinished(() => call('PUT', '/v2/accounts', { language: 'en' }).then(() => undefined));
    // The browser is in English.
    const { page, faults } = await open(`watch/${uuid}`);
    await page.getByText('neuester Wert -20,4 °C').waitFor();
    const field = (name: string) => page.getByLabel(name, { exact: true }).first();
    expect(await field('Alarm unter').getAttribute('inputmode')).toBe('text');
    const save = () => page.getByRole('button', { name: 'Grenzen speichern' }).click();
    await field('Alarm unter').fill('10,5');
    await field('Alarm über').fill('9');
    await save();
    await page.getByText('muss kleiner sein als 9 °C').waitFor();
    await field('Alarm über').fill('99');
    await field('Alarm unter').fill('acht');
    await save();
    await page.getByText('Geben Sie eine Zahl ein, etwa 21,5').waitFor();
    await field('Alarm unter').fill('\u221230,5');
    await save();
    await page.getByText('Der Bereich des Sensors endet bei 85 °C').waitFor();
    expect(await limitsOf(call, uuid)).toEqual([]);
    await field('Alarm über').fill('-10,5');
    const doors = page.getByRole('group', { name: /^Door open/ });
    expect(await doors.getByRole('textbox').count()).toBe(0);
    await doors.getByLabel('Alarm bei').selectOption('an');
    await save();
    await page.getByText('Gespeichert.').waitFor();
    expect(await limitsOf(call, uuid)).toEqual([
      ['Temperature über -10,5\u00a0°C', { isGt: -10.5 }, undefined],
      ['Temperature unter -30,5\u00a0°C', { isLt: -30.5 }, undefined],
      ['Door open: an', { isOneOf: [1] }, 600_000],
    ]);
    await page.goto(`${url()}/console/watch/${uuid}`);
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
    await page.goto(`${url()}/console/watch/${uuid}`);
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
    await page.getByText('Moves the device from “cold” to “warm”').waitFor();
    await page.getByText('Margin: 2\u00a0°C.').waitFor();
    await page.getByLabel('Temperature below').fill('9');
    await page.getByRole('button', { name: 'Save limits' }).click();
    await page.getByText('This limit must be at most the other one').waitFor();
    expect(await installed()).toEqual(before);
    await page.getByLabel('Temperature below').fill('5,5');
    await page.getByText('Margin: 2.5\u00a0°C.').waitFor();
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
    const { ok } = await fetch(`${url()}/v2/measurements/import`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token()}`, 'Content-Type': 'application/x-ndjson' },
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
    await page.goto(`${url()}/console/devices/${uuid}?range=30d`);
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
    await page.goto(`${url()}/console/devices/${uuid}?range=7d&compare=7d&with=${uuid}`);
    await page.locator('.legend').getByText('The week before').waitFor();
    await page.locator('.legend').getByText('Water meter').waitFor();
    expect(faults).toEqual([]);
  });

  test('values that came late are said, with what a limit would have marked', async () => {
    const { uuid, send } = await addDevice('Logger', [temperature]);
    const actions = { alarm: true };
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: 8 } }];
    const events = [{ evId: 1, name: 'too warm', eventLog: true, actions, causes }];
    const states = [{ stId: 1, name: 'watched', events }];
    const purposes = [{ puId: 1, name: 'Logger', initStId: 1, states }];
    await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });
    const startTs = Date.now() - 4 * 3_600_000;
    const at = (minutes: number, val: number) => ({
      sId: '0x10',
      val,
      ts: startTs + minutes * 60_000,
    });
    await send(at(0, 4));
    await send(at(200, 5));
    const { page, faults } = await open(`devices/${uuid}`);
    await page.locator('.chart canvas').waitFor();
    expect(await page.locator('.late').count()).toBe(0);
    // A backlog, after a newer value: nobody judges it.
    await send(at(30, 6), at(60, 9.5), at(90, 11.2), at(120, 7));
    type Alarms = { alarms: unknown[] };
    expect((await call<Alarms>('GET', `/v2/alarms?device=${uuid}`)).alarms).toEqual([]);
    await page.reload();
    const said = page.locator('.late');
    await said.getByText('4 values came late and were compared with no limit').waitFor();
    type Late = { senses: { late: number; limits: { runs: { extreme: { val: number } }[] }[] }[] };
    const { senses } = await call<Late>('GET', `/v2/measurements/${uuid}/late`);
    expect(senses).toMatchObject([{ late: 4, limits: [{ runs: [{ extreme: { val: 11.2 } }] }] }]);
    expect(await said.locator('li').allInnerTexts()).toEqual([
      expect.stringMatching(
        /^too warm above 8\u00a0°C: From .+ to .+, 30 mins, up to 11\.2\u00a0°C$/,
      ),
    ]);
    await takePicture(page, 'late');
    expect(faults).toEqual([]);
  });
});
