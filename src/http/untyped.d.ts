// This package has no types of its own. These are the parts that are used.

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
