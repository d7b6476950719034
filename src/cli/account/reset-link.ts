import { linkLifetimeMs, makeResetToken } from '../../accounts/links.ts';
import { createPublicUrl } from '../../assembly/public-url.ts';
import { operator } from '../../audit/entry.ts';
import { insertEntry } from '../../audit/audit.ts';
import { deriveKeys } from '../../config/keys.ts';
import { DomainError } from '../../errors.ts';
import { examineSecret } from '../../secret-check/examine.ts';
import { getByEmail } from './commands.ts';
import type { AccountCommand } from './commands.ts';

/** A link by which the owner sets a new password: for where no mail is sent, or none arrives. */
export const resetLink: AccountCommand = async (tools, email) => {
  const { config, db } = tools;
  const account = await getByEmail(tools, email);
  if (account.isDisabled) throw new DomainError('account-disabled', `${email} is disabled.`);
  const { secret, isKnown } = await examineSecret(db, config);
  if (secret === null || !isKnown)
    throw new DomainError(
      'invalid-input',
      `${config.secretPlace}: this is not the secret of the service, which would not accept the link.`,
    );
  const { mailLinks } = deriveKeys(secret, config.previousSecret ?? undefined);
  const nowMs = Date.now();
  const entry = { kind: 'reset-link-made', actor: operator, ts: nowMs } as const;
  await insertEntry(db, account.accountId, entry);
  const token = makeResetToken(mailLinks, account, nowMs);
  return [
    `${createPublicUrl(config).get()}/reset?token=${token}`,
    `It is good for ${linkLifetimeMs / 60_000} minutes, and once. Whoever has it can take ${email} over.`,
  ];
};
