import { createServer } from 'node:http';
import Router from '@koa/router';
import Koa from 'koa';
import bodyParser from 'koa-bodyparser';
import { announce } from './announce.ts';

// A bare Koa route that reads a JSON body and answers like the HTTP uplink. It stores nothing.
const router = new Router();
router.post('/devices/:uuid/up/:topic', (ctx) => {
  const { body } = ctx.request as { body?: unknown };
  const items = Array.isArray(body) ? body.length : 1;
  ctx.body = { stored: items, repeated: 0, rejected: [], timestamp: Date.now() };
});
const onlyJson = { enableTypes: ['json'], extendTypes: {}, textLimit: 0, encoding: 'utf-8' };
const answer = new Koa().use(bodyParser(onlyJson)).use(router.routes()).callback();
const server = createServer((request, response) => void answer(request, response));
server.listen(0, '127.0.0.1', () => announce(server));
