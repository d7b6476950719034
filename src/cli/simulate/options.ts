import { z } from 'zod';
import { EmailAddress } from '../../contract/email-address.ts';
import { readArguments } from '../read-options.ts';
import { UsageError } from '../usage-error.ts';
import { protocols } from './device.ts';
import { describeIssue } from '../../lib/issue-message.ts';

const numberText = z
  .string()
  .regex(/^\d+(\.\d+)?$/, 'expected a number')
  .transform(Number);

const Options = z.object({
  url: z
    .url({ protocol: /^https?$/, error: 'expected an http:// or https:// address' })
    .transform((url) => url.replace(/\/+$/, ''))
    .default('http://127.0.0.1:8080'),
  devices: numberText.pipe(z.int().min(1).max(10_000)).default(100),
  seconds: numberText.pipe(z.number().min(0.1).max(86_400)).default(30),
  rate: numberText.pipe(z.number().min(0.01).max(100)).default(1),
  protocol: z.enum([...protocols, 'all']).default('mqtt'),
  account: EmailAddress.optional(),
  keep: z.boolean().default(false),
  insecure: z.boolean().default(false),
  help: z.boolean().default(false),
});
/** What a run is asked to do; `rate` in messages a second of each device. */
export type Options = z.infer<typeof Options>;

/** Reads the command line. Throws `UsageError`. */
export function parseOptions(args: string[]): Options {
  const result = Options.safeParse(parse(args));
  if (result.success) return result.data;
  const lines = result.error.issues.map(
    ({ path, message }) => `--${path.join('.')}: ${describeIssue(message)}`,
  );
  throw new UsageError(lines.join('\n'));
}

function parse(args: string[]): unknown {
  return readArguments({
    args,
    options: {
      url: { type: 'string' },
      devices: { type: 'string' },
      seconds: { type: 'string' },
      rate: { type: 'string' },
      protocol: { type: 'string' },
      account: { type: 'string' },
      keep: { type: 'boolean' },
      insecure: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  }).values;
}
