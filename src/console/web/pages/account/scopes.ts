import type { ApiKey } from '../../api/types.ts';
import { t } from '../../text/t.ts';

export type Scope = ApiKey['scopes'][number];

/** In the order in which they are offered. */
export const scopes: Scope[] = [
  'devices:read',
  'data:read',
  'alarms:read',
  'purposes:read',
  'devices:write',
  'data:write',
  'alarms:write',
  'purposes:write',
];

const stem = (scope: Scope) => scope.replace(':', '.') as `${Area}.${'read' | 'write'}`;
type Area = 'devices' | 'data' | 'alarms' | 'purposes';

export const scopeText = (scope: Scope): string => t(`scope.${stem(scope)}`);
export const scopeHint = (scope: Scope): string => t(`scope.${stem(scope)}.hint`);
