// koa-bodyparser has no types; these are the parts that are used.
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
