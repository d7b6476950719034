import type { CauseDetail, CauseSense, SenseEvent } from '../../contract/event.ts';
import { conditionOf } from './condition.ts';
import { numberFormat } from './formats.ts';
import { describeLasting } from './lasting.ts';
import type { Words } from './words.ts';

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
    return cause.senses.map((sense) => measuredOf(sense, senses[sense.sId], words));
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
  const number = numberWriter(named, words);
  // All measurements of a run agreed: how many there were says nothing.
  const counted = of > 1 ? words.ofTheLast(matched, of) : '';
  return [
    sense ? measuredOf(sense, named, words) : (named?.name ?? sId),
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

function numberWriter(sense: SenseWords | undefined, { locale }: Words): WriteNumber {
  const decimals = sense?.decimals ?? null;
  const digits =
    decimals === null
      ? { maximumFractionDigits: 6 }
      : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const format = numberFormat(locale, { useGrouping: false, ...digits });
  const unit = sense?.unit ? ` ${sense.unit}` : '';
  return (value) => `${format.format(value)}${unit}`;
}

function measuredOf(measured: CauseSense, sense: SenseWords | undefined, words: Words): string {
  return `${sense?.name || measured.sId} ${valueOf(measured, numberWriter(sense, words))}`;
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
