import { setTimeout as delay } from 'node:timers/promises';

export type RestRequest = { method: string; path: string; body?: unknown };

type RestFigures = {
  answered: number;
  /** Every answer other than a 200. */
  failures: string[];
  longestMs: number;
};

export type RestLoad = { stop(): Promise<RestFigures> };

const clients = 4;
const pauseMs = 20;

/** Clients that repeat these requests in turn, over connections that they keep, until they are stopped. */
export function startRestLoad(url: string, token: string, requests: RestRequest[]): RestLoad {
  const figures: RestFigures = { answered: 0, failures: [], longestMs: 0 };
  let isRunning = true;
  const ask = async ({ method, path, body }: RestRequest): Promise<void> => {
    const sinceMs = performance.now();
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    try {
      const response = await fetch(url + path, { method, headers, ...content });
      const answer = await response.text();
      if (response.status === 200) figures.answered += 1;
      else figures.failures.push(`${method} ${path}: ${response.status} ${answer}`);
    } catch (error) {
      const cause = error instanceof Error && error.cause ? error.cause : error;
      figures.failures.push(`${method} ${path}: ${String(cause)}`);
    }
    figures.longestMs = Math.max(figures.longestMs, Math.round(performance.now() - sinceMs));
  };
  const work = async (): Promise<void> => {
    while (isRunning) {
      for (const request of requests) {
        await ask(request);
        await delay(pauseMs);
      }
    }
  };
  const working = Array.from({ length: clients }, work);
  return {
    async stop() {
      isRunning = false;
      await Promise.all(working);
      return figures;
    },
  };
}
