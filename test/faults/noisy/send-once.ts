import { flood } from './devices.ts';
import type { EnemyDevice } from './devices.ts';
import type { Enemy } from './enemy.ts';

/** Sends one message, and waits for its acknowledgement. */
export async function sendOnce(
  enemy: Enemy,
  device: EnemyDevice,
  topic: string,
  message: object,
): Promise<void> {
  const done = new AbortController();
  const payload = (_device: number, seq: number) => {
    if (seq === 0) return JSON.stringify(message);
    // With one under way, the next one is requested when that is acknowledged.
    done.abort();
    return null;
  };
  await flood(enemy, { devices: [device], topic, inFlight: 1, payload }, done.signal);
}
