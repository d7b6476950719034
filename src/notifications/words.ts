import { LRUCache } from 'lru-cache';
import type { Severity } from '../contract/actions.ts';

/** The texts of messages, in each language; every language has every member. */
export type Words = {
  event: (evId: number) => string;
  above: string;
  below: string;
  oneOf: string;
  noneOf: string;
  insideArea: string;
  not: string;
  and: string;
  /** The compared value: a statistic over a time, the difference from the first value, or a rounded value. */
  avg: (value: string, lasting: string) => string;
  sum: (value: string, lasting: string) => string;
  delta: (value: string, lasting: string) => string;
  min: (value: string, lasting: string) => string;
  max: (value: string, lasting: string) => string;
  stddev: (value: string, lasting: string) => string;
  changedBy: (value: string) => string;
  takenAs: (value: string) => string;
  /** Conditions on time; `describeLasting` writes the durations. */
  held: (lasting: string) => string;
  silent: (lasting: string) => string;
  lastValue: (value: string) => string;
  ofTheLast: (matched: number, of: number) => string;
  lastToday: (until: string) => string;
  /** An alarm: since when it is open, when its sense last sent a value, what has happened to it. */
  openSince: (when: string) => string;
  lastHeard: (when: string) => string;
  overTitle: (title: string) => string;
  overSince: (when: string) => string;
  lasted: (lasting: string) => string;
  /** Of a silence: values were measured, and came late. */
  filled: (when: string) => string;
  acknowledgedAt: (when: string) => string;
  snoozedUntil: (when: string) => string;
  /** Many alarms in one message: how many at how many devices, the worst by name, and how many more there are. */
  gathered: (count: number, devices: number, since: string) => string;
  severity: Record<Severity, (count: number) => string>;
  /** In front of what is not a warning. */
  severityOf: Record<Exclude<Severity, 'warning'>, string>;
  atLabel: (label: string, count: number) => string;
  noLabel: string;
  andMore: (count: number) => string;
  /** `left`: how many others of which the person was told are not over. */
  gatheredOver: (count: number, left: number) => string;
  /** The value of an alarm that was furthest beyond its limit, the greatest or the least. */
  most: (value: string) => string;
  least: (value: string) => string;
  testTitle: string;
  testBody: string;
  confirmTitle: string;
  confirmBody: (link: string) => string;
  unsubscribe: string;
  /** Quotas of the account: their names, how much of one is used, and the mail about them. */
  quotaName: (quota: string) => string;
  amountOf: (used: string, limit: string) => string;
  quotaTitle: (isUsedUp: boolean) => string;
  quotaBody: (lines: string) => string;
  /** How numbers and times are written. */
  locale: string;
};

/** "einer Stunde" instead of "1 Stunde", and "2 Tagen" instead of "2 Tage". */
const dative = (lasting: string) =>
  lasting
    .replace(/^1 (Stunde|Minute)$/, 'einer $1')
    .replace(/^1 Tag$/, 'einem Tag')
    .replace(/Tage\b/, 'Tagen');

const quotaNamesDe: Record<string, string> = {
  devices: 'Geräte',
  devicesPerDay: 'Heute hinzugefügte Geräte',
  purposes: 'Gespeicherte Aufgaben',
  purposeBytes: 'Größe der gespeicherten Aufgaben',
  profiles: 'Installierte Profile',
  profileBytesTotal: 'Größe der installierten Profile',
  contacts: 'Kontakte',
  keys: 'API-Schlüssel',
  eventsPerDay: 'Ereignisse heute',
  messagesPerDay: 'E-Mails und Push-Nachrichten heute',
  webhooksPerDay: 'Nachrichten an Webhooks heute',
  smsPerDay: 'SMS heute',
  storedBytes: 'Gespeicherte Messwerte und Ereignisse',
};

export const german: Words = {
  event: (evId) => `Ereignis ${evId}`,
  above: 'über',
  below: 'unter',
  oneOf: 'einer der Werte',
  noneOf: 'keiner der Werte',
  insideArea: 'innerhalb des Gebiets',
  not: 'nicht',
  and: 'und',
  avg: (value, lasting) => `Mittelwert ${value} in ${dative(lasting)}`,
  sum: (value, lasting) => `Summe ${value} in ${dative(lasting)}`,
  delta: (value, lasting) => `Änderung ${value} in ${dative(lasting)}`,
  min: (value, lasting) => `kleinster Wert ${value} in ${dative(lasting)}`,
  max: (value, lasting) => `größter Wert ${value} in ${dative(lasting)}`,
  stddev: (value, lasting) => `Standardabweichung ${value} in ${dative(lasting)}`,
  changedBy: (value) => `geändert um ${value}`,
  takenAs: (value) => `gewertet als ${value}`,
  held: (lasting) => `${lasting} lang`,
  silent: (lasting) => `${lasting} lang nichts empfangen`,
  lastValue: (value) => `letzter Wert ${value}`,
  ofTheLast: (matched, of) => `${matched} der letzten ${of}`,
  lastToday: (until) =>
    `Das ist die letzte Nachricht bis ${until}: Das Tageskontingent ist verbraucht.`,
  openSince: (when) => `Offen seit ${when}.`,
  lastHeard: (when) => `Letzter Wert von ${when}.`,
  overTitle: (title) => `${title}: vorbei`,
  overSince: (when) => `Vorbei seit ${when}.`,
  lasted: (lasting) => `Dauer: ${lasting}.`,
  filled: (when) => `Es wurde gemessen, aber die Werte kamen verspätet; der erste ist von ${when}.`,
  acknowledgedAt: (when) => `Quittiert: ${when}.`,
  snoozedUntil: (when) => `Aufgeschoben bis ${when}.`,
  gathered: (count, devices, since) =>
    `${count === 1 ? '1 Alarm' : `${count} Alarme`} bei ` +
    `${devices === 1 ? '1 Gerät' : `${devices} Geräten`} seit ${since}`,
  severity: {
    critical: (count) => (count === 1 ? '1 kritischer' : `${count} kritische`),
    warning: (count) => (count === 1 ? '1 Warnung' : `${count} Warnungen`),
    info: (count) => (count === 1 ? '1 Hinweis' : `${count} Hinweise`),
  },
  severityOf: { critical: 'Kritisch', info: 'Hinweis' },
  atLabel: (label, count) => `${label}: ${count}`,
  noLabel: 'ohne Label',
  andMore: (count) => (count === 1 ? '… und 1 weiterer' : `… und ${count} weitere`),
  gatheredOver: (count, left) =>
    (count === 1 ? '1 Alarm ist vorbei' : `${count} Alarme sind vorbei`) +
    (left > 0 ? `, ${left} noch nicht` : ''),
  most: (value) => `bis ${value}`,
  least: (value) => `bis ${value}`,
  testTitle: 'Testnachricht',
  testBody: 'Das ist ein Test. So erhalten Sie Nachrichten über Ihre Geräte.',
  confirmTitle: 'Bitte diese Adresse bestätigen',
  confirmBody: (link) =>
    'Jemand möchte, dass Nachrichten über Geräte an diese Adresse gesendet werden. Wenn Sie ' +
    'das waren, öffnen Sie innerhalb von sieben Tagen diesen Link und klicken Sie auf die ' +
    `Schaltfläche:\n\n${link}\n\nWenn nicht, brauchen Sie nichts zu tun.`,
  unsubscribe: 'Nachrichten abbestellen',
  quotaName: (quota) => quotaNamesDe[quota] ?? quota,
  amountOf: (used, limit) => `${used} von ${limit}`,
  quotaTitle: (isUsedUp) =>
    isUsedUp
      ? 'Ein Kontingent Ihres Kontos ist verbraucht'
      : 'Ein Kontingent Ihres Kontos ist fast verbraucht',
  quotaBody: (lines) =>
    `${lines}\n\nAlles, was Ihr Konto schon hat, funktioniert weiter. Ist ein Kontingent ` +
    'verbraucht, lässt sich nichts mehr hinzufügen: Entfernen Sie, was Sie nicht mehr ' +
    'brauchen, oder bitten Sie den Betreiber um mehr.',
  locale: 'de-DE',
};

/** "an hour" instead of "1 hour". */
const one = (lasting: string) =>
  lasting.replace(
    /^1 (day|hour|minute)$/,
    (_, unit: string) => `${unit === 'hour' ? 'an' : 'a'} ${unit}`,
  );

const quotaNamesEn: Record<string, string> = {
  devices: 'Devices',
  devicesPerDay: 'Devices added today',
  purposes: 'Stored purposes',
  purposeBytes: 'Size of stored purposes',
  profiles: 'Installed profiles',
  profileBytesTotal: 'Size of installed profiles',
  contacts: 'Contacts',
  keys: 'API keys',
  eventsPerDay: 'Events today',
  messagesPerDay: 'E-mails and push messages today',
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
  min: (value, lasting) => `lowest value ${value} in ${one(lasting)}`,
  max: (value, lasting) => `highest value ${value} in ${one(lasting)}`,
  stddev: (value, lasting) => `standard deviation ${value} over ${one(lasting)}`,
  changedBy: (value) => `changed by ${value}`,
  takenAs: (value) => `taken as ${value}`,
  held: (lasting) => `for ${lasting}`,
  silent: (lasting) => `nothing received for ${lasting}`,
  lastValue: (value) => `last value ${value}`,
  ofTheLast: (matched, of) => `${matched} of the last ${of}`,
  lastToday: (until) => `This is the last message until ${until}: the daily quota is used up.`,
  openSince: (when) => `Open since ${when}.`,
  lastHeard: (when) => `Last value from ${when}.`,
  overTitle: (title) => `${title}: over`,
  overSince: (when) => `Over since ${when}.`,
  lasted: (lasting) => `It lasted ${lasting}.`,
  filled: (when) => `Values were measured but came late, the first of ${when}.`,
  acknowledgedAt: (when) => `Acknowledged: ${when}.`,
  snoozedUntil: (when) => `Snoozed until ${when}.`,
  gathered: (count, devices, since) =>
    `${count === 1 ? '1 alarm' : `${count} alarms`} at ` +
    `${devices === 1 ? '1 device' : `${devices} devices`} since ${since}`,
  severity: {
    critical: (count) => `${count} critical`,
    warning: (count) => (count === 1 ? '1 warning' : `${count} warnings`),
    info: (count) => `${count} info`,
  },
  severityOf: { critical: 'Critical', info: 'Info' },
  atLabel: (label, count) => `${label}: ${count}`,
  noLabel: 'no label',
  andMore: (count) => `… and ${count} more`,
  gatheredOver: (count, left) =>
    (count === 1 ? '1 alarm is over' : `${count} alarms are over`) +
    (left > 0 ? `, ${left} ${left === 1 ? 'is' : 'are'} not yet` : ''),
  most: (value) => `up to ${value}`,
  least: (value) => `down to ${value}`,
  testTitle: 'Test message',
  testBody: 'This is a test. You receive messages about your devices this way.',
  confirmTitle: 'Confirm this address',
  confirmBody: (link) =>
    'Somebody asked for messages about devices to be sent to this address. If it was you, open ' +
    `this link within seven days and press the button:\n\n${link}\n\nIf it was not you, ignore ` +
    'this e-mail.',
  unsubscribe: 'Unsubscribe',
  quotaName: (quota) => quotaNamesEn[quota] ?? quota,
  amountOf: (used, limit) => `${used} of ${limit}`,
  quotaTitle: (isUsedUp) =>
    isUsedUp ? 'A quota of your account is used up' : 'A quota of your account is almost used up',
  quotaBody: (lines) =>
    `${lines}\n\nEverything your account already has keeps working. Once a quota is used up, ` +
    'nothing more can be added: remove what you no longer need, or ask the operator of this ' +
    'service for more.',
  locale: 'en-GB',
};

/** Making a format takes longer than using it a thousand times, so keep as many as accounts may mix in a day. */
const mostKept = 500;

/** Returns the format of that name, made once; the least recently used is dropped. */
function keeping<F extends object>(): (name: string, make: () => F) => F {
  const kept = new LRUCache<string, F>({ max: mostKept });
  return (name, make) => {
    const format = kept.get(name) ?? make();
    kept.set(name, format);
    return format;
  };
}

const dates = keeping<Intl.DateTimeFormat>();
const numbers = keeping<Intl.NumberFormat>();

/** A cached format. The options must be few in total. */
export function dateFormat(
  locale: string,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  const name = `${locale} ${JSON.stringify(options)}`;
  return dates(name, () => new Intl.DateTimeFormat(locale, options));
}

/** As `dateFormat`. */
export function numberFormat(locale: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const name = `${locale} ${JSON.stringify(options)}`;
  return numbers(name, () => new Intl.NumberFormat(locale, options));
}
