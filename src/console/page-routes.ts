import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { DomainError } from '../errors.ts';
import { stream, type Streamed } from '../http/answer.ts';
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
  request.setHeader('Content-Security-Policy', policy);
  if (built.state === 'ready') return answerFile(built, pageName, request);
  // Browsers ask again by themselves.
  if (built.state === 'building') request.setHeader('Refresh', '1');
  return stream(html, Readable.from([waitingPage(built.state)]), 503);
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

function waitingPage(state: 'building' | 'failed'): string {
  const text =
    state === 'building'
      ? 'The console is being built: it is here in a moment.'
      : 'The console could not be built, and the log says why (console.failed). All else is served: ' +
        'see <a href="/docs">the reference</a>.';
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sensorium</title>
<p>${text}</p>
</html>
`;
}
