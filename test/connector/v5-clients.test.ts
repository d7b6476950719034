// Unmodified clients, most of them of MQTT 5. mqtt.js: v5.test.ts.
import { execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findProgram } from '../support/program.ts';
import { debianPython, hasPaho } from '../support/python.ts';
import { startWorld, until, type World } from './harness.ts';

let world: World;
let up: string;
let down: string;
beforeEach(async () => {
  world = await startWorld();
  up = `devices/${world.device.uuid}/up`;
  down = `devices/${world.device.uuid}/down`;
});
afterEach(() => world.close());

const kinds = () => world.store.stored.map(({ uplink }) => uplink.content.kind);
const display = () => {
  const message = { topic: 'display' as const, payload: { text: 'hello' } };
  world.store.bus.publish('down', { uuid: world.device.uuid, message });
};

/** Publishes once and disconnects at once, again and again, as small programs do. */
const publishAndLeave = `
import sys, paho.mqtt.client as paho
host, port, uuid, token, topic, qos, version, count = sys.argv[1:]
for n in range(int(count)):
    client = paho.Client(protocol=paho.MQTTv5 if version == '5' else paho.MQTTv311)
    client.username_pw_set(uuid, token)
    def go(client, *_):
        client.publish(topic, '{"sId": "0x1", "val": %d}' % n, int(qos))
        client.disconnect()
    client.on_connect = go
    client.connect(host, int(port))
    client.loop_forever()
`;

test
  .skipIf(!hasPaho)
  .each(([4, 5] as const).flatMap((version) => ([0, 1, 2] as const).map((qos) => [version, qos])))(
  'Paho that disconnects right after publishing: everything is stored, MQTT %i, QoS %i',
  async (version, qos) => {
    const { uuid, token } = world.device;
    // The database answers after the client has gone.
    world.store.isHolding = true;
    const to = ['127.0.0.1', String(world.port), uuid, token, `${up}/measurements`];
    const how = [String(qos), String(version), '20'];
    await promisify(execFile)(debianPython, ['-c', publishAndLeave, ...to, ...how]);
    await until(() => world.store.held.length === 20);
    world.store.release();
    await until(() => world.connector.snapshot().unackedBytes === 0);
    expect(world.store.stored).toHaveLength(20);
  },
);

describe.skipIf(findProgram('mosquitto_pub') === null)('mosquitto_pub and mosquitto_sub', () => {
  const login = () => {
    const { uuid, token } = world.device;
    return ['-V', 'mqttv5', '-h', '127.0.0.1', '-p', String(world.port), '-u', uuid, '-P', token];
  };
  const publish = (topic: string, message: string, ...more: string[]) =>
    promisify(execFile)('mosquitto_pub', [...login(), '-t', topic, '-m', message, ...more]);

  test.each(['0', '1', '2'])('publish at QoS %s, with properties', async (qos) => {
    const value = '{"sId":"0x1","val":21.5}';
    const expiry = ['-D', 'publish', 'message-expiry-interval', '60'];
    const user = [
      '-D',
      'publish',
      'user-property',
      'a',
      'b',
      '-D',
      'connect',
      'user-property',
      'a',
      'b',
    ];
    await publish(`${up}/measurements`, value, '-q', qos, ...expiry, ...user);
    await until(() => world.store.stored.length === 1);
    expect(kinds()).toEqual(['measurements']);
  });

  test('learn why nothing was taken', async () => {
    const { stderr } = await publish(`${up}/state`, '{', '-q', '1');
    expect(stderr).toContain('Payload format invalid');
    expect(kinds()).toEqual(['none']);
  });

  test('subscribe, and receive the device’s messages', async () => {
    const args = [...login(), '-t', `${down}/#`, '-q', '1', '-C', '1', '-W', '30', '-F', '%t %p'];
    const client = spawn('mosquitto_sub', args);
    let output = '';
    client.stdout.on('data', (chunk) => (output += String(chunk)));
    await until(() => world.store.subscribedTo.length === 1);
    display();
    await new Promise((resolve) => client.once('exit', resolve));
    expect(output).toBe(`${down}/display {"text":"hello"}\n`);
  });
});

test.skipIf(!hasPaho)(
  'paho (Python) connects, publishes, subscribes and learns why it failed',
  async () => {
    const script = fileURLToPath(new URL('v5-paho.py', import.meta.url));
    const { uuid, token } = world.device;
    const client = execFile(
      debianPython,
      ['-W', 'ignore', script, String(world.port), uuid, token],
      {
        timeout: 60_000,
      },
    );
    let output = '';
    client.stdout?.on('data', (chunk) => (output += String(chunk)));
    client.stderr?.on('data', (chunk) => (output += String(chunk)));
    await until(() => world.store.subscribedTo.length === 1);
    display();
    await new Promise((resolve) => client.once('exit', resolve));
    expect(output.split('\n').filter(Boolean)).toEqual([
      'connected 0 100',
      'subscribed 1',
      'display {"text":"hello"}',
      'stored 3',
    ]);
    expect(kinds()).toEqual(['measurements', 'measurements', 'none']);
  },
);
