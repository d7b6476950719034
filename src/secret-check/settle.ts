import type { Database } from '../db/database.ts';
import { deriveSecretCheck, secretIdOf } from '../config/keys.ts';
import { readOrMakeSecret } from '../config/secret.ts';
import type { Log } from '../log/logger.ts';
import { StartError } from '../start-error.ts';
import { nextChecks } from './checks.ts';
import { examineSecret, type Examined, type SecretConfig } from './examine.ts';
import { lockChecks, noteUnknown, replaceChecks } from './queries.ts';
import { describeRefusal } from './secret-check.ts';

export type SecretLog = Pick<Log, 'info' | 'warn'>;

/**
 * The secret that this process uses: the one found, when the database knows it or nothing in the
 * database depends on another one; a new one for the data directory where none exists and none is needed.
 * Its check value is stored before anything is derived from it. Throws a StartError that says what to
 * restore. Processes that start at the same time run this one after another.
 */
export async function settleSecret(
  db: Database,
  config: SecretConfig,
  log: SecretLog,
): Promise<string> {
  const { secret, examined, next } = await db.transaction(async (tx) => {
    await lockChecks(tx);
    const examined = await examineSecret(tx, config);
    if (!examined.isAllowed) throw new StartError(describeRefusal(examined, config));
    const secret = examined.secret ?? (await readOrMakeSecret(config.dataDir));
    const next = nextChecks(examined.checks, deriveSecretCheck(secret), examined.previous);
    if (next.join() !== examined.checks.join()) await replaceChecks(tx, next);
    // A database of 0.1.0: its devices have tokens of the secret that it is noted with, the older one of two.
    const [oldest] = next.slice(-1);
    if (examined.checks.length === 0 && oldest) await noteUnknown(tx, secretIdOf(oldest));
    return { secret, examined, next };
  });
  tell(log, config.secretPlace, examined, next);
  return secret;
}

function tell(log: SecretLog, place: string, examined: Examined, next: string[]): void {
  const { checks, dependents } = examined;
  if (!examined.isKnown && checks.length > 0)
    log.warn(
      { event: 'secret.replaced' },
      `${place}: another secret than before is taken, as there is no device and no session. Processes that run with the one before must be restarted.`,
    );
  else if (dependents !== null && dependents.devices + dependents.sessions > 0)
    log.info(
      { event: 'secret.noted' },
      `${place}: noted as this database's secret; from now on another one is refused.`,
    );
  else if (checks.length > 0 && next[0] !== checks[0])
    log.info(
      { event: 'secret.noted' },
      `${place}: noted as the newer secret; the one before is still accepted.`,
    );
  else if (next.length < checks.length)
    log.info(
      { event: 'secret.noted' },
      `${place}: the newest secret came without SECRET_PREVIOUS; the one before is ended.`,
    );
}
