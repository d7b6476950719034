// koa-bodyparser carries no types; this is the part of it that is used.
declare module 'koa-bodyparser' {
  import type { Middleware } from 'koa';
  type Options = {
    enableTypes: string[];
    extendTypes: Record<string, string[]>;
    textLimit: number;
    encoding: string;
  };
  export default function bodyParser(options: Options): Middleware;
}
