import { once } from 'node:events';
import { createServer } from 'node:http';
import { createBefore } from '../before.ts';
import {
  type EnemyDevice,
  createReadings,
  demand,
  flood,
  install,
  registerDevices,
} from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf, purposeOf } from '../purposes.ts';
import {
  alarmBytes,
  alarmChangeBytes,
  alarmMessageBytes,
  eventBytes,
  eventsWithin,
  firingsWithin,
} from '../quota-bytes.ts';
import { smsSettings, startReceiver } from '../receiver.ts';
import { enough, pause } from '../workers.ts';

const anyEventsPerPurpose = 4_000;

/** Today the quota refuses it; a profile stored before the quota still runs. */
const anyEvents: NoisyKind = {
  name: 'any-events',
  says: 'messages of 20 measurements for 4,000 global events that any value fires, stored from before',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [
      { puId: 1, initStId: 1, states: [{ stId: 1, events: [eventOf(1)] }] },
    ]);
    await createBefore(enemy).replaceProfiles([purposeOf(anyEventsPerPurpose)]);
    const readings = createReadings();
    return (signal) => flood(enemy, { devices, payload: (device) => readings(device, 20) }, signal);
  },
};

const eventAmplification: NoisyKind = {
  name: 'event-amplification',
  says: 'messages of 200 measurements (8 kB) for 256 logged events that any value fires',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 2);
    await install(enemy, devices, [purposeOf(256, () => ({ eventLog: true }))]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 2, payload: (device) => readings(device, 200) }, signal);
  },
};

/** 64 events of 32 causes: 2,048 windows of 1,000, none of which ever agrees. */
const evidencePurpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: Array.from({ length: 64 }, (_, e) =>
        eventOf(e + 1, {
          causes: 32,
          threshold: { count: 500 },
          thresholds: { isGt: e * 10 },
        }),
      ).map((event) => ({
        ...event,
        causes: event.causes.map((cause) => ({ ...cause, measurement: { count: 1_000 } })),
      })),
    },
  ],
};

/** Today the quota refuses it; a profile stored before the quota still runs. */
const evidence: NoisyKind = {
  name: 'evidence',
  says: '20 devices with 2,048 causes that count to 1,000, stored from before',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [
      { puId: 1, initStId: 1, states: [{ stId: 1, events: [eventOf(1)] }] },
    ]);
    await createBefore(enemy).replaceProfiles([evidencePurpose]);
    const readings = createReadings();
    return (signal) => flood(enemy, { devices, payload: (device) => readings(device, 5) }, signal);
  },
};

const isNotIn = Array.from({ length: 4_500 }, (_, n) => -n - 1);

const longLists: NoisyKind = {
  name: 'long-lists',
  says: 'messages of 1,000 measurements for conditions that list 4,500 numbers',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [purposeOf(4, () => ({ thresholds: { isNotIn } }))]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 2, payload: (device) => readings(device, 1_000) }, signal);
  },
};

const corners = 900;
const isInsideGeo = Array.from({ length: corners }, (_, n) => {
  const angle = (2 * Math.PI * n) / corners;
  return {
    lat: Math.round(1e3 * Math.sin(angle)) / 100,
    long: Math.round(1e3 * Math.cos(angle)) / 100,
  };
});

const polygons: NoisyKind = {
  name: 'polygons',
  says: 'messages of 500 positions for 5 polygons of 900 corners',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [purposeOf(5, () => ({ thresholds: { isInsideGeo } }))]);
    const startTs = Date.now() - 3_600_000;
    let sent = 0;
    const payload = () => {
      const items = Array.from({ length: 500 }, () => {
        sent += 1;
        const val = { lat: sent % 20, long: (sent % 36) - 18 };
        return { sId: '0x01', val, ts: startTs + sent };
      });
      return JSON.stringify(items);
    };
    return (signal) => flood(enemy, { devices, inFlight: 2, payload }, signal);
  },
};

/** Two states that lead to each other after a second of silence, with 63 more events that wait for it. */
const silencesPurpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: Array.from({ length: 64 }, (_, n) =>
      eventOf(n + 1, {
        eventLog: true,
        thresholds: {},
        threshold: { noneForMs: 1_000 },
        actions: n === 63 ? { engine: { gotoStId: 3 - stId } } : {},
      }),
    ),
  })),
};

const silences: NoisyKind = {
  name: 'silences',
  says: '1,000 silent devices with 64 events each that wait for a second of silence, again and again',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 1_000);
    return async (signal) => {
      // They begin to wait when it is installed.
      await install(enemy, devices, [silencesPurpose]);
      await enough(signal);
    };
  },
};

/** As many as a purpose may have. */
const count = 256;

/** Each value leads to the next state. */
const round = {
  puId: 1,
  initStId: 1,
  states: Array.from({ length: count }, (_, n) => ({
    stId: n + 1,
    events: [eventOf(1, { actions: { engine: { gotoStId: ((n + 1) % count) + 1 } } })],
  })),
};

const manyStates: NoisyKind = {
  name: 'many-states',
  says: '8 devices that pass through 256 states, one with each measurement',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 8);
    await install(enemy, devices, [round]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 4, payload: (device) => readings(device, 200) }, signal);
  },
};

/** Nothing is logged, but changes of state are always recorded. */
const movesPurpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [eventOf(1, { actions: { engine: { gotoStId: 3 - stId } } })],
  })),
};

const moves: NoisyKind = {
  name: 'moves',
  says: '20 devices that change their state with each measurement, 200 in a message',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [movesPurpose]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 2, payload: (device) => readings(device, 200) }, signal);
  },
};

const alarmsEvents = 256;
/** `quotas.webhooksPerDay` */
const webhooksPerDay = 10_000;
/** Each value opens the alarms of half the events, and closes those of the other half; nothing is recorded. */
const alarmsPurpose = purposeOf(alarmsEvents, (n) => ({
  thresholds: n % 2 === 0 ? { isGt: 0 } : { isLt: 0 },
  actions: n % 4 < 2 ? { cloud: { sendPush: true } } : { alarm: true },
  name: 'x'.repeat(200),
}));

const alarms: NoisyKind = {
  name: 'alarms',
  says: '20 devices that open and close 256 alarms with each pair of values, half of them sent to 20 webhooks',
  quotaBytes: (seconds) => eventsWithin(seconds) * alarmBytes + webhooksPerDay * alarmMessageBytes,
  async setUp(enemy) {
    // Refused, because the address is private.
    const webhooks = Array.from({ length: 20 }, (_, n) => ({
      url: `http://localhost:${enemy.receiverPort}/${n}`,
      whenOver: true,
    }));
    await demand(enemy, 'PUT', '/v2/accounts/contacts', { body: { webhooks } });
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [alarmsPurpose]);
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, payload: (device) => readings(device, 20, (n) => (n % 2 === 0 ? 1 : -1)) },
        signal,
      );
  },
};

const alarmFiringsDevices = 20;
const alarmFiringsAlarms = 256;
/** Each value fires all of them; none is recorded, and none ever ends. */
const alarmFiringsPurpose = purposeOf(alarmFiringsAlarms, () => ({
  actions: { alarm: true },
  name: 'x'.repeat(200),
}));

const alarmFirings: NoisyKind = {
  name: 'alarm-firings',
  says: '20 devices with 256 alarms that stay open, each of which fires with every value',
  quotaBytes: (seconds) =>
    alarmFiringsDevices * alarmFiringsAlarms * alarmBytes +
    firingsWithin(seconds) * alarmChangeBytes,
  async setUp(enemy) {
    const registered = await registerDevices(enemy, alarmFiringsDevices);
    await install(enemy, registered, [alarmFiringsPurpose]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices: registered, payload: (device) => readings(device, 1) }, signal);
  },
};

const messageAmplificationPhoneNumber = Array.from({ length: 10 }, (_, n) => `+4917012345${n}0`);
const sms = { text: 'noise', phoneNumber: messageAmplificationPhoneNumber };
/** 64 events with 10 numbers each, the last of which moves the device: 640 SMS a measurement. */
const messageAmplificationPurpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: Array.from({ length: 64 }, (_, e) =>
      eventOf(e + 1, { actions: { sms, ...(e === 63 ? { engine: { gotoStId: 3 - stId } } : {}) } }),
    ),
  })),
};

const messageAmplification: NoisyKind = {
  name: 'message-amplification',
  says: 'messages of 60 measurements that ask for 38,400 SMS each',
  settings: smsSettings,
  async setUp(enemy) {
    await startReceiver(enemy);
    const devices = await registerDevices(enemy, 2);
    await install(enemy, devices, [messageAmplificationPurpose]);
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, inFlight: 2, ratePerSecond: 4, payload: (device) => readings(device, 60) },
        signal,
      );
  },
};

const smsStormAccounts = 10;
const smsStormPhoneNumber = [
  '+491701234567',
  '+19005551234',
  'whatsapp:+491701234567',
  'client:admin',
];
/** Each measurement moves the device, so each firing is an episode of its own. */
const smsStormPurpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [
      eventOf(1, {
        actions: {
          sms: { text: 'noise', phoneNumber: smsStormPhoneNumber },
          engine: { gotoStId: 3 - stId },
        },
      }),
    ],
  })),
};

const smsStorm: NoisyKind = {
  name: 'sms-storm',
  says: '10 accounts whose devices ask for an SMS with each measurement',
  settings: smsSettings,
  async setUp(enemy) {
    await startReceiver(enemy);
    const devices: EnemyDevice[] = [];
    for (let n = 0; n < smsStormAccounts; n++) {
      const account = await enemy.registerAccount();
      const own = await registerDevices(enemy, 1, { account });
      await install(enemy, own, [smsStormPurpose], account);
      devices.push(...own);
    }
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, ratePerSecond: 200, payload: (device) => readings(device, 1) },
        signal,
      );
  },
};

/** Each measurement moves the device, so each firing is an episode of its own. */
const pushStormPurpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [
      eventOf(1, { actions: { cloud: { sendPush: true }, engine: { gotoStId: 3 - stId } } }),
    ],
  })),
};

const pushStorm: NoisyKind = {
  name: 'push-storm',
  says: 'a push to 100 telephones with each measurement',
  quotaBytes: () => 1_000 * 2_000,
  async setUp(enemy) {
    const apn = Array.from({ length: 100 }, (_, n) => ({ token: `${n}`.padStart(512, 'x') }));
    await demand(enemy, 'PUT', '/v2/accounts', { body: { name: 'noisy', apn } });
    const devices = await registerDevices(enemy, 10);
    await install(enemy, devices, [pushStormPurpose]);
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, ratePerSecond: 100, payload: (device) => readings(device, 5) },
        signal,
      );
  },
};

/** As many as one address may register in an hour, with some to spare. */
const hooksHangAccounts = 90;
/** A receiver that hangs is given up after this long, and so is the wait of whoever waits for one. */
const longestMs = 5_000;
/** Each value above 0 opens an alarm, each below closes it. */
const hooksHangPurpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [eventOf(1, { actions: { cloud: { sendPush: true } }, thresholds: { isGt: 0 } })],
    },
  ],
};

const hooksHang: NoisyKind = {
  name: 'hooks-hang',
  says: '90 accounts whose webhooks never answer, while the webhook of another one waits for its alarms',
  settings: () => ({ notifications: { webhooks: { allowPrivateAddresses: true } } }),
  async setUp(enemy) {
    const heard: string[] = [];
    // All hosts are this one; only requests for the witness are answered.
    const server = createServer((request, response) => {
      enemy.tally.count(
        request.url === '/witness' ? 'webhooks of the witness' : 'webhooks that hang',
      );
      if (request.url !== '/witness') return;
      let text = '';
      request.on('data', (chunk: Buffer) => (text += chunk.toString()));
      request.on('end', () => {
        heard.push(text);
        response.end();
      });
    });
    server.listen(enemy.receiverPort, '0.0.0.0');
    await once(server, 'listening');
    server.unref();

    const register = async (url: string): Promise<EnemyDevice> => {
      const account = await enemy.registerAccount();
      await demand(enemy, 'PUT', '/v2/accounts/contacts', {
        token: account.token,
        body: { webhooks: [{ url: `http://${url}`, whenOver: false }] },
      });
      const [device] = await registerDevices(enemy, 1, { account });
      if (!device) throw new Error('No device was registered.');
      await install(enemy, [device], [hooksHangPurpose], account);
      return device;
    };
    const noisy: EnemyDevice[] = [];
    for (let n = 0; n < hooksHangAccounts; n++)
      noisy.push(await register(`127.0.1.${n + 1}:${enemy.receiverPort}/hangs`));
    const witness = await register(`127.0.2.1:${enemy.receiverPort}/witness`);

    const measure = (val: number) =>
      demand(enemy, 'POST', `/devices/${witness.uuid}/up/measurements`, {
        token: witness.token,
        body: { sId: '0x01', val },
      });
    /** Opens alarm after alarm. Throws if a message is as late as if it had waited for a receiver that hangs. */
    async function watch(signal: AbortSignal): Promise<void> {
      let longest = 0;
      for (let n = 1; !signal.aborted; n++) {
        await measure(-1);
        const before = heard.length;
        const sinceMs = performance.now();
        await measure(1);
        while (heard.length === before && !signal.aborted) await pause(5, signal);
        const tookMs = performance.now() - sinceMs;
        if (heard.length === before) break;
        longest = Math.max(longest, tookMs);
        if (tookMs >= longestMs)
          throw new Error(`The witness was told of its alarm ${n} after ${Math.round(tookMs)} ms.`);
      }
      enemy.tally.count('ms at most until the witness was told', Math.round(longest));
    }
    const payload = (_: number, seq: number) =>
      JSON.stringify({ sId: '0x01', val: seq % 2 === 0 ? -1 : 1 });
    return async (signal) => {
      await Promise.all([
        flood(enemy, { devices: noisy, inFlight: 1, ratePerSecond: 180, payload }, signal),
        watch(signal),
      ]);
    };
  },
};

/** What measurements cause: evaluation, events, alarms and messages to people. */
export const firingKinds: NoisyKind[] = [
  anyEvents,
  eventAmplification,
  evidence,
  longLists,
  polygons,
  silences,
  manyStates,
  moves,
  alarms,
  alarmFirings,
  messageAmplification,
  smsStorm,
  pushStorm,
  hooksHang,
];
