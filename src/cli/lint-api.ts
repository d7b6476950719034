import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { asyncApiDocument } from '../../connector/device/asyncapi.ts';
import { createOpenApi } from '../http/openapi.ts';
import { webhookDocs } from '../notifications/webhook-docs.ts';
import { version } from '../version.ts';
import { listDocumentedRoutes } from './documented-routes.ts';
import { readOptionsOrExit } from './command-line.ts';

readOptionsOrExit(
  `Usage: npm run check:api

Lints the two documents that the service serves, OpenAPI and AsyncAPI.`,
  {},
  () => null,
);

const rules = `
extends: [recommended]
rules:
  # No request to status or registration can be wrong.
  operation-4xx-response: off
  # The names of the tags are enough.
  tag-description: off
  # Some paths have a fixed name where others have an identifier: /devices/profile.
  no-ambiguous-paths: off
  # An extension refers to the messages of streams; a test finds those that nothing refers to.
  no-unused-components: off
`;

const directory = await mkdtemp(join(tmpdir(), 'sensorium-api-'));
try {
  const documents = {
    'openapi.json': createOpenApi(listDocumentedRoutes(), version, webhookDocs),
    'asyncapi.json': asyncApiDocument(),
  };
  await writeFile(join(directory, 'redocly.yaml'), rules);
  for (const [name, document] of Object.entries(documents)) {
    await writeFile(join(directory, name), JSON.stringify(document, null, 2));
  }
  process.exitCode = await lint(Object.keys(documents));
} finally {
  await rm(directory, { recursive: true });
}

async function lint(files: string[]): Promise<number> {
  const manifest = createRequire(import.meta.url).resolve('@redocly/cli/package.json');
  const program = join(dirname(manifest), 'bin/cli.js');
  const args = [program, 'lint', ...files, '--config', 'redocly.yaml', '--format', 'stylish'];
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const child = spawn(process.execPath, args, { cwd: directory, env, stdio: 'inherit' });
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? 1;
}
