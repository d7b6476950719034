import type { Words } from './words/words.ts';

/** "einer Stunde" instead of "1 Stunde", and "2 Tagen" instead of "2 Tage". */
const dative = (lasting: string) =>
  lasting
    .replace(/^1 (Stunde|Minute)$/, 'einer $1')
    .replace(/^1 Tag$/, 'einem Tag')
    .replace(/Tage\b/, 'Tagen');

const quotaNames: Record<string, string> = {
  devices: 'Geräte',
  devicesPerDay: 'Heute hinzugefügte Geräte',
  purposes: 'Gespeicherte Zwecke',
  purposeBytes: 'Größe der gespeicherten Zwecke',
  profiles: 'Installierte Profile',
  profileBytesTotal: 'Größe der installierten Profile',
  contacts: 'Kontakte',
  keys: 'API-Schlüssel',
  eventsPerDay: 'Ereignisse heute',
  messagesPerDay: 'Mails und Push-Nachrichten heute',
  webhooksPerDay: 'Nachrichten an Webhooks heute',
  smsPerDay: 'SMS heute',
  storedBytes: 'Gespeicherte Messwerte und Ereignisse',
};

export const german: Words = {
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
  lastHeard: (when) => `Letzter Wert von ${when}.`,
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
  quotaName: (quota) => quotaNames[quota] ?? quota,
  amountOf: (used, limit) => `${used} von ${limit}`,
  quotaTitle: (isUsedUp) =>
    isUsedUp ? 'Ein Limit Ihres Kontos ist erreicht' : 'Ihr Konto nähert sich einem Limit',
  quotaBody: (lines) =>
    `${lines}\n\nWas Ihr Konto hat, läuft weiter. Über ein Limit hinaus wird nichts mehr angenommen: ` +
    'Entfernen Sie, was Sie nicht mehr brauchen, oder bitten Sie den Betreiber um mehr.',
  locale: 'de-DE',
};
