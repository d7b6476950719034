/** An answer as it was sent. */
export type Answer = { status: number; text: string; body: Record<string, unknown> };

/** Sends JSON, with an Idempotency-Key if one is given. */
export async function ask(
  url: string,
  { method = 'POST', path, token, key, body }: Asked,
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text) as Record<string, unknown> };
}

export type Asked = { method?: string; path: string; token: string; key?: string; body?: unknown };

/** A new account's token. */
export async function openAccount(url: string): Promise<string> {
  const body = JSON.stringify({
    email: `${crypto.randomUUID()}@example.org`,
    password: 'correct horse battery',
  });
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(`${url}/v2/accounts`, { method: 'POST', headers, body });
  return String(((await response.json()) as Record<string, unknown>)['accountAuthToken']);
}
