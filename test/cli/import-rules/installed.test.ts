import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openApp, type App, type Registration } from '../../journeys/app.ts';
import { connectDevice } from '../../journeys/device.ts';
import { runProgram } from '../../journeys/process.ts';
import { testService, type TestService } from '../../journeys/service.ts';

const tell = [{ sns: { targetArn: 'arn:people' } }];
const oven = {
  detectorModelName: 'Oven',
  key: 'id',
  detectorModelDefinition: {
    initialStateName: 'cold',
    states: [
      {
        stateName: 'cold',
        onInput: {
          transitionEvents: [
            { eventName: 'heats', condition: '$input.oven.data.t > 200', nextState: 'hot' },
          ],
        },
      },
      {
        stateName: 'hot',
        onEnter: { events: [{ actions: [{ setTimer: { timerName: 't', seconds: 1 } }] }] },
        onInput: {
          events: [
            {
              eventName: 'much too hot',
              condition:
                'currentInput("oven") && ($input.oven.data.t > 300 || $input.oven.data.t > 250)',
              actions: tell,
            },
          ],
          transitionEvents: [
            { eventName: 'for long', condition: 'timeout("t")', nextState: 'long', actions: tell },
          ],
        },
      },
      {
        stateName: 'long',
        onInput: {
          transitionEvents: [
            {
              eventName: 'cools',
              condition: 'currentInput("oven") && $input.oven.data.t <= 100',
              nextState: 'cold',
              actions: tell,
            },
          ],
        },
      },
    ],
  },
};

let service: TestService;
let app: App;
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'installed-'));
  service = await testService();
  app = await openApp(service.url);
});
afterAll(async () => {
  await service?.close();
  await rm(folder, { recursive: true });
});

test('what is imported runs on a device with the configuration that the report prints', async () => {
  const file = join(folder, 'oven.json');
  await writeFile(file, JSON.stringify(oven));
  const args = ['src/cli/import-rules.ts', 'aws-iot-events', file];
  const program = runProgram(process.execPath, args);
  expect(await program.ended()).toBe(0);
  const configuration = /the configuration (\{.*\})$/m.exec(program.stderr())?.[1] ?? '';
  expect(JSON.parse(configuration)).toEqual({
    device: {},
    module: [
      {
        moduleId: 'imported',
        senses: [
          { sId: '0x1', name: 'data.t' },
          { sId: '0x2', name: 'timer' },
        ],
      },
    ],
  });

  const device = await connectDevice(
    await app.call<Registration>('POST', '/v2/devices', JSON.parse(configuration)),
  );
  type Installed = { warnings: { code: string }[] };
  const { warnings } = await app.call<Installed>('POST', '/v2/devices/profile', {
    deviceAuthUuids: [device.uuid],
    purposes: JSON.parse(program.stdout()),
  });
  // A timer of a second, and no contacts: nothing is said of the senses.
  expect(warnings.map(({ code }) => code)).toEqual(['short-silence', 'no-recipient']);
  const measure = (val: number) => device.publish('up/measurements', { sId: '0x1', val });
  type Listed = { devices: { uuid: string; state: { stId: number } }[] };
  const stateIs = async (stId: number) =>
    await expect
      .poll(async () => {
        const { devices } = await app.call<Listed>('GET', '/v2/devices');
        return devices.find(({ uuid }) => uuid === device.uuid)?.state.stId;
      })
      .toBe(stId);
  // At once: the timer does not end in between.
  const now = Date.now();
  await device.publish('up/measurements', [
    { sId: '0x1', val: 220, ts: now - 1 },
    { sId: '0x1', val: 310, ts: now },
  ]);
  await stateIs(3);
  await measure(100);
  await stateIs(1);
  const { events } = await app.call<{ events: { meaning?: { eventName: string } }[] }>(
    'GET',
    `/v2/events?devices=${device.uuid}`,
  );
  const fired = events.map(({ meaning }) => meaning?.eventName);
  // Moves are recorded, too; what tells people is there once.
  expect(fired.filter((name) => name === 'much too hot')).toHaveLength(1);
  expect(fired).toEqual(expect.arrayContaining(['cools', 'for long']));
  await device.end();
});
