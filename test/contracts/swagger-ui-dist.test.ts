import { afterAll, beforeAll, expect, test } from 'vitest';
import { docsRoutes } from '../../src/http/docs.ts';
import { startTestHttp, type TestHttp } from '../http/start.ts';

let http: TestHttp;
beforeAll(async () => {
  http = await startTestHttp({ routes: docsRoutes([], { version: '1', getAsyncApi: () => ({}) }) });
});
afterAll(() => http.close());

test('the package has each file that the page names', async () => {
  const { text } = await http.fetch('/docs');
  const named = [...text.matchAll(/(?:href|src)="(\/docs\/[^"]+\.[^"]+)"/g)].map(
    ([, path = '']) => path,
  );
  expect(named.length).toBeGreaterThan(3);
  for (const path of named) {
    const { status, text: content } = await http.fetch(path);
    expect([path, status]).toEqual([path, 200]);
    expect(content.length).toBeGreaterThan(100);
  }
});

test('without a module loader, the script creates the function that the page calls', async () => {
  const { text } = await http.fetch('/docs/swagger-ui-bundle.js');
  expect(text.slice(0, 1_000)).toMatch(/\w+\.SwaggerUIBundle=\w+\(\)/);
});
