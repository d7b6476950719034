import type { Database } from '../db/database.ts';
import { deriveSecretCheck } from '../config/keys.ts';
import { findOwnSecret, readOrMakeSecret } from '../config/secret.ts';
import type { SecretConfig } from './examine.ts';
import { deleteAllSessions, givenUp, lockChecks, noteUnknown, replaceChecks } from './queries.ts';

/**
 * Ends a change of the secret although devices have no new token: the secret that is found is the only one from now
 * on. Sessions of it go on; those of the one before can be read by nobody any more.
 */
export async function endChange(db: Database, current: string): Promise<void> {
  await db.transaction(async (tx) => {
    await lockChecks(tx);
    await replaceChecks(tx, [current]);
    await noteUnknown(tx, givenUp);
  });
}

/**
 * Takes the secret that is found, or makes one for the data directory, as the only one, whatever the
 * database knew before; ends the sessions that are in the database. Says whether it was made.
 */
export async function acceptSecret(db: Database, config: SecretConfig): Promise<{ made: boolean }> {
  return db.transaction(async (tx) => {
    await lockChecks(tx);
    const found = config.secret ?? (await findOwnSecret(config.dataDir));
    const secret = found ?? (await readOrMakeSecret(config.dataDir));
    await replaceChecks(tx, [deriveSecretCheck(secret)]);
    await noteUnknown(tx, givenUp);
    await deleteAllSessions(tx);
    return { made: found === null };
  });
}
