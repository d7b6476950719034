import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';

/**
 * Makes each function of the service report when it is entered: `--import ./bench/way/hook.ts`. It strips types and
 * inserts a call at the beginning of each body, of inline functions too, without moving a line.
 */
const tree = dirname(dirname(import.meta.dirname));
const isOurs = /^(src|connector)\/(?!console\/web\/).*\.ts$/;

/** `isDelivery`: by the outbox, or by what it has called and waits for. */
export type Entered = { file: string; name: string; isDelivery: boolean };

/** Where the delivery of messages begins: the outbox looks for due ones, because a commit has woken it. */
const delivery = { file: 'src/lib/dispatcher.ts', name: 'look' };
const delivering = new AsyncLocalStorage<true>();

/** The functions entered since `listen`, in order; null: not listening. */
let entered: Entered[] | null = null;

export function listen(): void {
  entered = [];
}

/** Stops listening, and returns the functions entered. */
export function heard(): Entered[] {
  const all = entered ?? [];
  entered = null;
  return all;
}

const functions: Omit<Entered, 'isDelivery'>[] = [];
Object.assign(globalThis, {
  __entered(id: number) {
    const known = functions[id];
    if (!known || !entered) return;
    if (known.file === delivery.file && known.name === delivery.name) delivering.enterWith(true);
    entered.push({ ...known, isDelivery: delivering.getStore() === true });
  },
});

registerHooks({
  load(url, context, next) {
    const file = url.startsWith('file:') ? relative(tree, fileURLToPath(url)) : '';
    if (!isOurs.test(file)) return next(url, context);
    const source = stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'));
    return { format: 'module', source: withCalls(file, source), shortCircuit: true };
  },
});

type Node = { type: string; start: number; end: number; [member: string]: unknown };

function withCalls(file: string, source: string): string {
  const inserts: { at: number; text: string }[] = [];
  const walk = (node: Node, name: string): void => {
    const own = nameOf(node) ?? name;
    if (/Function/.test(node.type) && isNode(node['body'])) {
      const id = functions.push({ file, name: own }) - 1;
      const body = node['body'];
      if (body.type === 'BlockStatement')
        inserts.push({ at: body.start + 1, text: `__entered(${id});` });
      else
        inserts.push({ at: body.start, text: `(__entered(${id}),` }, { at: body.end, text: ')' });
    }
    for (const member of Object.values(node))
      for (const child of Array.isArray(member) ? member : [member])
        if (isNode(child)) walk(child, own);
  };
  walk(parseAst(source, { lang: 'js', sourceType: 'module' }) as unknown as Node, '(module)');
  // From the end backwards, so that no position moves. At the same position the outer function's call comes first.
  let text = source;
  for (const { at, text: added } of inserts.sort((a, b) => b.at - a.at))
    text = text.slice(0, at) + added + text.slice(at);
  return text;
}

function nameOf(node: Node): string | null {
  for (const member of ['id', 'key'] as const) {
    const named = node[member];
    if (isNode(named) && typeof named['name'] === 'string') return named['name'];
  }
  return null;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
