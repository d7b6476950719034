import { routes } from './routes.ts';
import { startTestHttp } from './start.ts';

export const id = '0f8fad5b-d9cb-469f-a165-70867728950e';
export const json = { 'content-type': 'application/json', authorization: 'Bearer good' };

export type Things = Awaited<ReturnType<typeof startThings>>;

/** The routes of `routes.ts`, behind proxies and for a dashboard elsewhere. */
export async function startThings() {
  const http = await startTestHttp({
    routes,
    corsOrigins: ['https://dashboard.example'],
    trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
  });
  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json) =>
    http.fetch(`/things/${id}`, { method: 'POST', body, headers });
  return { ...http, post };
}
