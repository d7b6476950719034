import { globSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

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

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

const page = readFiles('src/console/web/**/*.{ts,tsx}');
const server = readFiles('{src,connector}/**/*.ts');
for (const path of page.keys()) server.delete(path);
// Migrations are loaded by path, and their exports are a fixed form.
for (const path of server.keys()) if (path.startsWith('src/db/migrations/')) server.delete(path);
const tests = readFiles('test/**/*.{ts,tsx}');
const tools = readFiles('{bench,config,lint,docs}/**/*.ts', '*.config.ts');

const rows = [
  [
    '',
    'files',
    'lines',
    'median',
    'under 60',
    'over 600',
    'over 800',
    'exports',
    'of them for tests alone',
    'for nobody',
  ],
];
const listed: string[] = [];
for (const [name, files] of [
  ['server', server],
  ['page', page],
] as const) {
  const lines = [...files.values()].map((file) => file.lines);
  const product = [...server.values(), ...page.values(), ...tools.values()];
  const notInProduct = unused(files, product);
  const nowhere = unused(files, [...product, ...tests.values()]);
  const forTests = [...notInProduct].filter((one) => !nowhere.has(one));
  listed.push(...forTests, ...[...nowhere].map((one) => `${one} (nobody)`));
  rows.push(
    [
      name,
      files.size,
      lines.reduce((sum, one) => sum + one, 0),
      median(lines),
      lines.filter((one) => one < 60).length,
      lines.filter((one) => one > 600).length,
      lines.filter((one) => one > 800).length,
      [...files.values()].reduce((sum, file) => sum + file.exports.length, 0),
      forTests.length,
      nowhere.size,
    ].map(String),
  );
}
// `npm run count -- --list` lists the exports.
if (process.argv.includes('--list')) console.log(listed.join('\n'));
const [heads = [], ...columns] = rows;
for (const [index, head] of heads.entries())
  console.log([head.padEnd(24), ...columns.map((column) => column[index]?.padStart(8))].join(''));
