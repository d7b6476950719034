import Router from '@koa/router';
import { expect, test } from 'vitest';

const nothing = () => undefined;
const router = new Router();
router.get('/things/profile', nothing);
router.get('/things/:thing', nothing);
router.delete('/things/:thing', nothing);

const layersOf = (path: string, method: string) =>
  router.match(path, method).path.map(({ methods, path: of }) => [String(of), methods]);

test('a match lists all routes that fit a path, in order, whatever the method', () => {
  expect(layersOf('/things/profile', 'PUT')).toEqual([
    ['/things/profile', ['HEAD', 'GET']],
    ['/things/:thing', ['HEAD', 'GET']],
    ['/things/:thing', ['DELETE']],
  ]);
  expect(layersOf('/others/x', 'GET')).toEqual([]);
});
