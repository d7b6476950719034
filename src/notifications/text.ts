import type { NewNotification, Severity } from '../contract/actions.ts';
import { type AlarmCondition, type AlarmValue, limitOf } from '../contract/alarm.ts';
import type { CauseDetail, CauseSense, SenseEvent } from '../contract/event.ts';
import type { Language } from '../contract/values.ts';
import { isTimeZone } from '../lib/time.ts';
import { dateFormat, english, german, numberFormat, type Words } from './words.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Language, time zone and device of a message. */
export type Wording = {
  language: string | null;
  timeZone: string | null;
  /** The device's name, or its uuid. */
  deviceName: string;
  senses: SenseWordsBySId;
  nowTs: WallMs;
};

/**
 * `<device name>: <event name>`, with the severity in front if it is not a warning. An SMS has one too: it appears in
 * lists, and in a message that groups several.
 */
export function titleOf(
  { name, event, about }: NewNotification,
  { language, deviceName }: Wording,
): string {
  const words = wordsOf(language);
  const title = `${deviceName}: ${name || words.event(event.cause.engine.evId)}`;
  return saySeverity(about?.severity, words) + title;
}

const saySeverity = (severity: Severity = 'warning', words: Words): string =>
  severity === 'warning' ? '' : `${words.severityOf[severity]}: `;

/**
 * The body of an SMS is its own text; other messages say how severe it is if it is not a warning, what was measured,
 * and when. A repeat adds since when its alarm is open, and the last message of a day says that it is the last.
 */
export function bodyOf(notification: NewNotification, wording: Wording, isLast: boolean): string {
  const words = wordsOf(wording.language);
  const after = `${sinceOf(notification, wording, words)}${isLast ? `\n${lastToday(wording, words)}` : ''}`;
  if (notification.kind !== 'push') return smsText(wording.deviceName, notification.text, after);
  const { event } = notification;
  const causes = describeCauses(event, wording.senses, words).join('; ');
  const when = describeTime(event.ts, wording.nowTs, wording.timeZone, words);
  return `${saySeverity(notification.about?.severity, words)}${causes} (${when})${after}`;
}

/** The limits are those of a day in UTC. */
export function lastToday(
  { nowTs, timeZone }: Pick<Wording, 'nowTs' | 'timeZone'>,
  words: Words,
): string {
  return words.lastToday(describeTime(nextDay(nowTs), nowTs, timeZone, words));
}

const dayMs = 86_400_000;

/** When the day (UTC) ends for which messages are counted, ms. */
export const nextDay = (nowTs: WallMs): number => (Math.floor(nowTs / dayMs) + 1) * dayMs;

function sinceOf({ about }: NewNotification, { nowTs, timeZone }: Wording, words: Words): string {
  if (about?.type !== 'repeated') return '';
  const when = (ts: number) => describeTime(ts, nowTs, timeZone, words);
  const { sinceTs, lastHeardTs } = about;
  const heard = lastHeardTs === undefined ? '' : ` ${words.lastHeard(when(lastHeardTs))}`;
  return `\n${words.openSince(when(sinceTs))}${heard}`;
}

/**
 * When an alarm began and was over, by its measurements (null: not known), what filled its silence (null: nothing is
 * known), and when it closed; ms.
 */
export type Over = {
  beganTs: number | null;
  overTs: number | null;
  filledTs: number | null;
  closedTs: number;
};

/** "Over since 11:27 UTC. It lasted 1 hour 5 minutes." Without its end, since it closed. */
export function describeOver(
  { beganTs, overTs, filledTs, closedTs }: Over,
  when: (ts: number) => string,
  said: Words,
): string {
  const over = said.overSince(when(overTs ?? closedTs));
  // How long a silence lasted that was none says nothing.
  if (filledTs !== null) return `${over} ${said.filled(when(filledTs))}`;
  if (beganTs === null || overTs === null) return over;
  return `${over} ${said.lasted(describeLasting(overTs - beganTs, said))}`;
}

/** What a summary says of an alarm. Times in ms; null: not known. */
export type Excursion = Omit<Over, 'closedTs'> & {
  conditions: AlarmCondition[];
  extreme: readonly AlarmValue[];
};

/** How long an alarm was, and how far it went: "1 hour 5 minutes, up to 9.7 °C". Empty if neither is known. */
export function describeExcursion(
  { beganTs, overTs, filledTs, conditions, extreme: [extreme] }: Excursion,
  senses: SenseWordsBySId,
  words: Words,
): string {
  const isTimed = beganTs !== null && overTs !== null && filledTs === null;
  const limit = limitOf(conditions);
  const parts = isTimed ? [describeLasting(overTs - beganTs, words)] : [];
  if (extreme && limit?.sId === extreme.sId) {
    const sense = { ...senses[extreme.sId], unit: limit.unit };
    const value = numberWriter(sense, words)(extreme.val);
    parts.push(limit.isMax ? words.most(value) : words.least(value));
  }
  return parts.join(', ');
}

export const words = { en: english, de: german } satisfies Record<Language, Words>;

/** English for any other language, and if none is set. */
export function wordsOf(language: string | null): Words {
  return language === 'de' ? words.de : words.en;
}

// 3GPP TS 23.038: the default alphabet, and the characters that take two places in it.
const basic =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§' +
  '¿abcdefghijklmnopqrstuvwxyzäöñüà';
const extended = '^{}\\[~]|€\f';

/**
 * How many segments an SMS takes: a single one holds 160 characters of the default alphabet, or 70; each of several 153
 * or 67.
 */
export function countSegments(text: string): number {
  let places = 0;
  for (const character of text) {
    if (basic.includes(character)) places += 1;
    else if (extended.includes(character)) places += 2;
    else return parts(text.length, 70, 67);
  }
  return parts(places, 160, 153);
}

const parts = (length: number, alone: number, together: number) =>
  length <= alone ? 1 : Math.ceil(length / together);

/** An SMS has at most this many segments, unless its own text is longer. */
export const maxSegments = 2;

/**
 * The text of an SMS. The device's name goes in front, unless the text contains it or it would not fit into two
 * segments together with `after`.
 */
function smsText(deviceName: string, text: string, after = ''): string {
  const plain = text + after;
  if (deviceName === '' || text.includes(deviceName)) return plain;
  const named = `${deviceName}: ${plain}`;
  return countSegments(named) <= maxSegments ? named : plain;
}

/** What a configuration says about a sense for people; all members may be absent. */
type SenseWords = { name?: string | null; unit?: string | null; decimals?: number | null };
export type SenseWordsBySId = Readonly<Record<string, SenseWords | undefined>>;

/** Each cause of an event in words: "Temperature 9.7 °C, above 8 °C, 2 of the last 2". */
export function describeCauses(
  { cause, why }: SenseEvent,
  senses: SenseWordsBySId,
  words: Words,
): string[] {
  if (!why || why.length === 0)
    return cause.senses.map((sense) =>
      measuredOf(sense, senses[sense.sId], numberWriter(senses[sense.sId], words)),
    );
  return why.map((detail, index) => {
    const { sId } = detail;
    const sameSense = cause.senses[index]?.sId === sId ? cause.senses[index] : undefined;
    const sense = sameSense ?? cause.senses.find((one) => one.sId === sId);
    const parts =
      detail.silentMs === undefined
        ? partsOf(detail, sense, senses[sId], words)
        : partsOfSilence(detail, detail.silentMs, sense, senses[sId], words);
    return parts.filter((part) => part !== '').join(', ');
  });
}

function partsOf(
  detail: CauseDetail,
  sense: CauseSense | undefined,
  named: SenseWords | undefined,
  words: Words,
): string[] {
  const { sId, matched, of, heldMs } = detail;
  const number = numberWriter(named, words, apartFrom(detail, sense));
  // If all measurements of a run agreed, their number says nothing.
  const counted = of > 1 ? words.ofTheLast(matched, of) : '';
  return [
    sense ? measuredOf(sense, named, number) : (named?.name ?? sId),
    comparedOf(detail, sense, number, words),
    conditionOf(detail, number, words),
    heldMs === undefined ? counted : words.held(describeLasting(heldMs, words)),
  ];
}

function partsOfSilence(
  { sId }: CauseDetail,
  silentMs: number,
  sense: CauseSense | undefined,
  named: SenseWords | undefined,
  words: Words,
): string[] {
  return [
    named?.name || sId,
    words.silent(describeLasting(silentMs, words)),
    sense ? words.lastValue(valueOf(sense, numberWriter(named, words))) : '',
  ];
}

type WriteNumber = (value: number) => string;

/** Two numbers that must not look alike: nobody should read that 8.0 is above 8.0. */
type Apart = readonly (readonly [number, number])[];

/** The compared value, with each limit that differs from it. */
function apartFrom({ thresholds, compared }: CauseDetail, sense: CauseSense | undefined): Apart {
  const value = compared ?? sense?.val;
  if (typeof value !== 'number') return [];
  return Object.values(thresholds)
    .flat()
    .filter((limit): limit is number => typeof limit === 'number' && limit !== value)
    .map((limit) => [value, limit] as const);
}

/** The most that `Intl.NumberFormat` takes: enough for any two doubles that are not below 1e-80. */
const mostDecimals = 100;

/** Writes numbers with the sense's decimals, or with as many more as it takes to tell these apart; -0 becomes 0. */
function numberWriter(
  sense: SenseWords | undefined,
  { locale }: Words,
  apart: Apart = [],
): WriteNumber {
  const given = sense?.decimals ?? null;
  const formatOf = (decimals: number) =>
    numberFormat(locale, {
      useGrouping: false,
      signDisplay: 'negative',
      minimumFractionDigits: given === null ? 0 : decimals,
      maximumFractionDigits: decimals,
    });
  let decimals = given ?? 6;
  let format = formatOf(decimals);
  const areAlike = () => apart.some(([a, b]) => format.format(a) === format.format(b));
  while (decimals < mostDecimals && areAlike()) format = formatOf((decimals += 1));
  const unit = sense?.unit ? ` ${sense.unit}` : '';
  return (value) => `${format.format(value)}${unit}`;
}

function measuredOf(
  measured: CauseSense,
  sense: SenseWords | undefined,
  number: WriteNumber,
): string {
  return `${sense?.name || measured.sId} ${valueOf(measured, number)}`;
}

function valueOf({ val, lat, long }: CauseSense, number: WriteNumber): string {
  return lat !== undefined && long !== undefined ? `${lat} ${long}` : number(val);
}

/** The compared value, if it is not the measured one: a statistic, a difference or a rounded number. */
function comparedOf(
  { compared, over, relative }: CauseDetail,
  sense: CauseSense | undefined,
  number: WriteNumber,
  words: Words,
): string {
  if (compared === undefined) return '';
  const value = number(compared);
  if (over) return words[over.stat](value, describeLasting(over.ms, words));
  if (relative) return words.changedBy(value);
  return sense === undefined || value === number(sense.val) ? '' : words.takenAs(value);
}

// Nobody reads a list of sixteen numbers on a telephone.
const maxListed = 5;

/** The condition on a value in words: "above 8 °C and below 10 °C". */
function conditionOf(
  { thresholds, negate }: CauseDetail,
  number: (value: number) => string,
  words: Words,
): string {
  const list = (value: unknown) => {
    const numbers = Array.isArray(value) ? value.filter((one) => typeof one === 'number') : [];
    const more = numbers.length > maxListed ? ', …' : '';
    return numbers.slice(0, maxListed).map(number).join(', ') + more;
  };
  const parts = Object.entries(thresholds).flatMap(([kind, value]) => {
    if (kind === 'isGt' && typeof value === 'number') return `${words.above} ${number(value)}`;
    if (kind === 'isLt' && typeof value === 'number') return `${words.below} ${number(value)}`;
    if (kind === 'isOneOf') return `${words.oneOf} ${list(value)}`;
    if (kind === 'isNotIn') return `${words.noneOf} ${list(value)}`;
    return kind === 'isInsideGeo' ? words.insideArea : [];
  });
  const condition = parts.join(` ${words.and} `);
  if (!negate || condition === '') return condition;
  return parts.length > 1 ? `${words.not} (${condition})` : `${words.not} ${condition}`;
}

const units = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
  { unit: 'second', ms: 1_000 },
] as const;

/** A duration in words, with at most its two largest units: "1 hour 30 minutes", "10 Minuten". */
function describeLasting(ms: number, { locale }: Words): string {
  const first = units.findIndex((unit) => ms >= unit.ms);
  if (first < 0) return write(0, 'second', locale);
  let rest = ms;
  const parts = units.slice(first, first + 2).map(({ unit, ms: unitMs }) => {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    return count === 0 ? '' : write(count, unit, locale);
  });
  return parts.filter((part) => part !== '').join(' ');
}

function write(count: number, unit: string, locale: string): string {
  const style = { style: 'unit', unit, unitDisplay: 'long' } as const;
  return numberFormat(locale, style).format(count);
}

/**
 * A time of day with the zone's short name, "02:30 CEST"; with the date if that is not the day of `nowTs`. A zone that
 * this machine does not know becomes UTC.
 */
export function describeTime(
  ts: number,
  nowTs: WallMs,
  timeZone: string | null,
  words: Words,
): string {
  const zone = timeZone === null ? 'UTC' : zoneOf(timeZone);
  const day = dateFormat(words.locale, { timeZone: zone, dateStyle: 'medium' });
  const time = dateFormat(words.locale, {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'short',
  }).format(ts);
  return day.format(ts) === day.format(nowTs) ? time : `${day.format(ts)}, ${time}`;
}

/** Few different ones are stored, and each was known to some machine. */
const zones = new Map<string, string>();

function zoneOf(timeZone: string): string {
  const known = zones.get(timeZone);
  if (known) return known;
  const zone = isTimeZone(timeZone) ? timeZone : 'UTC';
  if (zones.size < 1_000) zones.set(timeZone, zone);
  return zone;
}
