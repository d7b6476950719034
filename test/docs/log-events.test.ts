import { globSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { logNames } from '../../src/log/events.ts';
import { pathOf, readProjectFile } from './readme.ts';

const { components, events: logEvents } = logNames;

const sources = globSync('{src,connector}/**/*.ts', { cwd: pathOf('.') })
  .filter((path) => path !== 'src/log/events.ts')
  .map(readProjectFile)
  .join('\n');

/** The rows of the tables in docs/log.md. */
function listDocumented() {
  const [, tables = ''] = /<!-- log events: begin -->(.*?)<!-- log events: end -->/s.exec(
    readProjectFile('docs/log.md'),
  ) ?? [''];
  return [...tables.matchAll(/^\| `([a-z.-]+)` *\| ([a-z, ]+?) *\| (.+?) *\| (.+?) *\|$/gm)].map(
    ([, event = '', levels = '', means = '', advice = '']) => ({ event, levels, means, advice }),
  );
}

/** Calls with literal level, code and message in the source; some choose theirs at run time. */
function listCalls() {
  const call = /\.(\w+)\(\s*\{\s*event: '([a-z.-]+)'[^}]*\},?\s*(?:(['"`])((?:(?!\3)[^])*)\3)?/g;
  return [...sources.matchAll(call)].map(([, level = '', event = '', , message]) => ({
    level,
    event,
    message,
  }));
}

describe('the codes of the log', () => {
  it('are documented, each once, with what it means and what to do', () => {
    const documented = listDocumented();
    expect(documented.map(({ event }) => event).toSorted()).toEqual([...logEvents].toSorted());
    for (const { means, advice } of documented) {
      expect(means).toMatch(/\.$/);
      expect(advice).not.toBe('');
    }
  });

  it('are all used', () => {
    const unused = logEvents.filter((event) => !sources.includes(`'${event}'`));
    expect(unused).toEqual([]);
    expect(components.filter((one) => !sources.includes(`component: '${one}'`))).toEqual([]);
  });

  it('have the level that the page says', () => {
    const levels = new Map(listDocumented().map(({ event, levels }) => [event, levels]));
    const calls = listCalls();
    // Nearly all of them, or the pattern no longer matches the way they are written.
    expect(new Set(calls.map(({ event }) => event)).size).toBeGreaterThan(logEvents.length * 0.9);
    const wrong = calls.filter(({ event, level }) => !levels.get(event)?.includes(level));
    expect(wrong).toEqual([]);
  });

  it('come with a message that is a sentence', () => {
    const messages = listCalls().flatMap(({ message }) => message ?? []);
    expect(messages.length).toBeGreaterThan(logEvents.length * 0.8);
    expect(messages.filter((message) => !/^(\$\{|[A-Z]).*(\.|\})$/s.test(message))).toEqual([]);
  });
});

it('nothing is written except through the log, but for what a start shows to people', () => {
  const written = globSync('{src,connector}/**/*.ts', { cwd: pathOf('.') })
    .filter((path) => !/^src\/(cli|console\/build)\//.test(path))
    .filter((path) =>
      /\bconsole\.(?!ts\b|enabled\b|failed\b|tiles\b)|process\.std(out|err)\.write/.test(
        // Comments mention the browser's console.
        readProjectFile(path).replaceAll(/^\s*(\/\*\*|\*|\/\/).*$/gm, ''),
      ),
    );
  expect(written).toEqual(['src/main.ts']);
});
