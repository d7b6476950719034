import { z } from 'zod';
import { EmailAddress } from '../../contract/values.ts';
import { describeIssue } from '../../lib/schema.ts';
import { readArguments, UsageError } from '../command-line.ts';
import { protocols } from './devices.ts';

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
/** The options of a run; `rate` in messages per second and device. */
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

export const help = `Runs simulated devices against a service and checks that it kept every measurement.

Usage: npm run simulate -- [options]

  --url URL         Where the service is (default http://127.0.0.1:8080). Devices
                    connect to the host and port in the answer to their registration.
  --devices N       How many devices, 1 to 10000 (default 100).
  --seconds S       How long they publish, up to 86400 (default 30). Ctrl-C ends it
                    early and still compares what was acknowledged. A second
                    Ctrl-C stops at once and leaves everything in place.
  --rate R          Messages per second and device, 0.01 to 100 (default 1).
                    A message carries two measurements, temperature and humidity.
  --protocol NAME   The devices' protocol: mqtt (3.1.1, the default), mqtt5, http (with
                    long polls; two connections each), or all (a third each).
  --account EMAIL   Log in to this account instead of registering a throw-away one.
                    The password is the first line of standard input; on a terminal
                    the command asks for it.
  --keep            Leave the account, the devices and the purpose in place. Without
                    this option the run removes what it created.
  --insecure        Accept any TLS certificate, of the service and of its connectors.
                    (Better: NODE_EXTRA_CA_CERTS=ca.pem names one to trust.)
  --help            This text.

The command registers the account and the devices, connects every device, and installs a
purpose (examples/cold-room.json) on all of them as a profile, which each device accepts.
Then the devices publish, with QoS 1 or one request per message. At the end the command looks
for every acknowledged measurement with GET /v2/measurements.

Exit status: 0 if all of them are stored; 1 if one is missing, changed, duplicated or was
never sent, or if the run failed; 2 if an option is wrong.
`;
