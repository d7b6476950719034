import type { OverStat, Position } from '../contract/values.ts';

/** Outcomes per word: shifted words stay V8 small integers, and a word makes five characters of base64. */
export const wordBits = 30;

/** All bits of a word. */
export const wordMask = 2 ** wordBits - 1;

/** Words for that many outcomes, none of which agreed. */
export function noWords(windowLength: number): number[] {
  const words: number[] = [];
  for (let room = 0; room < windowLength; room += wordBits) words.push(0);
  return words;
}

/** Words for a window in which the outcomes selected by `agreed` agreed; the newest has age 0. */
export function wordsOfWindow(windowLength: number, agreed: (age: number) => boolean): number[] {
  const words = noWords(windowLength);
  for (let age = 0; age < windowLength; age++) {
    if (!agreed(age)) continue;
    const index = Math.floor(age / wordBits);
    words[index] = (words[index] ?? 0) | (1 << (age % wordBits));
  }
  return words;
}

/** The oldest 30 outcomes that a long window can hold. */
export function lastWord(words: number[], windowLength: number): number {
  const youngest = windowLength - wordBits;
  const [index, from] = [Math.floor(youngest / wordBits), youngest % wordBits];
  const [word, older] = [words[index] ?? 0, words[index + 1] ?? 0];
  return (word >> from) | ((older << (wordBits - from)) & wordMask);
}

/** How many bits are set: counted in pairs, then fours, then bytes, which are then summed in the highest byte. */
export function countOnes(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** What a cause compares over a window of `ms` milliseconds. */
export type Over = { ms: number; stat: OverStat };

/**
 * The values of one part of a window. `at`: the part's number since the Unix epoch. `more`: what the statistic needs
 * besides: `min` and `max` that value, `stddev` the mean and the sum of squared differences from it; else nothing.
 */
type Bin = {
  at: number;
  sum: number;
  count: number;
  first: number;
  last: number;
  more: readonly number[];
};

/** The values of the last 12 parts, oldest first. `sinceT`: the time of the first value that the cause evaluated. */
export type Bins = { sinceT: number; list: readonly Bin[] };

const binCount = 12;

/** The bins with one more value, which must not be older than those they hold. */
export function addToBins(bins: Bins | null, { ms, stat }: Over, t: number, val: number): Bins {
  const at = Math.floor(t / Math.ceil(ms / binCount));
  const list = (bins?.list ?? []).filter((bin) => bin.at > at - binCount);
  const last = list.at(-1);
  if (last?.at === at) {
    const sum = finite(last.sum + val);
    const more = joined(stat, last, { count: 1, more: moreOf(stat, val) });
    list[list.length - 1] = { ...last, sum, count: last.count + 1, last: val, more };
  } else {
    list.push({ at, sum: val, count: 1, first: val, last: val, more: moreOf(stat, val) });
  }
  return { sinceT: bins?.sinceT ?? t, list };
}

/** The statistic over the bins at time `t`; null until half of the window's time has passed. */
export function statisticOf({ sinceT, list }: Bins, { ms, stat }: Over, t: number): number | null {
  if (t - sinceT < ms / 2) return null;
  if (stat === 'delta') return finite((list.at(-1)?.last ?? 0) - (list[0]?.first ?? 0));
  if (stat === 'min' || stat === 'max' || stat === 'stddev') return spreadOf(list, stat);
  let [sum, count] = [0, 0];
  // Oldest first, because sums of floating-point numbers depend on the order.
  for (const bin of list) {
    sum = finite(sum + bin.sum);
    count += bin.count;
  }
  return stat === 'sum' ? sum : sum / count;
}

type Part = Pick<Bin, 'count' | 'more'>;
const nothingMore: Bin['more'] = [];

/** What a statistic needs of one value besides what every bin has. */
function moreOf(stat: OverStat, val: number): Bin['more'] {
  if (stat === 'stddev') return [val, 0];
  return stat === 'min' || stat === 'max' ? [val] : nothingMore;
}

/** The same of the values of two parts; of `stddev` by Chan's formula, which loses little by rounding. */
function joined(stat: OverStat, one: Part, other: Part): Bin['more'] {
  const [first = 0, ofOne = 0] = one.more;
  const [second = 0, ofOther = 0] = other.more;
  if (stat === 'min') return [Math.min(first, second)];
  if (stat === 'max') return [Math.max(first, second)];
  if (stat !== 'stddev') return nothingMore;
  const count = one.count + other.count;
  const apart = finite(second - first);
  const mean = finite(first + finite((apart * other.count) / count));
  const between = finite(((apart * apart) / count) * one.count * other.count);
  return [mean, finite(finite(ofOne + ofOther) + between)];
}

/** `list` has at least one bin. */
function spreadOf(list: readonly Part[], stat: 'min' | 'max' | 'stddev'): number {
  const { count, more } = list.reduce((one: Part, other: Part) => {
    return { count: one.count + other.count, more: joined(stat, one, other) };
  });
  return stat === 'stddev' ? Math.sqrt((more[1] ?? 0) / count) : (more[0] ?? 0);
}

/** Whether bins, as they were stored, have what the statistic needs: an earlier version knew fewer statistics. */
export const haveMore = ({ list }: Bins, { stat }: Over): boolean =>
  list.every(({ more }) => more.length === moreOf(stat, 0).length);

/** Limits a number to what JSON can hold, which has no infinity. */
export function finite(number: number): number {
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, number));
}

/**
 * Rounds to `decimals` places, half away from zero, by the shortest decimal text of the number: 2.55 gives 2.6
 * although the nearest double is a little less than 2.55.
 */
export function roundDecimal(value: number, decimals: number): number {
  if (Number.isInteger(value)) return value;
  const [mantissa = '', exponent = '0'] = String(Math.abs(value)).split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  const places = fraction.length - Number(exponent);
  if (places <= decimals) return value;
  const kept = digits.length - (places - decimals);
  if (kept < 0) return 0;
  const up = digits.charCodeAt(kept) >= fiveCode ? 1n : 0n;
  const rounded = Number(`${BigInt(digits.slice(0, kept) || '0') + up}e-${decimals}`);
  if (rounded === 0) return 0;
  return value < 0 ? -rounded : rounded;
}

const fiveCode = '5'.charCodeAt(0);

type Point = { x: number; y: number };

/** A polygon's corners. Longitudes continue beyond ±180 instead of jumping. */
export type Polygon = { corners: Point[]; west: number; east: number };

/** A point this near an edge, in degrees, is on it: about a tenth of a millimetre. */
const tolerance = 1e-9;

/**
 * Prepares a polygon for `isInside`. Each edge takes the shorter way round the globe, so one from 170 to -170 crosses
 * the 180th meridian. An edge of exactly 180 degrees is taken as written.
 */
export function preparePolygon(positions: Position[]): Polygon {
  const corners: Point[] = [];
  let x = positions[0]?.long ?? 0;
  let previous = x;
  for (const { lat, long } of positions) {
    x += shorterWay(long - previous);
    previous = long;
    corners.push({ x, y: lat });
  }
  const xs = corners.map((corner) => corner.x);
  return { corners, west: Math.min(...xs), east: Math.max(...xs) };
}

/** Whether a position lies in the polygon or on its edge. Latitude and longitude are treated as a plane. */
export function isInside(polygon: Polygon, { lat, long }: Position): boolean {
  const xs: number[] = [];
  const firstTurn = Math.ceil((polygon.west - long - tolerance) / 360);
  for (let x = long + firstTurn * 360; x <= polygon.east + tolerance; x += 360) xs.push(x);
  return xs.length > 0 && holdsAny(polygon.corners, xs, lat);
}

/** The difference of two longitudes by the shorter way round the globe, as edges take it. */
export function shorterWay(degrees: number): number {
  if (degrees > 180) return degrees - 360;
  return degrees < -180 ? degrees + 360 : degrees;
}

/**
 * Whether the polygon contains any of these points, which lie 360 degrees apart. One pass over the edges is enough
 * for all of them: a polygon that winds round the globe a thousand times has a thousand such points.
 */
function holdsAny(corners: Point[], xs: number[], y: number): boolean {
  // Counts edges modulo 2: an edge counts for all points to the west of its crossing.
  const crossings = new Uint8Array(xs.length + 1);
  let from = corners.at(-1);
  if (!from) return false;
  for (const to of corners) {
    if (isAnyOnEdge(from, to, xs, y)) return true;
    if (from.y > y !== to.y > y) {
      const crossing = from.x + ((y - from.y) / (to.y - from.y)) * (to.x - from.x);
      const west = countBelow(xs, crossing);
      crossings[west] = 1 - (crossings[west] ?? 0);
    }
    from = to;
  }
  let inside = 0;
  for (let index = xs.length; index > 0; index--) {
    inside ^= crossings[index] ?? 0;
    if (inside === 1) return true;
  }
  return false;
}

/** How many of the points lie to the west of a longitude. */
function countBelow(xs: number[], x: number): number {
  let count = Math.max(0, Math.min(xs.length, Math.ceil((x - (xs[0] ?? 0)) / 360)));
  while (count < xs.length && (xs[count] ?? x) < x) count += 1;
  while (count > 0 && (xs[count - 1] ?? x) >= x) count -= 1;
  return count;
}

function isAnyOnEdge(from: Point, to: Point, xs: number[], y: number): boolean {
  // Far more than rounding can account for.
  const near = 2 * tolerance;
  if (y < Math.min(from.y, to.y) - near || y > Math.max(from.y, to.y) + near) return false;
  const east = Math.max(from.x, to.x) + near;
  for (let index = countBelow(xs, Math.min(from.x, to.x) - near); index < xs.length; index++) {
    const x = xs[index] ?? Infinity;
    if (x > east) return false;
    if (isOnEdge(from, to, x, y)) return true;
  }
  return false;
}

function isOnEdge(from: Point, to: Point, x: number, y: number): boolean {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const squared = dx * dx + dy * dy;
  const along = squared === 0 ? 0 : ((x - from.x) * dx + (y - from.y) * dy) / squared;
  const nearest = Math.min(1, Math.max(0, along));
  return Math.hypot(from.x + nearest * dx - x, from.y + nearest * dy - y) <= tolerance;
}
