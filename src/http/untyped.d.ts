// The packages below carry no types; this is the part of them that is used.

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
