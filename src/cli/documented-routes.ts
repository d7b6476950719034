import { accountsRoutes } from '../accounts/routes.ts';
import { alarmRoutes } from '../alarms/routes.ts';
import { keyRoutes } from '../api-keys/routes.ts';
import { auditRoutes } from '../audit/audit.ts';
import { commandRoutes } from '../commands/routes.ts';
import { consoleSessionRoutes } from '../console/session.ts';
import { contactRoutes } from '../contacts/routes.ts';
import { deviceRoutes } from '../devices/routes.ts';
import { eventRoutes } from '../events/routes.ts';
import type { Route } from '../http/route.ts';
import { probeRoutes, statusRoutes } from '../http/health.ts';
import { importRoutes } from '../imports/routes.ts';
import { jobRoutes } from '../jobs/routes.ts';
import { measurementRoutes } from '../measurements/routes.ts';
import { notificationRoutes } from '../notifications/routes.ts';
import { backtestRoutes } from '../play/routes.ts';
import { labelLimitRoutes } from '../profiles/label-limits.ts';
import { profileRoutes } from '../profiles/routes.ts';
import { purposeRoutes } from '../purposes/purposes.ts';
import { quotaRoutes } from '../quotas/routes.ts';
import { streamsRoutes } from '../streams/routes.ts';

/** All routes without a database or services: enough to document them, not to call one. */
export function listDocumentedRoutes(): Route[] {
  return [
    ...accountsRoutes(nothing),
    ...auditRoutes(nothing),
    ...keyRoutes(nothing),
    ...deviceRoutes(nothing),
    ...jobRoutes(nothing),
    ...commandRoutes(nothing),
    ...purposeRoutes(nothing),
    ...profileRoutes(nothing),
    ...labelLimitRoutes(nothing),
    ...eventRoutes(nothing),
    ...alarmRoutes(nothing),
    ...backtestRoutes(nothing),
    ...measurementRoutes(nothing),
    ...importRoutes(nothing),
    ...streamsRoutes(nothing),
    ...notificationRoutes(nothing),
    ...contactRoutes(nothing),
    ...quotaRoutes(nothing),
    ...consoleSessionRoutes(nothing),
    ...statusRoutes(nothing),
    ...probeRoutes(nothing),
  ].filter(({ hidden }) => hidden !== true);
}

/** Stands in for all dependencies of a feature. */
const nothing: never = new Proxy(() => undefined, { get: () => nothing }) as never;
