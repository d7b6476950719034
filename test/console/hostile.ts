import type { Registration } from '../journeys/app.ts';
import { connectDevice, type TestDevice } from '../journeys/device.ts';
import { acceptProfile, type Call } from './filled.ts';

const script = '<img src=x onerror=alert(1)><script>alert(1)</script>';
const link = 'javascript:alert(1) https://evil.example/?a=1&b="\'';
// Characters that reverse, hide or join the text after them; and a letter with a pile of marks.
const turning =
  '\u202eevil\u2066\u200b\u200d\ufeff\u2028gnp.exe' + 'a\u0301\u0302\u0303'.repeat(60);
const arabic = 'اختبار שלום';
const wordless = 'W'.repeat(10_000);

/** As long as a name may be, and a text. */
const name = (head: string) =>
  `${head} ${script} ${arabic} ${turning.slice(0, 40)}${wordless}`.slice(0, 200);
const text = (head: string) =>
  `${head} ${script} ${link} ${turning} ${arabic} ${wordless}`.slice(0, 1_000);

const sense = (sId: string, name: string, unit: string) => ({ sId, name, unit, decimals: 10 });

const configuration = {
  device: {
    name: name('Name'),
    swName: text('Software'),
    swVersion: text('1.0'),
    hwVersion: text('A'),
    serial: text('Serial'),
  },
  module: [
    {
      moduleId: name('module'),
      moduleName: name('Module'),
      senses: [
        sense('0x10', name('Sense'), '<b>\u202e\u0301°C</b>'),
        sense('0x11', '{name}', link.slice(0, 20)),
      ],
    },
  ],
};

const purpose = {
  puId: 1,
  name: name('Purpose'),
  initStId: 1,
  states: [
    {
      stId: 1,
      name: name('State'),
      events: [
        {
          evId: 1,
          name: name('Event'),
          eventLog: true,
          actions: { cloud: { sendEvent: true }, alarm: true },
          causes: [{ sId: '0x10', orderId: 1, thresholds: { isGt: 0 } }],
        },
      ],
    },
  ],
};

/** A device that puts whatever it likes into every text that it may send. */
export async function connectHostile(call: Call): Promise<TestDevice> {
  const plain = { device: { name: 'Innocent' }, module: configuration.module.slice(0, 0) };
  const registration = await call<Registration>('POST', '/v2/devices', plain);
  const uuid = registration.deviceAuthUuid;
  const device = await connectDevice(registration);
  await device.publish('up/configuration', configuration);
  // Longer than the service accepts: it says so, and keeps the previous one.
  const endless = { ...configuration.device, name: wordless, serial: wordless };
  await device.publish('up/configuration', { ...configuration, device: endless });
  await call('PUT', `/v2/devices/${uuid}/labels`, { labels: [script, turning.slice(0, 20)] });
  await call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes: [purpose] });
  await acceptProfile(device);
  await device.publish('up/measurements', [
    { sId: '0x10', val: 1e300 },
    { sId: '0x11', val: -0 },
  ]);
  await device.publish('up/measurements', { sId: script, val: 1, [turning]: wordless });
  await device.publish('up/measurements', text('no JSON'));
  await device.publish('up/state', { puId: 1, stId: 7, [link]: text('') });
  await device.publish('up/profile', { pId: script, state: 'rejected', text: text('No') });
  return device;
}
