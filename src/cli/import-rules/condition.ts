import { type Expression, NoCounterpart, parseExpression } from './expression.ts';

/** A comparison of one value of an input with a constant. */
type Comparison = { operator: string; constant: Constant };
type Constant = number | string | boolean;

/** A value of an input's messages; here it is a sense. */
export type Value = { input: string; path: string };
export const nameOf = ({ input, path }: Value) => `$input.${input}${path === '' ? '' : `.${path}`}`;

/**
 * One way in which a condition is true: all of this at once. `inputs`: what must have arrived. `isMessage`: an input
 * must have arrived. `timers`: what must have ended.
 */
export type Case = {
  compared: { value: Value; comparisons: Comparison[] }[];
  inputs: string[];
  isMessage: boolean;
  timers: string[];
};

const always: Case = { compared: [], inputs: [], isMessage: false, timers: [] };
/** The most ways of one condition. */
const mostCases = 32;

/**
 * The ways in which a condition is true; none: never. `constants`: the variables that have the same value all the time.
 * Throws `NoCounterpart`.
 */
export function casesOf(condition: string, constants: ReadonlyMap<string, Constant>): Case[] {
  return walk(parseExpression(condition), false);

  function walk(one: Expression, isNegated: boolean): Case[] {
    switch (one.kind) {
      case 'literal':
        // What is not a boolean is never true.
        return typeof one.value === 'boolean' && one.value !== isNegated ? [always] : [];
      case 'not':
        return walk(one.of, !isNegated);
      case 'binary':
        return one.operator === '&&' || one.operator === '||'
          ? join(one, isNegated)
          : [compare(one, isNegated)];
      case 'call':
        return [call(one, isNegated)];
      case 'input':
        return [comparing(one, '==', !isNegated)];
      case 'variable':
        return walk({ kind: 'literal', value: constantOf(one) }, isNegated);
      default:
        throw new NoCounterpart('has arithmetic, which a purpose cannot do');
    }
  }

  function join(one: Extract<Expression, { kind: 'binary' }>, isNegated: boolean): Case[] {
    const left = walk(one.left, isNegated);
    const right = walk(one.right, isNegated);
    const isEither = (one.operator === '||') !== isNegated;
    const cases = isEither
      ? [...left, ...right]
      : left.flatMap((a) => right.map((b) => both(a, b)));
    if (cases.length > mostCases)
      throw new NoCounterpart(`can be true in more than ${mostCases} ways`);
    return cases;
  }

  function compare(one: Extract<Expression, { kind: 'binary' }>, isNegated: boolean): Case {
    const operator = isNegated ? negated[one.operator] : one.operator;
    const mirrored = operator === undefined ? undefined : mirror[operator];
    if (operator === undefined || mirrored === undefined)
      throw new NoCounterpart(`has arithmetic (${one.operator}), which a purpose cannot do`);
    const [left, right] = [valueOf(one.left), valueOf(one.right)];
    if (left.kind === 'input' && right.kind === 'literal')
      return comparing(left, operator, right.value);
    if (right.kind === 'input' && left.kind === 'literal')
      return comparing(right, mirrored, left.value);
    if (left.kind === 'input' && right.kind === 'input')
      throw new NoCounterpart('compares two values of inputs with each other');
    throw new NoCounterpart('compares no value of an input with a constant');
  }

  /** A value of an input or a constant, without what does not change it. */
  function valueOf(one: Expression): Expression {
    if (one.kind === 'variable') return { kind: 'literal', value: constantOf(one) };
    if (one.kind === 'minus') {
      const of = valueOf(one.of);
      if (of.kind === 'literal' && typeof of.value === 'number')
        return { kind: 'literal', value: -of.value };
    }
    // Senses are numbers.
    if (one.kind === 'call' && one.name === 'convert' && one.args.length === 2) {
      const [type, of] = one.args.map((arg) => valueOf(arg));
      if (of?.kind === 'input' && type?.kind === 'literal' && type.value === 'Decimal') return of;
    }
    if (one.kind === 'call') throw new NoCounterpart(`calls ${one.name}()`);
    if (one.kind === 'binary' || one.kind === 'minus')
      throw new NoCounterpart('has arithmetic, which a purpose cannot do');
    return one;
  }

  function constantOf({ name }: { name: string }): Constant {
    const value = constants.get(name);
    if (value !== undefined) return value;
    throw new NoCounterpart(`reads the variable ${name}, and a purpose has no variables`);
  }

  function call({ name, args }: { name: string; args: Expression[] }, isNegated: boolean): Case {
    const [arg] = args;
    const of = arg?.kind === 'literal' && args.length === 1 ? arg.value : undefined;
    const known = typeof of === 'string' && !isNegated;
    if (known && name === 'timeout') return { ...always, timers: [of] };
    if (known && name === 'currentInput') return { ...always, inputs: [of], isMessage: true };
    if (known && name === 'triggerType' && of === 'Message') return { ...always, isMessage: true };
    throw new NoCounterpart(isNegated ? `negates ${name}()` : `calls ${name}()`);
  }
}

const negated: Record<string, string> = {
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  '==': '!=',
  '!=': '==',
};
const mirror: Record<string, string> = {
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
  '==': '==',
  '!=': '!=',
};

const comparing = ({ input, path }: Value, operator: string, constant: Constant): Case => {
  if (typeof constant !== 'number' && operator !== '==' && operator !== '!=')
    throw new NoCounterpart(`compares with ${operator} what is not a number`);
  return {
    ...always,
    compared: [{ value: { input, path }, comparisons: [{ operator, constant }] }],
  };
};

function both(one: Case, other: Case): Case {
  const compared = new Map(one.compared.map((each) => [nameOf(each.value), each]));
  for (const { value, comparisons } of other.compared) {
    const before = compared.get(nameOf(value))?.comparisons ?? [];
    compared.set(nameOf(value), { value, comparisons: [...before, ...comparisons] });
  }
  return {
    compared: [...compared.values()],
    inputs: [...new Set([...one.inputs, ...other.inputs])],
    isMessage: one.isMessage || other.isMessage,
    timers: [...new Set([...one.timers, ...other.timers])],
  };
}

/** A set of values of a sense: a bit for each of its cells. */
export type Cells = bigint;

type Thresholds = { isGt?: number; isLt?: number; isOneOf?: number[]; isNotIn?: number[] };
type Compared = { thresholds: Thresholds | { isAny: true }; threshold?: { negate: true } };

/**
 * A sense, by everything that a model compares it with. Numbers divide its values into cells: what is below the first,
 * the first, what is between it and the second, and so on. Texts and booleans are sent as numbers: each is a cell.
 */
export class Sense {
  readonly value: Value;
  /** The texts that are sent as 1, 2, …, any other as 0; null: numbers, or true and false as 1 and 0. */
  readonly texts: string[] | null;
  readonly isFlag: boolean;
  /** All values. */
  readonly all: Cells;
  readonly #points: number[];

  /** Throws `NoCounterpart` if it is compared with constants of several types. */
  constructor(value: Value, constants: readonly Constant[]) {
    this.value = value;
    const types = new Set(constants.map((one) => typeof one));
    if (types.size > 1)
      throw new NoCounterpart(`compares ${nameOf(value)} with ${[...types].join(' and ')}`);
    this.isFlag = types.has('boolean');
    this.texts = types.has('string') ? [...new Set(constants as string[])] : null;
    this.#points = this.isFlag
      ? [0, 1]
      : this.texts
        ? [0, ...this.texts.map((_, index) => index + 1)]
        : [...new Set(constants as number[])].toSorted((a, b) => a - b);
    const cells = this.#isDiscrete ? this.#points.length : 2 * this.#points.length + 1;
    this.all = (1n << BigInt(cells)) - 1n;
  }

  /** The values for which all of it is true. */
  cellsOf(comparisons: readonly Comparison[]): Cells {
    let cells = 0n;
    for (let cell = 0; this.all >> BigInt(cell); cell += 1)
      if (comparisons.every((one) => this.#agrees(cell, one))) cells |= 1n << BigInt(cell);
    return cells;
  }

  /** The causes that agree with these values: each entry is one way, whose causes agree together. */
  causesOf(cells: Cells): Compared[][] {
    const others = this.all & ~cells;
    if (cells === 0n) return [];
    if (others === 0n) return [[{ thresholds: { isAny: true } }]];
    const [inside, outside] = [this.#onlyPoints(cells), this.#onlyPoints(others)];
    if (inside) return [[{ thresholds: { isOneOf: inside } }]];
    if (outside) return [[{ thresholds: { isNotIn: outside } }]];
    const gaps = this.#runs(others).map((run) => this.#within(run));
    const [gap] = gaps;
    // Outside of an interval without its ends.
    if (
      gaps.length === 1 &&
      gap?.length === 1 &&
      !gap[0]?.threshold &&
      this.#runs(cells).length > 1
    )
      return [gap.map((cause) => ({ ...cause, threshold: { negate: true } }))];
    return this.#runs(cells).map((run) => this.#within(run));
  }

  get #isDiscrete(): boolean {
    return this.isFlag || this.texts !== null;
  }

  #agrees(cell: number, { operator, constant }: Comparison): boolean {
    const place = this.texts
      ? this.texts.indexOf(constant as string) + 1
      : this.isFlag
        ? Number(constant)
        : 2 * this.#points.indexOf(constant as number) + 1;
    switch (operator) {
      case '<':
        return cell < place;
      case '<=':
        return cell <= place;
      case '>':
        return cell > place;
      case '>=':
        return cell >= place;
      case '==':
        return cell === place;
      default:
        return cell !== place;
    }
  }

  /** The values, if there are only single ones. */
  #onlyPoints(cells: Cells): number[] | null {
    const found: number[] = [];
    for (let cell = 0; cells >> BigInt(cell); cell += 1) {
      if (!((cells >> BigInt(cell)) & 1n)) continue;
      if (!this.#isDiscrete && cell % 2 === 0) return null;
      found.push(this.#points[this.#isDiscrete ? cell : (cell - 1) / 2] as number);
    }
    return found;
  }

  /** The first and the last cell of each interval. */
  #runs(cells: Cells): [number, number][] {
    const runs: [number, number][] = [];
    for (let cell = 0; cells >> BigInt(cell); cell += 1) {
      if (!((cells >> BigInt(cell)) & 1n)) continue;
      const last = runs.at(-1);
      if (last && last[1] === cell - 1) last[1] = cell;
      else runs.push([cell, cell]);
    }
    return runs;
  }

  #within([first, last]: [number, number]): Compared[] {
    const point = (index: number) => this.#points[index] as number;
    const open: Thresholds = {};
    const closed: Compared[] = [];
    if (first === last && first % 2 === 1)
      return [{ thresholds: { isOneOf: [point((first - 1) / 2)] } }];
    if (first % 2 === 1)
      closed.push({ thresholds: { isLt: point((first - 1) / 2) }, threshold: { negate: true } });
    else if (first > 0) open.isGt = point(first / 2 - 1);
    if (last % 2 === 1)
      closed.push({ thresholds: { isGt: point((last - 1) / 2) }, threshold: { negate: true } });
    else if (last < 2 * this.#points.length) open.isLt = point(last / 2);
    return Object.keys(open).length > 0 ? [{ thresholds: open }, ...closed] : closed;
  }
}
