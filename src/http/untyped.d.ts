// The packages below carry no types; this is the part of them that is used.

declare module 'koa-bodyparser' {
  import type { Middleware } from 'koa';
  type Options = {
    enableTypes: string[];
    extendTypes: Record<string, string[]>;
    textLimit: number;
    /** Null: the body stays a Buffer (raw-body's documented meaning). */
    encoding: string | null;
  };
  export default function bodyParser(options: Options): Middleware;
}

declare module '@koa/cors' {
  import type { Context, Middleware } from 'koa';
  type Options = {
    origin: (ctx: Context) => string;
    allowMethods: string[];
    allowHeaders: string[];
    exposeHeaders: string[];
    maxAge: number;
  };
  export default function cors(options: Options): Middleware;
}
