import { z } from 'zod';

const count = z.int().min(1);

/** What one account may have and do; what each is for stands in config/default.ts. */
export const QuotaSettings = z.strictObject({
  devices: count,
  devicesPerDay: count,
  purposes: count,
  purposeBytes: count,
  profiles: count,
  profileBytesTotal: count,
  sensesPerDevice: count,
  nameLength: count,
  textLength: count,
  causesPerMeasurement: count,
  profileBytes: count,
  evidenceBytes: count,
  requestsPerSecond: count,
  requestsBurst: count,
});
export type QuotaSettings = z.infer<typeof QuotaSettings>;
export type QuotaName = keyof QuotaSettings;

/** All names, in the order in which they are told. */
export const quotaNames = Object.keys(QuotaSettings.shape) as QuotaName[];

export function isQuotaName(name: string): name is QuotaName {
  return Object.hasOwn(QuotaSettings.shape, name);
}
