import { z } from 'zod';
import { normalizePhoneNumber } from '../values.ts';
import { Text } from '../text.ts';
import type { Action } from './action.ts';

/** Kept without separators; what is no number stays as it is, and is warned of. */
const PhoneNumber = Text.min(1)
  .max(32)
  .overwrite((text) => normalizePhoneNumber(text) ?? text);

export const smsMembers = {
  text: Text.optional(),
  phoneNumber: z.array(PhoneNumber).max(10).default([]),
};

/** One SMS a number; none without a text. */
export const sms: Action<{
  sms?: { text?: string | undefined; phoneNumber: string[] } | undefined;
}> = {
  name: 'sms',
  reaches: 'people',
  isAsked: (actions) => (actions.sms?.phoneNumber.length ?? 0) > 0,
  *notifications(actions, { device, event, name }) {
    const { text, phoneNumber = [] } = actions.sms ?? {};
    if (!text) return;
    const { accountId, deviceId, uuid: deviceUuid } = device;
    const asked = { accountId, deviceId, deviceUuid, event, name, kind: 'sms' as const, text };
    for (const number of new Set(phoneNumber)) yield { ...asked, phoneNumber: number };
  },
};
