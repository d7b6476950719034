import type { z } from 'zod';
import type { Cause, Purpose, PurposeEvent } from '../../contract/purpose.ts';
import { type Case, casesOf, type Cells, nameOf, Sense, type Value } from './condition.ts';
import { NoCounterpart } from './expression.ts';
import { type ReadCase, type ReadRule, type ReadState, watchLatched } from './latched.ts';
import type { Action, Model, Rule, State } from './model.ts';

type Written = z.input<typeof Purpose>;
type WrittenEvent = z.input<typeof PurposeEvent>;
type WrittenCause = z.input<typeof Cause>;

/** A place in the file, as a JSON Pointer, and what is said about it. */
type Remark = { pointer: string; text: string };

/**
 * What came of a model. `whole`: the purpose changes its state whenever the detector would. `leftOut`: what has no
 * counterpart; `differs`: what is only similar; `setUp`: what has to be done besides. The purpose is null if nothing
 * could be taken over.
 */
export type Translated = {
  name: string;
  verdict: 'whole' | 'in part' | 'not';
  purpose: Written | null;
  senses: { sId: string; name: string; value: Value; texts: string[] | null; isFlag: boolean }[];
  /** The sense that nothing measures, for the time since a state was entered; null: nothing waits for that. */
  timer: string | null;
  setUp: string[];
  leftOut: Remark[];
  differs: Remark[];
};

/** A timer that is set on entering a state. `reset`: the input whose messages set it again; null: none. */
type Timer = { name: string; ms: number; reset: string | null };
/** One way in which an event fires: all has been waited for, and the last value of each sense is one of these. */
type Way = { waiting: WrittenCause[]; cells: ReadonlyMap<Sense, Cells> };

const longestMs = 31 * 86_400_000;
const shortestRepeatMs = 60_000;
const mostEvents = 64;

/** Makes a purpose of a detector model. Pure. */
export function translate(model: Model, puId: number): Translated {
  return new Translation(model).run(puId);
}

class Translation {
  readonly #model: Model;
  readonly #leftOut = new Map<string, Remark>();
  readonly #differs = new Map<string, Remark>();
  readonly #topics = new Map<string, string>();
  readonly #senses = new Map<string, Sense>();
  /** The number of each sense that is read; null: of the one that nothing measures. */
  readonly #sIds = new Map<Sense | null, string>();
  readonly #taken = new Set<Rule>();
  /** The variables that never change. */
  readonly #constants: ReadonlyMap<string, string | number | boolean>;

  constructor(model: Model) {
    this.#model = model;
    this.#constants = constantsOf(model);
  }

  run(puId: number): Translated {
    const { name, states, initial, initialPointer, hasKey } = this.#model;
    const numbers = new Map(states.map((state, index) => [state.name, index + 1]));
    const initStId = numbers.get(initial);
    if (initStId === undefined) {
      const text = `the state ${JSON.stringify(initial)}, in which a detector begins, is missing`;
      return this.#end(null, [{ pointer: initialPointer, text }]);
    }
    const read = this.#readStates();
    const written = read.map((one, index) => ({
      stId: index + 1,
      name: one.state.name,
      events: this.#writeState(one, numbers),
    }));
    if (written.every(({ events }) => events.length === 0)) {
      const text = 'no event and no transition could be taken over';
      return this.#end(null, [{ pointer: this.#model.pointer, text }]);
    }
    if (!hasKey) {
      const text = 'has no key: one detector for all devices; here each device has its own state';
      this.#say(this.#differs, this.#model.pointer, text);
    }
    this.#compareMessages();
    const hasTimers = states.some((state) => this.#setsTimer(state));
    const again = watchLatched(read, initial, { hasTimers, inputs: this.#model.inputs });
    for (const { rule, text } of again)
      if (this.#taken.has(rule)) this.#say(this.#differs, rule.conditionPointer, text);
    return this.#end({ puId, name, initStId, states: written });
  }

  #end(purpose: Written | null, also: Remark[] = []): Translated {
    const leftOut = [...also, ...this.#leftOut.values()].toSorted(byPlace);
    const differs = [...this.#differs.values()].toSorted(byPlace);
    const isWhole = leftOut.length === 0 && differs.length === 0;
    const named = this.#nameSenses();
    return {
      name: this.#model.name,
      verdict: purpose === null ? 'not' : isWhole ? 'whole' : 'in part',
      purpose,
      senses: [...this.#sIds].flatMap(([sense, sId]) => {
        if (sense === null) return [];
        const { value, texts, isFlag } = sense;
        return [{ sId, name: named(sense), value, texts, isFlag }];
      }),
      timer: this.#sIds.get(null) ?? null,
      setUp: [...this.#topics.values()],
      leftOut,
      differs,
    };
  }

  #say(where: Map<string, Remark>, pointer: string, text: string): void {
    where.set(`${pointer} ${text}`, { pointer, text });
  }

  /** Reads all conditions: first what they compare, which gives the senses, and then the values that agree. */
  #readStates(): ReadState[] {
    const cases = new Map<Rule, Case[]>();
    const compared = new Map<string, { value: Value; constants: (string | number | boolean)[] }>();
    const rulesOf = ({ events, transitions }: State) => [...events, ...transitions];
    for (const rule of this.#model.states.flatMap(rulesOf)) {
      const found = this.#try(rule, () => casesOf(rule.condition ?? '', this.#constants));
      if (found) cases.set(rule, found);
      for (const { value, comparisons } of (found ?? []).flatMap((one) => one.compared)) {
        const known = compared.get(nameOf(value)) ?? { value, constants: [] };
        known.constants.push(...comparisons.map(({ constant }) => constant));
        compared.set(nameOf(value), known);
      }
    }
    const wrong = new Map<string, string>();
    for (const [name, one] of compared)
      try {
        this.#senses.set(name, new Sense(one.value, one.constants));
      } catch (error) {
        if (!(error instanceof NoCounterpart)) throw error;
        wrong.set(name, error.message);
      }
    // An input of which no value is compared is a sense as well: that something arrived.
    for (const input of this.#model.inputs)
      if (![...compared.values()].some(({ value }) => value.input === input))
        this.#senses.set(input, new Sense({ input, path: '' }, []));
    const read = (rules: Rule[]) =>
      rules.flatMap((rule): ReadRule[] => {
        const found = this.#try(rule, () =>
          (cases.get(rule) ?? []).map((one) => this.#withCells(one, wrong)),
        );
        return cases.has(rule) && found ? [{ rule, cases: found }] : [];
      });
    return this.#model.states.map((state) => ({
      state,
      events: read(state.events),
      transitions: read(state.transitions),
    }));
  }

  #withCells(one: Case, wrong: ReadonlyMap<string, string>): ReadCase {
    const cells = new Map<Sense, Cells>();
    for (const { value, comparisons } of one.compared) {
      const sense = this.#senses.get(nameOf(value));
      if (!sense) throw new NoCounterpart(wrong.get(nameOf(value)) ?? 'has no counterpart');
      cells.set(sense, sense.cellsOf(comparisons));
    }
    return { ...one, cells };
  }

  /** Undefined if it has no counterpart, which is said. */
  #try<T>({ condition, conditionPointer }: Rule, read: () => T): T | undefined {
    try {
      if (condition === null) throw new NoCounterpart('is known only to CloudFormation');
      return read();
    } catch (error) {
      if (!(error instanceof NoCounterpart)) throw error;
      this.#say(this.#leftOut, conditionPointer, `the condition ${error.message}`);
      return undefined;
    }
  }

  /** Several values of one message are compared together there, and here one after the other. */
  #compareMessages(): void {
    for (const input of this.#model.inputs) {
      const several = this.#sensesOf(input);
      if (several.length < 2) continue;
      const names = several.map(({ value }) => value.path).join(', ');
      const text = `a message of ${input} has several values (${names}), which are compared together; here one after the other, and a state that one of them leads to compares the next`;
      this.#say(this.#differs, this.#model.pointer, text);
    }
  }

  #sensesOf(input: string): Sense[] {
    return [...this.#senses.values()].filter(({ value }) => value.input === input);
  }

  #setsTimer({ onEnter, events, transitions, onExit }: State): boolean {
    const rules = [...onEnter, ...events, ...transitions, ...onExit];
    return rules.some(({ actions }) => actions.some(({ kind }) => kind === 'setTimer'));
  }

  #writeState(read: ReadState, numbers: ReadonlyMap<string, number>): WrittenEvent[] {
    const { state } = read;
    const timers = this.#timersOf(read);
    const events: WrittenEvent[] = [];
    const add = (rule: Rule, cases: ReadCase[], actions: WrittenEvent['actions'], log: boolean) => {
      this.#taken.add(rule);
      for (const causes of this.#causesOf(cases, rule, timers))
        events.push({
          evId: events.length + 1,
          ...(rule.name !== '' && { name: rule.name }),
          ...(log && { eventLog: true }),
          ...(actions && Object.keys(actions).length > 0 && { actions }),
          causes,
        });
    };
    for (const { rule, cases } of read.events) {
      const told = this.#tell(rule.actions);
      this.#eventTimers(rule, cases, timers);
      const isOfTimer = cases.some(({ timers: of }) => of.length > 0);
      const again = told.isTold && isOfTimer ? this.#repeat(rule, timers) : null;
      if (!told.isTaken) continue;
      add(rule, cases, again ?? (told.isTold ? notice : {}), true);
    }
    for (const { rule, cases } of read.transitions) {
      const { next, nextPointer, actions } = rule;
      const gotoStId = numbers.get(next ?? '');
      if (gotoStId === undefined) {
        this.#say(this.#leftOut, nextPointer, `leads to the state ${next}, which is missing`);
        continue;
      }
      if (next === state.name && timers.length > 0)
        this.#say(
          this.#differs,
          nextPointer,
          'leads to the same state, and sets its timer again; here the timer goes on',
        );
      const entered = this.#model.states[gotoStId - 1];
      const told = this.#tell([
        ...actions,
        ...this.#unconditional(state.onExit),
        ...(entered ? this.#unconditional(entered.onEnter, entered) : []),
      ]);
      this.#ownTimers(rule.actions);
      const also = told.isTold ? notice : {};
      add(rule, cases, { ...also, engine: { gotoStId } }, told.isTaken);
    }
    for (const rule of state.onExit) this.#ownTimers(rule.actions);
    if (state.name === this.#model.initial) {
      const { isTold } = this.#tell(this.#unconditional(state.onEnter, state));
      if (isTold)
        this.#say(
          this.#differs,
          state.pointer,
          'people are told when a detector begins; here nobody is when the profile is installed',
        );
    }
    if (events.length > mostEvents) {
      const text = `needs ${events.length} events; a state has at most ${mostEvents}, the others are missing`;
      this.#say(this.#leftOut, state.pointer, text);
    }
    return events.slice(0, mostEvents);
  }

  /** The actions that are carried out each time. `entered`: the state, if they belong to entering it. */
  #unconditional(rules: Rule[], entered?: State): Action[] {
    return rules.flatMap((rule) => {
      if (this.#isAlways(rule, entered)) return rule.actions;
      if (rule.actions.some(({ kind }) => !isTimer(kind)))
        this.#say(
          this.#leftOut,
          rule.conditionPointer,
          'an action on entering or leaving a state has a condition',
        );
      return [];
    });
  }

  /** Whether the condition of a rule on entering this state, or leaving one, is true each time. */
  #isAlways({ condition }: Rule, entered?: State): boolean {
    if (condition === 'true') return true;
    const [input, ...others] = this.#model.inputs;
    if (!entered || condition === null || input === undefined || others.length > 0) return false;
    const isOfInput = new RegExp(`^\\s*currentInput\\(\\s*(['"])${input}\\1\\s*\\)\\s*$`).test(
      condition,
    );
    const ways = this.#model.states.flatMap(({ transitions }) =>
      transitions.filter(({ next }) => next === entered.name),
    );
    return isOfInput && ways.every((one) => one.condition?.includes('timeout') === false);
  }

  /** What people are told of, and what else is noted. `isTaken`: something is left of these actions. */
  #tell(actions: Action[]): { isTold: boolean; isTaken: boolean } {
    let isTold = false;
    let isTaken = false;
    for (const { kind, body, pointer } of actions) {
      if (isTimer(kind)) continue;
      if (kind === 'setVariable' && this.#constants.has(body.get('variableName').text ?? ''))
        continue;
      if (kind === 'sns') {
        const topic = body.get('targetArn').text ?? 'a topic';
        this.#topics.set(topic, `a contact for the topic ${topic}: who subscribed to it`);
        isTold = true;
      } else if (kind === 'iotTopicPublish') {
        const topic = body.get('mqttTopic').text ?? 'a topic';
        this.#topics.set(
          topic,
          `whoever reads the MQTT topic ${topic}: the events are recorded; read their stream, or have a webhook`,
        );
        isTaken = true;
      } else {
        this.#say(this.#leftOut, pointer, does[kind] ?? `the action ${kind} is unknown`);
      }
    }
    return { isTold, isTaken: isTaken || isTold };
  }

  #timersOf({ state, events }: ReadState): Timer[] {
    const timers: Timer[] = [];
    for (const rule of state.onEnter)
      for (const { kind, body, pointer } of rule.actions) {
        const name = body.get('timerName').text ?? '';
        if (kind === 'clearTimer' && timers.some((timer) => timer.name === name))
          this.#say(this.#leftOut, pointer, `clears the timer ${name} that it has just set`);
        if (kind === 'resetTimer')
          this.#say(this.#leftOut, pointer, `sets the timer ${name} again on entering a state`);
        if (kind !== 'setTimer') continue;
        const seconds = Number(body.get('seconds').text ?? body.get('durationExpression').text);
        const ms = Math.floor(seconds) * 1_000;
        if (!(ms >= 1_000 && ms <= longestMs)) {
          this.#say(
            this.#leftOut,
            pointer,
            `the timer ${name} is not a number of seconds up to 31 days`,
          );
          continue;
        }
        if (!this.#isAlways(rule, state))
          this.#say(
            this.#differs,
            rule.conditionPointer,
            `sets the timer ${name} only sometimes; here always`,
          );
        timers.push({ name, ms, reset: this.#resetOf(name, events) });
      }
    return timers;
  }

  /** The input whose messages set the timer again. */
  #resetOf(timer: string, events: ReadRule[]): string | null {
    for (const { rule, cases } of events) {
      const resets = rule.actions.some((one) => isResetOf(one, timer));
      if (!resets || cases.some(({ timers }) => timers.includes(timer))) continue;
      const [input] = this.#model.inputs;
      const [one, ...more] = cases;
      const only = one?.inputs[0] ?? (this.#model.inputs.length === 1 ? input : undefined);
      const isMessage = one && one.cells.size === 0 && one.timers.length === 0;
      if (isMessage && more.length === 0 && only !== undefined) {
        if (!one.isMessage && this.#model.isSerial)
          this.#say(
            this.#differs,
            rule.conditionPointer,
            `sets the timer ${timer} again when a timer ends, too; here only when something arrives`,
          );
        return only;
      }
      this.#say(
        this.#differs,
        rule.conditionPointer,
        `sets the timer ${timer} again on a condition; here it goes on`,
      );
    }
    return null;
  }

  /** Says which timers of an event have no counterpart. */
  #eventTimers(rule: Rule, cases: ReadCase[], timers: Timer[]): void {
    for (const { kind, body, pointer } of rule.actions) {
      const name = body.get('timerName').text ?? '';
      if (kind === 'setTimer')
        this.#say(this.#leftOut, pointer, `sets the timer ${name} while the state lasts`);
      if (kind === 'clearTimer' && timers.some((timer) => timer.name === name))
        this.#say(this.#leftOut, pointer, `stops the timer ${name} while the state lasts`);
      const isKnown = timers.some((timer) => timer.name === name);
      const isAfterItself = cases.some((one) => one.timers.includes(name));
      if (kind === 'resetTimer' && (!isKnown || isAfterItself))
        this.#say(this.#differs, pointer, `sets the timer ${name} again; here it ends once`);
    }
  }

  /** Timers of a transition, or of leaving a state. Clearing one does nothing here: it ends with its state. */
  #ownTimers(actions: Action[]): void {
    for (const { kind, body, pointer } of actions)
      if (kind === 'setTimer' || kind === 'resetTimer') {
        const name = body.get('timerName').text ?? '';
        const text = `sets the timer ${name} on the way; only one that is set on entering a state has a counterpart`;
        this.#say(this.#leftOut, pointer, text);
      }
  }

  /** A timer that tells people and begins again is an alarm that is repeated. */
  #repeat({ actions }: Rule, timers: Timer[]): WrittenEvent['actions'] | null {
    const timer = timers.find(({ name }) => actions.some((one) => isResetOf(one, name)));
    if (!timer || timer.ms < shortestRepeatMs) return null;
    return { cloud: { sendPush: true }, alarm: true, repeatMs: timer.ms };
  }

  /** The causes of an event for each way in which one of the cases is true. */
  #causesOf(cases: ReadCase[], rule: Rule, timers: Timer[]): WrittenCause[][] {
    const ways = joinWays(cases.flatMap((one) => this.#waysOf(one, rule, timers)));
    const waitsFor = new Set(ways.flatMap(({ waiting }) => waiting.map(({ sId }) => sId)));
    if (waitsFor.size > 1)
      this.#say(
        this.#differs,
        rule.conditionPointer,
        'waits for one of several timers; if they end at once, it is true once there, and here for each',
      );
    return ways.flatMap(({ waiting, cells }) =>
      [...cells].reduce<WrittenCause[][]>(
        (before, [sense, set]) =>
          before.flatMap((causes) =>
            sense
              .causesOf(set)
              .map((more) => [
                ...causes,
                ...more.map((cause) => ({ sId: this.#sIdOf(sense), ...cause })),
              ]),
          ),
        [waiting],
      ),
    );
  }

  #waysOf(one: ReadCase, rule: Rule, timers: Timer[]): Way[] {
    const { conditionPointer } = rule;
    const waiting: WrittenCause[] = [];
    for (const name of one.timers) {
      const timer = timers.find((each) => each.name === name);
      if (!timer) {
        const text = `waits for the timer ${name}, which is not set on entering this state`;
        this.#say(this.#leftOut, conditionPointer, text);
        return [];
      }
      const [sense = null] = timer.reset === null ? [] : this.#sensesOf(timer.reset);
      waiting.push({ sId: this.#sIdOf(sense), threshold: { noneForMs: timer.ms } });
    }
    if (one.timers.length > 0) {
      if (one.isMessage) {
        const text = 'waits for a timer and for a message at once: never true';
        this.#say(this.#leftOut, conditionPointer, text);
        return [];
      }
      if (one.cells.size > 0 || one.timers.length > 1)
        this.#say(
          this.#differs,
          conditionPointer,
          'is looked at once, when the timer ends; here the rest may become true later',
        );
    }
    if (one.inputs.length > 1) return [];
    if (one.timers.length === 0 && one.cells.size > 1)
      this.#say(
        this.#differs,
        conditionPointer,
        'compares the last values of several senses; here each must be measured in this state, and counts until it disagrees',
      );
    const [input] = one.inputs;
    const isElsewhere = [...one.cells.keys()].some(({ value }) => value.input !== input);
    if (input !== undefined && one.cells.size > 0 && isElsewhere)
      this.#say(
        this.#differs,
        conditionPointer,
        `is looked at when ${input} arrives; here also when another sense is measured`,
      );
    if (waiting.length > 0 || one.cells.size > 0) return [{ waiting, cells: one.cells }];
    // Anything that arrives.
    const heard = input === undefined ? this.#model.inputs : [input];
    const senses = heard.flatMap((each) => this.#sensesOf(each).slice(0, 1));
    if (senses.length === 0)
      this.#say(this.#leftOut, conditionPointer, 'is true whatever arrives, and no input is known');
    return senses.map((sense) => ({ waiting, cells: new Map([[sense, sense.all]]) }));
  }

  #sIdOf(sense: Sense | null): string {
    const sId = this.#sIds.get(sense) ?? `0x${(this.#sIds.size + 1).toString(16)}`;
    this.#sIds.set(sense, sId);
    return sId;
  }

  /** The shortest names that are different. */
  #nameSenses(): (sense: Sense) => string {
    const paths = [...this.#senses.values()].map(({ value }) => value.path);
    return ({ value: { input, path } }) => {
      if (path === '') return input;
      return paths.filter((one) => one === path).length === 1 ? path : `${input}.${path}`;
    };
  }
}

/** Joins the ways that wait for the same and compare the same sense: one message tells people once. */
function joinWays(ways: readonly Way[]): Way[] {
  const joined: Way[] = [];
  for (const way of ways) {
    const [[sense] = []] = way.cells;
    const same = joined.findIndex(
      ({ waiting, cells }) =>
        JSON.stringify(waiting) === JSON.stringify(way.waiting) &&
        cells.size === way.cells.size &&
        (sense === undefined || (cells.size === 1 && cells.has(sense))),
    );
    const before = joined[same];
    if (!before) joined.push(way);
    else if (sense) {
      const both = (before.cells.get(sense) ?? 0n) | (way.cells.get(sense) ?? 0n);
      joined[same] = { waiting: way.waiting, cells: new Map([[sense, both]]) };
    }
  }
  return joined;
}

const byPlace = (one: Remark, other: Remark) =>
  one.pointer.localeCompare(other.pointer, 'en', { numeric: true });

/** People are told each time. */
const notice = { cloud: { sendPush: true }, alarm: false };

const isTimer = (kind: string) => ['setTimer', 'resetTimer', 'clearTimer'].includes(kind);
const isResetOf = ({ kind, body }: Action, timer: string) =>
  kind === 'resetTimer' && body.get('timerName').text === timer;

/** What the actions without a counterpart do. */
const does: Record<string, string> = {
  setVariable: 'sets a variable, and a purpose has none',
  lambda: 'calls a Lambda function',
  sqs: 'sends to an SQS queue',
  firehose: 'sends to a Firehose stream',
  dynamoDB: 'writes into DynamoDB',
  dynamoDb: 'writes into DynamoDB',
  dynamoDBv2: 'writes into DynamoDB',
  dynamoDBV2: 'writes into DynamoDB',
  iotEvents: 'sends to an input of AWS IoT Events',
  iotSiteWise: 'writes into AWS IoT SiteWise',
};

/** The variables that are set to one constant, on entering the state in which a detector begins. */
function constantsOf({ states, initial }: Model): Map<string, string | number | boolean> {
  const values = new Map<string, Set<string | null>>();
  const atFirst = new Set<string>();
  for (const { name: state, onEnter, events, transitions, onExit } of states)
    for (const rule of [...onEnter, ...events, ...transitions, ...onExit])
      for (const { kind, body } of rule.actions) {
        if (kind !== 'setVariable') continue;
        const name = body.get('variableName').text ?? '';
        values.set(name, (values.get(name) ?? new Set()).add(body.get('value').text));
        if (state === initial && rule.condition === 'true' && onEnter.includes(rule))
          atFirst.add(name);
      }
  const known = [...values].flatMap(([name, all]) => {
    const [value] = all;
    if (all.size !== 1 || value === undefined || value === null || !atFirst.has(name)) return [];
    const literal = literalOf(value);
    return literal === undefined ? [] : [[name, literal] as const];
  });
  return new Map(known);
}

function literalOf(text: string): string | number | boolean | undefined {
  if (/^\s*-?\d+(\.\d+)?\s*$/.test(text)) return Number(text);
  const quoted = /^\s*(['"])([^'"\\]*)\1\s*$/.exec(text);
  if (quoted) return quoted[2];
  return /^\s*(true|false)\s*$/.test(text) ? text.trim() === 'true' : undefined;
}
