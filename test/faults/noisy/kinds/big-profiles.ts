import { createBefore } from '../before.ts';
import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { bigPurpose } from '../purposes.ts';
import { each } from '../workers.ts';

const profiles = 486;
const bytes = 500_000;

/** One of them is at most 256 KiB. */
const purposesFor = (uuid: string) =>
  [1, 2].map((puId) => ({ ...bigPurpose(bytes / 2.2, uuid), puId }));

/** Far beyond `profileBytesTotal`, as an operator may have raised it. */
export const bigProfiles: NoisyKind = {
  name: 'big-profiles',
  says: 'a message to each of 486 devices that have profiles of 500 kB of their own',
  async setUp(enemy) {
    await createBefore(enemy).raiseQuota('profileBytesTotal', 2 * profiles * bytes);
    const devices = await registerDevices(enemy, profiles);
    await each(devices, 2, (device) => install(enemy, [device], purposesFor(device.uuid)));
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 1, payload: (device) => readings(device, 1) }, signal);
  },
};
