import { DeliveryError, reasonOf, verdictOf } from './driver.ts';

/** So much of an answer is read; the rest is not waited for. */
const maxAnswerBytes = 16_384;
/** So much of it goes into the log. */
const maxExcerpt = 300;

/** Posts a body and resolves when it was accepted (2xx); rejects with a `DeliveryError`. */
export async function post(
  url: string,
  request: { headers: Record<string, string>; body: string; timeoutMs: number },
): Promise<void> {
  const { headers, body, timeoutMs } = request;
  const signal = AbortSignal.timeout(timeoutMs);
  let response: Response;
  try {
    // A redirect would carry credentials to somebody else.
    response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' });
  } catch (cause) {
    throw new DeliveryError('again', 'no-answer', `No answer: ${causeOf(cause)}`, { cause });
  }
  const { status } = response;
  // The status decides: a provider whose answer never ends has taken the message all the same.
  const answer = await readSome(response);
  if (status >= 200 && status < 300) return;
  const verdict = verdictOf(status) === 'again' ? 'again' : 'never';
  // What is gone is the address of the provider, not a telephone.
  const reason = status === 410 ? 'provider-refused' : reasonOf(status);
  throw new DeliveryError(verdict, reason, `Answered ${status}: ${answer.slice(0, maxExcerpt)}`);
}

/** The beginning of an answer; what is there of it when it breaks off or takes too long. */
async function readSome({ body }: Response): Promise<string> {
  if (!body) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    // Leaving the loop cancels the rest.
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      chunks.push(chunk.subarray(0, maxAnswerBytes - bytes));
      bytes += chunk.length;
      if (bytes >= maxAnswerBytes) break;
    }
  } catch {
    // Too slow, or cut off.
  }
  return Buffer.concat(chunks).toString();
}

/** fetch says "fetch failed" and keeps the reason in its cause. */
function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
