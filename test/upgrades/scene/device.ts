import { call, until } from '../ask.ts';
import { connectAs, type ConnectedDevice } from '../device.ts';
import type { DeviceKeys } from '../fixture.ts';

/** The service of the scene, and an account on it. */
export type Site = { url: string; mqttPort: number; token: string };

const namedAs: Record<string, object> = {
  '0x01': { name: 'Temperature', unit: '°C', decimals: 1 },
  '0x02': { name: 'Humidity', unit: '%', decimals: 0 },
};

const senses = ['0x01', '0x02', '0x03', '0x04', '0x05', '0x06', '0x07'].map((sId) =>
  sId === '0x06' ? { sId } : { sId, min: -100, max: 100, minInterval: 1_000, ...namedAs[sId] },
);

/** Registers a device with a sense for everything that the scene measures. */
export async function registerDevice(
  site: Site,
  name: string,
  labels: string[] = [],
): Promise<DeviceKeys> {
  const body = {
    labels,
    device: { name, swName: 'probe', swVersion: '1.0', hwVersion: 'A', serial: `sn-${name}` },
    module: [{ moduleId: 'climate', moduleName: 'Climate', senses }],
  };
  const { deviceAuthUuid: uuid, deviceAuthToken } = await call<{
    deviceAuthUuid: string;
    deviceAuthToken: string;
  }>(site.url, '/v2/devices', { method: 'POST', token: site.token, body });
  return { uuid, opens: [deviceAuthToken], refused: [] };
}

/** Connects with the device's newest token, and disconnects when the work is done. */
export async function asDevice<T>(
  site: Site,
  { uuid, opens }: DeviceKeys,
  work: (device: ConnectedDevice) => Promise<T>,
): Promise<T> {
  const device = await connectAs(site.mqttPort, { uuid, token: opens.at(-1) ?? '' });
  try {
    return await work(device);
  } finally {
    await device.end();
  }
}

/** Creates a new token and returns both. */
export async function rotateToken(site: Site, { uuid, opens }: DeviceKeys) {
  const path = `/v2/devices/${uuid}/token`;
  const { deviceAuthToken } = await call<{ deviceAuthToken: string }>(site.url, path, {
    method: 'POST',
    token: site.token,
  });
  return { old: opens[0] ?? '', new: deviceAuthToken };
}

/** Installs a profile and returns its pId. */
export async function install(
  { url, token }: Site,
  uuids: string[],
  profile: { purposes?: object[]; purposeUuids?: string[] },
): Promise<string> {
  const body = { deviceAuthUuids: uuids, ...profile };
  const { pId } = await call<{ pId: string }>(url, '/v2/devices/profile', {
    method: 'POST',
    token,
    body,
  });
  return pId;
}

/** Waits until a profile has a state on its first device. */
export async function whenProfile({ url, token }: Site, pId: string, state: string): Promise<void> {
  await until(`profile ${pId} ${state}`, async () => {
    const { devices } = await call<{ devices: { state: string }[] }>(
      url,
      `/v2/devices/profile/${pId}`,
      { token },
    );
    return devices[0]?.state === state ? state : null;
  });
}
