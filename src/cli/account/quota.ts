import { operator } from '../../audit/entry.ts';
import { insertEntry } from '../../audit/audit.ts';
import { DomainError } from '../../errors.ts';
import { listUsage } from '../../quotas/list-usage.ts';
import { removeOverride, saveOverride } from '../../quotas/quotas.ts';
import { isQuotaName, quotaNames, type QuotaName } from '../../quotas/settings.ts';
import { getByEmail } from './commands.ts';
import type { AccountCommand } from './commands.ts';
import type { Tools } from './open.ts';

/** Shows limit and usage of an account's quotas, or of one of them; changes that one. */
export const quota: AccountCommand = async (tools, email, _askPassword, [name, value]) => {
  const { accountId } = await getByEmail(tools, email);
  if (name === undefined) return show(tools, accountId, quotaNames);
  if (!isQuotaName(name)) {
    const message = `There is no quota ${name}. There are: ${quotaNames.join(', ')}.`;
    throw new DomainError('not-found', message);
  }
  if (value !== undefined) await change(tools, accountId, name, value);
  return show(tools, accountId, [name]);
};

/** Throws `invalid-input`. */
async function change(
  { db }: Tools,
  accountId: number,
  quota: QuotaName,
  text: string,
): Promise<void> {
  const value = text === 'default' ? text : parse(quota, text);
  const details = { quota, value };
  await db.transaction(async (tx) => {
    if (value === 'default') await removeOverride(tx, accountId, quota);
    else await saveOverride(tx, accountId, quota, value);
    const entry = { kind: 'quota-changed', actor: operator, ts: Date.now(), details } as const;
    await insertEntry(tx, accountId, entry);
  });
}

async function show(
  { db, quotas, retention }: Tools,
  accountId: number,
  names: QuotaName[],
): Promise<string[]> {
  const usage = (await listUsage(db, { quotas, retention }, accountId)) ?? [];
  const shown = usage.filter(({ quota }) => names.some((name) => name === quota));
  return shown.map(({ quota, limit, used }) => {
    const own =
      limit === quotas[quota as QuotaName] ? '' : `  (default ${quotas[quota as QuotaName]})`;
    return `${quota}  ${used === null ? '' : `${used} of `}${limit}${own}`;
  });
}

function parse(name: string, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
  const message = `${name}: expected a whole number above 0, or "default", got "${text}".`;
  throw new DomainError('invalid-input', message);
}
