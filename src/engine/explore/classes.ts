import type { Sense } from '../../contract/configuration.ts';
import type { Measurement, Position } from '../../contract/values.ts';
import { isInside } from '../arithmetic.ts';
import type { CompiledCause } from '../compile.ts';
import { judge } from '../thresholds.ts';

// Between two numbers that causes name, every value gives the same answers. So one value of each class of answers
// stands for all of them, as long as no cause compares with what was measured before.

/** The values that a sense can have; absent: all. */
export type Bounds = Pick<Sense, 'min' | 'max'>;

/**
 * One value for each class of answers of some causes of one sense. `isWhole`: no class is missing. `effort`: what it
 * took, in causes that judge a measurement.
 */
type Classes = { values: Measurement['val'][]; isWhole: boolean; effort: number };

/** The most effort that goes into the classes of a sense. Of more numbers than it allows, not all are tried. */
const mostEffort = 100_000;
/** About how many numbers are tried for each that causes name. */
const triedPerCorner = 9;

/** A value for each way in which these causes of one sense can judge a value; those with the shortest text. */
export function classesOf(causes: readonly CompiledCause[], bounds: Bounds = {}): Classes {
  const numeric = causes.filter(({ reads }) => reads === 'numbers' || reads === 'anything');
  const named = new Set(numeric.flatMap(cornersOf));
  const weight = causes.reduce((sum, { cost }) => sum + cost, 0);
  const mostNamed = Math.ceil(mostEffort / (triedPerCorner * (weight + 1)));
  const corners = [...named].slice(0, mostNamed);
  const numbers = numeric.length === 0 ? [] : numbersAmong(corners, bounds);
  const remembering = numeric.some(({ relative, time }) => relative || time?.over);
  const areas = new Map(
    causes.flatMap(({ polygon }) => (polygon ? [[key(polygon), polygon]] : [])),
  );
  const places = causes.some(({ reads }) => reads === 'positions' || reads === 'anything')
    ? placesAmong([...areas.values()])
    : [];
  const found = new Map<string, Measurement['val']>();
  // What remembers is compared with a baseline or with other values: there each corner is a class of its own.
  const mark = remembering
    ? (value: Measurement['val']) => (named.has(value as number) ? `/${JSON.stringify(value)}` : '')
    : () => '';
  for (const value of [...numbers.toSorted(byText), ...places]) {
    const answers = causes.map((cause) => judge(cause, value, 0)).join();
    const name = `${answers}${mark(value)}`;
    if (!found.has(name)) found.set(name, value);
  }
  const combinations = new Set(
    places.map((place) => [...areas.values()].map((area) => isInside(area, place)).join()),
  );
  const hasAllPlaces = places.length === 0 || combinations.size === 2 ** areas.size;
  return {
    values: [...found.values()],
    isWhole: !remembering && named.size <= mostNamed && hasAllPlaces,
    effort: Math.ceil((numbers.length + places.length) * weight),
  };
}

const key = ({ corners }: NonNullable<CompiledCause['polygon']>) => JSON.stringify(corners);

/** The numbers at which the answers of a cause may change. */
function cornersOf({ thresholds, decimalAcc, relative, time }: CompiledCause): number[] {
  const { isGt, isLt, isOneOf = [], isNotIn = [] } = thresholds;
  const named = [isGt ?? [], isLt ?? [], isOneOf, isNotIn].flat();
  const remembers = relative || (time?.over !== undefined && time.over !== null);
  const all =
    decimalAcc === null ? named : named.flatMap((number) => roundedNear(number, decimalAcc));
  if (!remembers) return all;
  // Of two equal parts, one of 0 and one of twice the number, it is the standard deviation.
  return [
    0,
    ...all,
    ...(time?.over?.stat === 'stddev' ? all.flatMap((number) => [2 * number, 3 * number]) : []),
  ];
}

/** The number, and those beside it where rounding leads to another one. */
function roundedNear(number: number, decimals: number): number[] {
  const tenth = Math.round(number * 10 ** (decimals + 1));
  if (!Number.isSafeInteger(tenth)) return [number];
  const first = Math.floor(tenth / 10) * 10 - 15;
  return [number, ...[0, 1, 2, 3, 4].map((at) => Number(`${first + 10 * at}e${-(decimals + 1)}`))];
}

/** The corners within the bounds, and a number of each stretch between them. */
function numbersAmong(corners: readonly number[], { min, max }: Bounds): number[] {
  const [low, high] = [min ?? -Number.MAX_VALUE, max ?? Number.MAX_VALUE];
  const within = corners.filter((number) => number >= low && number <= high);
  const sorted = [...new Set([low, ...within, high])].toSorted((one, other) => one - other);
  const between = sorted.flatMap((number, index) => {
    const next = sorted[index + 1];
    return next === undefined ? [] : numbersBetween(number, next);
  });
  return [...sorted, ...between];
}

/** Some numbers between two others: whole and round ones too, which read better. */
function numbersBetween(low: number, high: number): number[] {
  const middle = low / 2 + high / 2;
  const steps = [1, 10, 0.1].flatMap((step) => [low + step, high - step]);
  return [0, Math.trunc(middle), middle, ...steps].filter(
    (number) => number > low && number < high,
  );
}

/** Shorter texts first: 9 rather than 8.75, and that rather than 1.7e308. */
function byText(one: number, other: number): number {
  return String(one).length - String(other).length || Math.abs(one) - Math.abs(other);
}

type Area = NonNullable<CompiledCause['polygon']>;

/** Positions inside and outside of areas: their middles and corners, and where others are not. */
function placesAmong(areas: readonly Area[]): Position[] {
  const far = [-180, -90, 0, 90, 179].flatMap((long) =>
    [0, -60, 60, -89, 89].map((lat) => ({ lat, long })),
  );
  const near = areas.flatMap(({ corners }) => {
    const count = corners.length;
    const middle = {
      lat: corners.reduce((sum, { y }) => sum + y / count, 0),
      long: corners.reduce((sum, { x }) => sum + x / count, 0),
    };
    return [middle, ...corners.slice(0, 16).map(({ x, y }) => ({ lat: y, long: x }))];
  });
  return [...near, ...far].map(({ lat, long }) => ({ lat, long: onGlobe(long) }));
}

/** A longitude between -180 and 180; an area may continue beyond these. */
function onGlobe(long: number): number {
  return long > 180 || long < -180 ? ((((long + 180) % 360) + 360) % 360) - 180 : long;
}
