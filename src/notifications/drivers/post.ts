import {
  DeliveryError,
  readRetryAfter,
  reasonOf,
  reasonOfCode,
  verdictOf,
  withoutSecrets,
} from '../channels/channel.ts';

/** So much of an answer is read; the rest is not waited for. */
const maxAnswerBytes = 16_384;
/** So much of it goes into the log. */
const maxExcerpt = 300;

export type PostRequest = {
  headers: Record<string, string>;
  body: string;
  timeoutMs: number;
  clock: () => number;
  /** What of it must not be in the log, should the answer repeat it. */
  secrets?: string[];
};

/** Posts a body and resolves when it was accepted (2xx); rejects with a `DeliveryError`. */
export async function post(url: string, request: PostRequest): Promise<void> {
  const { headers, body, timeoutMs, clock, secrets = [] } = request;
  const signal = AbortSignal.timeout(timeoutMs);
  let response: Response;
  try {
    // A redirect would carry credentials to somebody else.
    response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' });
  } catch (cause) {
    const { message, code } = causeOf(cause);
    throw new DeliveryError('again', reasonOfCode(code), `No answer: ${message}`, { cause });
  }
  const { status } = response;
  // The status decides: a provider whose answer never ends has taken the message all the same.
  const answer = await readSome(response);
  if (status >= 200 && status < 300) return;
  const verdict = verdictOf(status) === 'again' ? 'again' : 'never';
  // What is gone is the address of the provider, not a telephone.
  const reason = status === 410 ? 'provider-refused' : reasonOf(status);
  const excerpt = withoutSecrets(answer, secrets).slice(0, maxExcerpt);
  const retryAfterMs = readRetryAfter(response.headers.get('retry-after'), clock());
  throw new DeliveryError(verdict, reason, `Answered ${status}: ${excerpt}`, { retryAfterMs });
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
function causeOf(error: unknown): { message: string; code?: unknown } {
  if (!(error instanceof Error)) return { message: String(error) };
  return error.cause instanceof Error ? error.cause : error;
}
