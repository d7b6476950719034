import { type Expression, parseExpression } from '../../../src/cli/import-rules/expression.ts';
import type { Action, Model, Rule, State } from '../../../src/cli/import-rules/model.ts';

type Value = number | string | boolean | undefined;
/** A message of an input. */
export type Sent = { atMs: number; input: string; payload: Record<string, unknown> };
/** What a detector did: `to` another state (or the same one), and when it published to a topic. */
export type Done = { moves: { atMs: number; to: string }[]; published: number[] };

/**
 * A detector of AWS IoT Events, as its developer guide describes it: it begins with its first message, keeps the last
 * message of each input, and looks at the conditions of its state when a message arrives or a timer ends.
 */
export class Detector {
  readonly done: Done = { moves: [], published: [] };
  readonly #model: Model;
  readonly #messages = new Map<string, Record<string, unknown>>();
  readonly #variables = new Map<string, Value>();
  readonly #timers = new Map<string, { ms: number; endsMs: number | null }>();
  #state: State | null = null;
  #ended = new Set<string>();
  #atMs = 0;
  /** The input whose message is looked at; null: a timer ended. */
  #trigger: string | null = null;

  constructor(model: Model) {
    this.#model = model;
  }

  receive({ atMs, input, payload }: Sent): void {
    this.runUntil(atMs);
    this.#atMs = atMs;
    this.#trigger = input;
    this.#messages.set(input, payload);
    if (!this.#state) this.#enter(this.#model.initial);
    this.#look();
  }

  /** Ends the timers that end until then. */
  runUntil(untilMs: number): void {
    for (;;) {
      const running = [...this.#timers.values()].flatMap(({ endsMs }) => endsMs ?? []);
      const next = Math.min(...running, Infinity);
      if (next > untilMs) return;
      this.#atMs = next;
      this.#trigger = null;
      for (const [name, timer] of this.#timers)
        if (timer.endsMs === next) {
          timer.endsMs = null;
          this.#ended.add(name);
        }
      this.#look();
    }
  }

  #look(): void {
    const state = this.#state as State;
    const before = new Set(this.#ended);
    const events = state.events.filter((rule) => this.#holds(rule));
    const transition = state.transitions.find((rule) => this.#holds(rule));
    // A timer has ended only for those who look first.
    this.#ended = new Set([...this.#ended].filter((name) => !before.has(name)));
    for (const { actions } of events) this.#act(actions);
    if (!transition || transition.next === null) return;
    this.#act(transition.actions);
    for (const rule of state.onExit) if (this.#holds(rule)) this.#act(rule.actions);
    this.#enter(transition.next);
    this.done.moves.push({ atMs: this.#atMs, to: transition.next });
  }

  #enter(name: string): void {
    this.#state = this.#model.states.find((state) => state.name === name) as State;
    for (const rule of this.#state.onEnter) if (this.#holds(rule)) this.#act(rule.actions);
  }

  #act(actions: Action[]): void {
    for (const { kind, body } of actions) {
      const timer = body.get('timerName').text ?? '';
      if (kind === 'sns') this.done.published.push(this.#atMs);
      if (kind === 'setVariable')
        this.#variables.set(
          body.get('variableName').text ?? '',
          this.#value(parseExpression(body.get('value').text ?? '')),
        );
      if (kind === 'setTimer') {
        const ms = 1_000 * Number(body.get('seconds').text);
        this.#timers.set(timer, { ms, endsMs: this.#atMs + ms });
      }
      const known = this.#timers.get(timer);
      if (kind === 'resetTimer' && known) known.endsMs = this.#atMs + known.ms;
      if (kind === 'clearTimer') this.#timers.delete(timer);
      if (kind.endsWith('Timer')) this.#ended.delete(timer);
    }
  }

  #holds({ condition }: Rule): boolean {
    return this.#value(parseExpression(condition ?? '')) === true;
  }

  #value(one: Expression): Value {
    switch (one.kind) {
      case 'literal':
        return one.value;
      case 'variable':
        return this.#variables.get(one.name);
      case 'input':
        return one.path
          .split('.')
          .reduce<unknown>(
            (value, name) => (value as Record<string, unknown> | undefined)?.[name],
            this.#messages.get(one.input),
          ) as Value;
      case 'not': {
        const of = this.#value(one.of);
        return typeof of === 'boolean' ? !of : undefined;
      }
      case 'minus':
        return -(this.#value(one.of) as number);
      case 'call':
        return this.#call(one.name, this.#value(one.args[0] as Expression) as string);
      case 'binary':
        return this.#binary(one.operator, this.#value(one.left), this.#value(one.right));
      default:
        throw new Error(`not needed here: ${one.kind}`);
    }
  }

  #call(name: string, of: string): Value {
    if (name === 'timeout') return this.#ended.has(of);
    if (name === 'currentInput') return this.#trigger === of;
    return (this.#trigger === null ? 'Timer' : 'Message') === of;
  }

  #binary(operator: string, left: Value, right: Value): Value {
    if (operator === '||') return left === true || right === true;
    if (left === undefined || right === undefined) return undefined;
    if (operator === '&&') return left === true && right === true;
    if (operator === '==') return left === right;
    if (operator === '!=') return left !== right;
    if (operator === '<') return left < right;
    if (operator === '<=') return left <= right;
    return operator === '>' ? left > right : left >= right;
  }
}
