import { createBefore } from '../before.ts';
import {
  type EnemyDevice,
  anySense,
  createReadings,
  demand,
  flood,
  install,
  registerDevices,
} from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { bigPurpose, eventOf, purposeOf } from '../purposes.ts';
import { eventBytes, eventsWithin } from '../quota-bytes.ts';
import { each, work } from '../workers.ts';

const honestDiskFilling: NoisyKind = {
  name: 'honest-disk-filling',
  says: '50 devices that send measurements as fast as they may',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 50);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 5, payload: (device) => readings(device, 1_000) }, signal);
  },
};

const badItemsPayload = `[${Array.from({ length: 1_000 }, () => 1).join()}]`;
const badItemsDevices = 10;
/** `rejectionBytesPerDevice`, and its indexes. */
const rejectionBytes = 2 * 1_048_576;

const badItems: NoisyKind = {
  name: 'bad-items',
  says: 'messages of 1,000 items that are not measurements',
  quotaBytes: () => badItemsDevices * rejectionBytes,
  async setUp(enemy) {
    const senders = await registerDevices(enemy, badItemsDevices);
    return (signal) => flood(enemy, { devices: senders, payload: () => badItemsPayload }, signal);
  },
};

const catchUpEach = 50;
const weekSeconds = 604_800;

const catchUp: NoisyKind = {
  name: 'catch-up',
  says: 'devices that were offline for a week and send what they kept, in messages of 50 and one by one',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const sent = devices.map(() => 0);
    const startTs = Date.now() - weekSeconds * 1_000;
    const payload = (device: number) => {
      const first = sent[device] ?? 0;
      const count = device % 2 === 0 ? catchUpEach : 1;
      if (first + count > weekSeconds) return null;
      sent[device] = first + count;
      const values = Array.from({ length: count }, (_, n) => ({
        sId: '0x01',
        val: (first + n) % 1_000,
        ts: startTs + (first + n) * 1_000,
      }));
      return JSON.stringify(values);
    };
    return (signal) => flood(enemy, { devices, inFlight: 20, payload }, signal);
  },
};

const dayMs = 86_400_000;

/** Each item falls into a day of its own within the kept history. If days are tables, that means many tables. */
const scatteredTimes: NoisyKind = {
  name: 'scattered-times',
  says: 'measurements spread over all days of the history',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const startTs = Date.now();
    let sent = 0;
    const payload = () => {
      const items = Array.from({ length: 200 }, () => {
        sent += 1;
        const ts = startTs - (sent % 88) * dayMs - sent;
        return { sId: '0x01', val: sent % 1_000, ts };
      });
      return JSON.stringify(items);
    };
    return (signal) => flood(enemy, { devices, inFlight: 2, payload }, signal);
  },
};

const sameMillisecond: NoisyKind = {
  name: 'same-millisecond',
  says: 'different values of a sense in one millisecond, as many as fit and more',
  quotaBytes: () => 10 * 2 * 1_048_576,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const ts = Date.now() - 60_000;
    let val = 0;
    const payload = () =>
      JSON.stringify(Array.from({ length: 500 }, () => ({ sId: '0x01', val: ++val, ts })));
    return (signal) => flood(enemy, { devices, inFlight: 2, payload }, signal);
  },
};

const devicesOfImport = 20;
const lines = 50_000;

const imports: NoisyKind = {
  name: 'imports',
  says: 'imports of 50,000 lines one after the other: new lines, repeated ones, and bad ones',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, devicesOfImport);
    const headers = { 'Content-Type': 'text/csv' };
    const fromTs = Date.now() - 60 * 86_400_000;
    const bodyOf = (round: number) => {
      const made = Array.from({ length: lines }, (_, n) => {
        const uuid = devices[n % devicesOfImport]?.uuid ?? '';
        return `${uuid},0x01,${fromTs + (round * lines + n) * 10},${n % 50},,`;
      });
      return ['deviceAuthUuid,sId,ts,val,lat,long', ...made].join('\n');
    };
    // Each of these costs most if as many as allowed arrive in one piece.
    const wrong = `deviceAuthUuid,sId,ts,val\n${'x\n'.repeat(lines * 10)}`;
    return async (signal) => {
      let round = 0;
      await work(1, signal, async () => {
        const body = bodyOf((round += 1));
        for (const sent of [body, body, wrong])
          await enemy.ask('POST', '/v2/measurements/import', { headers, body: sent });
      });
    };
  },
};

const reportedStates: NoisyKind = {
  name: 'reported-states',
  says: '50 devices that report another state with each message',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 50);
    const payload = (_device: number, seq: number) =>
      JSON.stringify({ puId: 1, stId: seq % 1_000, ts: Date.now() });
    return (signal) => flood(enemy, { devices, topic: 'state', payload }, signal);
  },
};

const reportedEventsPurpose = {
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [eventOf(1, { eventLog: true })] }],
};

const reportedEvents: NoisyKind = {
  name: 'reported-events',
  says: '10 devices that report hundreds of events in a message',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const pId = await install(enemy, devices, [reportedEventsPurpose]);
    const startTs = Date.now() - 3_600_000;
    let sent = 0;
    const payload = () => {
      const items = Array.from({ length: 300 }, () => {
        const ts = startTs + ++sent;
        const engine = { pId, puId: 1, stId: 1, evId: 1, ts };
        return { cause: { engine, senses: [{ sId: '0x01', val: 1, ts }] }, timestamp: ts };
      });
      return JSON.stringify(items);
    };
    return (signal) => flood(enemy, { devices, topic: 'events', inFlight: 2, payload }, signal);
  },
};

const configurationsSenses = Array.from({ length: 1_000 }, (_, n) => ({
  sId: `0x${n.toString(16)}`,
  min: 0,
  max: n,
}));

const configurations: NoisyKind = {
  name: 'configurations',
  says: '20 devices that report another configuration of 40 kB with each message',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    const payload = (_device: number, seq: number) =>
      JSON.stringify({
        device: { name: `noisy ${seq}` },
        module: [{ moduleId: 'm', senses: configurationsSenses }],
      });
    return (signal) =>
      flood(enemy, { devices, topic: 'configuration', inFlight: 2, payload }, signal);
  },
};

const long = 'ä'.repeat(200);
const manyDevicesSenses = Array.from({ length: 100 }, (_, n) => ({ sId: `0x${n.toString(16)}` }));
const manyDevicesBody = {
  device: { name: long, serial: long },
  module: [{ moduleId: long, moduleName: long, senses: manyDevicesSenses }],
};

const manyDevices: NoisyKind = {
  name: 'many-devices',
  says: 'registers devices with long names as fast as it can',
  setUp: async (enemy) => (signal) =>
    work(32, signal, () => enemy.ask('POST', '/v2/devices', { body: manyDevicesBody })),
};

const deviceChurnReadings = JSON.stringify(
  Array.from({ length: 500 }, (_, n) => ({ sId: '0x01', val: n, ts: Date.now() - 1_000_000 + n })),
);

const deviceChurn: NoisyKind = {
  name: 'device-churn',
  says: 'registers devices that send 500 measurements, and removes them',
  setUp: async (enemy) => (signal) =>
    work(8, signal, async () => {
      const made = await enemy.ask('POST', '/v2/devices', { body: anySense });
      if (made.status !== 200) return;
      const { deviceAuthUuid: uuid, deviceAuthToken: token } = JSON.parse(made.text) as {
        deviceAuthUuid: string;
        deviceAuthToken: string;
      };
      const devices: EnemyDevice[] = [{ uuid, token }];
      const sent = new AbortController();
      const payload = (_device: number, seq: number) => {
        if (seq < 1) return deviceChurnReadings;
        sent.abort();
        return null;
      };
      const over = AbortSignal.any([signal, sent.signal, AbortSignal.timeout(2_000)]);
      await flood(enemy, { devices, inFlight: 1, payload }, over);
      await enemy.ask('DELETE', `/v2/devices/${uuid}`);
    }),
};

/** Each from an address of its own, because registrations are counted by address. */
const addressOf = (worker: number, turn: number) => `127.${1 + worker}.${turn % 250}.7`;

const accountChurn: NoisyKind = {
  name: 'account-churn',
  says: 'registers accounts from many addresses, fills them, deletes them',
  setUp: async (enemy) => (signal) =>
    work(8, signal, async (worker, turn) => {
      const address = addressOf(worker, turn);
      const email = `churn-${worker}-${turn}-${process.pid}@example.com`;
      const credentials = { email, password: 'a password of the enemy' };
      const made = await enemy.ask('POST', '/v2/accounts', { body: credentials, address });
      if (made.status !== 200) return;
      const { accountAuthToken: token } = JSON.parse(made.text) as { accountAuthToken: string };
      for (let n = 0; n < 10; n++) {
        await enemy.ask('POST', '/v2/devices', { token, address, body: anySense });
        await enemy.ask('POST', '/v2/purposes', { token, address, body: purposeOf(64) });
      }
      await enemy.ask('DELETE', '/v2/accounts', { token, address });
    }),
};

const loops = 8;

const purposesChurn: NoisyKind = {
  name: 'purposes-churn',
  says: 'replaces stored purposes of 250 kB again and again',
  async setUp(enemy) {
    const bodies = ['a', 'b'].map((seed) => JSON.stringify(bigPurpose(230_000, seed)));
    const uuids: string[] = [];
    for (let n = 0; n < loops; n++) {
      const { text } = await demand(enemy, 'POST', '/v2/purposes', { body: bodies[0] });
      uuids.push((JSON.parse(text) as { purposeUuid: string }).purposeUuid);
    }
    return (signal) =>
      work(loops, signal, (worker, turn) =>
        enemy.ask('PUT', `/v2/purposes/${uuids[worker]}`, { body: bodies[turn % 2] }),
      );
  },
};

/** One install leaves a row for each device: how far the roll-out came. */
const profileChurnDevices = 1_000;

const profileChurn: NoisyKind = {
  name: 'profile-churn',
  says: 'installs a small profile on 1,000 devices again and again',
  async setUp(enemy) {
    const uuids = (await registerDevices(enemy, profileChurnDevices)).map(({ uuid }) => uuid);
    return (signal) =>
      work(4, signal, (worker, turn) => {
        const purpose = purposeOf(1, () => ({ name: `${worker} ${turn}` }));
        const body = { deviceAuthUuids: uuids, purposes: [purpose] };
        return enemy.ask('POST', '/v2/devices/profile', { body });
      });
  },
};

/** As many bytes as fit into `purposeBytes`. */
const manyPurposesBytes = 120_000;

const manyPurposes: NoisyKind = {
  name: 'many-purposes',
  says: 'installs that name 256 stored purposes of 120 kB, again and again',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    const purposeUuids: string[] = [];
    await each(Array.from({ length: 256 }).keys(), 4, async (n) => {
      const body = { ...bigPurpose(manyPurposesBytes, String(n)), puId: n };
      const { text } = await demand(enemy, 'POST', '/v2/purposes', { body });
      purposeUuids.push((JSON.parse(text) as { purposeUuid: string }).purposeUuid);
    });
    const body = { deviceAuthUuids: [device?.uuid], purposeUuids };
    return (signal) => work(4, signal, () => enemy.ask('POST', '/v2/devices/profile', { body }));
  },
};

const repeatedPurpose: NoisyKind = {
  name: 'repeated-purpose',
  says: 'installs that name one stored purpose of 250 kB 256 times',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    const { text } = await demand(enemy, 'POST', '/v2/purposes', { body: bigPurpose(230_000) });
    const { purposeUuid } = JSON.parse(text) as { purposeUuid: string };
    const purposeUuids = Array.from({ length: 256 }, () => purposeUuid);
    const body = { deviceAuthUuids: [device?.uuid], purposeUuids };
    return (signal) => work(8, signal, () => enemy.ask('POST', '/v2/devices/profile', { body }));
  },
};

const sensesOfDevice = Array.from({ length: 1_024 }, (_, n) => ({ sId: `0x${n.toString(16)}` }));

const manySenses: NoisyKind = {
  name: 'many-senses',
  says: 'installs on 4 devices of 1,024 senses, with 4,000 causes, again and again',
  async setUp(enemy) {
    const configuration = { device: {}, module: [{ moduleId: 'm', senses: sensesOfDevice }] };
    const devices = await registerDevices(enemy, 4, { configuration });
    const purposeUuids: string[] = [];
    for (const puId of [1, 2]) {
      const optionsOf = (n: number) => {
        const sId = sensesOfDevice[n % sensesOfDevice.length]?.sId ?? '';
        return { sId, causes: 4, thresholds: { isGt: n } };
      };
      const body = purposeOf(500, optionsOf, { isGlobal: false, puId });
      const { text } = await demand(enemy, 'POST', '/v2/purposes', { body });
      purposeUuids.push((JSON.parse(text) as { purposeUuid: string }).purposeUuid);
    }
    const body = { deviceAuthUuids: devices.map(({ uuid }) => uuid), purposeUuids };
    return (signal) => work(2, signal, () => enemy.ask('POST', '/v2/devices/profile', { body }));
  },
};

const profiles = 486;
const bigProfilesBytes = 500_000;

/** One of them has at most 256 KiB. */
const purposesFor = (uuid: string) =>
  [1, 2].map((puId) => ({ ...bigPurpose(bigProfilesBytes / 2.2, uuid), puId }));

/** Far beyond `profileBytesTotal`, as an operator may have raised it. */
const bigProfiles: NoisyKind = {
  name: 'big-profiles',
  says: 'a message to each of 486 devices that have profiles of 500 kB of their own',
  async setUp(enemy) {
    await createBefore(enemy).raiseQuota('profileBytesTotal', 2 * profiles * bigProfilesBytes);
    const devices = await registerDevices(enemy, profiles);
    await each(devices, 2, (device) => install(enemy, [device], purposesFor(device.uuid)));
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 1, payload: (device) => readings(device, 1) }, signal);
  },
};

/** What is stored: measurements, devices, accounts, purposes and profiles, fast and large. */
export const writingKinds: NoisyKind[] = [
  honestDiskFilling,
  badItems,
  catchUp,
  scatteredTimes,
  sameMillisecond,
  imports,
  reportedStates,
  reportedEvents,
  configurations,
  manyDevices,
  deviceChurn,
  accountChurn,
  purposesChurn,
  profileChurn,
  manyPurposes,
  repeatedPurpose,
  manySenses,
  bigProfiles,
];
