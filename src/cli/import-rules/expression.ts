/** An expression of AWS IoT Events. An input is named by its name and the path to a value in its messages. */
export type Expression =
  | { kind: 'literal'; value: number | string | boolean }
  | { kind: 'input'; input: string; path: string }
  | { kind: 'variable'; name: string }
  | { kind: 'call'; name: string; args: Expression[] }
  | { kind: 'not' | 'minus' | 'complement'; of: Expression }
  | { kind: 'binary'; operator: string; left: Expression; right: Expression };

/** What cannot be read, or has no counterpart. The message completes a line about its place. */
export class NoCounterpart extends Error {}

type Token = { kind: 'number' | 'text' | 'name' | 'sign' | 'end'; text: string; at: number };

const sign = /&&|\|\||[=!<>]=|[-+*/<>!~&|^().,[\]]/y;
const number = /\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const text = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/y;
const name = /\$?[A-Za-z_]\w*|`[^`]+`/y;
const space = /\s*/y;

function* tokensOf(source: string): Generator<Token> {
  const kinds = { number, text, name, sign };
  const match = (pattern: RegExp, at: number) => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0];
  };
  let at = match(space, 0)?.length ?? 0;
  while (at < source.length) {
    const found = Object.entries(kinds).flatMap(([kind, pattern]) => {
      const one = match(pattern, at);
      return one === undefined ? [] : [{ kind: kind as Token['kind'], text: one, at }];
    })[0];
    if (!found) throw new NoCounterpart(`cannot be read from ${quoted(source.slice(at))} on`);
    yield found;
    at += found.text.length;
    at += match(space, at)?.length ?? 0;
  }
  yield { kind: 'end', text: '', at };
}

const quoted = (rest: string) => JSON.stringify(rest.length > 30 ? `${rest.slice(0, 30)}…` : rest);

/** What binds less comes first. */
const operators = [
  ['||'],
  ['&&'],
  ['|'],
  ['^'],
  ['&'],
  ['==', '!='],
  ['<', '<=', '>', '>='],
  ['+', '-'],
  ['*', '/'],
];

/** Names of types, for `convert`. */
const types = ['String', 'Boolean', 'Decimal'];

const unary = { '!': 'not', '-': 'minus', '~': 'complement' } as const;

/** Parses an expression. Throws `NoCounterpart` where it cannot be read. */
export function parseExpression(source: string): Expression {
  const tokens = [...tokensOf(source)];
  let next = 0;
  const peek = () => tokens[next] as Token;
  const wrong = (): never => {
    const { kind, at } = peek();
    const where = kind === 'end' ? 'its end' : quoted(source.slice(at));
    throw new NoCounterpart(`cannot be read from ${where} on`);
  };
  const takes = (one: string) => {
    if (peek().kind !== 'sign' || peek().text !== one) return false;
    next += 1;
    return true;
  };
  const expect = (one: string) => (takes(one) ? undefined : wrong());
  const takeName = () => {
    const { kind, text: found } = peek();
    if (kind !== 'name') return wrong();
    next += 1;
    return found.replaceAll('`', '');
  };

  function binary(level: number): Expression {
    const signs = operators[level];
    if (!signs) return prefix();
    let left = binary(level + 1);
    for (;;) {
      const operator = signs.find(takes);
      if (operator === undefined) return left;
      left = { kind: 'binary', operator, left, right: binary(level + 1) };
    }
  }

  function prefix(): Expression {
    for (const [one, kind] of Object.entries(unary)) if (takes(one)) return { kind, of: prefix() };
    return primary();
  }

  function primary(): Expression {
    const { kind, text: found } = peek();
    if (takes('(')) {
      const inner = binary(0);
      expect(')');
      return inner;
    }
    if (kind === 'number' || kind === 'text') {
      next += 1;
      return { kind: 'literal', value: kind === 'number' ? Number(found) : unescaped(found) };
    }
    const called = takeName();
    if (called === 'true' || called === 'false')
      return { kind: 'literal', value: called === 'true' };
    if (called === '$variable') {
      expect('.');
      return { kind: 'variable', name: takeName() };
    }
    if (called === '$input') return input();
    if (types.includes(called)) return { kind: 'literal', value: called };
    expect('(');
    const args: Expression[] = [];
    while (!takes(')')) {
      if (args.length > 0) expect(',');
      args.push(binary(0));
    }
    return { kind: 'call', name: called, args };
  }

  function input(): Expression {
    expect('.');
    const from = takeName();
    let path = '';
    for (;;) {
      if (takes('.')) path += `${path === '' ? '' : '.'}${takeName()}`;
      else if (takes('[')) {
        path += `[${peek().text}]`;
        next += 1;
        expect(']');
      } else return { kind: 'input', input: from, path };
    }
  }

  const parsed = binary(0);
  return peek().kind === 'end' ? parsed : wrong();
}

const unescaped = (literal: string) => literal.slice(1, -1).replaceAll(/\\(.)/g, '$1');
