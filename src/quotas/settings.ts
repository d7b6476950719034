import { z } from 'zod';

const count = z.int().min(1);

/** The limits of one account; config/default.ts says what each is for. */
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
  connections: count,
  eventsPerSecond: count,
  measurementsPerSecond: count,
  eventsPerDay: count,
  storedBytes: count,
  sessions: count,
  streams: count,
  keys: count,
  jobs: count,
  idempotencyKeys: count,
  exports: count,
  imports: count,
  backtests: count,
  backtestValuesPerDay: count,
  loginsPerAccount: count,
  loginsPerAddress: count,
  rejectionsPerMessage: z.int().min(1).max(100),
  rejectionBytesPerDevice: count,
  contacts: count,
  pushTokens: count,
  messagesPerDay: count,
  messagesPerRecipient: count,
  webhooksPerDay: count,
  smsPerDay: count,
  smsPerNumber: count,
  smsPerInstallation: count,
  commandsPerDevice: count,
  commandsPerDay: count,
  confirmationsPerNetwork: count,
  confirmationsPerInstallation: count,
});
export type QuotaSettings = z.infer<typeof QuotaSettings>;
export type QuotaName = keyof QuotaSettings;

/** Limits of an address, a device, a number or the installation: an account cannot see them, or have its own. */
const ofNobody: QuotaName[] = [
  'loginsPerAddress',
  'rejectionsPerMessage',
  'rejectionBytesPerDevice',
  'smsPerNumber',
  'smsPerInstallation',
  'confirmationsPerNetwork',
  'confirmationsPerInstallation',
];

/** The quotas that an account has, in the order in which they are listed. */
export const quotaNames = (Object.keys(QuotaSettings.shape) as QuotaName[]).filter(
  (name) => !ofNobody.includes(name),
);

export function isQuotaName(name: string): name is QuotaName {
  return quotaNames.some((quota) => quota === name);
}
