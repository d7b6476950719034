import { createServer } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import { announce } from './announce.ts';

// A bare Koa route that answers everybody with the bytes from stdin.
const chunks: Buffer[] = [];
for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
const body = Buffer.concat(chunks).toString('utf8').trimEnd();

const router = new Router();
router.get('/v2/devices/:uuid/configuration', (ctx) => {
  ctx.type = 'application/json';
  ctx.body = body;
});
const answer = new Koa().use(router.routes()).callback();
const server = createServer((request, response) => void answer(request, response));
server.listen(0, '127.0.0.1', () => announce(server));
