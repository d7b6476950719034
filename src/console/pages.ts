import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { stream, type Streamed } from '../http/answer.ts';
import { htmlPage, type PageText, readerLanguage } from '../http/html-page.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { pageName } from './manifest.ts';
import type { Built } from './start-build.ts';

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const html = 'text/html; charset=utf-8';

/** The console's page, whatever it shows, and what it loads. `/` leads there. */
export function pageRoutes(findBuilt: () => Built): Route[] {
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
      handler: async ({ request }) => answerPage(findBuilt(), request),
    });
  return [
    defineRoute({
      ...common,
      path: '/',
      handler: async ({ request }) => {
        request.setHeader('Location', '/console/');
        return stream(html, Readable.from([]), 302);
      },
    }),
    // The page reads its own path: each is the same document.
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

function answerPage(built: Built, request: RequestInfo): Streamed {
  if (built.state !== 'ready') return answerNotReady(built.state, request);
  request.setHeader('Content-Security-Policy', policy);
  return answerFile(built, pageName, request);
}

function answerAsset(built: Built, file: string, request: RequestInfo): Streamed {
  if (built.state !== 'ready' || file === pageName || !built.files.has(file))
    throw new DomainError('not-found', 'There is no such file.');
  // Its name has a hash of its content.
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
    building: { title: 'One moment', text: 'The console is being built: it is here in a second.' },
    failed: {
      title: 'No console',
      text: 'It could not be built, and the log says why (console.failed). All else is served.',
      link: { to: '/docs', text: 'The reference' },
    },
  },
  de: {
    building: {
      title: 'Einen Moment',
      text: 'Die Oberfläche wird gebaut: in einer Sekunde ist sie da.',
    },
    failed: {
      title: 'Keine Oberfläche',
      text: 'Sie ließ sich nicht bauen; im Protokoll steht, warum (console.failed). Alles andere läuft.',
      link: { to: '/docs', text: 'Die Referenz' },
    },
  },
} satisfies Record<'en' | 'de', Record<'building' | 'failed', PageText>>;

function answerNotReady(state: 'building' | 'failed', request: RequestInfo): Streamed {
  // Browsers ask again by themselves.
  if (state === 'building') request.setHeader('Refresh', '1');
  return htmlPage(request, notReady[readerLanguage(request)][state], 503);
}
