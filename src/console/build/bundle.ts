import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { rolldown, type Plugin } from 'rolldown';
import { pageName } from '../manifest.ts';
import { webDir } from './sources.ts';

export type BuiltFile = { name: string; type: string; content: string };

/** The layers of the style, with their files: a later layer overrides an earlier one, however a rule is written. */
const layers = {
  base: ['tokens', 'base'],
  parts: ['shell', 'parts'],
  pages: ['fleet', 'device', 'chart', 'alarms', 'account', 'record', 'rules', 'sign-in'],
  last: ['forced', 'print'],
};

/** Bundles the page: its script in chunks, its style in one file, and the document that loads them. */
export async function bundle(plugins: Plugin[] = []): Promise<BuiltFile[]> {
  const [chunks, style] = await Promise.all([bundleScript(plugins), joinStyles()]);
  const [entry, explorer] = ['main', 'explore'].map((name) =>
    chunks.find((chunk) => chunk.entry === name),
  );
  if (!entry || !explorer) throw new Error('The bundler produced no entry files.');
  const page = await readFile(join(webDir, pageName), 'utf8');
  const content = page
    .replace('/main.tsx', `/console/assets/${entry.name}`)
    .replace('/explore.ts', `/console/assets/${explorer.name}`)
    .replace('/style.css', `/console/assets/${style.name}`)
    .replace(
      '<!-- preload -->',
      entry.imports
        .map((name) => `<link rel="modulepreload" href="/console/assets/${name}">`)
        .join('\n    '),
    );
  const scripts = chunks.map(({ name, content }) => ({ name, type: 'text/javascript', content }));
  return [...scripts, style, { name: pageName, type: 'text/html; charset=utf-8', content }];
}

async function bundleScript(plugins: Plugin[]) {
  const build = await rolldown({
    input: {
      main: join(webDir, 'main.tsx'),
      explore: join(webDir, 'engine/explore-worker.ts'),
    },
    platform: 'browser',
    tsconfig: join(webDir, 'tsconfig.json'),
    logLevel: 'warn',
    plugins,
  });
  try {
    const { output } = await build.generate({
      format: 'esm',
      minify: true,
      entryFileNames: '[name]-[hash].js',
      chunkFileNames: '[name]-[hash].js',
    });
    return output.flatMap((chunk) =>
      chunk.type === 'chunk'
        ? [
            {
              name: chunk.fileName,
              content: chunk.code,
              entry: chunk.isEntry ? chunk.name : null,
              imports: chunk.imports,
            },
          ]
        : [],
    );
  } finally {
    await build.close();
  }
}

async function joinStyles(): Promise<BuiltFile> {
  const chart = createRequire(import.meta.url).resolve('uplot/dist/uPlot.min.css');
  const inLayers = Object.entries(layers).map(async ([layer, names]) => {
    const paths = names.map((name) => join(webDir, 'style', `${name}.css`));
    const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
    return `@layer ${layer} {\n${texts.join('\n')}\n}`;
  });
  const texts = [`@layer library {\n${await readFile(chart, 'utf8')}\n}`];
  texts.push(...(await Promise.all(inLayers)));
  const content = texts
    .join('\n')
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\n\s*/g, '\n');
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, 8);
  return { name: `style-${hash}.css`, type: 'text/css', content };
}
