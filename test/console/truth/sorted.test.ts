import { describe, expect, test } from 'vitest';
import type { Registration } from '../../journeys/app.ts';
import { browserPath, findWide } from '../browser.ts';
import { names } from '../fleet-looks.ts';
import { temperature, useWorld } from './world.ts';

// What is worst comes first, in the lists of devices and of alarms, as the service orders them. Needs Chromium.
describe.skipIf(browserPath === null)('the console orders by values', () => {
  const { openOwn, url } = useWorld();

  test('devices by their newest value, and alarms by how far they went beyond the limit', async () => {
    const { own, page, faults } = await openOwn('');
    const causes = [{ sId: '0x10', orderId: 0, thresholds: { isGt: 8 } }];
    const events = [
      { evId: 1, name: 'too warm', actions: { alarm: true, severity: 'critical' }, causes },
    ];
    const purposes = [{ puId: 1, initStId: 1, states: [{ stId: 1, events }] }];
    const rooms = [
      ['Room 1', [9]],
      ['Room 2', [31, 10]],
      ['Room 3', [20]],
      ['Room 4', [4]],
      ['Room 5', [12]],
      ['Room 6', [11]],
    ] as const;
    for (const [name, values] of rooms) {
      const module = [{ moduleId: 'm', senses: [temperature] }];
      const body = { protocol: 'http', device: { name }, module };
      const device = await own<Registration>('POST', '/v2/devices', body);
      const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
      await own('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });
      for (const val of values) {
        const answer = await fetch(`${url()}/devices/${uuid}/up/measurements`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
          body: JSON.stringify([{ sId: '0x10', val }]),
        });
        expect(answer.status).toBe(200);
      }
    }
    await page.reload();
    const by = page.getByRole('combobox', { name: 'Sort by a value' });
    await by.selectOption('Temperature, highest first');
    await expect
      .poll(() => names(page))
      .toEqual(['Room 3', 'Room 5', 'Room 6', 'Room 2', 'Room 1', 'Room 4']);
    expect(await page.locator('th[aria-sort="descending"]').innerText()).toContain('Newest values');
    await by.selectOption('Temperature, lowest first');
    await expect.poll(async () => (await names(page))[0]).toBe('Room 4');
    for (const width of [320, 390, 768, 1440]) {
      await page.setViewportSize({ width, height: 800 });
      expect([width, await findWide(page)]).toEqual([width, []]);
    }
    await page.getByRole('link', { name: /^Alarms/ }).click();
    await page
      .getByRole('combobox', { name: 'Order' })
      .selectOption('Furthest beyond the limit first');
    const devices = page.locator('.alarm-row-device');
    await expect
      .poll(() => devices.allInnerTexts())
      .toEqual(['Room 2', 'Room 3', 'Room 5', 'Room 6', 'Room 1']);
    expect(faults).toEqual([]);
  });
});
