import { afterEach, expect, test } from 'vitest';
import type { DeviceIdentity } from '../../../src/contract/uplink.ts';
import { until } from '../harness.ts';
import { startHttpWorld, type HttpWorld } from './harness.ts';

let world: HttpWorld;
afterEach(() => world.close());

test.each([
  ['has arrived completely', 100, 100],
  ['has not arrived yet', 10, 100],
  ['is large, and has not arrived yet', 10, 100_000],
])(
  'a client that leaves during its login keeps no room if its body %s',
  async (_, bytes, announced) => {
    const asked: ((device: DeviceIdentity) => void)[] = [];
    world = await startHttpWorld({
      limits: { maxMeasurementPacketBytes: 262_144 },
      ports: { authenticateDevice: () => new Promise((resolve) => asked.push(resolve)) },
    });
    const socket = await world.dial();
    socket.write(
      `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\n` +
        `Content-Length: ${announced}\r\n\r\n${'{"sId":"0x1","val":1}'.padEnd(bytes).slice(0, bytes)}`,
    );
    await until(() => asked.length === 1, 'the login');
    // A client that only ends its side still has its message stored and answered.
    socket.resetAndDestroy();
    // The end of that connection is seen before the next request.
    expect((await world.send('/devices/x')).status).toBe(404);
    asked[0]?.({ deviceId: 1, uuid: world.device.uuid, accountId: 1 });
    await world.send('/devices/x');
    expect(world.connector.snapshot()).toMatchObject({ underWay: 0, waiting: 0, bytes: 0 });
    expect(world.store.stored).toHaveLength(0);
  },
);
