import { fetchOperations, findDeviations } from '../http/document.ts';
import type { Operation } from '../http/document.ts';

export type Conform = (method: string, path: string, response: Response) => Promise<string>;

/** Reads answers, and throws if one deviates from the document that the service serves. */
export async function conformTo(url: string): Promise<Conform> {
  const operations = await fetchOperations(url);
  return async (method, path, response) => {
    const operation = findOperation(operations, method, path);
    const text = await response.text();
    const contentType = response.headers.get('content-type') ?? '';
    const deviations = findDeviations(operation, { status: response.status, contentType, text });
    if (deviations.length > 0) throw new Error(deviations.join('\n'));
    return text;
  };
}

function findOperation(operations: Operation[], method: string, path: string): Operation {
  const parts = (path.split('?', 1)[0] ?? '').split('/');
  const matching = operations.filter((operation) => {
    const wanted = operation.path.split('/');
    const fits = (part: string, at: number) => part.startsWith('{') || part === parts[at];
    return operation.method === method && wanted.length === parts.length && wanted.every(fits);
  });
  // A literal path takes precedence over one with a parameter in that place.
  const [best] = matching.toSorted((a, b) => a.pathParameters.length - b.pathParameters.length);
  if (!best) throw new Error(`The document has no ${method} ${path}.`);
  return best;
}
