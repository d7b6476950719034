import { globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { readOptionsOrExit } from '../src/cli/command-line.ts';

/** The exports and imports of a file. */
type File = {
  lines: number;
  exports: string[];
  /** The names that it imports, by source file; `*` for all of them. */
  imports: Map<string, Set<string>>;
};
type Body = ReturnType<typeof parseAst>['body'];

const root = resolve(import.meta.dirname, '..');
const ignored = ['**/node_modules/**', 'node_modules/**', 'test/upgrades/fixtures/**'];

/** The files that match these globs, by their paths from the root. */
function readFiles(...globs: string[]): Map<string, File> {
  const paths = globSync(globs, { cwd: root, exclude: ignored }).toSorted();
  return new Map(paths.map((path) => [path, readFile(path)]));
}

function readFile(path: string): File {
  const text = readFileSync(join(root, path), 'utf8');
  const { body } = parseAst(text, { lang: path.endsWith('x') ? 'tsx' : 'ts' });
  const imports: File['imports'] = new Map();
  const take = (specifier: string, names: string[]) => {
    if (!specifier.startsWith('.')) return;
    const target = relative(root, resolve(root, path, '..', specifier));
    imports.set(target, new Set([...(imports.get(target) ?? []), ...names]));
  };
  for (const { from, names } of importsIn(body)) take(from, names);
  for (const [, from = ''] of text.matchAll(/\bimport\(\s*'([^']+)'/g)) take(from, ['*']);
  return { lines: text.split('\n').length - 1, exports: exportsIn(body), imports };
}

function* importsIn(body: Body): Iterable<{ from: string; names: string[] }> {
  for (const statement of body) {
    if (statement.type === 'ImportDeclaration') {
      const names = statement.specifiers.map((one) =>
        one.type === 'ImportSpecifier' && one.imported.type === 'Identifier'
          ? one.imported.name
          : '*',
      );
      yield { from: statement.source.value, names };
    } else if (statement.type === 'ExportNamedDeclaration' && statement.source) {
      const names = statement.specifiers.map((one) =>
        one.local.type === 'Identifier' ? one.local.name : '*',
      );
      yield { from: statement.source.value, names };
    } else if (statement.type === 'ExportAllDeclaration')
      yield { from: statement.source.value, names: ['*'] };
  }
}

/** Names that are exported where they are declared. Re-exports count in their source file. */
function exportsIn(body: Body): string[] {
  return body.flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration' || !statement.declaration) return [];
    const { declaration } = statement;
    const declared =
      declaration.type === 'VariableDeclaration' ? declaration.declarations : [declaration];
    return declared.flatMap(({ id }) => (id?.type === 'Identifier' ? [id.name] : []));
  });
}

/** Exports of `files` that none of `users` imports. */
function unused(files: Map<string, File>, users: Iterable<File>): Set<string> {
  const names = new Set(
    [...files].flatMap(([path, file]) => file.exports.map((name) => `${path} ${name}`)),
  );
  for (const { imports } of users)
    for (const [target, taken] of imports)
      for (const name of files.get(target)?.exports ?? [])
        if (taken.has(name) || taken.has('*')) names.delete(`${target} ${name}`);
  return names;
}

/** What one part of the program has. */
type Counted = {
  name: string;
  /** How many lines each file has. */
  lines: number[];
  exports: number;
  /** Exports that only tests import, and that nobody does: `<path> <name>`. */
  forTests: string[];
  forNobody: string[];
};

/** Counts the files of the server and of the console's page. */
export function countFiles(): Counted[] {
  const page = readFiles('src/console/web/**/*.{ts,tsx}');
  const server = readFiles('{src,connector}/**/*.ts');
  for (const path of page.keys()) server.delete(path);
  // Migrations are loaded by path, and their exports are a fixed form.
  for (const path of server.keys()) if (path.startsWith('src/db/migrations/')) server.delete(path);
  const tests = readFiles('test/**/*.{ts,tsx}');
  const tools = readFiles('{bench,config,lint,docs}/**/*.ts', '*.config.ts');
  const product = [...server.values(), ...page.values(), ...tools.values()];
  return Object.entries({ server, page }).map(([name, files]) => {
    const forNobody = unused(files, [...product, ...tests.values()]);
    return {
      name,
      lines: [...files.values()].map((file) => file.lines),
      exports: [...files.values()].reduce((sum, file) => sum + file.exports.length, 0),
      forTests: [...unused(files, product)].filter((one) => !forNobody.has(one)),
      forNobody: [...forNobody],
    };
  });
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const rows: [head: string, of: (part: Counted) => string | number][] = [
  ['', ({ name }) => name],
  ['files', ({ lines }) => lines.length],
  ['lines', ({ lines }) => lines.reduce((sum, one) => sum + one, 0)],
  ['median', ({ lines }) => median(lines)],
  ['under 60', ({ lines }) => lines.filter((one) => one < 60).length],
  ['over 600', ({ lines }) => lines.filter((one) => one > 600).length],
  ['over 800', ({ lines }) => lines.filter((one) => one > 800).length],
  ['exports', (part) => part.exports],
  ['of them for tests alone', ({ forTests }) => forTests.length],
  ['for nobody', ({ forNobody }) => forNobody.length],
];

const usage = `Usage: npm run count -- [options]

Counts the files, lines and exports of the server and of the console's page.

  --list  First lists the exports that only tests import, or nobody.`;

if (import.meta.main) {
  const options = readOptionsOrExit(usage, { list: { type: 'boolean' } }, (values) => values);
  const parts = countFiles();
  if (options.list)
    for (const { forTests, forNobody } of parts)
      for (const one of [...forTests, ...forNobody.map((name) => `${name} (nobody)`)])
        console.log(one);
  for (const [head, of] of rows)
    console.log([head.padEnd(24), ...parts.map((part) => String(of(part)).padStart(8))].join(''));
}
