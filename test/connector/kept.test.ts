// Messages that were received whole and not acknowledged when their connection ended: each row of the table in
// docs/devices-reference.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { readProjectFile } from '../docs/readme.ts';
import { findProgram } from '../support/program.ts';
import { startHttpWorld, type HttpWorld } from './http/harness.ts';
import { manualClock, startWorld, until, type World } from './harness.ts';
import { keptCases, keptLines, mqttEndings, type KeptCase } from './kept-rows.ts';
import { connectPacket, dial, enter, publishPacket, type RawClient } from './raw.ts';

const measurement = (hasTime: boolean) => ({ sId: '0x1', val: 1, ...(hasTime ? { ts: 1 } : {}) });
const nameOf = ({ over, qos, ending, hasTime }: KeptCase) =>
  `${over}${qos === null ? '' : `, QoS ${qos}`}, ${ending}, ${hasTime ? 'with' : 'without'} a time`;

let world: World | null = null;
let http: HttpWorld | null = null;
afterEach(async () => {
  await world?.close();
  await http?.close();
  world = http = null;
});

/** Sends a message that waits for its commit, on a connection of its own. */
async function sendAndWait(
  { over, qos, hasTime }: KeptCase,
  waits: { ms: number },
): Promise<{ world: World; raw: RawClient; clock: ReturnType<typeof manualClock> }> {
  const clock = manualClock();
  const throttle = { waitMs: () => waits.ms, waits: () => {} };
  const started = (world = await startWorld({ now: clock.now, ports: { throttle } }));
  started.store.isHolding = waits.ms === 0;
  const raw = await enter(started, {
    protocolVersion: over === 'MQTT 5' ? 5 : 4,
    keepalive: 10,
  });
  const topic = `devices/${started.device.uuid}/up/measurements`;
  raw.send(publishPacket(topic, measurement(hasTime), { qos: qos ?? 0, messageId: 1 }));
  // Follows the message, so its answer shows that the message was read.
  raw.send({ cmd: 'pingreq' });
  await raw.expect('pingresp');
  return { world: started, raw, clock };
}

/** Resolves when the parked messages of device 1 have gone on: a later one of another device has. */
async function letAccountGoOn(started: World, waits: { ms: number }): Promise<void> {
  const { uuid, token } = started.store.addDevice(2);
  const later = await enter(started, { username: uuid, password: Buffer.from(token) });
  later.send(publishPacket(`devices/${uuid}/up/state`, { puId: 1, stId: 1 }), { cmd: 'pingreq' });
  await later.expect('pingresp');
  waits.ms = 0;
  await until(() => started.store.stored.some(({ device }) => device.deviceId === 2));
}

async function end(
  ending: KeptCase['ending'],
  { world: { store, connector, counted }, raw, clock }: Awaited<ReturnType<typeof sendAndWait>>,
): Promise<void> {
  if (ending === 'DISCONNECT') raw.send({ cmd: 'disconnect' });
  if (ending === 'closed by the device') raw.socket.end();
  if (ending === 'reset') raw.socket.resetAndDestroy();
  if (ending === 'keep-alive') clock.monotonicMs += 16_000;
  if (ending === 'taken over') {
    await enter(world as World, { protocolVersion: raw.version as 4 | 5 });
    await until(() => counted.includes('disconnected replaced'));
    return;
  }
  // A SUBACK, which only servers send.
  if (ending === 'closed by the service') raw.socket.write(Buffer.from([0x90, 3, 0, 1, 0]));
  if (ending === 'the service stops') await connector.close({ drainMs: 0 });
  await until(() => store.presence.includes('disconnected 1'), 'the end of the connection');
}

describe('a message that was received whole, by the end of its connection', () => {
  test.each(
    keptCases.filter(({ over }) => over !== 'HTTP').map((one) => [nameOf(one), one] as const),
  )('%s', async (_name, one) => {
    // While the store is late no device is blamed for its silence; while only its account has to wait, it is.
    const waits = { ms: one.ending === 'keep-alive' ? 1_000_000 : 0 };
    const sent = await sendAndWait(one, waits);
    const { store, connector } = sent.world;
    await end(one.ending, sent);
    if (one.ending === 'keep-alive') expect(sent.world.counted).toContain('disconnected keepalive');
    if (waits.ms > 0) await letAccountGoOn(sent.world, waits);
    store.release();
    await until(() => connector.snapshot().unackedBytes === 0, 'nothing to be under way');
    const stored = store.stored.filter(({ device }) => device.deviceId === 1);
    expect(stored).toHaveLength(one.isStored ? 1 : 0);
    expect(sent.raw.of('puback')).toEqual([]);
    expect(sent.raw.of('pubrec')).toEqual([]);
  });

  test.each(
    keptCases.filter(({ over }) => over === 'HTTP').map((one) => [nameOf(one), one] as const),
  )('%s', async (_name, { ending, hasTime, isStored }) => {
    http = await startHttpWorld();
    const { store, connector } = http;
    store.isHolding = true;
    const body = JSON.stringify(measurement(hasTime));
    const socket = await http.dial();
    const request =
      `POST ${http.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${http.basic()}\r\n` +
      `Content-Length: ${body.length}\r\n\r\n${body}`;
    if (ending === 'half-close') socket.end(request);
    else socket.write(request);
    await until(() => store.held.length === 1, 'the message');
    if (ending === 'closed by the device') socket.destroy();
    if (ending === 'reset') socket.resetAndDestroy();
    let answer = '';
    socket.on('data', (bytes: Buffer) => (answer += bytes.toString()));
    // The next request is answered after the end of that connection was seen.
    await http.send('/devices/x');
    await http.send('/devices/x');
    if (ending === 'reset' && !isStored) await until(() => store.withdrawals === 1, 'its end');
    store.release();
    await until(() => connector.snapshot().underWay === 0, 'nothing to be under way');
    expect(store.stored).toHaveLength(isStored ? 1 : 0);
    if (ending === 'half-close') await until(() => answer.includes('"stored":1'), 'the answer');
    await until(() => connector.snapshot().bytes === 0, 'its room to be free');
  });

  test('has all combinations in the table, once each, as docs/devices-reference.md states', () => {
    const mqtt = keptCases.filter(({ over }) => over !== 'HTTP');
    expect(new Set(mqtt.map(nameOf)).size).toBe(mqtt.length);
    expect(mqtt).toHaveLength(2 * 3 * mqttEndings.length * 2);
    const page = readProjectFile('docs/devices-reference.md');
    const [, table = ''] = page.split('<!-- received whole: begin -->');
    const lines = (table.split('<!-- received whole: end -->')[0] ?? '')
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) =>
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim())
          .join(' | '),
      );
    expect(lines.slice(2)).toEqual(keptLines);
  });
});

/** Unmodified programs. `leaves`: says DISCONNECT; otherwise it breaks off. */
describe.each([
  ['MQTT 3.1.1', true, true],
  ['MQTT 3.1.1', true, false],
  ['MQTT 3.1.1', false, true],
  ['MQTT 3.1.1', false, false],
  ['MQTT 5', true, true],
  ['MQTT 5', true, false],
  ['MQTT 5', false, true],
  ['MQTT 5', false, false],
] as const)('over %s, leaves: %s, every item has a time: %s', (over, leaves, hasTime) => {
  const ending = leaves ? 'DISCONNECT' : 'closed by the device';
  const { isStored } = keptCases.find(
    (one) => one.over === over && one.qos === 1 && one.ending === ending && one.hasTime === hasTime,
  ) as KeptCase;
  const valuesOf = (count: number) => Array.from({ length: count }, (_, n) => n + 1);
  const line = (val: number) =>
    JSON.stringify({ sId: '0x1', val, ...(hasTime ? { ts: val } : {}) });
  const rate = 1_000_000;
  const limits = { messagesPerSecond: rate, messagesBurst: rate, measurementsPerSecond: rate };

  /** Returns the stored values, once nothing is under way. */
  async function storedAtLast({ store, connector }: World): Promise<unknown[]> {
    store.release();
    await until(() => connector.snapshot().connections === 0, 'the end of the connection');
    await until(() => connector.snapshot().unackedBytes === 0, 'nothing to be under way');
    return store.stored.map(({ uplink }) =>
      uplink.content.kind === 'measurements' ? uplink.content.items[0]?.value.val : null,
    );
  }

  // Everything readable when the program breaks off is stored, because the service does not know of the end earlier.
  test(`mqtt.js, ${leaves ? 'end()' : 'end(true)'}`, async () => {
    const started = (world = await startWorld({ limits }));
    const { store, connector } = started;
    const count = isStored ? 500 : 50;
    const client = await started.connect({ protocolVersion: over === 'MQTT 5' ? 5 : 4 });
    store.isHolding = true;
    const topic = `devices/${started.device.uuid}/up/measurements`;
    const acknowledged: number[] = [];
    for (const n of valuesOf(count))
      client.publish(topic, line(n), { qos: 1 }, (error) => {
        if (!error) acknowledged.push(n);
      });
    // The service reads at most 100 messages of a connection that are not stored.
    await until(() => store.held.length === Math.min(count, 100), 'what is read');
    await until(() => client.stream.writableLength === 0, 'the rest to be sent');
    client.end(!leaves);
    if (!leaves && !isStored)
      await until(() => connector.snapshot().connections === 0, 'the end of the connection');
    expect(await storedAtLast(started)).toEqual(isStored ? valuesOf(count) : []);
    expect(acknowledged).toEqual(leaves ? valuesOf(count) : []);
  });

  test.skipIf(findProgram('mosquitto_pub') === null)(
    `mosquitto_pub, ${leaves ? 'to its end' : 'killed'}`,
    async () => {
      const started = (world = await startWorld({ limits }));
      const { store, connector, device, port } = started;
      store.isHolding = true;
      const args = ['-V', over === 'MQTT 5' ? 'mqttv5' : 'mqttv311', '-p', `${port}`];
      args.push('-h', '127.0.0.1', '-u', device.uuid, '-P', device.token, '-q', '1', '-l');
      args.push('-t', `devices/${device.uuid}/up/measurements`);
      const program = spawn('mosquitto_pub', args, { stdio: ['pipe', 'ignore', 'inherit'] });
      const exited = once(program, 'exit');
      program.stdin.on('error', () => {});
      const count = leaves ? 500 : 20;
      // It ends with its input.
      program.stdin.write(`${valuesOf(count).map(line).join('\n')}\n`);
      // In MQTT 3.1.1 it has at most twenty under way.
      await until(() => store.held.length >= 20, 'what it sends at once');
      if (leaves) {
        program.stdin.end();
        store.release();
        expect(await exited).toEqual([0, null]);
      } else {
        program.kill('SIGKILL');
        await exited;
        await until(() => connector.snapshot().connections === 0, 'the end of the connection');
      }
      expect(await storedAtLast(started)).toEqual(isStored ? valuesOf(count) : []);
    },
  );
});

describe('after a DISCONNECT', () => {
  /** Section 3.14.2.1: the codes that a client may write. */
  const codes = [0, 4, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99];
  test.each(codes)('with reason code %i everything is stored', async (code) => {
    world = await startWorld();
    world.store.isHolding = true;
    const raw = await enter(world, { protocolVersion: 5 });
    const topic = `devices/${world.device.uuid}/up/measurements`;
    raw.send(publishPacket(topic, measurement(false), { qos: 1, messageId: 1 }));
    raw.socket.write(Buffer.from([0xe0, 1, code]));
    await raw.ended();
    world.store.release();
    const { store } = world;
    await until(() => store.stored.length === 1);
  });

  test.each([4, 5] as const)(
    'in the same segment as CONNECT everything before it is stored, and nothing after it, MQTT %i',
    async (version) => {
      world = await startWorld();
      const { store } = world;
      const topic = `devices/${world.device.uuid}/up/measurements`;
      const send = (qos: 0 | 1 | 2, messageId: number) =>
        publishPacket(topic, measurement(false), { qos, messageId });
      for (let n = 1; n <= 20; n += 1) {
        const raw = await dial(world, version);
        const connect = connectPacket(world, { protocolVersion: version, clientId: `${n}` });
        raw.send(connect, send(0, 1), send(1, 1), send(2, 2), { cmd: 'disconnect' }, send(0, 3));
        await raw.ended();
      }
      await until(() => store.stored.length >= 60);
      await until(() => world?.connector.snapshot().unackedBytes === 0);
      expect(store.stored).toHaveLength(60);
    },
  );

  test('that is malformed the connection ends like any other', async () => {
    world = await startWorld();
    world.store.isHolding = true;
    const raw = await enter(world, { protocolVersion: 5 });
    const topic = `devices/${world.device.uuid}/up/measurements`;
    raw.send(publishPacket(topic, measurement(false), { qos: 1, messageId: 1 }));
    // Reason code 1 does not exist.
    raw.socket.write(Buffer.from([0xe0, 1, 1]));
    await raw.ended();
    const { store } = world;
    await until(() => store.withdrawals === 1);
  });
});

test.each([4, 5] as const)(
  'a message of QoS 2 is handed on once, however often it is sent before its PUBREL: MQTT %i',
  async (version) => {
    world = await startWorld({
      limits: {
        messagesPerSecond: 100_000,
        messagesBurst: 100_000,
        measurementsPerSecond: 100_000,
      },
    });
    const { store } = world;
    const topic = `devices/${world.device.uuid}/up/measurements`;
    const raw = await enter(world, { protocolVersion: version });
    const packets = 1_000;
    const inFlight = 50;
    for (let from = 0; from < packets; from += inFlight) {
      store.isHolding = from % 100 === 0;
      const ids = Array.from({ length: inFlight }, (_, n) => (from % 500) + n + 1);
      const send = (dup: boolean, n: number, id: number) =>
        publishPacket(topic, { sId: '0x1', val: from + n }, { qos: 2, messageId: id, dup });
      raw.send(...ids.map((id, n) => send(false, n, id)));
      raw.send(...ids.map((id, n) => send(true, n, id)));
      await until(() => store.held.length === (store.isHolding ? inFlight : 0));
      store.release();
      await raw.expect('pubrec', 2 * (from + inFlight) + from);
      // And once more after the PUBREC.
      raw.send(...ids.map((id, n) => send(true, n, id)));
      await raw.expect('pubrec', 3 * (from + inFlight));
      raw.send(...ids.map((messageId) => ({ cmd: 'pubrel' as const, messageId })));
      await raw.expect('pubcomp', from + inFlight);
    }
    expect(store.stored).toHaveLength(packets);
  },
);
