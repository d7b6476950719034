import { call } from './request.ts';
import type { Purpose } from './types.ts';

/** Installs it as all of the device's profile. */
export const installPurpose = (uuid: string, purpose: Purpose) =>
  call('POST', '/v2/devices/profile', {
    body: { deviceAuthUuids: [uuid], purposes: [purpose] },
  });
