import { afterAll, beforeAll, expect, it } from 'vitest';
import { testService, type TestService } from '../journeys/service.ts';
import { startMailServer, type MailServer } from '../support/smtp.ts';
import { runOn } from '../support/template.ts';
import { call } from './app.ts';

const tries = 1_000;

let mail: MailServer;
let service: TestService;
beforeAll(async () => {
  mail = await startMailServer();
  service = await testService(
    { SMTP_URL: mail.url },
    {
      change: (config) => ({
        ...config,
        http: { ...config.http, trustedProxies: ['127.0.0.1'] },
        quotas: { ...config.quotas, loginsPerAddress: 100_000, loginsPerAccount: 100_000 },
        notifications: { ...config.notifications, pollIntervalMs: 200 },
      }),
    },
  );
  // The measurement needs no password: nobody can log in to these accounts.
  await runOn(service.databaseUrl, (client) =>
    client.query(
      `insert into account (email, email_normal, password_hash)
       select 'there-' || n || '@example.org', 'there-' || n || '@example.org', 'none'
         from generate_series(1, $1::integer) n`,
      [tries],
    ),
  );
});
afterAll(async () => {
  await service?.close();
  await mail?.close();
});

it('neither the answer nor its time reveals whether an account exists', async () => {
  const times: Record<'there' | 'gone', number[]> = { there: [], gone: [] };
  const ask = async (kind: 'there' | 'gone', n: number) => {
    const sinceMs = performance.now();
    const body = { email: `${kind}-${n}@example.org` };
    // Each from a network of its own, because mails count by network.
    const headers = {
      'x-forwarded-for': `10.${(n + 20) >> 8}.${(n + 20) & 255}.${kind === 'there' ? 1 : 2}`,
    };
    const answer = await call(service.url, 'POST', '/v2/accounts/password/forgotten', {
      body,
      headers,
    });
    if (n > 0) times[kind].push(performance.now() - sinceMs);
    expect(answer.status).toBe(200);
    return { ...answer.body, timestamp: 0 };
  };
  for (let n = -20; n <= tries; n += 1) {
    // Alternating, so that other work on the machine affects both alike.
    const order = n % 2 === 0 ? (['there', 'gone'] as const) : (['gone', 'there'] as const);
    const [first, second] = [await ask(order[0], n), await ask(order[1], n)];
    expect(first).toEqual(second);
  }
  const { there, gone } = times;
  const z = rankDifference(there, gone);
  const ms = (values: number[]) =>
    [0.1, 0.5, 0.9, 0.99].map((share) => Number(quantile(values, share).toFixed(2)));
  console.log({ tries, there: ms(there), gone: ms(gone), z: Number(z.toFixed(2)) });
  // By chance it exceeds 4 once in 16,000 runs.
  expect(Math.abs(z)).toBeLessThan(4);
});

const quantile = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.floor(share * values.length)] ?? 0;

/** The rank-sum test of Mann and Whitney: standard deviations from what equal distributions give. */
function rankDifference(one: number[], other: number[]): number {
  const all = [
    ...one.map((ms) => ({ ms, isOne: true })),
    ...other.map((ms) => ({ ms, isOne: false })),
  ];
  const sorted = all.toSorted((a, b) => a.ms - b.ms);
  const ranks = sorted.reduce((sum, { isOne }, index) => (isOne ? sum + index + 1 : sum), 0);
  const [n, m] = [one.length, other.length];
  const mean = (n * (n + m + 1)) / 2;
  return (ranks - mean) / Math.sqrt((n * m * (n + m + 1)) / 12);
}
