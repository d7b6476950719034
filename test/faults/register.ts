import { call, registerAccount } from '../../bench/api.ts';
import type { RegisteredAccount } from '../../bench/api.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import { configuration, witnessPurpose } from './messages.ts';

/** `accountToken`: a token of its account, if that is not the first one. */
export type WitnessDevice = { uuid: string; token: string; accountToken?: string };

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

/** Installed on every second device; the others show that results do not depend on it. */
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

export type Witnesses = {
  accounts: [RegisteredAccount, ...RegisteredAccount[]];
  devices: WitnessDevice[];
  pId: string;
};

/** Registers devices of this many accounts, every second one with the witness's profile. */
export async function registerWitnesses(
  url: string,
  { devices: count, accounts: accountCount }: { devices: number; accounts: number },
): Promise<Witnesses> {
  const first = await registerAccount(url);
  const witnesses: Witnesses = { accounts: [first], devices: [], pId: '' };
  // An even number each, so that `hasProfile` holds for all devices in one row.
  const share = 2 * Math.ceil(count / accountCount / 2);
  for (let left = count; left > 0; left -= share) {
    const isFirst = left === count;
    const account = isFirst ? first : await registerAccount(url);
    if (!isFirst) witnesses.accounts.push(account);
    const { token } = account;
    const devices = await registerDevices(url, token, Math.min(share, left));
    witnesses.pId = await installOnHalf(url, token, devices, witnessPurpose);
    const belong = isFirst ? {} : { accountToken: token };
    witnesses.devices.push(...devices.map((device) => ({ ...device, ...belong })));
  }
  return witnesses;
}
