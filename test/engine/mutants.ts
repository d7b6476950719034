import { registerHooks } from 'node:module';
import { type Case, compareAnswer, readCases } from '../../src/cli/engine/vectors.ts';
import { mutations } from './mutations.ts';

/*
 * Runs the vectors through copies of the engine that have one mistake each, and prints a line of JSON for each: which
 * vectors notice it. A copy is loaded under a name of its own, and its text is changed as it is loaded.
 */

const root = new URL('../../', import.meta.url).href;
const mutantQuery = /\?mutant=(\d+)$/;

registerHooks({
  /** The modules that a mutant imports belong to the same mutant. */
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const [query] = mutantQuery.exec(context.parentURL ?? '') ?? [];
    const isOwn = query !== undefined && found.url.startsWith(`${root}src/`);
    return isOwn && !mutantQuery.test(found.url) ? { ...found, url: found.url + query } : found;
  },
  load(url, context, next) {
    const loaded = next(url, context);
    const number = mutantQuery.exec(url)?.[1];
    const mutation = number === undefined ? undefined : mutations[Number(number)];
    if (!mutation || url !== `${root}${mutation.file}?mutant=${number}`) return loaded;
    const { source } = loaded;
    const text = typeof source === 'string' ? source : new TextDecoder().decode(source);
    return { ...loaded, source: mutate(text, mutation.changes) };
  },
});

/** Each text must occur exactly once; otherwise the table no longer fits the code. */
function mutate(source: string, changes: readonly (readonly [string, string])[]): string {
  return changes.reduce((text, [from, to]) => {
    const [before, after, ...more] = text.split(from);
    if (before === undefined || after === undefined || more.length > 0)
      throw new Error(`expected once: ${from}`);
    return before + to + after;
  }, source);
}

type AnswerModule = { answerCase: (one: Case) => unknown };

const all = readCases().flatMap(({ cases }) => cases);
for (const [number, { mistake }] of mutations.entries()) {
  const path = `../../src/cli/engine/vectors.ts?mutant=${number}`;
  const { answerCase } = (await import(path)) as AnswerModule;
  const noticedBy = all.filter((one) => !agrees(one, answerCase)).map(({ rule }) => rule);
  process.stdout.write(`${JSON.stringify({ mistake, noticedBy })}\n`);
}

function agrees(one: Case, answerCase: AnswerModule['answerCase']): boolean {
  try {
    const answer = JSON.parse(JSON.stringify(answerCase(one))) as Parameters<
      typeof compareAnswer
    >[1];
    return compareAnswer(one, answer).length === 0;
  } catch {
    return false;
  }
}
