import { type Members, membersOf } from './document.ts';

/** What is compared: each value, its change since the last firing, a statistic over a time; or that nothing comes. */
export const subjects = [
  'value',
  'avg',
  'min',
  'max',
  'delta',
  'sum',
  'stddev',
  'relative',
  'silence',
] as const;
type Subject = (typeof subjects)[number];

/** How it is compared. `outside`: neither bound counts as outside; a place is inside an area, or away from it. */
export const comparisons = [
  'above',
  'below',
  'atLeast',
  'atMost',
  'between',
  'outside',
  'oneOf',
  'notIn',
  'any',
  'inside',
  'away',
] as const;
type Comparison = (typeof comparisons)[number];

/** A cause as a sentence: "when `sId` is above `least` for `forMs`". */
export type Sentence = {
  sId: string;
  subject: Subject;
  /** The time of a statistic. */
  overMs?: number;
  comparison: Comparison;
  /** The number of `above` and `atMost`, and the lower one of two. */
  least?: number;
  /** The number of `below` and `atLeast`, and the upper one of two. */
  most?: number;
  list?: readonly number[];
  area?: readonly unknown[];
  /** How long it must hold; of a silence, how long it lasts. */
  forMs?: number;
  /** It must hold for so many of the last `of` values. */
  count: number;
  of: number;
  maxAgeMs?: number;
};

const told = ['count', 'negate', 'relative', 'forMs', 'noneForMs', 'maxAgeMs', 'over'];
const compared = ['isOneOf', 'isGt', 'isLt', 'isNotIn', 'isAny', 'isInsideGeo'];

/** Reads a cause; null if no sentence says all that it asks for. Members that ask for nothing of that kind stay. */
export function readCause(cause: Members): Sentence | null {
  const threshold = membersOf(cause['threshold']);
  const { sId } = cause;
  const times = ['forMs', 'noneForMs', 'maxAgeMs', 'count'].map((name) => threshold[name]);
  const window = membersOf(cause['measurement'])['count'];
  const isSaid =
    typeof sId === 'string' &&
    [...times, window].every((time) => time === undefined || typeof time === 'number');
  if (!isSaid) return null;
  const [forMs, noneForMs, maxAgeMs, count = 1] = times as (number | undefined)[];
  const over = membersOf(threshold['over']);
  const subject = subjectOf(threshold, over);
  const isSilence = subject === 'silence';
  const negate = threshold['negate'] === true;
  const thresholds = membersOf(cause['thresholds']);
  const comparison = isSilence ? silenceOf(thresholds, negate) : comparisonOf(thresholds, negate);
  if (subject === null || comparison === null) return null;
  const lasts = isSilence ? noneForMs : forMs;
  const isMore =
    forMs !== undefined || maxAgeMs !== undefined || count !== 1 || window !== undefined;
  if (isSilence && isMore) return null;
  return {
    sId,
    subject,
    ...(typeof over['ms'] === 'number' ? { overMs: over['ms'] } : {}),
    ...comparison,
    ...(lasts === undefined ? {} : { forMs: lasts }),
    count,
    of: Math.max(count, typeof window === 'number' ? window : 1),
    ...(maxAgeMs === undefined ? {} : { maxAgeMs }),
  };
}

function subjectOf(threshold: Members, over: Members): Subject | null {
  if (threshold['noneForMs'] !== undefined)
    return threshold['over'] === undefined && threshold['relative'] !== true ? 'silence' : null;
  if (threshold['over'] === undefined) return threshold['relative'] === true ? 'relative' : 'value';
  const { stat, ms } = over;
  const isStatistic = subjects.slice(1, 7).includes(stat as Subject) && typeof ms === 'number';
  return isStatistic && threshold['relative'] !== true ? (stat as Subject) : null;
}

/** A silence compares nothing. */
const silenceOf = (thresholds: Members, negate: boolean): Compared | null =>
  negate || compared.some((name) => thresholds[name] !== undefined) ? null : { comparison: 'any' };

type Compared = Pick<Sentence, 'comparison' | 'least' | 'most' | 'list' | 'area'>;

function comparisonOf(thresholds: Members, negate: boolean): Compared | null {
  const given = compared.filter((name) => thresholds[name] !== undefined);
  const { isGt, isLt, isOneOf, isNotIn, isInsideGeo, isAny } = thresholds;
  const isNumber = (value: unknown): value is number => typeof value === 'number';
  switch (given.join(' ')) {
    case 'isGt':
      return isNumber(isGt) ? { comparison: negate ? 'atMost' : 'above', least: isGt } : null;
    case 'isLt':
      return isNumber(isLt) ? { comparison: negate ? 'atLeast' : 'below', most: isLt } : null;
    case 'isGt isLt':
      return isNumber(isGt) && isNumber(isLt)
        ? {
            comparison: negate ? 'outside' : 'between',
            least: isGt,
            most: isLt,
          }
        : null;
    case 'isOneOf':
    case 'isNotIn': {
      const list = isOneOf ?? isNotIn;
      if (negate || !Array.isArray(list) || !list.every(isNumber)) return null;
      return { comparison: isOneOf ? 'oneOf' : 'notIn', list: list };
    }
    case 'isInsideGeo':
      return Array.isArray(isInsideGeo)
        ? { comparison: negate ? 'away' : 'inside', area: isInsideGeo }
        : null;
    case 'isAny':
      return negate || isAny !== true ? null : { comparison: 'any' };
    default:
      return null;
  }
}

/** Writes a sentence into a cause, whose other members stay. */
export function writeCause(cause: Members, sentence: Sentence): Members {
  const { sId, subject, overMs, forMs, count, of, maxAgeMs, comparison } = sentence;
  const isSilence = subject === 'silence';
  const isOver = subject !== 'value' && subject !== 'relative' && !isSilence;
  const before = membersOf(cause['threshold']);
  const window = membersOf(cause['measurement'])['count'];
  const isWindow = !isSilence && typeof window === 'number' && Math.max(count, window) === of;
  const threshold = {
    ...without(before, told),
    ...(count > 1 || before['count'] === count ? { count } : {}),
    ...(isNegated(comparison) && !isSilence ? { negate: true } : {}),
    ...(subject === 'relative' ? { relative: true } : {}),
    ...(forMs === undefined ? {} : { [isSilence ? 'noneForMs' : 'forMs']: forMs }),
    ...(maxAgeMs === undefined || isSilence ? {} : { maxAgeMs }),
    ...(isOver
      ? { over: { ...membersOf(before['over']), ms: overMs ?? 3_600_000, stat: subject } }
      : {}),
  };
  const measurement = {
    ...without(membersOf(cause['measurement']), ['count']),
    ...(isWindow ? { count: window } : of > count ? { count: of } : {}),
  };
  const thresholds = {
    ...without(membersOf(cause['thresholds']), compared),
    ...(isSilence ? {} : thresholdsOf(sentence)),
  };
  return {
    ...without(cause, ['threshold', 'measurement', 'thresholds']),
    sId,
    ...kept(cause, 'measurement', measurement),
    ...kept(cause, 'threshold', threshold),
    ...kept(cause, 'thresholds', thresholds),
  };
}

const without = (members: Members, names: readonly string[]): Members =>
  Object.fromEntries(Object.entries(members).filter(([name]) => !names.includes(name)));

/** A group of members; without any, only if it was there. */
const kept = (cause: Members, name: string, members: Members) =>
  Object.keys(members).length === 0 && cause[name] === undefined ? {} : { [name]: members };

const isNegated = (comparison: Comparison) =>
  comparison === 'atLeast' ||
  comparison === 'atMost' ||
  comparison === 'outside' ||
  comparison === 'away';

function thresholdsOf({
  comparison,
  least = 0,
  most = 0,
  list = [],
  area = [],
}: Sentence): Members {
  switch (comparison) {
    case 'above':
    case 'atMost':
      return { isGt: least };
    case 'below':
    case 'atLeast':
      return { isLt: most };
    case 'between':
    case 'outside':
      return { isGt: least, isLt: most };
    case 'oneOf':
      return { isOneOf: list };
    case 'notIn':
      return { isNotIn: list };
    case 'any':
      return { isAny: true };
    case 'inside':
    case 'away':
      return { isInsideGeo: area };
  }
}

/** What a cause asks for besides its sentence: names of members, such as `decimalAcc`. */
export function besideSentence(cause: Members): string[] {
  const beside = (value: unknown, names: readonly string[]) =>
    Object.entries(membersOf(value))
      .filter(([name, member]) => !names.includes(name) && member !== false)
      .map(([name]) => name);
  return [
    ...beside(cause, ['sId', 'orderId', 'threshold', 'thresholds', 'measurement']),
    ...beside(cause['threshold'], told),
    ...beside(cause['thresholds'], compared),
    ...beside(cause['measurement'], ['count']),
  ];
}

/** Another subject or comparison, with the number that stood there before. */
export function turned(sentence: Sentence, change: Partial<Sentence>): Sentence {
  const next = { ...sentence, ...change };
  // It lasted as long as nothing came, and compared nothing.
  if (sentence.subject === 'silence' && next.subject !== 'silence') {
    next.comparison = 'above';
    delete next.forMs;
  }
  const { comparison, least, most } = next;
  const number = least ?? most ?? 0;
  if (next.subject === 'silence') {
    const { sId, subject, forMs = 1_800_000 } = next;
    return { sId, subject, comparison: 'any', forMs, count: 1, of: 1 };
  }
  if (next.subject === 'relative' || next.subject === 'value') delete next.overMs;
  else next.overMs ??= 3_600_000;
  const isUpper = comparison === 'below' || comparison === 'atLeast';
  const isLower = comparison === 'above' || comparison === 'atMost';
  const isBoth = comparison === 'between' || comparison === 'outside';
  delete next.least;
  delete next.most;
  if (isLower || isBoth) next.least = number;
  if (isUpper || isBoth) next.most = isBoth ? Math.max(most ?? number, number) : (most ?? number);
  if (comparison === 'oneOf' || comparison === 'notIn') next.list ??= [number];
  else delete next.list;
  if (comparison === 'inside' || comparison === 'away') next.area ??= [];
  else delete next.area;
  return next;
}
