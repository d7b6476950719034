import type { CauseDetail, CauseSense, SenseEvent } from '../../contract/event.ts';
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
    const { sId, matched, of } = detail;
    const sameSense = cause.senses[index]?.sId === sId ? cause.senses[index] : undefined;
    const sense = sameSense ?? cause.senses.find((one) => one.sId === sId);
    const number = numberWriter(senses[sId], words);
    const parts = [
      sense ? measuredOf(sense, senses[sId], words) : (senses[sId]?.name ?? sId),
      comparedOf(detail, sense, number, words),
      conditionOf(detail, number, words),
      of > 1 ? words.ofTheLast(matched, of) : '',
    ];
    return parts.filter((part) => part !== '').join(', ');
  });
}

type WriteNumber = (value: number) => string;

function numberWriter(sense: SenseWords | undefined, { locale }: Words): WriteNumber {
  const decimals = sense?.decimals ?? null;
  const digits =
    decimals === null
      ? { maximumFractionDigits: 6 }
      : { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  const format = new Intl.NumberFormat(locale, { useGrouping: false, ...digits });
  const unit = sense?.unit ? ` ${sense.unit}` : '';
  return (value) => `${format.format(value)}${unit}`;
}

function measuredOf(
  { sId, val, lat, long }: CauseSense,
  sense: SenseWords | undefined,
  words: Words,
): string {
  const name = sense?.name || sId;
  if (lat !== undefined && long !== undefined) return `${name} ${lat} ${long}`;
  return `${name} ${numberWriter(sense, words)(val)}`;
}

/** Where something else was compared than was measured: a difference, or a rounded number. */
function comparedOf(
  { compared }: CauseDetail,
  sense: CauseSense | undefined,
  number: WriteNumber,
  words: Words,
): string {
  if (compared === undefined || sense === undefined || number(compared) === number(sense.val))
    return '';
  return `${words.compared} ${number(compared)}`;
}

// A list of sixteen numbers is none that a person reads on a telephone.
const maxListed = 5;

function conditionOf(
  { thresholds, negate }: CauseDetail,
  number: WriteNumber,
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
