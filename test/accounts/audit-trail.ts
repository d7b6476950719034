import { pino } from 'pino';
import { type AuditEntry, auditRoutes } from '../../src/audit/audit.ts';
import type { Sql } from '../../src/db/sql.ts';
import { startHttp } from '../../src/http/server.ts';

export type AuditTrail = Awaited<ReturnType<typeof startAuditTrail>>;

/** Answers the audit trail of a database over HTTP. A bearer token is the account's id. */
export async function startAuditTrail(db: Sql) {
  const server = await startHttp({
    routes: auditRoutes({ db }),
    authenticate: async (token) => ({
      accountId: Number(token),
      accountUuid: '',
      sessionId: 'session',
    }),
    log: pino({ level: 'silent' }),
    clock: Date.now,
    host: '127.0.0.1',
    port: 0,
  });
  return {
    /** All entries of an account, page by page, newest first. */
    async list(accountId: number): Promise<AuditEntry[]> {
      const entries: AuditEntry[] = [];
      const first = new URL(`http://127.0.0.1:${server.port}/v2/accounts/audit?limit=1000`);
      for (let page: URL | null = first; page;) {
        const headers = { authorization: `Bearer ${accountId}` };
        const answer: Response = await fetch(page, { headers });
        if (!answer.ok) throw new Error(`${page.href}: ${answer.status} ${await answer.text()}`);
        entries.push(...((await answer.json()) as { entries: AuditEntry[] }).entries);
        const next = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
        page = next === undefined ? null : new URL(next, page);
      }
      return entries;
    },
    close: () => server.close(),
  };
}
