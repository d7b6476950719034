import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { escapeHtml } from '../lib/text.ts';
import { jsonText, stream, type Streamed } from './answer.ts';
import { createOpenApi, type WebhookDocs } from './openapi.ts';
import type { RequestInfo } from './request.ts';
import { defineRoute, type Route } from './route.ts';

type DocsDeps = {
  version: string;
  /** The AsyncAPI document of devices' MQTT messages. */
  getAsyncApi: () => object;
  /** What this service posts to others. */
  webhooks?: WebhookDocs;
};

/** Files of the reference page, by media type. All are served from here, because a LAN may have no internet access. */
const files: Record<string, string> = {
  'swagger-ui.css': 'text/css',
  'swagger-ui-bundle.js': 'text/javascript',
  'favicon-32x32.png': 'image/png',
};

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sensorium – HTTP reference</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="icon" href="/docs/favicon-32x32.png">
<p style="font-family:sans-serif;margin:1em">Devices use MQTT: see the <a href="/docs/mqtt">MQTT reference</a>.</p>
<div id="reference"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</html>
`;

const start = `SwaggerUIBundle({
  url: '/v2/openapi.json',
  dom_id: '#reference',
  deepLinking: true,
  validatorUrl: null,
});
`;

/** The directory of these files. It is resolved, not imported: an import would run the whole page here. */
const pagesDir = () =>
  dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The reference: `routes` as OpenAPI and as a page, MQTT as AsyncAPI and as a page. */
export function docsRoutes(routes: Route[], { version, getAsyncApi, webhooks }: DocsDeps): Route[] {
  const define = (
    path: string,
    summary: string,
    answer: (request: RequestInfo, params: { file: string }) => unknown,
  ) =>
    defineRoute({
      method: 'get',
      path,
      summary,
      tag: 'Reference',
      auth: 'none',
      errors: [],
      hidden: true,
      params: z.object({ file: z.enum(Object.keys(files)).default('') }),
      response: z.unknown(),
      handler: async ({ request, params }) => answer(request, params),
    });
  // Created in advance: it takes longer than a request may.
  const openApi = JSON.stringify(createOpenApi(routes, version, webhooks));
  const asyncApi = getAsyncApi();
  const asyncApiText = JSON.stringify(asyncApi);
  const mqttPage = asyncApiPage(asyncApi);
  return [
    define('/v2/openapi.json', 'OpenAPI', () => jsonText(openApi)),
    define('/docs', 'HTTP reference', (request) => html(request, page)),
    define('/docs/start.js', 'HTTP reference', () => text('text/javascript', start)),
    define('/docs/mqtt', 'MQTT reference', (request) => html(request, mqttPage)),
    define('/docs/mqtt.json', 'AsyncAPI', () => jsonText(asyncApiText)),
    define('/docs/{file}', 'HTTP reference', (request, { file }) => {
      request.setHeader('Cache-Control', 'public, max-age=3600');
      return stream(files[file] ?? '', createReadStream(join(pagesDir(), file)));
    }),
  ];
}

/** The page may load what this service serves. Swagger UI needs inline styles. */
function html(request: RequestInfo, content: string): Streamed {
  request.setHeader(
    'Content-Security-Policy',
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; " +
      "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
  );
  return text('text/html; charset=utf-8', content);
}

function text(contentType: string, content: string): Streamed {
  return stream(contentType, Readable.from([content]));
}

/** Renders an AsyncAPI document as a plain page: its description, and each of its parts as JSON. */
function asyncApiPage(document: object): string {
  const parts = asObject(document);
  const info = asObject(parts['info']);
  const channels = Object.entries(asObject(parts['channels']));
  const schemas = Object.entries(asObject(asObject(parts['components'])['schemas']));
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sensorium – MQTT reference</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
pre { background: #f4f4f4; padding: 1em; overflow: auto; font-size: 13px; }
h2 { border-bottom: 1px solid #ccc; margin-top: 2em; } code { background: #f4f4f4; }
.text { white-space: pre-wrap; }
</style>
<h1>${escape(info['title'] ?? 'MQTT')}</h1>
<p>Also available as an <a href="/docs/mqtt.json">AsyncAPI document</a>. See also the <a href="/docs">HTTP reference</a>.</p>
<div class="text">${escape(info['description'] ?? '')}</div>
${channels.map(([name, channel]) => section(name, asObject(channel))).join('')}
${schemas.length > 0 ? '<h2>Schemas</h2>' : ''}
${schemas.map(([name, schema]) => `<h3 id="${escape(name)}">${escape(name)}</h3>${code(schema)}`).join('')}
</html>
`;
}

function section(name: string, channel: Record<string, unknown>): string {
  const { address, description, summary, ...rest } = channel;
  return `<h2>${escape(name)}</h2>
<p><code>${escape(address ?? '')}</code></p>
<div class="text">${escape(summary ?? '')}${escape(description ?? '')}</div>
${code(rest)}`;
}

function code(value: unknown): string {
  return `<pre>${escape(JSON.stringify(value, null, 2))}</pre>`;
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function escape(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** The text of a page. With `button` it has a form; with `password` the form asks for a new password. */
export type PageText = {
  title: string;
  text: string;
  button?: string;
  password?: string;
  link?: { to: string; text: string };
};

/** German if the browser prefers it, otherwise English. */
export function readerLanguage(request: RequestInfo): 'en' | 'de' {
  return /^\s*de\b/i.test(request.header('accept-language')) ? 'de' : 'en';
}

/** Answers with a page without scripts whose Content-Security-Policy allows only its own style and form. */
export function htmlPage(request: RequestInfo, text: PageText, status = 200): Streamed {
  request.setHeader(
    'Content-Security-Policy',
    `default-src 'none'; style-src ${styleSource}; form-action 'self'; frame-ancestors 'none'; ` +
      "base-uri 'none'",
  );
  const page = pageOf(text, readerLanguage(request));
  return stream('text/html; charset=utf-8', Readable.from([page]), status);
}

/** A page of the service, without scripts. Its form posts to the page's own address. */
function pageOf({ title, text, button, password, link }: PageText, language: string): string {
  const field =
    password === undefined
      ? ''
      : `<label>${escapeHtml(password)}<input name="password" type="password" ` +
        'autocomplete="new-password" minlength="8" maxlength="128" required></label>';
  const form =
    button === undefined
      ? ''
      : `<form method="post">${field}<button type="submit">${escapeHtml(button)}</button></form>\n`;
  const wayOn = link
    ? `<a class="button" href="${escapeHtml(link.to)}">${escapeHtml(link.text)}</a>\n`
    : '';
  return `<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sensorium – ${escapeHtml(title)}</title>
<style>${pageStyle}</style>
<main>
<p class="brand"><span class="mark"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M3 12h4l3-8 4.5 16 3-8H21"/></svg></span>Sensorium</p>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
${form}${wayOn}</main>
</html>
`;
}

/** The style of pages without scripts, with the console's design tokens. All text has a contrast of at least 4.5:1. */
const pageStyle = `
:root {
  color-scheme: light dark;
  --bg: light-dark(#f7f8fa, #101317);
  --panel: light-dark(#fff, #181c21);
  --ink: light-dark(#16191d, #e8eaed);
  --border: light-dark(#767f8a, #7f8893);
  --line: light-dark(#dfe3e8, #2c323a);
  --accent: light-dark(#1558d6, #8ab4f8);
  --on-accent: light-dark(#fff, #101317);
}
* { box-sizing: border-box; }
body {
  display: grid; align-content: center; justify-items: center; min-height: 100vh; margin: 0; padding: 24px 12px;
  background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
main {
  width: min(100%, 420px); padding: 32px; border: 1px solid var(--line); border-radius: 12px;
  background: var(--panel);
}
.brand { display: flex; align-items: center; gap: 8px; margin: 0 0 24px; font-size: 17px; font-weight: 650; }
.mark { display: grid; place-items: center; width: 28px; height: 28px; border-radius: 8px; background: var(--accent); }
svg { width: 18px; height: 18px; fill: none; stroke: var(--on-accent); stroke-width: 2.2; }
h1 { margin: 0; font-size: 24px; font-weight: 650; line-height: 1.25; }
p { margin: 8px 0 0; }
form { display: grid; gap: 16px; margin-top: 24px; }
label { display: grid; gap: 4px; font-size: 13px; font-weight: 600; }
input, button, .button { width: 100%; min-height: 44px; border: 1px solid var(--border); border-radius: 8px; font: inherit; }
input { padding: 0 12px; background: var(--panel); color: inherit; font-weight: 400; font-size: 16px; }
button, .button {
  display: grid; place-items: center; padding: 0 16px; border-color: var(--accent); background: var(--accent);
  color: var(--on-accent); font-weight: 600; text-decoration: none; cursor: pointer;
}
.button { margin-top: 24px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
@media (max-width: 699px) { body { align-content: start; } main { padding: 24px 16px; } }
@media (forced-colors: active) { .mark { border: 1px solid CanvasText; } svg { stroke: CanvasText; } }
`;

/** The source expression for that style in a Content-Security-Policy. */
const styleSource = `'sha256-${createHash('sha256').update(pageStyle).digest('base64')}'`;
