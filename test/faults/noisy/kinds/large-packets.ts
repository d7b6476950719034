import { once } from 'node:events';
import { encodeConnect, encodeString, packetOf } from '../../../../bench/client/packets.ts';
import { createReadings, flood, registerDevices, type EnemyDevice } from '../devices.ts';
import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { pause, work } from '../workers.ts';

const packetBytes = 262_144;
const floods = 20;
const slow = 300;
/** Of a packet with its fixed header, whatever else it has. */
const headBytes = 128;

/** All but the end of a message of measurements that is as large as it may be. */
function begun({ uuid = '' }: Partial<EnemyDevice>): Buffer {
  const payload = Buffer.alloc(packetBytes - headBytes, ' ');
  const topic = encodeString(`devices/${uuid}/up/measurements`);
  return packetOf(0x32, [topic, Buffer.from([0, 1]), payload]).subarray(0, -10_000);
}

async function hold(enemy: Enemy, device: EnemyDevice, signal: AbortSignal): Promise<void> {
  const login = { clientId: device.uuid, username: device.uuid, password: device.token };
  const socket = enemy.dial(enemy.mqttPort).resume();
  const closed = once(socket, 'close').catch(() => undefined);
  socket.write(encodeConnect({ ...login, keepaliveSeconds: 60 }));
  socket.write(begun(device));
  enemy.tally.count('begun');
  while (!socket.destroyed && !signal.aborted) {
    socket.write(' ');
    await Promise.race([pause(2_000, signal), closed]);
  }
}

/** 256 KiB each: what is sent whole takes long to parse, what never ends takes memory. */
export const largePackets: NoisyKind = {
  name: 'large-packets',
  says: '20 devices that send measurements in packets of 256 KiB, and 300 whose packets never end',
  settings: () => ({ mqtt: { maxMeasurementPacketBytes: packetBytes } }),
  async setUp(enemy) {
    const devices = await registerDevices(enemy, floods);
    // Of an account of their own: what they hold is taken from it alone.
    const account = await enemy.registerAccount();
    const slowDevices = await registerDevices(enemy, slow, { account });
    const readings = createReadings();
    const payload = (device: number) => readings(device, 1_000).padEnd(packetBytes - headBytes);
    return async (signal) => {
      await Promise.all([
        flood(enemy, { devices, payload, inFlight: 4 }, signal),
        work(slow, signal, async (worker) => {
          const device = slowDevices[worker];
          if (device) await hold(enemy, device, signal);
        }),
      ]);
    };
  },
};
