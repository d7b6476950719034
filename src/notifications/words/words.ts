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
  compared: string;
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
    compared: 'compared',
    held: (lasting) => `for ${lasting}`,
    silent: (lasting) => `nothing heard for ${lasting}`,
    lastValue: (value) => `last ${value}`,
    ofTheLast: (matched, of) => `${matched} of the last ${of}`,
    lastToday: 'This is the last message today: the limit is reached.',
    openSince: (when) => `Since ${when}.`,
    lastHeard: (when) => `Last heard ${when}.`,
    overTitle: (title) => `${title}: over`,
    overSince: (when) => `Over since ${when}.`,
    acknowledgedAt: (when) => `Acknowledged at ${when}.`,
    snoozedUntil: (when) => `Snoozed until ${when}.`,
    gathered: (count) => (count === 1 ? '1 more alarm is open' : `${count} more alarms are open`),
    gatheredOver: (count) => (count === 1 ? '1 alarm is over' : `${count} alarms are over`),
    testTitle: 'A trial',
    testBody: 'This message is a trial. Messages about your devices come this way.',
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
    insideArea: 'innerhalb der Fläche',
    not: 'nicht',
    and: 'und',
    compared: 'verglichen',
    held: (lasting) => `${lasting} lang`,
    silent: (lasting) => `${lasting} lang nichts empfangen`,
    lastValue: (value) => `zuletzt ${value}`,
    ofTheLast: (matched, of) => `${matched} der letzten ${of}`,
    lastToday: 'Das ist die letzte Nachricht für heute: Die Grenze ist erreicht.',
    openSince: (when) => `Seit ${when}.`,
    lastHeard: (when) => `Zuletzt gemeldet: ${when}.`,
    overTitle: (title) => `${title}: vorbei`,
    overSince: (when) => `Vorbei seit ${when}.`,
    acknowledgedAt: (when) => `Bestätigt: ${when}.`,
    snoozedUntil: (when) => `Stummgeschaltet bis ${when}.`,
    gathered: (count) =>
      count === 1 ? '1 weiterer Alarm ist offen' : `${count} weitere Alarme sind offen`,
    gatheredOver: (count) => (count === 1 ? '1 Alarm ist vorbei' : `${count} Alarme sind vorbei`),
    testTitle: 'Ein Versuch',
    testBody: 'Diese Nachricht ist ein Versuch. So kommen Nachrichten über Ihre Geräte an.',
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
