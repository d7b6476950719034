import type { Words } from './words.ts';

/** "an hour" instead of "1 hour". */
const one = (lasting: string) =>
  lasting.replace(
    /^1 (day|hour|minute)$/,
    (_, unit: string) => `${unit === 'hour' ? 'an' : 'a'} ${unit}`,
  );

const quotaNames: Record<string, string> = {
  devices: 'Devices',
  devicesPerDay: 'Devices added today',
  purposes: 'Stored purposes',
  purposeBytes: 'Size of stored purposes',
  profiles: 'Installed profiles',
  profileBytesTotal: 'Size of installed profiles',
  contacts: 'Contacts',
  keys: 'API keys',
  eventsPerDay: 'Events today',
  messagesPerDay: 'Mails and push messages today',
  webhooksPerDay: 'Messages to webhooks today',
  smsPerDay: 'SMS today',
  storedBytes: 'Stored history',
};

export const english: Words = {
  event: (evId) => `Event ${evId}`,
  above: 'above',
  below: 'below',
  oneOf: 'one of',
  noneOf: 'none of',
  insideArea: 'inside the area',
  not: 'not',
  and: 'and',
  avg: (value, lasting) => `average ${value} over ${one(lasting)}`,
  sum: (value, lasting) => `sum ${value} in ${one(lasting)}`,
  delta: (value, lasting) => `change ${value} in ${one(lasting)}`,
  changedBy: (value) => `changed by ${value}`,
  takenAs: (value) => `taken as ${value}`,
  held: (lasting) => `for ${lasting}`,
  silent: (lasting) => `nothing heard for ${lasting}`,
  lastValue: (value) => `last value ${value}`,
  ofTheLast: (matched, of) => `${matched} of the last ${of}`,
  lastToday: 'This is the last message today: the daily limit is reached.',
  openSince: (when) => `Open since ${when}.`,
  lastHeard: (when) => `Last value from ${when}.`,
  overTitle: (title) => `${title}: over`,
  overSince: (when) => `Over since ${when}.`,
  acknowledgedAt: (when) => `Acknowledged: ${when}.`,
  snoozedUntil: (when) => `Snoozed until ${when}.`,
  gathered: (count) => (count === 1 ? '1 more alarm is open' : `${count} more alarms are open`),
  gatheredOver: (count) => (count === 1 ? '1 alarm is over' : `${count} alarms are over`),
  testTitle: 'Test message',
  testBody: 'This is a test. Messages about your devices come this way.',
  confirmTitle: 'Confirm this address',
  confirmBody: (link) =>
    'Somebody wants messages about devices to be sent to this address. If it was you, open this ' +
    `link within seven days and press the button:\n\n${link}\n\nIf not, nothing needs to be done.`,
  unsubscribe: 'No more messages',
  quotaName: (quota) => quotaNames[quota] ?? quota,
  amountOf: (used, limit) => `${used} of ${limit}`,
  quotaTitle: (isUsedUp) =>
    isUsedUp ? 'A limit of your account is reached' : 'Your account nears a limit',
  quotaBody: (lines) =>
    `${lines}\n\nWhat your account has goes on working. Beyond a limit nothing more is taken: remove what ` +
    'is not needed any more, or ask the operator of this service for more.',
  locale: 'en-GB',
};
