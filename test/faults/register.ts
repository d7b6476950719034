import { call } from '../../bench/api.ts';
import type { Purpose } from '../../src/core/purpose.ts';
import { configuration } from './messages.ts';

export type WitnessDevice = { uuid: string; token: string };

export async function registerDevices(
  url: string,
  token: string,
  count: number,
): Promise<WitnessDevice[]> {
  const devices: WitnessDevice[] = [];
  while (devices.length < count) {
    const some = Array.from({ length: Math.min(16, count - devices.length) }, async () => {
      const { deviceAuthUuid, deviceAuthToken } = await call<{
        deviceAuthUuid: string;
        deviceAuthToken: string;
      }>(url, 'POST', '/v2/devices', { token, body: configuration });
      return { uuid: deviceAuthUuid, token: deviceAuthToken };
    });
    devices.push(...(await Promise.all(some)));
  }
  return devices;
}

/** On every second device: the others are there to show that it makes no difference. */
export async function installOnHalf(
  url: string,
  token: string,
  devices: WitnessDevice[],
  purpose: Purpose,
): Promise<string> {
  const deviceAuthUuids = devices.filter((_, index) => hasProfile(index)).map(({ uuid }) => uuid);
  const { pId } = await call<{ pId: string }>(url, 'POST', '/v2/devices/profile', {
    token,
    body: { deviceAuthUuids, purposes: [purpose] },
  });
  return pId;
}

export const hasProfile = (index: number) => index % 2 === 0;
