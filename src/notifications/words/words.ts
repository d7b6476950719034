import type { Language } from '../../contract/language.ts';
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
  /** How numbers and times are written. */
  locale: string;
};

/** "an hour" instead of "1 hour". */
const one = (lasting: string) =>
  lasting.replace(
    /^1 (day|hour|minute)$/,
    (_, unit: string) => `${unit === 'hour' ? 'an' : 'a'} ${unit}`,
  );

/** "einer Stunde" instead of "1 Stunde", and "2 Tagen" instead of "2 Tage". */
const dative = (lasting: string) =>
  lasting
    .replace(/^1 (Stunde|Minute)$/, 'einer $1')
    .replace(/^1 Tag$/, 'einem Tag')
    .replace(/Tage\b/, 'Tagen');

export const words = {
  en: {
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
    lastHeard: (when) => `Last value: ${when}.`,
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
    locale: 'en-GB',
  },
  de: {
    event: (evId) => `Ereignis ${evId}`,
    above: 'über',
    below: 'unter',
    oneOf: 'eines von',
    noneOf: 'keines von',
    insideArea: 'im Gebiet',
    not: 'nicht',
    and: 'und',
    avg: (value, lasting) => `Mittelwert ${value} in ${dative(lasting)}`,
    sum: (value, lasting) => `Summe ${value} in ${dative(lasting)}`,
    delta: (value, lasting) => `Änderung ${value} in ${dative(lasting)}`,
    changedBy: (value) => `geändert um ${value}`,
    takenAs: (value) => `gewertet als ${value}`,
    held: (lasting) => `${lasting} lang`,
    silent: (lasting) => `${lasting} lang nichts empfangen`,
    lastValue: (value) => `letzter Wert ${value}`,
    ofTheLast: (matched, of) => `${matched} der letzten ${of}`,
    lastToday: 'Das ist die letzte Nachricht für heute: Das Tageslimit ist erreicht.',
    openSince: (when) => `Offen seit ${when}.`,
    lastHeard: (when) => `Letzter Wert: ${when}.`,
    overTitle: (title) => `${title}: vorbei`,
    overSince: (when) => `Vorbei seit ${when}.`,
    acknowledgedAt: (when) => `Bestätigt: ${when}.`,
    snoozedUntil: (when) => `Stummgeschaltet bis ${when}.`,
    gathered: (count) =>
      count === 1 ? '1 weiterer Alarm ist offen' : `${count} weitere Alarme sind offen`,
    gatheredOver: (count) => (count === 1 ? '1 Alarm ist vorbei' : `${count} Alarme sind vorbei`),
    testTitle: 'Testnachricht',
    testBody: 'Das ist ein Test. So kommen Nachrichten über Ihre Geräte an.',
    confirmTitle: 'Bitte diese Adresse bestätigen',
    confirmBody: (link) =>
      'Jemand möchte, dass Nachrichten über Geräte an diese Adresse gehen. Wenn Sie das waren, öffnen ' +
      `Sie innerhalb von sieben Tagen diesen Link und drücken Sie den Knopf:\n\n${link}\n\nSonst ` +
      'brauchen Sie nichts zu tun.',
    unsubscribe: 'Keine Nachrichten mehr',
    locale: 'de-DE',
  },
} satisfies Record<Language, Words>;

/** English for any other, and where none is set. */
export function wordsOf(language: string | null): Words {
  return language === 'de' ? words.de : words.en;
}
