import { describe, expect, test } from 'vitest';
import { browserPath, checkPage } from '../browser.ts';
import type { Call } from '../filled.ts';
import { temperature, useWorld } from './world.ts';

async function addBoxes(own: Call): Promise<string[]> {
  const devices = ['Box 1', 'Box 2'].map((name) => ({
    protocol: 'http',
    device: { name },
    module: [{ moduleId: 'm', senses: [temperature] }],
  }));
  type Batch = { devices: { deviceAuthUuid: string }[] };
  const batch = await own<Batch>('POST', '/v2/devices/batch', { devices });
  return batch.devices.map(({ deviceAuthUuid }) => deviceAuthUuid);
}

// What was done with devices, for how long it can be undone, and what waits for a device. Needs Chromium.
describe.skipIf(browserPath === null)('the console says what was done, and what waits', () => {
  const { openOwn, sqlRun } = useWorld();

  test('of a device that sleeps: which limits wait for it since when, and what is in force', async () => {
    const watched = await openOwn('');
    const { own, page, faults } = watched;
    const [uuid = ''] = await addBoxes(own);
    const limit = (isGt: number) => ({
      deviceAuthUuids: [uuid],
      purposes: [
        {
          puId: 1,
          initStId: 1,
          states: [
            {
              stId: 1,
              events: [{ evId: 1, causes: [{ sId: '0x10', thresholds: { isGt } }] }],
            },
          ],
        },
      ],
    });
    await own('POST', '/v2/devices/profile', limit(8));
    await page.goto(`${page.url()}devices/${uuid}`);
    const waiting = page.getByRole('region', { name: 'What waits for the device' });
    await waiting.getByText(/^Waits for the device since/).waitFor();
    const said = async () =>
      (await waiting.getByRole('listitem').allInnerTexts()).map((text) =>
        text.replaceAll('\u00a0', ' '),
      );
    expect(await said()).toEqual(['Temperature above 8 °C', 'nothing']);
    const line = await waiting.getByText(/^Waits for the device since/).boundingBox();
    expect([line?.width ?? 0, line?.height ?? 0].map((size) => size > 100)).toEqual([true, false]);
    await sqlRun(
      `update device_profile set state = 'current'
        where device_id = (select id from device where uuid = $1)`,
      [uuid],
    );
    await own('POST', '/v2/devices/profile', limit(12));
    await page.reload();
    await expect
      .poll(said)
      .toEqual(['Event 1: limit of Temperature 8 °C → 12 °C', 'Temperature above 8 °C']);
    await checkPage(watched, 'device-waiting');
    expect(faults).toEqual([]);
  });

  test('for as long as the service does, on each page; and says who did it and that it was undone', async () => {
    const watched = await openOwn('');
    const { own, page, faults } = watched;
    await addBoxes(own);
    const body = { action: 'label', labels: ['ramp'], filter: {} };
    const { jobId } = await own<{ jobId: string }>('POST', '/v2/devices/actions', body);
    type Told = { state: string; undo?: object; undoneBy?: string };
    const told = () => own<Told>('GET', `/v2/jobs/${jobId}`);
    await expect.poll(async () => (await told()).state).toBe('done');
    // That was 50 minutes ago.
    await sqlRun(
      `update job set created_at = created_at - interval '50 min', ended_at = ended_at - interval '50 min'
        where uuid = $1`,
      [jobId],
    );
    await page.reload();
    await page.getByText('1 earlier action').click();
    await page.getByText('Label “ramp” added: 2 devices').waitFor();
    const undo = page.getByRole('button', { name: 'Undo' });
    expect(await undo.count()).toBe(1);

    await page.getByRole('link', { name: 'All bulk actions' }).click();
    await page.getByRole('heading', { name: 'Bulk actions' }).waitFor();
    await page.getByText(/^until \d/).waitFor();
    const by = await page.getByText(/, by you$/).boundingBox();
    const what = await page.getByText('Label “ramp” added: 2 devices').boundingBox();
    // Below what was done.
    expect(by?.x).toBe(what?.x);
    await checkPage(watched, 'actions');
    await undo.click();
    await page.getByText('Label “ramp” removed: 2 devices').waitFor();
    const first = page.locator('.job', { hasText: 'added' });
    await first.getByText('undone').waitFor();
    expect(await first.getByRole('button').count()).toBe(0);
    expect((await told()).undoneBy).toEqual(expect.any(String));

    // An hour later nothing undoes the other one either.
    await sqlRun(
      `update job set ended_at = ended_at - interval '61 min'
        where account_id = (select account_id from job where uuid = $1)`,
      [jobId],
    );
    await page.reload();
    await first.waitFor();
    expect(await undo.count()).toBe(0);
    expect(faults).toEqual([]);
  });
});
