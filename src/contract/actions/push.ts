import { z } from 'zod';
import type { Action } from './action.ts';

export const pushMembers = { sendPush: z.boolean().default(false) };

/** One push, for every token that the account has when it is sent. */
export const push: Action<{ cloud?: { sendPush: boolean } | undefined }> = {
  name: 'push',
  reaches: 'people',
  isAsked: ({ cloud }) => cloud?.sendPush === true,
  notifications: (_, { device, event, name }) => {
    const { accountId, deviceId, uuid: deviceUuid } = device;
    return [{ accountId, deviceId, deviceUuid, event, kind: 'push', name }];
  },
};
