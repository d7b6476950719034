import type { Config } from '../config/config.ts';
import type { Sql } from '../db/sql.ts';
import { deriveSecretCheck } from '../config/keys.ts';
import { findOwnSecret } from '../config/secret.ts';
import { endedChecks, isAllowed, isKnown, type GivenChecks } from './checks.ts';
import { countDependents, countTokensOf, listChecks, type Dependents } from './queries.ts';

/** Where a process has its secret from. */
export type SecretConfig = Pick<Config, 'secret' | 'secretPlace' | 'previousSecret' | 'dataDir'>;

/** Which secret was found, and whether the database knows it. */
export type Examined = GivenChecks & {
  /** null: neither the environment nor the data directory has one. */
  secret: string | null;
  /** The database's check values, newest first. */
  checks: string[];
  isKnown: boolean;
  isAllowed: boolean;
  /** Another one was given, and that of the data directory is the database's. */
  isOwnKnown: boolean;
  /** null where it was not counted: the secret is known. */
  dependents: Dependents | null;
  /** Devices that would be shut out, as this start ends a change of the secret and they have no new token yet. */
  left: number;
};

/** Looks at the secret and at the database; makes and changes nothing. Throws a StartError. */
export async function examineSecret(sql: Sql, config: SecretConfig): Promise<Examined> {
  const secret = config.secret ?? (await findOwnSecret(config.dataDir));
  const current = secret === null ? null : deriveSecretCheck(secret);
  const previous = config.previousSecret === null ? null : deriveSecretCheck(config.previousSecret);
  const given = { current, previous };
  const checks = await listChecks(sql);
  if (isKnown(checks, given)) {
    const left = await countTokensOf(sql, endedChecks(checks, given));
    return {
      ...given,
      secret,
      checks,
      isKnown: true,
      isAllowed: left === 0,
      isOwnKnown: false,
      dependents: null,
      left,
    };
  }
  // This counts all devices, which is slow where there are many: not at every start.
  const dependents = await countDependents(sql);
  const isInUse = dependents.devices + dependents.sessions > 0;
  const allowed = isAllowed(checks, given, isInUse);
  const isOwnKnown = !allowed && checks.includes(await findOwnCheck(config));
  const found = { ...given, secret, checks, isOwnKnown, dependents };
  return { ...found, isKnown: false, isAllowed: allowed, left: 0 };
}

/** Of a secret that lies there unused; empty where none does, or it cannot be read. */
async function findOwnCheck({ secret, dataDir }: SecretConfig): Promise<string> {
  const own = secret === null ? null : await findOwnSecret(dataDir).catch(() => null);
  return own === null ? '' : deriveSecretCheck(own);
}
