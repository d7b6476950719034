import type { CauseDetail, CauseSense, SenseEvent } from '../contract/event.ts';
import { conditionOf } from './words/condition.ts';
import { numberFormat } from './words/formats.ts';
import { describeLasting } from './words/lasting.ts';
import type { Words } from './words/words.ts';

/** What a configuration says of a sense for people; all may be absent. */
export type SenseWords = { name?: string | null; unit?: string | null; decimals?: number | null };
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
  // All measurements of a run agreed: how many there were says nothing.
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

/** Two numbers that must not be written alike: nobody is told that 8.0 is above 8.0. */
type Apart = readonly (readonly [number, number])[];

/** What was compared, and each limit that it is not. */
function apartFrom({ thresholds, compared }: CauseDetail, sense: CauseSense | undefined): Apart {
  const value = compared ?? sense?.val;
  if (typeof value !== 'number') return [];
  return Object.values(thresholds)
    .flat()
    .filter((limit): limit is number => typeof limit === 'number' && limit !== value)
    .map((limit) => [value, limit] as const);
}

/** As many as `Intl.NumberFormat` takes: enough for any two doubles that are not below 1e-80. */
const mostDecimals = 100;

/** Writes with the sense's decimals, or with as many more as tell these numbers apart; -0 is 0. */
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

/** Where something else was compared than was measured: a statistic, a difference, or a rounded number. */
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
