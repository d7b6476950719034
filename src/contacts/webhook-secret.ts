import { createHmac } from 'node:crypto';

const secretBytes = 24;

/**
 * The secrets that messages to a webhook are signed with, as Standard Webhooks writes them
 * (`whsec_` and base64); the first is the one that its account is told. Derived, so that none is stored:
 * after a change of SECRET the one of SECRET_PREVIOUS signs beside it.
 */
export function webhookSecrets(keys: readonly Buffer[], webhookId: string): string[] {
  return keys.map((key) => {
    const digest = createHmac('sha256', key).update(webhookId).digest();
    return `whsec_${digest.subarray(0, secretBytes).toString('base64')}`;
  });
}
