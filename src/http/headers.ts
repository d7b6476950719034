import type { IncomingMessage, ServerResponse } from 'node:http';
import cors from '@koa/cors';
import helmet from 'koa-helmet';
import type { Middleware } from 'koa';

/**
 * Security headers for an API that also shows two pages of its own. Nothing here sends a browser to
 * HTTPS: on a LAN this service speaks plain HTTP, and a proxy that speaks HTTPS adds that itself.
 */
export function securityHeaders(): Middleware {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
      },
    },
    strictTransportSecurity: false,
    // What only browsers of another age, or plug-ins, ever looked at.
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
    originAgentCluster: false,
    crossOriginResourcePolicy: { policy: 'same-origin' },
    referrerPolicy: { policy: 'no-referrer' },
    xFrameOptions: { action: 'deny' },
  });
}

/** Cross-origin calls from these origins (`*` for any) and no others; the console's cookie opens nothing for them. */
export function crossOrigin(origins: string[]): Middleware {
  return cors({
    // An empty origin makes the package leave all its headers out.
    origin: (ctx) => {
      const origin = ctx.get('origin');
      return origins.includes('*') ? '*' : origins.includes(origin) ? origin : '';
    },
    allowMethods: ['GET', 'POST', 'PUT', 'DELETE'],
    allowHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'Last-Event-ID'],
    exposeHeaders: [
      'Link',
      'RateLimit',
      'RateLimit-Policy',
      'Retry-After',
      'X-Request-Id',
      'X-Warnings',
    ],
    maxAge: 600,
  });
}

/**
 * The same for devices' paths, which no Koa sees. True: it was a preflight (Fetch section 4.8), which carries no login, and
 * is answered. A browser that is a device sends `POST` or `GET` with a login and a type of its own.
 */
export function crossOriginDevices(
  origins: string[],
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const isAny = origins.includes('*');
  return (request, response) => {
    const { origin } = request.headers;
    const isAllowed = origin !== undefined && (isAny || origins.includes(origin));
    if (isAllowed) {
      response.setHeader('Access-Control-Allow-Origin', isAny ? '*' : origin);
      response.setHeader('Access-Control-Expose-Headers', 'Retry-After');
      if (!isAny) response.setHeader('Vary', 'Origin');
    }
    if (request.method !== 'OPTIONS') return false;
    if (isAllowed) {
      response.setHeader('Access-Control-Allow-Methods', 'GET,POST');
      response.setHeader('Access-Control-Allow-Headers', 'Authorization,Content-Type');
      response.setHeader('Access-Control-Max-Age', '600');
    }
    response.writeHead(204, { Allow: 'GET, POST, OPTIONS' }).end();
    return true;
  };
}
