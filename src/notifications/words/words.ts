/** What messages are made of, in each language; every language has every member. */
export type Words = {
  event: (evId: number) => string;
  above: string;
  below: string;
  oneOf: string;
  noneOf: string;
  insideArea: string;
  not: string;
  and: string;
  /** What was compared: statistics over so long, the difference from the first value, a rounded value. */
  avg: (value: string, lasting: string) => string;
  sum: (value: string, lasting: string) => string;
  delta: (value: string, lasting: string) => string;
  changedBy: (value: string) => string;
  takenAs: (value: string) => string;
  /** Of conditions on time: for how long, as `describeLasting` says it. */
  held: (lasting: string) => string;
  silent: (lasting: string) => string;
  lastValue: (value: string) => string;
  ofTheLast: (matched: number, of: number) => string;
  lastToday: string;
  /** Of an alarm: since when it is open, when its sense was last heard, what became of it. */
  openSince: (when: string) => string;
  lastHeard: (when: string) => string;
  overTitle: (title: string) => string;
  overSince: (when: string) => string;
  acknowledgedAt: (when: string) => string;
  snoozedUntil: (when: string) => string;
  /** Many alarms in one message. */
  gathered: (count: number) => string;
  gatheredOver: (count: number) => string;
  testTitle: string;
  testBody: string;
  confirmTitle: string;
  confirmBody: (link: string) => string;
  unsubscribe: string;
  /** Of quotas of the account: what they are called, how much of one is in use, and the mail about them. */
  quotaName: (quota: string) => string;
  amountOf: (used: string, limit: string) => string;
  quotaTitle: (isUsedUp: boolean) => string;
  quotaBody: (lines: string) => string;
  /** How numbers and times are written. */
  locale: string;
};
