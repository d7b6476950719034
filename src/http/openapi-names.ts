type Schemas = Record<string, unknown>;
type Referring = { components?: { schemas?: Schemas } };

const refPattern = /"#\/components\/schemas\/([^"]+)"/g;
/** What the library adds to the name of a schema as it is answered, where it may differ as it is asked for. */
const suffix = 'Output';

/**
 * Leaves out schemas that nothing refers to, and gives the plain name to one that is only answered, or answered as
 * it is asked for: the library makes both forms of each that it is given by name.
 */
export function tidySchemaNames<D extends Referring>(document: D): D {
  const { schemas = {} } = document.components ?? {};
  const used = findUsed(document, schemas);
  const alike = findAlike(schemas);
  const plainNameOf = (name: string) => {
    const plain = plainOf(name);
    return alike.has(name) || !used.has(plain) ? plain : name;
  };
  const withPlainNames = <T>(part: T): T => {
    const text = JSON.stringify(part).replaceAll(
      refPattern,
      (_, name: string) => `"#/components/schemas/${plainNameOf(name)}"`,
    );
    return JSON.parse(text) as T;
  };
  // Of two that are alike the one as it is asked for comes first, and stays.
  const named = new Map<string, unknown>();
  for (const [name, schema] of Object.entries(schemas)) {
    const plain = plainNameOf(name);
    if (used.has(name) && !(named.has(plain) && plain !== name)) named.set(plain, schema);
  }
  return withPlainNames({
    ...document,
    components: { ...document.components, schemas: Object.fromEntries(named) },
  });
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

/**
 * Answered forms that say the same as what is asked for, but that nothing else is in them. All may be alike until
 * they are found to differ; what refers to one that differs does too.
 */
function findAlike(schemas: Schemas): ReadonlySet<string> {
  const alike = new Set(Object.keys(schemas).filter((name) => plainOf(name) in schemas));
  for (const name of alike) if (plainOf(name) === name) alike.delete(name);
  const textOf = (name: string) =>
    JSON.stringify(schemas[name])
      .replaceAll(/,?"additionalProperties":false/g, '')
      .replaceAll(refPattern, (all, ref: string) => (alike.has(ref) ? `"${plainOf(ref)}"` : all))
      .replaceAll('#/components/schemas/', '');
  for (let before = -1; before !== alike.size;) {
    before = alike.size;
    for (const name of alike) if (textOf(name) !== textOf(plainOf(name))) alike.delete(name);
  }
  return alike;
}

function namesIn(part: unknown): string[] {
  const text = JSON.stringify(part) ?? '';
  return [...text.matchAll(refPattern)].map(([, name = '']) => name);
}

const plainOf = (name: string) => (name.endsWith(suffix) ? name.slice(0, -suffix.length) : name);
