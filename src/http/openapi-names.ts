type Schemas = Record<string, unknown>;
type Referring = { components?: { schemas?: Schemas } };

const refPattern = /"#\/components\/schemas\/([^"]+)"/g;
/** What the library adds to the name of a schema as it is answered, where it may differ as it is asked for. */
const suffix = 'Output';

/**
 * Leaves out schemas that nothing refers to, and gives the plain name to one that is only answered: the library
 * makes both forms of each that it is given by name.
 */
export function tidySchemaNames<D extends Referring>(document: D): D {
  const { schemas = {} } = document.components ?? {};
  const used = findUsed(document, schemas);
  const kept = Object.entries(schemas).filter(([name]) => used.has(name));
  const text = JSON.stringify({
    ...document,
    components: { ...document.components, schemas: Object.fromEntries(kept) },
  });
  const tidied = text.replaceAll(refPattern, (_, name: string) => {
    return `"#/components/schemas/${plainNameOf(name, used)}"`;
  });
  const result = JSON.parse(tidied) as D;
  const named = Object.entries(result.components?.schemas ?? {}).map(
    ([name, schema]) => [plainNameOf(name, used), schema] as const,
  );
  if (result.components) result.components.schemas = Object.fromEntries(named);
  return result;
}

/** Those that are referred to from elsewhere than other schemas, and those that these refer to. */
function findUsed(document: Referring, schemas: Schemas): ReadonlySet<string> {
  const used = new Set<string>();
  const waiting = [...namesIn({ ...document, components: {} })];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (used.has(name)) continue;
    used.add(name);
    waiting.push(...namesIn(schemas[name]));
  }
  return used;
}

function namesIn(part: unknown): string[] {
  const text = JSON.stringify(part) ?? '';
  return [...text.matchAll(refPattern)].map(([, name = '']) => name);
}

function plainNameOf(name: string, used: ReadonlySet<string>): string {
  const plain = name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
  return used.has(plain) ? name : plain;
}
