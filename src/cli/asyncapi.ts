import { writeFile } from 'node:fs/promises';
import { dump } from 'js-yaml';
import { asyncApiDocument } from '../../connector/device/asyncapi.ts';
import { readOptionsOrExit } from './command-line.ts';

readOptionsOrExit(
  `Usage: npm run asyncapi

Writes asyncapi.yaml, the reference for firmware authors, from the schemas.`,
  {},
  () => null,
);

const file = new URL('../../asyncapi.yaml', import.meta.url);
await writeFile(file, dump(asyncApiDocument(), { noRefs: true, lineWidth: 100 }));
