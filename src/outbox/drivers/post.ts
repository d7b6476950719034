import { DeliveryError, verdictOf } from './driver.ts';

/** Longest answer that is read; what is beyond says nothing that an outcome needs. */
const maxExcerpt = 300;

/** Posts a body and resolves when it was accepted (2xx); rejects with a `DeliveryError`. */
export async function post(
  url: string,
  request: { headers: Record<string, string>; body: string; timeoutMs: number },
): Promise<void> {
  const { headers, body, timeoutMs } = request;
  const signal = AbortSignal.timeout(timeoutMs);
  let status: number;
  let answer: string;
  try {
    // A redirect would carry credentials to somebody else.
    const response = await fetch(url, {
      method: 'POST',
      headers,
      body,
      signal,
      redirect: 'manual',
    });
    status = response.status;
    answer = await response.text();
  } catch (cause) {
    throw new DeliveryError('again', `No answer: ${reasonOf(cause)}`, { cause });
  }
  if (status >= 200 && status < 300) return;
  const verdict = verdictOf(status) === 'again' ? 'again' : 'never';
  throw new DeliveryError(verdict, `Answered ${status}: ${answer.slice(0, maxExcerpt)}`);
}

/** fetch says "fetch failed" and keeps the reason in its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
