import { mkdtempSync, rmSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkVectors, writeAnswers } from '../../src/cli/engine/vectors.ts';
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

type Vectors = { writeAnswers: typeof writeAnswers };

/** The rules of the cases that an engine answers otherwise; or what it throws. */
async function listNoticing({ writeAnswers: write }: Vectors): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  const lines: string[] = [];
  try {
    await write(folder, async () => undefined);
    await checkVectors({ folder, isJson: true }, async (line) => void lines.push(line));
    return [
      ...new Set(lines.flatMap((line) => (JSON.parse(line) as { rule?: string }).rule ?? [])),
    ];
  } catch (error) {
    return [String(error)];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const [wrong] = await listNoticing({ writeAnswers });
if (wrong !== undefined) throw new Error(`The engine itself disagrees with: ${wrong}`);
for (const [number, { mistake }] of mutations.entries()) {
  const mutant = (await import(`../../src/cli/engine/vectors.ts?mutant=${number}`)) as Vectors;
  if (mutant.writeAnswers === writeAnswers) throw new Error(`Not loaded anew: ${mistake}`);
  const noticedBy = await listNoticing(mutant);
  process.stdout.write(`${JSON.stringify({ mistake, noticedBy })}\n`);
}
