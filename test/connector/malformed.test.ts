// What a server has to close a connection for in MQTT 3.1.1. For MQTT 5: v5-connect, v5-publish, v5-filters, v5-others.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, until, type World } from './harness.ts';
import { dial, enter, type RawClient } from './raw.ts';
import { id, join, packet, text } from './v5-bytes.ts';

let world: World;
let up: string;
beforeEach(async () => {
  world = await startWorld();
  up = `devices/${world.device.uuid}/up`;
});
afterEach(() => world.close());

const latin1 = Buffer.from([0xe4]);
const state = '{"puId":1,"stId":1,"ts":1}';

type Parts = { name: string; flags: number; clientId: string | Buffer; will: Buffer; more: Buffer };

function connect({
  name = 'MQTT',
  flags = 0xc2,
  clientId = 'raw',
  will = Buffer.alloc(0),
  more = Buffer.alloc(0),
}: Partial<Parts>): Buffer {
  const head = join(text(name), name === 'MQTT' ? 4 : 3, flags, id(0));
  const { uuid, token } = world.device;
  return packet(0x10, head, text(clientId), will, text(uuid), text(token), more);
}

describe('a CONNECT of MQTT 3.1.1 is accepted', () => {
  test.each<[string, Partial<Parts>]>([
    ['without a fault', {}],
    ['of version 3.1', { name: 'MQIsdp' }],
    ['with a will', { flags: 0xc6, will: join(text('WILL'), text('{}')) }],
    ['with a retained will', { flags: 0xf6, will: join(text('WILL'), text('{}')) }],
  ])('%s', async (_what, parts) => {
    const raw = await dial(world, 4);
    const will = parts.will && join(text(`${up}/state`), text(state));
    raw.socket.write(connect({ ...parts, ...(will ? { will } : {}) }));
    expect((await raw.expect('connack'))[0]?.returnCode).toBe(0);
  });
});

describe('a CONNECT of MQTT 3.1.1 is closed without an answer [MQTT-3.1.4-1]', () => {
  test.each<[string, Partial<Parts>]>([
    ['U+0000 in its client identifier [MQTT-1.5.3-2]', { clientId: 'a\0b' }],
    ['a client identifier that is not UTF-8 [MQTT-1.5.3-1]', { clientId: latin1 }],
    ['the reserved flag [MQTT-3.1.2-3]', { flags: 0xc3 }],
    ['a will QoS of 3 [MQTT-3.1.2-14]', { flags: 0xde, will: join(text('x'), text('{}')) }],
    ['a will QoS without a will [MQTT-3.1.2-13]', { flags: 0xca }],
    ['will retain without a will [MQTT-3.1.2-15]', { flags: 0xe2 }],
    ['U+0000 in its will topic [MQTT-1.5.3-2]', { flags: 0xc6, will: join(text('a\0'), text('')) }],
    ['a password without a user name [MQTT-3.1.2-22]', { flags: 0x42 }],
    ['a missing user name', { flags: 0x02 }],
    ['more than its flags state', { more: Buffer.from([0]) }],
  ])('%s', async (_what, parts) => {
    const raw = await dial(world, 4);
    raw.socket.write(connect(parts));
    await raw.ended();
    expect(raw.received).toEqual([]);
    expect(world.store.checks).toBe(0);
    await until(() => world.counted.includes('refused malformed'));
  });
});

describe('a connection of MQTT 3.1.1 is closed for', () => {
  const publish = (first: number, topic: string | Buffer, messageId: number | null) =>
    packet(first, text(topic), ...(messageId === null ? [] : [id(messageId)]), state);
  test.each<[string, () => Buffer]>([
    ['packet identifier 0, QoS 1 [MQTT-2.3.1-1]', () => publish(0x32, `${up}/state`, 0)],
    ['packet identifier 0, QoS 2 [MQTT-2.3.1-1]', () => publish(0x34, `${up}/state`, 0)],
    ['packet identifier 0, SUBSCRIBE [MQTT-2.3.1-1]', () => packet(0x82, id(0), text('a'), 0)],
    ['packet identifier 0, UNSUBSCRIBE [MQTT-2.3.1-1]', () => packet(0xa2, id(0), text('a'))],
    ['DUP at QoS 0 [MQTT-3.3.1-2]', () => publish(0x38, `${up}/state`, null)],
    ['QoS 3 [MQTT-3.3.1-4]', () => publish(0x36, `${up}/state`, 1)],
    ['no topic [MQTT-4.7.3-1]', () => publish(0x32, '', 1)],
    ['a topic that is not UTF-8 [MQTT-1.5.3-1]', () => publish(0x32, join(`${up}/`, latin1), 1)],
    ['a wildcard in its topic [MQTT-3.3.2-2]', () => publish(0x32, `${up}/+`, 1)],
    ['flags of SUBSCRIBE [MQTT-3.8.1-1]', () => packet(0x80, id(1), text('a'), 0)],
    ['a SUBSCRIBE without a filter [MQTT-3.8.3-3]', () => packet(0x82, id(1))],
    ['reserved bits beside a QoS [MQTT-3-8.3-4]', () => packet(0x82, id(1), text('a'), 4)],
    ['a QoS of 3 in a SUBSCRIBE [MQTT-3-8.3-4]', () => packet(0x82, id(1), text('a'), 3)],
    ['an empty filter [MQTT-4.7.3-1]', () => packet(0x82, id(1), text(''), 0)],
    ['U+0000 in a filter [MQTT-4.7.3-2]', () => packet(0x82, id(1), text('a\0'), 0)],
    ['# before the end of a filter [MQTT-4.7.1-2]', () => packet(0x82, id(1), text('#/a'), 0)],
    ['flags of UNSUBSCRIBE [MQTT-3.10.1-1]', () => packet(0xa0, id(1), text('a'))],
    ['an UNSUBSCRIBE without a filter [MQTT-3.10.3-2]', () => packet(0xa2, id(1))],
    ['flags of PUBREL [MQTT-3.6.1-1]', () => packet(0x60, id(1))],
    ['flags of PINGREQ [MQTT-2.2.2-2]', () => packet(0xc1)],
    ['flags of DISCONNECT [MQTT-3.14.1-1]', () => packet(0xe1)],
  ])('%s', async (_what, bytesOf) => {
    const raw: RawClient = await enter(world, { protocolVersion: 4 });
    raw.socket.write(bytesOf());
    await raw.ended();
    expect(raw.received.map(({ cmd }) => cmd)).toEqual(['connack']);
    expect(world.store.stored).toEqual([]);
    await until(() => world.counted.includes('disconnected malformed'));
  });
});
