import { connectAsync } from 'mqtt';
import { expect } from 'vitest';
import type { RunningService } from '../journeys/running-service.ts';
import { insertDevices, installOwnProfiles, peakMiB, register, startSmall } from './world.ts';
import type { Device } from './world.ts';

export type ManyProfiles = { devices: number; profileBytes: number; heapMiB: number };

/** How many devices are connected at once. One that is told to come later does so when others are done. */
const atOnce = 500;

/**
 * Each device has a profile of its own and sends one message. All profiles compiled would take several times the heap.
 * Every message is acknowledged and stored, and memory stays within its limit.
 */
export async function sendToMany({ devices, profileBytes, heapMiB }: ManyProfiles): Promise<void> {
  const service = await startSmall(heapMiB);
  try {
    const world = await register(service, 'fleet@example.org');
    const fleet = await insertDevices(world, devices);
    await installOwnProfiles(world, profileBytes);
    const left = [...fleet];
    const sendNext = async () => {
      for (let device = left.shift(); device; device = left.shift()) await send(service, device);
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, devices) }, sendNext));
    const { rows } = await service.database.db.query<{ stored: number; current: number }>(
      `select (select count(*) from measurement) as stored,
              (select count(*) from device_profile where state = 'current') as current`,
    );
    expect(rows[0]).toEqual({ stored: devices, current: devices });
    expect(service.process.child.exitCode).toBeNull();
    const peak = peakMiB(service);
    if (peak !== null) expect(peak).toBeLessThan(heapMiB + besideHeapMiB);
    console.log(
      `${devices} profiles of ${profileBytes} bytes, heap ${heapMiB} MiB: peak ${peak} MiB`,
    );
  } finally {
    await service.close();
  }
}

/** Memory for code, stacks, new objects, and buffers outside V8's heap. */
export const besideHeapMiB = 250;

/** Repeats until it is acknowledged: a message that waits too long is sent again over another connection. */
async function send(service: RunningService, { uuid, token }: Device): Promise<void> {
  const payload = JSON.stringify([{ sId: 'a', val: 1, ts: Date.now() }]);
  for (;;) {
    if (service.process.child.exitCode !== null) throw new Error('the service has ended');
    try {
      const options = { username: uuid, password: token, reconnectPeriod: 0 };
      const client = await connectAsync(service.mqttUrl, options, false);
      const closed = new Promise<never>((_, reject) => {
        client.once('close', () => reject(new Error('closed')));
      });
      closed.catch(() => undefined);
      const topic = `devices/${uuid}/up/measurements`;
      await Promise.race([client.publishAsync(topic, payload, { qos: 1 }), closed]);
      client.end(true);
      return;
    } catch {
      // The connection was closed before the message was stored, or was refused for now: try again.
    }
  }
}
