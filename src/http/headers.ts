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
