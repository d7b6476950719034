import { existsSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Environment } from '../../src/config/secret.ts';
import { pathOf, readProjectFile, readScriptSteps, readShownSteps } from './readme.ts';

const docs = readdirSync(pathOf('docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`);
const pages = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...docs];

/** Files that the examples of CONTRIBUTING.md would add, and that programs or operators write. */
const made = [
  'bench/results/',
  'config/local.json',
  'src/db/migrations/0000NN_account-note.sql',
  'src/db/migrations/0000NN_sw-version.sql',
  'src/ingest/rules/ping.ts',
  'src/notifications/channels/call.ts',
];

describe('the documentation', () => {
  it('shows the commands of docs/tour.sh, step by step', () => {
    const shown = readShownSteps().map(({ title, commands }) => ({ title, commands }));
    expect(shown.length).toBeGreaterThan(5);
    expect(shown).toEqual(readScriptSteps());
  });

  it('lists every environment variable with its default', () => {
    const [, table = ''] = /<!-- environment: begin -->(.*?)<!-- environment: end -->/s.exec(
      readProjectFile('docs/operations.md'),
    ) ?? [''];
    const rows = table
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split('|').map((cell) => cell.trim()));
    const expected = Object.entries(Environment.shape).map(([name, schema]) => {
      const byDefault = schema.safeParse(undefined).data;
      const shown = byDefault === undefined ? '' : `\`${String(byDefault)}\``;
      return ['', `\`${name}\``, shown, schema.description ?? '', ''];
    });
    expect(rows).toEqual(expected);
  });

  it('names only scripts that package.json has', () => {
    const { scripts } = JSON.parse(readProjectFile('package.json')) as {
      scripts: Record<string, string>;
    };
    const text = pages.map(readProjectFile).join('\n');
    const named = [...text.matchAll(/npm run ([a-z]+(?:[:-][a-z]+)*)/g)].map(
      ([, name]) => name ?? '',
    );
    expect(named).toContain('simulate');
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it.each(pages)('%s links only to what exists', (page) => {
    const text = readProjectFile(page).replaceAll(/^```.*?^```$/gms, '');
    const links = [...text.matchAll(/\]\(([^)\s#]*)(?:#([^)\s]*))?\)/g)]
      .map(([, path = '', anchor]) => ({ path, anchor }))
      .filter(({ path }) => !path.includes('://'));
    const wrong = links.filter(({ path, anchor }) => {
      const file = path === '' ? page : posix.join(posix.dirname(page), path);
      if (!existsSync(pathOf(file))) return true;
      return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).includes(anchor);
    });
    expect(wrong).toEqual([]);
  });

  it('names only files that exist, or that its examples would create', () => {
    const text = pages
      .filter((page) => !page.startsWith('docs/notes/'))
      .map(readProjectFile)
      .join('\n');
    const named = [
      ...text.matchAll(/`((?:src|connector|config|test|bench|examples|docs)\/[\w./-]+)`/g),
    ];
    const missing = named.map(([, path = '']) => path).filter((path) => !existsSync(pathOf(path)));
    expect(named.length).toBeGreaterThan(50);
    expect(missing.filter((path) => !made.includes(path))).toEqual([]);
  });

  it('names things that the file beside them contains', () => {
    const text = pages
      .filter((page) => !page.startsWith('docs/notes/'))
      .map(readProjectFile)
      .join('\n');
    const named = [...text.matchAll(/`(\w+)`\s(?:in|\()\s?`([\w/]+\/[\w/-]+\.ts)`/g)];
    const wrong = named.filter(
      ([, name = '', path = '']) => !made.includes(path) && !readProjectFile(path).includes(name),
    );
    expect(named.length).toBeGreaterThan(3);
    expect(wrong.map(([whole]) => whole)).toEqual([]);
  });

  it('has an index that names every page', () => {
    const index = readProjectFile('docs/README.md');
    const missing = docs.filter((page) => page !== 'docs/README.md');
    expect(missing.filter((page) => !index.includes(`(${posix.relative('docs', page)})`))).toEqual(
      [],
    );
  });

  it('lists the sections of a long page at its top', () => {
    const long = pages.filter((page) => page !== 'docs/warnings.md' && lengthOf(page) > 220);
    expect(long).toContain('docs/engine.md');
    for (const page of long) {
      const [top = '', ...sections] = readProjectFile(page).split(/^## /m);
      const missing = sections
        .map((section) => anchorOf(section.split('\n', 1)[0] ?? ''))
        .filter((anchor) => !top.includes(`(#${anchor})`));
      expect(missing, page).toEqual([]);
    }
  });

  it('begins with a page that takes five minutes to read', () => {
    expect(lengthOf('README.md')).toBeLessThan(160);
  });
});

const lengthOf = (page: string) => readProjectFile(page).split('\n').length;

function anchorsOf(page: string): string[] {
  return [...readProjectFile(page).matchAll(/^#+ (.*)$/gm)].map(([, text]) => anchorOf(text ?? ''));
}

/** The anchor that GitHub derives. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
}
