import { createReadStream } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { asyncApiPage } from './asyncapi-page.ts';
import { createOpenApi } from './openapi.ts';
import type { WebhookDocs } from './openapi-webhooks.ts';
import { type Streamed, jsonText, stream } from './answer.ts';
import type { RequestInfo } from './request.ts';
import { defineRoute, type Route } from './route.ts';

export type DocsDeps = {
  version: string;
  /** The AsyncAPI document of what devices say over MQTT. */
  getAsyncApi: () => object;
  /** What this service posts to others. */
  webhooks?: WebhookDocs;
};

/** Files of the reference page, by their type. All served from here: a LAN may have no way out. */
export const files: Record<string, string> = {
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
<p style="font-family:sans-serif;margin:1em">Devices talk MQTT: <a href="/docs/mqtt">its reference</a>.</p>
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

/** Where they are. Found, not imported: that would run the whole page here. */
export const pagesDir = () =>
  dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The reference: of `routes` as OpenAPI and as a page, of MQTT as AsyncAPI and as a page. */
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
  // Made before anybody asks: it takes longer than a request may.
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

/** A page may load what this service serves, and Swagger UI styles its elements in place. */
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
