import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { stream, type Streamed } from '../http/answer.ts';
import { htmlPage, type PageText, readerLanguage } from '../http/docs.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Log } from '../log/logger.ts';
import { manifestName, PageManifest, pageName } from './manifest.ts';

/** `images`: another origin that images may come from; empty: none. */
const policyOf = (images: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src 'self' data: ${images}`.trim(),
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // Of the script of the thread that tries rules; nothing else becomes script or HTML.
    'trusted-types explore',
  ].join('; ');

const html = 'text/html; charset=utf-8';

/**
 * The console's page, for every path, and the files that it loads. `/` and `/console` redirect there. `tilesUrl`: where
 * its maps may load images from; null: nowhere.
 */
export function pageRoutes(findBuilt: () => Built, tilesUrl: string | null): Route[] {
  const policy = policyOf(tilesUrl === null ? '' : new URL(tilesUrl).origin);
  const common = {
    method: 'get',
    tag: 'Console',
    summary: 'The console',
    auth: 'none',
    errors: [],
    hidden: true,
    response: z.unknown(),
  } as const;
  const page = (path: string) =>
    defineRoute({
      ...common,
      path,
      handler: async ({ request }) => answerPage(findBuilt(), policy, request),
    });
  const toConsole = (path: string) =>
    defineRoute({
      ...common,
      path,
      handler: async ({ request }) => {
        request.setHeader('Location', '/console/');
        return stream(html, Readable.from([]), 302);
      },
    });
  return [
    toConsole('/'),
    toConsole('/console'),
    // All paths return the same document; its script reads the path.
    page('/console/'),
    page('/console/{page}'),
    page('/console/{page}/{id}'),
    defineRoute({
      ...common,
      path: '/console/assets/{file}',
      params: z.object({ file: z.string() }),
      handler: async ({ params: { file }, request }) => answerAsset(findBuilt(), file, request),
    }),
  ];
}

function answerPage(built: Built, policy: string, request: RequestInfo): Streamed {
  if (built.state !== 'ready') return answerNotReady(built.state, request);
  request.setHeader('Content-Security-Policy', policy);
  return answerFile(built, pageName, request);
}

function answerAsset(built: Built, file: string, request: RequestInfo): Streamed {
  if (built.state !== 'ready' || file === pageName || !built.files.has(file))
    throw new DomainError('not-found', 'There is no such file.');
  // Its name contains a hash of its content.
  request.setHeader('Cache-Control', 'public, max-age=31536000, immutable');
  return answerFile(built, file, request);
}

function answerFile(
  { dir, files }: Extract<Built, { state: 'ready' }>,
  name: string,
  request: RequestInfo,
): Streamed {
  const encodings = request.header('accept-encoding');
  const encoding = ['br', 'gzip'].find((each) => encodings.includes(each));
  request.setHeader('Vary', 'Accept-Encoding');
  if (encoding) request.setHeader('Content-Encoding', encoding);
  const ending = { br: '.br', gzip: '.gz' }[encoding ?? ''] ?? '';
  return stream(files.get(name) ?? '', createReadStream(join(dir, name + ending)));
}

const notReady = {
  en: {
    building: {
      title: 'One moment',
      text: 'The console is being built and will be ready in a moment.',
    },
    failed: {
      title: 'Console unavailable',
      text: 'The console could not be built. The log says why (console.failed). Everything else is running.',
      link: { to: '/docs', text: 'API reference' },
    },
  },
  de: {
    building: {
      title: 'Einen Moment',
      text: 'Die Konsole wird gebaut und ist gleich bereit.',
    },
    failed: {
      title: 'Konsole nicht verfügbar',
      text:
        'Die Konsole konnte nicht gebaut werden. Der Grund steht im Log (console.failed). Alles ' +
        'andere läuft.',
      link: { to: '/docs', text: 'API-Referenz' },
    },
  },
} satisfies Record<'en' | 'de', Record<'building' | 'failed', PageText>>;

function answerNotReady(state: 'building' | 'failed', request: RequestInfo): Streamed {
  // Browsers reload the page by themselves.
  if (state === 'building') request.setHeader('Refresh', '1');
  return htmlPage(request, notReady[readerLanguage(request)][state], 503);
}

/** The page: being built, built in `dir`, or failed; then the log says why. */
type Built =
  | { state: 'building' | 'failed' }
  | { state: 'ready'; dir: string; files: ReadonlyMap<string, string> };

type ConsoleBuild = {
  find(): Built;
  /** From now on a failure is logged. Before that, errors that keep the service itself from starting come first. */
  tell(): void;
  /** Stops a build that still runs, and removes what no later start will use. */
  close(): Promise<void>;
};

const program = fileURLToPath(new URL('build/main.ts', import.meta.url));
const timeoutMs = 120_000;

/**
 * Builds the page in a process of its own; nobody waits for it. `cacheDir`: where later starts find the result; null: a
 * temporary folder that is not reused, because in a shared one a local user could plant a script.
 */
export function startConsoleBuild({
  cacheDir,
  log,
}: {
  cacheDir: string | null;
  log: Pick<Log, 'error'>;
}): ConsoleBuild {
  let built: Built = { state: 'building' };
  let tempDir: string | null = null;
  let isTold = false;
  let failure: { err: unknown } | null = null;
  const write = () => {
    if (isTold && failure && !stopping.signal.aborted)
      log.error(
        { event: 'console.failed', err: failure.err },
        'The console could not be built; everything else is running.',
      );
  };
  const stopping = new AbortController();
  const build = async () => {
    tempDir = cacheDir === null ? await mkdtemp(join(tmpdir(), 'sensorium-console-')) : null;
    const dir = await runProgram(cacheDir ?? tempDir ?? '', stopping.signal);
    const text = await readFile(join(dir, manifestName), 'utf8');
    const { files } = PageManifest.parse(JSON.parse(text));
    built = { state: 'ready', dir, files: new Map(files.map(({ name, type }) => [name, type])) };
  };
  const done = build().catch((err: unknown) => {
    built = { state: 'failed' };
    failure = { err };
    write();
  });
  return {
    find: () => built,
    tell() {
      if (isTold) return;
      isTold = true;
      write();
    },
    async close() {
      stopping.abort();
      await done;
      if (tempDir !== null) await rm(tempDir, { recursive: true, force: true });
    },
  };
}

function runProgram(dir: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const args = [program, '--dir', dir];
    execFile(process.execPath, args, { signal, timeout: timeoutMs }, (error, stdout, stderr) =>
      error ? reject(new Error(stderr.trim() || error.message, { cause: error })) : resolve(stdout),
    );
  });
}
